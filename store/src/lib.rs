//! Durable records. Knows nothing of HTTP, providers or policy.

#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::cast_possible_truncation))]

pub mod balance;
pub mod ending;
pub mod error;
pub mod record;
pub mod tail;
pub mod text;
mod wire;
