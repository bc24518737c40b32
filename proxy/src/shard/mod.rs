//! One thread, one ring.

pub mod clock;
