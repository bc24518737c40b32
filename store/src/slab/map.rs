//! The mapping and its layout: the only unsafe of this package.
//!
//! ```text
//! 0     header: magic, versions, node, shard, start, geometry
//! 128   published: settle sequence of the last index on the ring     (the shard writes)
//! 192   freed: settle sequence of the last slot freed                 (the collector writes)
//! 4096  ring: u32 × a power of two, at least one for each slot
//! page  slots, class by class: state u32, record
//! ```
//!
//! Invariant of the whole module: the mapping stays as long as `raw` lives, its file has all its
//! blocks (allocated before it was mapped), and every offset is checked against its length. Words
//! that two sides touch are atomics; bytes of a record are written only by the side that owns the
//! slot: the shard outside DONE, the collector or recovery from an observed DONE on.

#![expect(unsafe_code, reason = "memory that outlives the process is reached by pointers only")]

use super::{CLASSES, Class, Geometry, SlabId, State};
use crate::error::{Error, Result};
use crate::record::{self, Head, NotARecord, RECORD_BYTES_MAX};
use crate::wire::{Put, Take, Wire, wire_struct};
use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"TOLLSLAB");
pub(super) const LAYOUT_VERSION: u32 = 1;
pub(super) const PAGE: usize = 4096;
pub(super) const PUBLISHED: usize = 128;
pub(super) const FREED: usize = 192;
pub(super) const RING: usize = PAGE;
/// The record begins behind the slot's state word.
const RECORD: usize = 4;

wire_struct! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct SlabHeader {
        pub magic: u64,
        pub layout_version: u32,
        pub record_version: u32,
        pub node: u64,
        pub slab: u64,
        pub slot_bytes: [u32; CLASSES],
        pub slots: [u32; CLASSES],
    }
}

const HEADER_BYTES: usize = <SlabHeader as Wire>::BYTES;
const _: () = assert!(HEADER_BYTES <= PUBLISHED);

/// A slot as somebody looking on sees it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The slab it is in.
    pub slab: SlabId,
    /// Its place.
    pub index: u32,
    /// Its state.
    pub state: State,
    /// Its record.
    pub head: Head,
}

/// A mapped slab. Holds the file, and with it the lock if it was taken.
#[derive(Debug)]
pub(super) struct Map {
    /// Invariant: `raw.len()` is `layout.bytes`.
    raw: MmapRaw,
    _file: File,
    pub(super) layout: Layout,
    pub(super) id: SlabId,
}

/// Where everything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) geometry: Geometry,
    ring_mask: u64,
    slots_from: [usize; CLASSES],
    pub(super) bytes: usize,
}

// === impl SlabHeader ===

impl SlabHeader {
    pub(super) fn geometry(&self) -> Geometry {
        let mut classes = [Class::default(); CLASSES];
        let sizes = self.slot_bytes.into_iter().zip(self.slots);
        for (class, (slot_bytes, slots)) in classes.iter_mut().zip(sizes) {
            *class = Class { slot_bytes, slots };
        }
        Geometry { classes }
    }
}

// === impl Layout ===

impl Layout {
    pub(super) fn of(geometry: Geometry) -> Result<Layout> {
        let sound = Some(geometry).filter(Geometry::is_sound);
        let geometry = sound.ok_or(Error::Slab("a geometry that cannot be laid out"))?;
        let wide = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let entries = wide(geometry.slots()).next_power_of_two();
        let mut at = (RING + entries * 4).next_multiple_of(PAGE);
        let mut slots_from = [0; CLASSES];
        for (from, class) in slots_from.iter_mut().zip(geometry.classes) {
            *from = at;
            at += wide(class.slot_bytes) * wide(class.slots);
        }
        let bytes = at.next_multiple_of(PAGE);
        Ok(Layout { geometry, ring_mask: entries as u64 - 1, slots_from, bytes })
    }

    /// Where a slot is, and how long; `None` if there is no such slot.
    pub(super) fn slot(&self, index: u32) -> Option<(usize, usize)> {
        let mut rest = index;
        for (from, class) in self.slots_from.iter().zip(self.geometry.classes) {
            if rest < class.slots {
                let bytes = usize::try_from(class.slot_bytes).ok()?;
                return Some((from + bytes * usize::try_from(rest).ok()?, bytes));
            }
            rest -= class.slots;
        }
        None
    }
}

