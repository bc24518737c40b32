//! A refusal → status, fields and body in the caller's dialect. The only such translation.

use super::After;
use super::body::Rest;
use super::client::Client;
use crate::exchange::call::{Dialect, Route};
use crate::exchange::ids::RequestId;
use crate::exchange::refusal::{Face, Refusal};
use crate::io::{Chunk, Io};
use crate::shard::Shard;
use codec::http1;
use codec::json::write_string;

/// What an answer of our own needs to know of its request, whatever stage writes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// Our id.
    pub id: RequestId,
    /// What was asked for, if that could be told.
    pub route: Option<Route>,
    /// The shape of errors.
    pub dialect: Dialect,
    /// The request was `HEAD`: no body may follow.
    pub is_head: bool,
    /// The connection ends after this answer.
    pub close: bool,
    /// The client speaks HTTP/1.0: a connection that lives on has to be said.
    pub is_10: bool,
}

/// What an answer says again of what its request said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told<'c> {
    /// The caller's own id of it.
    pub caller_id: Option<&'c [u8]>,
    /// The line of its trace; empty where no head could be read.
    pub trace: &'c [u8],
}

impl Origin {
    /// A request whose unread rest makes the connection useless.
    pub(super) fn with(mut self, rest: Rest) -> Origin {
        self.close |= rest == Rest::Unread;
        self
    }
}

/// Tells the client no.
pub(super) fn answer<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    refusal: Refusal,
    to: Origin,
) -> impl Future<Output = After> {
    // Written here and not in the future, which would have the origin twice.
    let to = Origin { close: to.close || shard.draining.get(), ..to };
    let face = refusal.face_in(to.dialect);
    shard.counters.refused(face.code);
    let mut out = shard.buffers.take();
    write(&mut out, refusal, &to, client.told());
    send(shard, client, out, face.status, to)
}

/// Sends an answer of our own.
pub(super) async fn send<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    out: Vec<u8>,
    status: u16,
    to: Origin,
) -> After {
    shard.counters.answered(to.route, status);
    let stall = shard.snapshot.pin().deadlines.write_stall;
    let (chunk, sent) = client.send(Chunk::whole(out), stall).await;
    shard.buffers.give(chunk.bytes);
    if to.close || sent.is_err() { After::Close } else { After::Keep }
}

/// Appends the whole answer.
pub(super) fn write(out: &mut Vec<u8>, refusal: Refusal, to: &Origin, told: Told<'_>) {
    let face = refusal.face_in(to.dialect);
    http1::status_line(out, face.status);
    out.extend_from_slice(b"content-type: application/json\r\n");
    if let Refusal::MethodNotAllowed { allow } = refusal {
        line(out, b"allow", allow.as_bytes());
    }
    if refusal == Refusal::UpgradeRequired {
        line(out, b"upgrade", b"HTTP/1.1");
        line(out, b"connection", b"upgrade");
    }
    if let Some(seconds) = face.retry_after_s {
        out.extend_from_slice(b"retry-after: ");
        http1::decimal(out, u64::from(seconds));
        out.extend_from_slice(b"\r\n");
    }
    if face.never_retry {
        line(out, b"x-should-retry", b"false");
    }
    if to.dialect == Dialect::Messages {
        // The name under which this dialect's clients look for the id that the body has too.
        line(out, b"request-id", &to.id.text());
    }
    finish(out, to, told, |out| write_body(out, &face, to));
}

/// Appends a JSON answer of our own that is no error.
pub(super) fn write_json(
    out: &mut Vec<u8>,
    status: u16,
    to: &Origin,
    told: Told<'_>,
    body: impl FnOnce(&mut Vec<u8>),
) {
    http1::status_line(out, status);
    out.extend_from_slice(b"content-type: application/json\r\n");
    finish(out, to, told, body);
}

/// The fields every answer of ours has, the blank line, the body.
fn finish(out: &mut Vec<u8>, to: &Origin, told: Told<'_>, body: impl FnOnce(&mut Vec<u8>)) {
    line(out, b"x-tollgate-request-id", &to.id.text());
    if let Some(id) = told.caller_id {
        line(out, b"x-request-id", id);
    }
    out.extend_from_slice(told.trace);
    write_connection(out, to.close, to.is_10);
    // The body's length is known only once it is written: its digits are put in afterwards, which
    // moves a few hundred bytes.
    out.extend_from_slice(b"content-length: ");
    let place = out.len();
    out.extend_from_slice(b"\r\n\r\n");
    let start = out.len();
    body(out);
    let end = out.len();
    http1::decimal(out, (end - start) as u64);
    let digits = out.len() - end;
    out[place..].rotate_right(digits);
    let start = start + digits;
    if to.is_head {
        out.truncate(start);
    }
}

/// What the client must know about the connection's future.
pub(super) fn write_connection(out: &mut Vec<u8>, close: bool, is_10: bool) {
    if close {
        line(out, b"connection", b"close");
    } else if is_10 {
        line(out, b"connection", b"keep-alive");
    }
}

/// A field whose value is ours, or was checked by the head parser.
fn line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends the error alone, for a stream to carry.
pub(super) fn write_error(out: &mut Vec<u8>, refusal: Refusal, to: &Origin) {
    write_body(out, &refusal.face_in(to.dialect), to);
}

fn write_body(out: &mut Vec<u8>, face: &Face, to: &Origin) {
    match to.dialect {
        Dialect::Chat | Dialect::Responses => {
            out.extend_from_slice(b"{\"error\":{\"message\":");
            write_string(face.text, out);
            out.extend_from_slice(b",\"type\":\"");
            out.extend_from_slice(openai_type(face).as_bytes());
            out.extend_from_slice(b"\",\"param\":");
            match face.param {
                Some(param) => write_string(param, out),
                None => out.extend_from_slice(b"null"),
            }
            out.extend_from_slice(b",\"code\":");
            write_string(face.code, out);
            out.extend_from_slice(b"}}");
        }
        Dialect::Messages => {
            out.extend_from_slice(b"{\"type\":\"error\",\"error\":{\"type\":\"");
            out.extend_from_slice(anthropic_type(face.status).as_bytes());
            out.extend_from_slice(b"\",\"message\":");
            write_string(face.text, out);
            out.extend_from_slice(b"},\"request_id\":\"");
            out.extend_from_slice(&to.id.text());
            out.extend_from_slice(b"\"}");
        }
        Dialect::Gemini => {
            out.extend_from_slice(b"{\"error\":{\"code\":");
            http1::decimal(out, u64::from(face.status));
            out.extend_from_slice(b",\"message\":");
            write_string(face.text, out);
            out.extend_from_slice(b",\"status\":\"");
            out.extend_from_slice(google_status(face.status).as_bytes());
            out.extend_from_slice(b"\"}}");
        }
    }
}

/// There is a client that stops for this code only where it stands as the type too.
fn openai_type(face: &Face) -> &'static str {
    match face.status {
        429 if face.code == "insufficient_quota" => "insufficient_quota",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400 => "invalid_request_error",
        503 | 529 => "overloaded_error",
        _ => "api_error",
    }
}

fn google_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        501 => "UNIMPLEMENTED",
        502 | 503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}

#[cfg(test)]
mod tests;
