//! The answer → the client. Judges what came, then lets it through byte for byte.
//!
//! Up to 64 KiB are looked at before the first byte goes out: until then a broken or useless
//! answer can still be told as an error of its own. The last bytes wait until `settle::price` has
//! done its part. A broken upstream never becomes a clean end.

mod pricing;
mod reply;
mod whole;

pub(super) use reply::Reply;
pub(super) use whole::{Delivered, pump};

use super::answer::push;
use super::refuse::write_connection;
use super::standing;
use crate::exchange::call::Dialect;
use crate::exchange::limits::Limits;
use crate::exchange::time::Now;
use codec::http1::{self, Framing};

/// How an answer's body is framed toward the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientFraming {
    /// The length is known.
    Length(u64),
    /// It is not; the client speaks HTTP/1.1.
    Chunked,
    /// It is not; the close ends it.
    Close,
}

/// What of the exchange goes into the head of an answer.
pub(super) struct Facts<'a> {
    /// Our id, as text.
    pub request_id: &'a [u8],
    /// Attempts begun.
    pub attempts: u8,
    /// Time inside this gateway so far.
    pub overhead_us: u32,
    /// The client's.
    pub dialect: Dialect,
    /// How the key stands is told.
    pub limits: Option<&'a Limits>,
    /// Now.
    pub now: Now,
    /// The connection ends after this answer.
    pub close: bool,
    /// The client speaks HTTP/1.0: a connection that lives on has to be said.
    pub is_10: bool,
}

/// Ends the client's head: our own fields, the framing, the blank line.
fn finish_head(
    out: &mut Vec<u8>,
    framing: ClientFraming,
    facts: &Facts<'_>,
    caller_id: Option<&[u8]>,
) {
    push(out, b"x-tollgate-request-id", facts.request_id);
    if let Some(id) = caller_id {
        push(out, b"x-request-id", id);
    }
    out.extend_from_slice(b"x-tollgate-attempts: ");
    http1::decimal(out, u64::from(facts.attempts));
    // A plan has one candidate until failover comes.
    out.extend_from_slice(b"\r\nx-tollgate-fallbacks: 0\r\nx-tollgate-overhead-us: ");
    http1::decimal(out, u64::from(facts.overhead_us));
    out.extend_from_slice(b"\r\n");
    if let Some(limits) = facts.limits {
        standing::write(out, facts.dialect, limits, facts.now);
    }
    match framing {
        ClientFraming::Length(n) => http1::content_length(out, n),
        ClientFraming::Chunked => push(out, b"transfer-encoding", b"chunked"),
        ClientFraming::Close => {}
    }
    write_connection(out, facts.close, facts.is_10);
    out.extend_from_slice(b"\r\n");
}

/// The client's framing for a body of which not all is here.
pub(super) fn client_framing(
    upstream: Framing,
    announced: Option<u64>,
    minor: u8,
) -> ClientFraming {
    match (upstream, announced) {
        (Framing::Length(_), Some(n)) => ClientFraming::Length(n),
        _ if minor == 0 => ClientFraming::Close,
        _ => ClientFraming::Chunked,
    }
}
