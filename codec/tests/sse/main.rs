//! The SSE splitter and the stream scan: the corpora and the field cases, whole, byte by byte
//! and at every two-way split, properties of generated streams, and a relay that withholds and
//! removes by what the scan says.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../cases/mod.rs"]
mod cases;
mod corpus;
mod field;
mod giant;
mod properties;
mod reader;
mod relay;
mod usage;
