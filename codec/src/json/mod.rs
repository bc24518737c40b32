//! JSON as a gateway needs it: bytes are checked and pointed at, never turned into a tree.
//!
//! A request body is read once by [`RequestScan`], which may stop and go on at any byte; what
//! has to change is put in place by [`Edits`], everything else goes upstream as it came. An
//! answer is read in pieces by [`ReplyScan`], whose earlier bytes may already be gone.
//!
//! Deliberately absent: trees, number values beyond the few counts we judge, re-encoding.
//! Bounds: depth [`DEPTH_MAX`], model name [`MODEL_BYTES_MAX`], reply keys and short texts as
//! their modules say. Nothing here allocates, recurses or panics on input.

mod error;
mod escape;
mod keys;
mod nest;
mod number;
mod reply;
mod scan;
mod simd;
mod span;
mod splice;
pub mod split_proof;
mod text;
mod tokens;
mod window;

pub use error::{JsonError, JsonErrorKind};
pub use escape::{UnescapeError, unescape_into, write_string};
pub use keys::RequestKey;
pub use reply::{
    ErrorFacts, EventType, ReplyFacts, ReplyScan, SHORT_TEXT_MAX, SaidText, ShortText,
};
pub use scan::{Progress, RequestScan};
pub use span::{
    Count, CountField, IncludeUsage, RequestSpans, Span, StreamOptions, StringSpan, TextEstimate,
};
pub use splice::{EDITS_MAX, Edits, SEGMENTS_MAX, Segments, SpliceError};

/// Deepest nesting taken (DESIGN §16.16): far beyond any real body, and one bit a level makes it
/// 128 bytes a scan.
pub const DEPTH_MAX: usize = 1024;

/// Longest model name taken, in bytes after unescaping. The longest names of providers are
/// below 120 bytes (ARNs with an inference profile); 256 leaves room and fits the record's tail.
pub const MODEL_BYTES_MAX: usize = 256;

#[cfg(test)]
mod tests;
