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
    /// Sequence of the last record that the state store vouches for.
    pub checkpointed_seq: AtomicU64,
    /// Checkpoints that the state store refused since the start.
    pub checkpoint_failures: AtomicU64,
    /// Slots of all slabs by state, as of the last second.
    pub slots: [AtomicU64; SLOT_STATES.len()],
    /// Slabs that could not be locked into memory.
    pub slabs_unlocked: AtomicU64,
    /// Slabs that are damaged: nothing more is taken from them.
    pub slabs_damaged: AtomicU64,
}

impl LedgerGauges {
    /// Whether the log takes records: what a shard asks before it opens an exchange.
    pub fn is_good(&self) -> bool {
        self.health.load(Relaxed) == 0
    }

    /// Nothing becomes durable any more.
    pub fn fail(&self) {
        self.health.store(2, Relaxed);
    }

    /// Counts a commit. For the one thread that writes here.
    pub fn committed(&self, records: u64, bytes: u64, took_ns: u64) {
        self.records.fetch_add(records, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        self.commits.fetch_add(1, Relaxed);
        self.commit_ns.fetch_add(took_ns, Relaxed);
        self.commit_ns_max.fetch_max(took_ns, Relaxed);
    }
}
