//! What a connection's task holds for the exchange under way. It lives outside the future that a
//! panic unwinds, so that whatever happens the exchange is settled once.

use crate::exchange::bundle::Bundle;
use crate::govern;
use std::rc::Rc;
use std::sync::Arc;
use store::record::Settled;
use store::slab::Slot;

/// Whoever pays. The outer count is this thread's: shards that serve one key share no count.
pub(super) type Payer = Rc<Arc<Bundle>>;

/// How far an exchange has come, as its slot in the slab says too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// There is none: it can still be refused, and then leaves a record of that at most.
    #[default]
    None,
    /// It is under way and free: it has no record, no price and no outcome.
    Free,
    /// It is opened: from here on it has exactly one outcome.
    Open,
    /// A byte of it may have reached an upstream.
    Sent,
    /// Usage and price are in the record.
    Priced,
}

impl Stage {
    /// Whether it has a record, and so one outcome to come.
    pub(super) fn is_opened(self) -> bool {
        matches!(self, Stage::Open | Stage::Sent | Stage::Priced)
    }
}

/// The exchange under way.
#[derive(Default)]
pub(super) struct Held {
    /// Who pays; known from authentication on.
    pub bundle: Option<Payer>,
    /// What the layers took.
    pub layers: govern::Held,
    /// What the layers of a route took that costs nothing.
    pub passing: govern::PassingHeld,
    /// How far it is.
    pub stage: Stage,
    /// Its record, kept here as it will be settled; of a free one only its attempts count.
    pub record: Settled,
    /// Where the record lives; none if the ledger is off, or did without.
    pub slot: Option<Slot>,
    /// Tokens its input is estimated at.
    pub input_estimate: u32,
}
