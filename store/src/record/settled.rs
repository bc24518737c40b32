//! A settled record as a value of fixed size, for queues between threads and for receipts: the
//! head, the two model names cut to what a line shows, and the trace. The log has the whole tail.

use super::{Head, Record};
use crate::text::Text;
use std::ops::{Deref, DerefMut};

/// Bytes kept of a model's name; longer ones are cut and flagged.
pub const MODEL_BYTES: usize = 128;

/// One exchange, settled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settled {
    /// The fixed part.
    pub head: Head,
    /// The model as asked for.
    pub model: Text<MODEL_BYTES>,
    /// The model as sent upstream.
    pub served_model: Text<MODEL_BYTES>,
    /// The trace it belongs to.
    pub trace_id: Option<[u8; 16]>,
}

// === impl Settled ===

impl From<&Record<'_>> for Settled {
    fn from(record: &Record<'_>) -> Settled {
        Settled {
            head: record.head,
            model: Text::from(record.tail.model_asked),
            served_model: Text::from(record.tail.model_sent),
            trace_id: record.tail.trace_id,
        }
    }
}

impl Deref for Settled {
    type Target = Head;

    fn deref(&self) -> &Head {
        &self.head
    }
}

impl DerefMut for Settled {
    fn deref_mut(&mut self) -> &mut Head {
        &mut self.head
    }
}
