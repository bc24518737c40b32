//! The layers, one file each. Their order is the list in `govern/mod.rs`.

pub mod budget;
pub mod concurrency;
pub mod expiry;
pub mod models;
pub mod requests;

#[cfg(test)]
pub(crate) mod world;
