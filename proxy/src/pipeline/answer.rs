//! The head of an upstream's answer, read once: what the relay needs to know of it, and the
//! client's head as far as it can be written now. The field table lives on the stack of the call
//! that reads it.

use super::headers::{self, Fate};
use super::relay::Unfit;
use crate::exchange::time::UnixMs;
use crate::govern::retry_after;
use codec::http1::{self, Fields, Framing, ResponseHead, connection_lists};

/// What kind of body an answer says it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    /// JSON, or nothing said.
    Json,
    /// Server-sent events.
    Events,
    /// Something else.
    Other,
}

/// The content coding of an answer. None was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// As it is.
    Identity,
    /// Decoded on the side for its usage.
    Gzip,
    /// Nobody here reads it.
    Unknown,
}

/// A head that was read.
pub(crate) struct AnswerHead {
    /// Bytes of it in the upstream's inbox.
    pub(crate) len: usize,
    /// 200 to 599, or 101.
    pub(crate) status: u16,
    /// How the body is delimited.
    pub(crate) framing: Framing,
    /// Whether the connection may carry another request.
    pub(crate) keep_alive: bool,
    /// What kind of body it is.
    pub(crate) media: Media,
    /// How it is coded.
    pub(crate) coding: Coding,
    /// What the answer says to wait; only of an error.
    pub(crate) retry_after_ms: Option<u64>,
    /// The client's head so far: status line and the upstream's own fields.
    pub(crate) written: Vec<u8>,
}

impl AnswerHead {
    /// Reads a parsed head; `written` is an empty buffer for the client's head.
    pub(crate) fn read(
        bytes: &[u8],
        head: &ResponseHead,
        fields: &Fields,
        (caller_id, wall): (Option<&[u8]>, UnixMs),
        written: Vec<u8>,
    ) -> AnswerHead {
        let mut answer = AnswerHead {
            len: head.head_len,
            status: head.status,
            framing: head.framing,
            keep_alive: head.keep_alive,
            media: Media::Json,
            coding: Coding::Identity,
            retry_after_ms: None,
            written,
        };
        answer.write_status(head.reason.of(bytes));
        if !answer.is_success() {
            let (seconds, millis) =
                (fields.first(bytes, "retry-after"), fields.first(bytes, "retry-after-ms"));
            answer.retry_after_ms = retry_after::wait_ms(seconds, millis, wall);
        }
        // A client that obeys a long wait to the letter would sleep through its user's patience.
        let terminal = fields.first(bytes, "retry-after").is_some_and(is_long);
        answer.media = fields.first(bytes, "content-type").map_or(Media::Json, media);
        let events = answer.media == Media::Events && answer.is_success();
        for (name, value) in fields.iter(bytes) {
            if name.eq_ignore_ascii_case(b"content-encoding") {
                answer.coding = coding(value);
            }
            if events && name.eq_ignore_ascii_case(b"cache-control") {
                continue;
            }
            let ours = terminal && name.eq_ignore_ascii_case(SHOULD_RETRY);
            let forward = headers::of_response(name) == Fate::Forward;
            if ours || !forward || connection_lists(bytes, fields, name) {
                continue;
            }
            let renamed = caller_id.is_some() && is_request_id(name);
            let name = if renamed { UPSTREAM_ID } else { name };
            push(&mut answer.written, name, value);
        }
        if events {
            push(&mut answer.written, b"cache-control", EVENTS_CACHE_CONTROL);
        }
        if terminal {
            push(&mut answer.written, SHOULD_RETRY, b"false");
        }
        answer
    }

    fn write_status(&mut self, reason: &[u8]) {
        self.written.extend_from_slice(b"HTTP/1.1 ");
        http1::decimal(&mut self.written, u64::from(self.status));
        self.written.push(b' ');
        self.written.extend_from_slice(reason);
        self.written.extend_from_slice(b"\r\n");
    }

    /// Whether the status says that it worked.
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// What the head alone rules out of an answer that is no stream.
    pub(super) fn judge(&self) -> Result<(), Unfit> {
        match self.status {
            200..=299 if self.media != Media::Json => Err(Unfit::Invalid),
            204 | 205 => Err(Unfit::Invalid),
            300..=399 | ..200 => Err(Unfit::Error),
            _ => Ok(()),
        }
    }
}

/// Nobody between here and the client may keep or rewrite a stream.
pub(crate) const EVENTS_CACHE_CONTROL: &[u8] = b"no-cache, no-transform";

/// Longest `Retry-After`, in seconds, after which a client's own retry makes sense (DESIGN §6).
const RETRY_AFTER_MAX: u64 = 60;

/// Whether a `Retry-After` in seconds is above that. A date is left to the client.
fn is_long(retry_after: &[u8]) -> bool {
    let digits = !retry_after.is_empty() && retry_after.iter().all(u8::is_ascii_digit);
    let seconds = std::str::from_utf8(retry_after).ok().and_then(|text| text.parse().ok());
    // Digits that no number holds are a long time as well.
    digits && seconds.is_none_or(|seconds: u64| seconds > RETRY_AFTER_MAX)
}

const SHOULD_RETRY: &[u8] = b"x-should-retry";

const UPSTREAM_ID: &[u8] = b"x-tollgate-upstream-request-id";

fn is_request_id(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"x-request-id") || name.eq_ignore_ascii_case(b"request-id")
}

/// Appends a field. Name and value come from a parsed head, or are ours: no byte in them ends a
/// line.
pub(crate) fn push(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// `application/json`, `…+json` and `text/event-stream`, parameters aside.
fn media(value: &[u8]) -> Media {
    let kind = value.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    let suffix = kind.len().checked_sub(5).and_then(|at| kind.get(at..)).unwrap_or_default();
    let json =
        kind.eq_ignore_ascii_case(b"application/json") || suffix.eq_ignore_ascii_case(b"+json");
    if json {
        Media::Json
    } else if kind.eq_ignore_ascii_case(b"text/event-stream") {
        Media::Events
    } else {
        Media::Other
    }
}

fn coding(value: &[u8]) -> Coding {
    if value.is_empty() || value.eq_ignore_ascii_case(b"identity") {
        Coding::Identity
    } else if value.eq_ignore_ascii_case(b"gzip") || value.eq_ignore_ascii_case(b"x-gzip") {
        Coding::Gzip
    } else {
        Coding::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_from_what_is_not() {
        for (value, expected) in [
            ("application/json", Media::Json),
            ("Application/JSON; charset=utf-8", Media::Json),
            ("application/problem+json", Media::Json),
            ("text/html", Media::Other),
            ("text/event-stream", Media::Events),
            ("TEXT/event-stream;charset=utf-8", Media::Events),
            ("json", Media::Other),
            ("", Media::Other),
        ] {
            assert_eq!(media(value.as_bytes()), expected, "{value}");
        }
    }

    #[test]
    fn codings_are_told_apart() {
        for (value, expected) in [
            ("", Coding::Identity),
            ("identity", Coding::Identity),
            ("GZIP", Coding::Gzip),
            ("x-gzip", Coding::Gzip),
            ("br", Coding::Unknown),
            ("gzip, br", Coding::Unknown),
        ] {
            assert_eq!(coding(value.as_bytes()), expected, "{value}");
        }
    }
}
