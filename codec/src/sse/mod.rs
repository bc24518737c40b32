//! Server-sent events in pass: where events lie in the bytes that go by, and what they are.
//!
//! [`Splitter`] tells the lines and fields of a stream apart, cut anywhere. [`StreamScan`] stands
//! on it and speaks of events in the words of a dialect: [`Part`]s that tile the bytes, each with
//! the [`Kind`] of its event, and what the stream has said so far: usage, text, how it ended.
//!
//! Deliberately absent: forwarding, holding back, removing and writing. Bytes are pointed at, so
//! that who relays them decides; no payload is copied, parsed into a tree or kept. The data of an
//! event goes through one [`ReplyScan`](crate::json::ReplyScan) piece by piece, so an event of
//! any size has its usage read from memory that never grows: everything is inline, nothing
//! allocates. Malformed data makes an event that says nothing, never an error.

mod done;
mod event;
mod part;
pub mod split_proof;
mod splitter;
mod stream;
mod tally;
mod verdict;

pub use part::{Kind, Part, Reach};
pub use splitter::{Field, Line, Splitter, Step, Token};
pub use stream::StreamScan;

/// Whose events a stream is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI chat completions.
    Chat,
    /// Anthropic messages.
    Messages,
    /// OpenAI responses.
    Responses,
    /// Google Gemini with `alt=sse`.
    Gemini,
}

#[cfg(test)]
mod tests;
