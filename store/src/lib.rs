//! Durable records. Knows nothing of HTTP, providers or policy.
//!
//! What survives what:
//!
//! | | process killed | power lost | file damaged |
//! |---|---|---|---|
//! | an open exchange (`slab`) | yes, as far as it was noted | no | – |
//! | a settled exchange, not yet committed (`slab`) | yes | no | – |
//! | a committed record (`appender`) | yes | yes | named by `verify`, never served wrong |
//! | keys, checkpoint (`state`) | yes | yes | refused by redb's checksums |
//!
//! The way of a record: a slot of the [`slab`] is filled by a shard, settled, taken by the
//! collector, appended to the log ([`appender`]) as part of a [`frame`], and only then its slot is
//! free again. [`recover`] makes the same of what a dead process left. The log is read by
//! [`reader`], proved by [`verify`], asked by [`query`], and summed up in [`balance`].
//!
//! It starts no thread and reads no clock; the disk is reached through [`disk`] and [`slab`] only.
//! Nothing read from a disk or a mapping makes it panic.

#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::cast_possible_truncation))]

pub mod appender;
pub mod balance;
pub mod commit;
pub mod disk;
pub mod ending;
pub mod error;
pub mod frame;
#[doc(hidden)]
pub mod fuzz;
pub mod lock;
pub mod query;
pub mod reader;
pub mod record;
pub mod recover;
mod refusals;
pub mod segment;
pub mod slab;
pub mod state;
pub mod tail;
pub mod text;
pub mod verify;
mod wire;
