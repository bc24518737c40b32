//! Microbenchmarks of the hot primitives: inputs and the counting allocator.

pub mod alloc;
pub mod request_body;
