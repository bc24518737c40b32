//! Exchanges in flight and settled, in memory that outlives the process: one file on tmpfs per
//! shard and start, allocated whole, mapped shared. The slot *is* the record.
//!
//! ```text
//! FREE → OPEN → SENT → PRICED → DONE → FREE          (FREE → DONE: a refusal)
//! └──────── the shard ────────┘ └ the collector ┘
//! ```
//!
//! The state word is stored with Release after the fields it vouches for; a kill stops the
//! process between two stores, so that is all the ordering a crash needs. DONE gives the slot the
//! shard's next settle sequence and puts its index on a ring in the same mapping; the collector
//! takes indices in that order and frees slots after they are in the log. No lock, no wake-up,
//! no checksum on the shard.
//!
//! Survives any kill of the process, not a reboot. Never on a disk file system: write-back would
//! put the shard to sleep. Bounds: [`Geometry`]; the ring has an entry for every slot.

use crate::wire::wire_enum;

mod collector;
mod file;
pub(crate) mod fuzzed;
mod map;
mod shard;

pub use collector::Collector;
pub use file::{Dead, Files, Opened};
pub use map::Seen;
pub use shard::{Slab, Slot};

/// Size classes of slots.
pub const CLASSES: usize = 4;

/// Slots in all classes together: their indices and the ring's must stay far from overflow.
pub const SLOTS_MAX: u32 = 1 << 20;

/// The smallest slot: state word, prelude, head and a little of the tail.
pub const SLOT_BYTES_MIN: u32 = 384;

wire_enum! {
    /// The state of a slot.
    pub enum State {
        /// Nobody's.
        Free = 0 "free",
        /// Ids, attribution, holds.
        Open = 1 "open",
        /// An attempt is or was under way; usage is noted as it passes.
        Sent = 2 "sent",
        /// Usage and price are known; the answer may be whole at the client.
        Priced = 3 "priced",
        /// Settled; the collector's.
        Done = 4 "done",
    }
}

/// One incarnation of one shard's slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlabId {
    /// The shard.
    pub shard: u16,
    /// How often the node had been started.
    pub start: u32,
}

/// One size class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Bytes of a slot: a multiple of 64, so that no two share a cache line.
    pub slot_bytes: u32,
    /// How many.
    pub slots: u32,
}

/// How many slots of which size, smallest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// The classes.
    pub classes: [Class; CLASSES],
}

// === impl SlabId ===

impl SlabId {
    /// As records and frames have it.
    pub fn number(self) -> u64 {
        (u64::from(self.shard) << 32) | u64::from(self.start)
    }

    /// What a number stands for.
    pub fn from_number(number: u64) -> Option<SlabId> {
        let shard = u16::try_from(number >> 32).ok()?;
        let start = u32::try_from(number & u64::from(u32::MAX)).ok()?;
        Some(SlabId { shard, start })
    }
}

// === impl Geometry ===

impl Default for Geometry {
    /// 23.5 MiB: two seconds of 16,000 settlements a second while the disk stalls.
    fn default() -> Geometry {
        let class = |slot_bytes, slots| Class { slot_bytes, slots };
        Geometry {
            classes: [
                class(512, 32_768),
                class(2048, 2048),
                class(8192, 256),
                class(24 * 1024, 64),
            ],
        }
    }
}

impl Geometry {
    /// Whether it can be laid out: sizes growing, multiples of 64, counts within bounds.
    pub fn is_sound(&self) -> bool {
        let sizes = self.classes.iter().map(|class| class.slot_bytes);
        let growing = sizes.clone().zip(sizes.clone().skip(1)).all(|(one, next)| one < next);
        let slots: u64 = self.classes.iter().map(|class| u64::from(class.slots)).sum();
        let fits =
            |bytes: u32| bytes.is_multiple_of(64) && (SLOT_BYTES_MIN..=24 * 1024).contains(&bytes);
        growing && sizes.clone().all(fits) && (1..=u64::from(SLOTS_MAX)).contains(&slots)
    }

    /// All slots.
    pub fn slots(&self) -> u32 {
        self.classes.iter().fold(0, |sum, class| sum.saturating_add(class.slots))
    }
}

#[cfg(test)]
pub(crate) mod tests;
