//! The answer → the client. Judges what came, then lets it through byte for byte.
//!
//! Up to 64 KiB are looked at before the first byte goes out: until then a broken or useless
//! answer can still be told as an error of its own. The last bytes wait until `settle::price` has
//! done its part. A broken upstream never becomes a clean end.

mod reply;
mod whole;

pub(super) use reply::Reply;
pub(super) use whole::{Delivered, pump};

use super::headers::{self, Fate};
use super::refuse::write_connection;
use codec::http1::{self, Fields, Framing, connection_lists};

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
    /// The connection ends after this answer.
    pub close: bool,
    /// The client speaks HTTP/1.0: a connection that lives on has to be said.
    pub is_10: bool,
}

/// Appends the client's head, made from the upstream's (`bytes`, parsed again into a table that
/// lives only as long as this call).
pub(super) fn write_head(
    out: &mut Vec<u8>,
    bytes: &[u8],
    framing: ClientFraming,
    facts: &Facts<'_>,
    caller_id: Option<&[u8]>,
) {
    let mut fields = Fields::new();
    let Ok(Some(head)) = http1::parse_response(bytes, &mut fields, false) else {
        // Parsed once before, from the same bytes.
        debug_assert!(false, "a head that was read is read again");
        return;
    };
    out.extend_from_slice(b"HTTP/1.1 ");
    http1::decimal(out, u64::from(head.status));
    out.push(b' ');
    out.extend_from_slice(head.reason.of(bytes));
    out.extend_from_slice(b"\r\n");
    let terminal = fields.first(bytes, "retry-after").is_some_and(is_long);
    for (name, value) in fields.iter(bytes) {
        let ours = terminal && name.eq_ignore_ascii_case(b"x-should-retry");
        let forward = headers::of_response(name) == Fate::Forward;
        if ours || !forward || connection_lists(bytes, &fields, name) {
            continue;
        }
        let renamed = caller_id.is_some() && is_request_id(name);
        let name = if renamed { b"x-tollgate-upstream-request-id".as_slice() } else { name };
        push(out, name, value);
    }
    if terminal {
        push(out, b"x-should-retry", b"false");
    }
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
    match framing {
        ClientFraming::Length(n) => http1::content_length(out, n),
        ClientFraming::Chunked => push(out, b"transfer-encoding", b"chunked"),
        ClientFraming::Close => {}
    }
    write_connection(out, facts.close, facts.is_10);
    out.extend_from_slice(b"\r\n");
}

/// Longest `Retry-After`, in seconds, after which a client's own retry makes sense (DESIGN §6).
const RETRY_AFTER_MAX: u64 = 60;

/// Whether a `Retry-After` in seconds is above that. A date is left to the client.
fn is_long(retry_after: &[u8]) -> bool {
    let digits = !retry_after.is_empty() && retry_after.iter().all(u8::is_ascii_digit);
    let seconds = std::str::from_utf8(retry_after).ok().and_then(|text| text.parse().ok());
    // Digits that no number holds are a long time as well.
    digits && seconds.is_none_or(|seconds: u64| seconds > RETRY_AFTER_MAX)
}

fn is_request_id(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"x-request-id") || name.eq_ignore_ascii_case(b"request-id")
}

/// Name and value come from a parsed head, or are ours: no byte in them ends a line.
fn push(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
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
