//! Durable records. Knows nothing of HTTP, providers or policy.

#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::cast_possible_truncation))]

pub mod appender;
pub mod balance;
pub mod commit;
pub mod disk;
pub mod ending;
pub mod error;
pub mod frame;
pub mod lock;
pub mod query;
pub mod reader;
pub mod record;
pub mod recover;
pub mod segment;
pub mod slab;
pub mod state;
pub mod tail;
pub mod text;
pub mod verify;
mod wire;
