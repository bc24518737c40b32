//! tollgate: the toll station in front of a fleet of AI agents. The only package that does I/O
//! with the world.
//!
//! Reading order: `pipeline` (one request, top to bottom), `exchange` (the nouns), `govern` (the
//! judgement), `config`, `shard`, `io`, `upstream`.

pub mod admin;
pub mod cli;
pub mod config;
pub mod control;
pub mod demo;
pub mod exchange;
pub mod govern;
pub mod io;
pub mod observe;
pub mod pipeline;
pub mod server;
pub mod shard;
pub mod upstream;
