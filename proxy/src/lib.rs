//! tollgate: the toll station in front of a fleet of AI agents. The only package that does I/O
//! with the world.
//!
//! Reading order: `pipeline` (one request, top to bottom), `exchange` (the nouns), `config`,
//! `shard`, `io`.

pub mod config;
pub mod exchange;
pub mod io;
pub mod shard;
