//! The shard's side: takes slots, fills them, settles them. Never waits.

use super::map::Map;
use super::{CLASSES, SlabId, State};
use crate::record::{HEAD_BYTES, Head, PRELUDE_BYTES, RECORD_BYTES_MAX, flag};
use crate::tail::Tail;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A shard's slab.
#[derive(Debug)]
pub struct Slab {
    map: Arc<Map>,
    /// Free slots by class.
    free: [Vec<u32>; CLASSES],
    /// Settle sequence up to which freed slots have come back.
    reclaimed: u64,
    /// The last settle sequence given.
    sequence: u64,
    /// A tail being encoded.
    tail: Box<[u8]>,
    locked: bool,
}

/// A slot in use. Whoever has one can always settle: nothing else is needed.
#[derive(Debug)]
#[must_use = "an opened exchange has exactly one outcome"]
pub struct Slot {
    index: u32,
    at: usize,
    bytes: usize,
    flags: u32,
}

// === impl Slab ===

impl Slab {
    pub(super) fn new(map: Arc<Map>) -> Slab {
        let mut free = [const { Vec::new() }; CLASSES];
        let mut from = 0;
        for (list, class) in free.iter_mut().zip(map.layout.geometry.classes) {
            // The lowest index is taken first: few slots stay warm in the cache.
            *list = (from..from + class.slots).rev().collect();
            from += class.slots;
        }
        let locked = map.lock_pages();
        let tail = vec![0; RECORD_BYTES_MAX].into();
        Slab { map, free, reclaimed: 0, sequence: 0, tail, locked }
    }

    /// Which one it is.
    pub fn id(&self) -> SlabId {
        self.map.id
    }

    /// Whether its pages were locked into memory; a warning and a metric if not.
    pub fn is_locked(&self) -> bool {
        self.locked
    }

    /// Free slots by class, as of now.
    pub fn free(&mut self) -> [usize; CLASSES] {
        self.reclaim();
        std::array::from_fn(|class| self.free.get(class).map_or(0, Vec::len))
    }

    /// Settle sequences given so far.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// FREE → OPEN. `None`: no slot is free, `ledger_busy`. Where only smaller slots are free the
    /// tail is cut and flagged.
    pub fn open(&mut self, head: &Head, tail: &Tail<'_>) -> Option<Slot> {
        let slot = self.fill(head, tail)?;
        self.map.set_state(slot.at, State::Open);
        Some(slot)
    }

    /// OPEN or SENT → SENT: candidate and attempt are in the head, before the attempt's first byte
    /// leaves.
    pub fn sent(&self, slot: &Slot, head: &Head) {
        self.write(slot, head);
        self.map.set_state(slot.at, State::Sent);
    }

    /// Replaces the tail: the model sent is another one with another candidate.
    pub fn attribute(&mut self, slot: &mut Slot, tail: &Tail<'_>) {
        let room = slot.bytes.saturating_sub(4 + PRELUDE_BYTES + HEAD_BYTES);
        let (used, cut) = tail.encode(self.tail.get_mut(..room).unwrap_or_default());
        slot.flags = if cut { flag::TAIL_CUT } else { 0 };
        self.map.write_tail(slot.at, self.tail.get(..used.into()).unwrap_or_default());
    }

    /// Notes usage and bytes relayed while SENT: what a crash leaves of the exchange.
    pub fn note(&self, slot: &Slot, tokens: &[u32; 8], relayed_bytes: u64) {
        self.map.note(slot.at, tokens, relayed_bytes);
    }

    /// SENT → PRICED: usage and cost, before the last bytes of the answer go out.
    pub fn price(&self, slot: &Slot, head: &Head) {
        self.write(slot, head);
        self.map.set_state(slot.at, State::Priced);
    }

    /// → DONE, from any state: the ending is in the head. The slot is the collector's.
    pub fn done(&mut self, slot: Slot, head: &Head) {
        self.sequence += 1;
        let mut head = *head;
        head.slab = self.map.id.number();
        head.settle_sequence = self.sequence;
        self.write(&slot, &head);
        self.map.set_state(slot.at, State::Done);
        self.map.ring(self.sequence).store(slot.index, Ordering::Relaxed);
        self.map.published().store(self.sequence, Ordering::Release);
    }

    /// FREE → DONE: the record of a refusal. `false`: no slot is free, it is only counted.
    pub fn refuse(&mut self, head: &Head, tail: &Tail<'_>) -> bool {
        let Some(slot) = self.fill(head, tail) else { return false };
        self.done(slot, head);
        true
    }

    fn fill(&mut self, head: &Head, tail: &Tail<'_>) -> Option<Slot> {
        self.reclaim();
        let index = self.pick(4 + PRELUDE_BYTES + HEAD_BYTES + tail.bytes())?;
        let (at, bytes) = self.map.layout.slot(index)?;
        let mut slot = Slot { index, at, bytes, flags: 0 };
        self.attribute(&mut slot, tail);
        self.write(&slot, head);
        Some(slot)
    }

    /// A free slot that is long enough, else the longest there is.
    fn pick(&mut self, bytes: usize) -> Option<u32> {
        let enough = |slot_bytes: u32| usize::try_from(slot_bytes).is_ok_and(|slot| slot >= bytes);
        let classes = self.map.layout.geometry.classes;
        let long_enough = classes.iter().position(|class| enough(class.slot_bytes));
        let (shorter, longer) = self.free.split_at_mut(long_enough.unwrap_or(CLASSES));
        // Only the class that fits: small records must not use up the few large slots.
        let fitting = longer.first_mut().and_then(Vec::pop);
        fitting.or_else(|| shorter.iter_mut().rev().find_map(Vec::pop))
    }

    /// Takes back what the collector has freed.
    fn reclaim(&mut self) {
        let freed = self.map.freed().load(Ordering::Acquire).min(self.sequence);
        while self.reclaimed < freed {
            self.reclaimed += 1;
            let index = self.map.ring(self.reclaimed).load(Ordering::Relaxed);
            self.give_back(index);
        }
    }

    fn give_back(&mut self, index: u32) {
        let mut below = 0_u32;
        for (list, class) in self.free.iter_mut().zip(self.map.layout.geometry.classes) {
            below += class.slots;
            if index < below {
                list.push(index);
                return;
            }
        }
    }

    fn write(&self, slot: &Slot, head: &Head) {
        let head = Head { flags: head.flags | slot.flags, ..*head };
        self.map.write_head(slot.at, &head);
    }
}
