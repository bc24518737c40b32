//! Bytes to meaning: HTTP/1, JSON, SSE. No I/O, no clock; depends on nothing of ours.

pub mod json;
pub mod usage;
