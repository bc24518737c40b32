//! An answer that was kept while others were asked, and is told because nothing better came; and
//! an end that has to be told inside a stream, since the client has its head.
//!
//! Bound: a body of [`LOOK_AHEAD`](super::incoming::LOOK_AHEAD) bytes is kept; of a longer one, if
//! others were asked after it, only its head is, with words of ours below it.

use super::incoming::Incoming;
use super::{ClientFraming, Delivered, beat, finish_head, lost_ending};
use crate::exchange::codes;
use crate::exchange::outcome::{Ending, Outcome};
use crate::exchange::refusal::Refusal;
use crate::govern::walk;
use crate::io::{Chunk, Io};
use crate::pipeline::client::Client;
use crate::pipeline::held::Held;
use crate::pipeline::open::Call;
use crate::pipeline::{After, Unserved, after_body, refuse, settle};
use crate::shard::Shard;
use codec::http1;
use codec::json::write_string;
use serde::Deserialize;
use serde_json::value::RawValue;

/// An answer, whole.
pub(in crate::pipeline) struct Kept {
    /// Its status.
    status: u16,
    /// The client's head as far as the answer makes it.
    head: Vec<u8>,
    /// Nothing if it is too long, or an event in a coding.
    body: Option<Vec<u8>>,
    /// It was an event of a stream: its head speaks of a stream.
    of_stream: bool,
}

/// What a client reads instead of what a provider says about our account with it.
const REWORDED: &str = "The upstream account behind this gateway cannot serve this call now.";

/// Keeps an answer, or the event of it that lies at these places.
pub(super) fn keep<I: Io>(
    incoming: &mut Incoming<'_, I>,
    event: Option<(usize, usize)>,
) -> Box<Kept> {
    let body = incoming.body.body();
    let body = match event {
        Some((from, to)) if from < to => Some(data_of(body.get(from..to).unwrap_or_default())),
        None if incoming.body.done => Some(body.to_vec()),
        Some(_) | None => None,
    };
    let (status, head) = (incoming.head.status, incoming.head.written.clone());
    Box::new(Kept { status, head, body, of_stream: event.is_some() })
}

/// The data of an event, its lines joined as a reader would.
fn data_of(event: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    for line in event.split(|byte| matches!(byte, b'\n' | b'\r')) {
        if let Some(text) = line.strip_prefix(b"data:") {
            if !data.is_empty() {
                data.push(b'\n');
            }
            data.extend_from_slice(text.strip_prefix(b" ").unwrap_or(text));
        }
    }
    data
}

/// Tells the client of an answer that was kept.
pub(in crate::pipeline) async fn tell_kept<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    call: &Call<'_>,
    held: &mut Held,
    (answer, kept): (walk::Answer, Option<Box<Kept>>),
) -> Result<Delivered, Unserved> {
    let Some(kept) = kept else {
        let refusal = Refusal::UpstreamInvalid;
        if call.begun {
            return Ok(tell(shard, client, call, held, refusal).await);
        }
        return Err(after_body(refusal));
    };
    let Kept { status, head, body, of_stream } = *kept;
    let body = if answer.reworded { body.as_deref().and_then(reworded) } else { body };
    let theirs = body.is_some();
    let body = body.unwrap_or_else(|| ours(answer, call));
    held.record.status = answer.status;
    held.record.relayed_bytes = body.len() as u64;
    held.record.overhead_us = call.own_us(0, shard.mono());
    settle::price_none(shard, call, held);
    let mut out = shard.buffers.take();
    if call.begun {
        if is_line(&body) {
            beat::write_event(&mut out, call, &body);
        } else {
            beat::write_event(&mut out, call, &ours(answer, call));
        }
    } else {
        write_head(&mut out, &head, (status, answer.status), of_stream || !theirs);
        let framing = ClientFraming::Length(body.len() as u64);
        finish_head(&mut out, (framing, call.origin.close), client, (shard, call, held));
        out.extend_from_slice(&body);
    }
    let stall = call.snapshot.deadlines.write_stall;
    let (chunk, sent) = client.send(Chunk::whole(out), stall).await;
    shard.buffers.give(chunk.bytes);
    let ending = sent.map_or_else(lost_ending, |()| Ending::UpstreamError);
    let close = call.begun || call.origin.close || sent.is_err();
    let status = if call.begun { 200 } else { answer.status };
    let after = if close { After::Close } else { After::Keep };
    Ok(Delivered { outcome: Outcome { ending, status }, after })
}

