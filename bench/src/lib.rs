//! Microbenchmarks of the hot primitives: inputs and the counting allocator.

pub mod alloc;
pub mod reply_body;
pub mod request_body;
pub mod stream_chunks;
