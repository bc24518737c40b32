//! What this gateway itself puts into a stream, in the form each dialect's clients take: the sign
//! that a call is alive, and the error that ends it.
//!
//! No one form fits all clients, and each of these is taken by every client of its dialect that
//! was tried: a comment where readers skip comments, an event of its own where there is one, a
//! bare line end where nothing else is safe.

use super::{ClientFraming, finish_head};
use crate::exchange::call::Dialect;
use crate::exchange::refusal::Refusal;
use crate::io::{Chunk, Io};
use crate::pipeline::answer::{EVENTS_CACHE_CONTROL, push};
use crate::pipeline::client::{Client, Lost};
use crate::pipeline::held::Held;
use crate::pipeline::open::Call;
use crate::pipeline::{leaving, refuse};
use crate::shard::Shard;
use codec::http1;
use codec::sse;
use std::time::Duration;

/// A heartbeat.
fn text(dialect: Dialect) -> &'static [u8] {
    match dialect {
        Dialect::Chat | Dialect::Responses => b": keep-alive\n\n",
        Dialect::Messages => b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
        Dialect::Gemini => b"\n",
    }
}

/// The dialect as the event scan names it.
pub(super) fn events_of(dialect: Dialect) -> sse::Dialect {
    match dialect {
        Dialect::Chat => sse::Dialect::Chat,
        Dialect::Messages => sse::Dialect::Messages,
        Dialect::Responses => sse::Dialect::Responses,
        Dialect::Gemini => sse::Dialect::Gemini,
    }
}

/// How a stream is framed toward the client: its length is never known.
pub(super) fn framing(is_10: bool) -> ClientFraming {
    if is_10 { ClientFraming::Close } else { ClientFraming::Chunked }
}

/// How long the client may still hear nothing.
pub(in crate::pipeline) fn due_in<S>(client: &Client<S>, call: &Call<'_>) -> Duration {
    let due = client.spoke + leaving::ticks(call.snapshot.deadlines.heartbeat);
    leaving::span(due.saturating_sub(client.timer.tick()))
}

/// Sends one; before it, if the client has heard nothing at all, a head of our own, in which
/// nothing stands of a candidate that may not be the one to answer.
pub(in crate::pipeline) async fn send<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    call: &mut Call<'_>,
    held: &Held,
) -> Result<(), Lost> {
    let mut out = shard.buffers.take();
    let framing = framing(call.origin.is_10);
    if !call.begun {
        http1::status_line(&mut out, 200);
        push(&mut out, b"content-type", b"text/event-stream");
        push(&mut out, b"cache-control", EVENTS_CACHE_CONTROL);
        let close = call.origin.close || framing == ClientFraming::Close;
        finish_head(&mut out, (framing, close), client, (shard, &*call, held));
        call.begun = true;
    }
    write(&mut out, framing, text(call.origin.dialect));
    shard.counters.heartbeats.increment();
    let (chunk, sent) = client.send(Chunk::whole(out), call.snapshot.deadlines.write_stall).await;
    shard.buffers.give(chunk.bytes);
    sent
}

/// Appends the event that tells a stream's client of an error, and the end of the body.
pub(in crate::pipeline) fn write_error(out: &mut Vec<u8>, call: &Call<'_>, refusal: Refusal) {
    let mut error = Vec::new();
    refuse::write_error(&mut error, refusal, &call.origin);
    write_event(out, call, &error);
}

/// Appends an error, one line of JSON, as the last event of a stream.
pub(super) fn write_event(out: &mut Vec<u8>, call: &Call<'_>, error: &[u8]) {
    let mut event = Vec::with_capacity(error.len() + 32);
    event.extend_from_slice(match call.origin.dialect {
        Dialect::Messages | Dialect::Responses => b"event: error\ndata: ".as_slice(),
        Dialect::Chat | Dialect::Gemini => b"data: ",
    });
    event.extend_from_slice(error);
    event.extend_from_slice(b"\n\n");
    let framing = framing(call.origin.is_10);
    write(out, framing, &event);
    if framing == ClientFraming::Chunked {
        out.extend_from_slice(http1::LAST_CHUNK);
    }
}

fn write(out: &mut Vec<u8>, framing: ClientFraming, bytes: &[u8]) {
    match framing {
        ClientFraming::Chunked => http1::chunk(out, bytes),
        ClientFraming::Length(_) | ClientFraming::Close => out.extend_from_slice(bytes),
    }
}