// === impl Map ===

impl Map {
    /// Lays a slab out in a file that has all its blocks and holds only zeros.
    pub(super) fn lay_out(file: File, node: u64, id: SlabId, geometry: Geometry) -> Result<Map> {
        let layout = Layout::of(geometry)?;
        let map = Map { raw: map_whole(&file, layout.bytes)?, _file: file, layout, id };
        let mut header = [0; HEADER_BYTES];
        let written = SlabHeader {
            magic: 0,
            layout_version: LAYOUT_VERSION,
            record_version: record::VERSION.into(),
            node,
            slab: id.number(),
            slot_bytes: geometry.classes.map(|class| class.slot_bytes),
            slots: geometry.classes.map(|class| class.slots),
        };
        written.put(&mut Put::new(&mut header));
        map.write(0, &header);
        // The magic comes last: a slab whose making was interrupted is none.
        map.word64(0).store(MAGIC, Ordering::Release);
        Ok(map)
    }

    /// Maps the slab that a file's name says is there; `None` if its making was interrupted.
    pub(super) fn attach(file: File, node: u64, id: SlabId) -> Result<Option<Map>> {
        let len = file.metadata().map_err(Error::io("looking at a slab"))?.len();
        let len = usize::try_from(len).unwrap_or(0);
        if len < PAGE {
            return Ok(None);
        }
        let raw = map_whole(&file, len)?;
        let geometry = Geometry { classes: [Class::default(); CLASSES] };
        let layout = Layout { geometry, ring_mask: 0, slots_from: [0; CLASSES], bytes: len };
        let mut map = Map { raw, _file: file, layout, id };
        if map.word64(0).load(Ordering::Acquire) == 0 {
            return Ok(None);
        }
        let mut bytes = [0; HEADER_BYTES];
        map.read(0, &mut bytes);
        let header = SlabHeader::take(&mut Take::new(&bytes)).ok_or(Error::Slab("no header"))?;
        if header.magic != MAGIC || header.layout_version != LAYOUT_VERSION {
            return Err(Error::Slab("of another version, or none"));
        }
        if header.record_version != u32::from(record::VERSION) {
            return Err(Error::Slab("its records are of another version"));
        }
        if header.node != node {
            return Err(Error::Slab("of another node"));
        }
        map.layout = Layout::of(header.geometry())?;
        if header.slab != id.number() {
            return Err(Error::Slab("not the one that its file's name says"));
        }
        if map.layout.bytes != len {
            return Err(Error::Slab("its length is not that of its geometry"));
        }
        Ok(Some(map))
    }

    /// Keeps the pages in memory; refused where the limit is low.
    pub(super) fn lock_pages(&self) -> bool {
        self.raw.lock().is_ok()
    }

    pub(super) fn published(&self) -> &AtomicU64 {
        self.word64(PUBLISHED)
    }

    pub(super) fn freed(&self) -> &AtomicU64 {
        self.word64(FREED)
    }

    /// The ring's entry for a settle sequence.
    pub(super) fn ring(&self, sequence: u64) -> &AtomicU32 {
        let entry = usize::try_from(sequence & self.layout.ring_mask).unwrap_or(0);
        self.word32(RING + 4 * entry)
    }

    pub(super) fn state_word(&self, slot: usize) -> &AtomicU32 {
        self.word32(slot)
    }

    pub(super) fn state(&self, slot: usize) -> Result<State> {
        let number = self.state_word(slot).load(Ordering::Acquire);
        let state = u8::try_from(number).ok().and_then(State::from_number);
        state.ok_or(Error::Slab("a slot in no known state"))
    }

    pub(super) fn set_state(&self, slot: usize, state: State) {
        self.state_word(slot).store(state.number().into(), Ordering::Release);
    }

    /// Writes the head of a slot's record.
    pub(super) fn write_head(&self, slot: usize, head: &Head) {
        self.write(slot + RECORD + record::PRELUDE_BYTES, &head.encode());
    }

