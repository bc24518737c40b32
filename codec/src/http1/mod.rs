//! HTTP/1.1 as bytes: heads, framing, bodies and what we write ourselves. Sans-I/O.
//!
//! Does: parse request and response heads over a caller's buffer, decide how the body that follows
//! is framed, decode that framing step by step, and append status lines, fields and chunk lines to
//! a `Vec<u8>`. Everything it says about a buffer is an offset, so the buffer may be lent to the
//! kernel between two calls.
//! Deliberately does not: read or write sockets, keep time, route, know credentials, decode content
//! codings, speak HTTP/2, or repair input. Where two readers of RFC 9112 could disagree, the
//! message is refused.
//! Bounds: see [`HEAD_BYTES_MAX`], [`FIELDS_MAX`], [`START_LINE_BYTES_MAX`], [`EMPTY_LINES_MAX`],
//! [`CHUNK_LINE_BYTES_MAX`], [`CHUNK_EXCESS_MAX`], [`TRAILER_BYTES_MAX`], [`TRAILER_FIELDS_MAX`].
//! Nothing here allocates, except the growth of the `Vec` that a writer is given.
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::cast_possible_truncation))]

mod authority;
mod body;
mod bytes;
mod chunked;
mod connection;
mod error;
mod facts;
mod fields;
mod fuzz;
mod head;
mod scan;
mod span;
mod target;
mod trailer;
mod write;

pub use body::{BodyError, BodyProgress};
pub use chunked::{
    BodyStep, CHUNK_EXCESS_MAX, CHUNK_LINE_BYTES_MAX, ChunkError, Chunked, Compacted, Garbled,
};
pub use connection::connection_lists;
pub use error::HeadError;
pub use facts::{Expect, Framing};
pub use fields::{FIELDS_MAX, Field, Fields};
#[doc(hidden)]
pub use fuzz::{fuzz_body, fuzz_head};
pub use head::{
    EMPTY_LINES_MAX, HEAD_BYTES_MAX, Method, RequestHead, ResponseHead, START_LINE_BYTES_MAX,
    parse_request, parse_response,
};
pub use scan::HeadScan;
pub use span::Span;
pub use target::Target;
pub use trailer::{TRAILER_BYTES_MAX, TRAILER_FIELDS_MAX, TrailerRule};
pub use write::{
    CHUNK_CLOSE, LAST_CHUNK, Unwritable, chunk, chunk_size, content_length, decimal, field,
    field_opaque, field_stripped, reason, request_line, status_line,
};