/// Tells a client that has nothing but heartbeats yet that there will be no answer.
pub(in crate::pipeline) async fn tell<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    call: &Call<'_>,
    held: &mut Held,
    refusal: Refusal,
) -> Delivered {
    let refusal = if shard.cut.get() { Refusal::ShuttingDown } else { refusal };
    let face = refusal.face_in(call.origin.dialect);
    shard.counters.refused(face.code);
    held.record.error_code = codes::number(face.code);
    // First: whoever has the whole of it has its record too.
    let ending = settle::refused_ending(refusal);
    settle::close(shard, held, &Outcome { ending, status: 200 });
    let mut out = shard.buffers.take();
    beat::write_error(&mut out, call, refusal);
    let stall = call.snapshot.deadlines.write_stall;
    let (chunk, sent) = client.send(Chunk::whole(out), stall).await;
    shard.buffers.give(chunk.bytes);
    let ending = sent.map_or_else(lost_ending, |()| ending);
    Delivered { outcome: Outcome { ending, status: 200 }, after: After::Close }
}

/// The head of a kept answer. An error that came inside a success gets the status it stands for.
/// `json`: what is told below it is JSON, whatever came, an event or something else.
fn write_head(out: &mut Vec<u8>, head: &[u8], (was, status): (u16, u16), json: bool) {
    let mut lines = head.split_inclusive(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    if was == status {
        out.extend_from_slice(first);
    } else {
        http1::status_line(out, status);
    }
    for line in lines {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        let speaks_of_body = name.eq_ignore_ascii_case(b"content-type")
            || name.eq_ignore_ascii_case(b"cache-control")
            || name.eq_ignore_ascii_case(b"content-encoding");
        if !(json && speaks_of_body) {
            out.extend_from_slice(line);
        }
    }
    if json {
        out.extend_from_slice(b"content-type: application/json\r\n");
    }
}

#[derive(Deserialize)]
struct Body<'b> {
    #[serde(borrow)]
    error: &'b RawValue,
}

#[derive(Deserialize)]
struct Said<'b> {
    #[serde(borrow)]
    message: &'b RawValue,
}

/// Whether a body is an error that an event can carry as one line.
fn is_line(body: &[u8]) -> bool {
    let breaks = body.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
    !breaks && serde_json::from_slice::<Body<'_>>(body).is_ok()
}

/// The body with other words in `error.message` and all else as it is; nothing if it has no such
/// member.
fn reworded(body: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok()?;
    let error = serde_json::from_str::<Body<'_>>(text).ok()?.error.get();
    let message = serde_json::from_str::<Said<'_>>(error).ok()?.message.get();
    let from = (message.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let mut out = Vec::with_capacity(body.len() + REWORDED.len());
    out.extend_from_slice(body.get(..from)?);
    write_string(REWORDED, &mut out);
    out.extend_from_slice(body.get(from + message.len()..)?);
    Some(out)
}

/// Our own words for an answer whose own cannot be told.
fn ours(answer: walk::Answer, call: &Call<'_>) -> Vec<u8> {
    // Only its words are told: the head is the upstream's.
    let refusal = if answer.reworded {
        Refusal::UpstreamUnavailable { retry_after_s: 0 }
    } else {
        Refusal::UpstreamInvalid
    };
    let mut out = Vec::new();
    refuse::write_error(&mut out, refusal, &call.origin);
    out
}
