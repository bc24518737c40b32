//! The ledger thread's side: takes settled records in the order they were settled, and frees their
//! slots once they are durable. Works on a slab of this process and on one of a predecessor that
//! is still draining.

use super::map::Map;
use super::{SlabId, State};
use crate::error::{Error, Result};
use crate::record::at::SETTLE_SEQUENCE;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Takes from one slab.
#[derive(Debug)]
pub struct Collector {
    map: Arc<Map>,
    /// Settle sequence of the last record taken.
    taken: u64,
    /// Settle sequence of the last slot freed.
    freed: u64,
}

// === impl Collector ===

impl Collector {
    pub(super) fn new(map: Arc<Map>) -> Collector {
        let freed = map.freed().load(Ordering::Acquire);
        Collector { map, taken: freed, freed }
    }

    /// Which slab it is.
    pub fn id(&self) -> SlabId {
        self.map.id
    }

    /// Records settled and not taken; 0 where the slab is damaged.
    pub fn pending(&self) -> u64 {
        self.published().map_or(0, |published| published.saturating_sub(self.taken))
    }

    /// Settle sequence of the last record the shard published. Every one that is not freed has a
    /// slot: anything else is damage, and would be a walk without an end.
    fn published(&self) -> Result<u64> {
        let published = self.map.published().load(Ordering::Acquire);
        let ahead = published.checked_sub(self.freed);
        let slots = u64::from(self.map.layout.geometry.slots());
        let known = ahead.filter(|ahead| *ahead <= slots).map(|_| published);
        known.ok_or(Error::Slab("it has settled more than it has slots"))
    }

    /// Gives every settled record to `each`, in order, until that answers `false` (the batch is
    /// full: commit, then come again). Returns how many were taken.
    pub fn take(&mut self, mut each: impl FnMut(&[u8]) -> Result<bool>) -> Result<u64> {
        let published = self.published()?;
        let from = self.taken;
        while self.taken < published {
            let next = self.taken + 1;
            let (at, bytes) = self.slot_of(next)?;
            if self.map.state(at)? != State::Done {
                return Err(Error::Slab("an index on the ring whose slot is not settled"));
            }
            let record = self.map.record(at, bytes);
            let sequence = record.get(SETTLE_SEQUENCE..).unwrap_or_default();
            // A record that comes twice would be billed twice.
            if !sequence.starts_with(&next.to_le_bytes()) {
                return Err(Error::Slab("an index on the ring whose slot is another's"));
            }
            if !each(record)? {
                break;
            }
            self.taken = next;
        }
        Ok(self.taken - from)
    }

    /// Skips what the log already has: after a start beside a draining predecessor.
    pub fn skip_to(&mut self, settled: u64) -> Result<()> {
        let published = self.published()?;
        self.taken = self.taken.max(settled.min(published));
        self.free()
    }

    /// Frees what was taken: it is durable.
    pub fn free(&mut self) -> Result<()> {
        for before in self.freed..self.taken {
            let (at, _) = self.slot_of(before + 1)?;
            self.map.set_state(at, State::Free);
        }
        self.freed = self.taken;
        self.map.freed().store(self.freed, Ordering::Release);
        Ok(())
    }

    /// Slots by state: of all, for metrics; a walk over every state word.
    pub fn count(&self) -> [u32; 5] {
        let mut counts = [0; 5];
        for index in 0..self.map.layout.geometry.slots() {
            let Some((at, _)) = self.map.layout.slot(index) else { break };
            let state = self.map.state(at).map_or(0, State::number);
            if let Some(count) = counts.get_mut(usize::from(state)) {
                *count += 1;
            }
        }
        counts
    }

    fn slot_of(&self, sequence: u64) -> Result<(usize, usize)> {
        let index = self.map.ring(sequence).load(Ordering::Relaxed);
        self.map.layout.slot(index).ok_or(Error::Slab("an index on the ring without a slot"))
    }
}
