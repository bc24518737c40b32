//! What the ledger thread tells: written by it alone, read by shards and by whoever scrapes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// States of a slot, in the order of [`LedgerGauges::slots`].
pub const SLOT_STATES: [&str; 5] = ["free", "open", "sent", "priced", "done"];

/// Whether the log takes records, by the value of [`LedgerGauges::health`].
pub const HEALTHS: [&str; 3] = ["good", "full", "failing"];

/// The ledger's numbers.
#[derive(Debug, Default)]
pub struct LedgerGauges {
    /// A place in [`HEALTHS`].
    pub health: AtomicU64,
    /// Records made durable since the start.
    pub records: AtomicU64,
    /// Bytes of frames written since the start.
    pub bytes: AtomicU64,
    /// Commits since the start, and the nanoseconds they took together.
    pub commits: AtomicU64,
    /// See [`LedgerGauges::commits`].
    pub commit_ns: AtomicU64,
    /// The longest of them.
    pub commit_ns_max: AtomicU64,
    /// Failed writes and syncs since the start.
    pub failures: AtomicU64,
    /// Records settled by shards and not durable yet.
    pub lag: AtomicU64,
    /// Sequence of the last durable record.
    pub last_seq: AtomicU64,
    /// Slots of all slabs by state, as of the last second.
    pub slots: [AtomicU64; SLOT_STATES.len()],
}

impl LedgerGauges {
    /// Whether the log takes records: what a shard asks before it opens an exchange.
    pub fn is_good(&self) -> bool {
        self.health.load(Relaxed) == 0
    }
}
