//! Text to snapshot, off the cores: everything that can be refused is refused here.

pub mod snapshot;
