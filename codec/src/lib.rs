//! Bytes to meaning: HTTP/1, JSON, SSE, trace context. No I/O, no clock; knows nothing of ours.

pub mod http1;
pub mod json;
pub mod sse;
pub mod trace_context;
pub mod usage;