    /// Writes a tail that has been encoded: while it is being written the record has none.
    pub(super) fn write_tail(&self, slot: usize, tail: &[u8]) {
        let prelude = self.word32(slot + RECORD);
        prelude.store(record::prelude(0), Ordering::Relaxed);
        std::sync::atomic::fence(Ordering::Release);
        self.write(slot + RECORD + record::PRELUDE_BYTES + record::HEAD_BYTES, tail);
        let len = u16::try_from(tail.len()).unwrap_or(0);
        prelude.store(record::prelude(len), Ordering::Release);
    }

    /// Notes usage and bytes of an exchange under way; each a store of its own.
    pub(super) fn note(&self, slot: usize, tokens: &[u32; 8], relayed_bytes: u64) {
        let from = slot + RECORD + record::at::TOKENS;
        for (place, count) in (from..).step_by(4).zip(tokens) {
            self.word32(place).store(*count, Ordering::Relaxed);
        }
        let relayed = self.word64(slot + RECORD + record::at::RELAYED_BYTES);
        relayed.store(relayed_bytes, Ordering::Relaxed);
    }

    /// The record of a slot whose DONE was observed, in place.
    pub(super) fn record(&self, slot: usize, bytes: usize) -> &[u8] {
        let from = slot + RECORD;
        let room = bytes.saturating_sub(RECORD).min(RECORD_BYTES_MAX);
        let mut prelude = [0; record::PRELUDE_BYTES];
        self.read(from, &mut prelude);
        let len = record::len_of(&prelude).unwrap_or(0).min(room);
        self.check(from, len);
        // SAFETY: `check` keeps the range inside the mapping, which `self` keeps alive. The slot
        // is DONE, so its owner is the caller's side, which writes nothing while it reads.
        unsafe { std::slice::from_raw_parts(self.raw.as_ptr().add(from), len) }
    }

    /// A copy of a slot's record, for those who do not own it.
    pub(super) fn copy_of_record(&self, slot: usize, bytes: usize) -> Vec<u8> {
        let from = slot + RECORD;
        let mut copy = vec![0; bytes.saturating_sub(RECORD).min(RECORD_BYTES_MAX)];
        self.read(from, &mut copy);
        copy.truncate(record::len_of(&copy).unwrap_or(0));
        copy
    }

    /// The head of a slot's record, copied.
    pub(super) fn head(&self, slot: usize, bytes: usize) -> std::result::Result<Head, NotARecord> {
        record::split(&self.copy_of_record(slot, bytes)).map(|(head, _)| head)
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        self.check(at, bytes.len());
        // SAFETY: `check` keeps the range inside the mapping, which `self` keeps alive and which
        // no Rust reference covers; the caller's side owns the slot (module invariant), and a
        // source outside the mapping cannot overlap it.
        unsafe {
            let to = self.raw.as_mut_ptr().add(at);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }

    fn read(&self, at: usize, bytes: &mut [u8]) {
        self.check(at, bytes.len());
        // SAFETY: as in `write`. Reading a slot that its shard is writing can give a mixture of
        // before and after, which is plain integers and bytes and is decoded as input.
        unsafe {
            let from = self.raw.as_ptr().add(at);
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len());
        }
    }

    fn word32(&self, at: usize) -> &AtomicU32 {
        self.check(at, 4);
        assert!(at.is_multiple_of(4), "a word of the slab is aligned");
        // SAFETY: in bounds and aligned (the mapping begins at a page); the mapping lives as long
        // as `self`, and the word is only ever accessed as an atomic once it is shared.
        unsafe { AtomicU32::from_ptr(self.raw.as_mut_ptr().add(at).cast()) }
    }

    fn word64(&self, at: usize) -> &AtomicU64 {
        self.check(at, 8);
        assert!(at.is_multiple_of(8), "a word of the slab is aligned");
        // SAFETY: as in `word32`.
        unsafe { AtomicU64::from_ptr(self.raw.as_mut_ptr().add(at).cast()) }
    }

    #[inline]
    fn check(&self, at: usize, len: usize) {
        assert!(at.saturating_add(len) <= self.raw.len(), "an offset inside the slab");
    }
}

fn map_whole(file: &File, bytes: usize) -> Result<MmapRaw> {
    MmapOptions::new().len(bytes).populate().map_raw(file).map_err(Error::io("mapping a slab"))
}
