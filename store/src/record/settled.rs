//! A settled record as a value of fixed size, for queues between threads and for receipts: the
//! head, and the two model names cut to what a line shows. The log has the whole tail.

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
}

// === impl Settled ===

impl From<&Record<'_>> for Settled {
    fn from(record: &Record<'_>) -> Settled {
        let model = Text::from(record.tail.model_asked);
        Settled { head: record.head, model, served_model: Text::from(record.tail.model_sent) }
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
