//! Sends the request and waits for the head of an answer. What to do after an attempt is decided
//! by `govern::walk`; this file only carries it out.

use super::answer::AnswerHead;
use super::client::{Client, Presence};
use super::held::{Held, Stage};
use super::open::{self, Call};
use super::parse::Request;
use super::{Unserved, after_body, settle};
use crate::config::snapshot::Provider;
use crate::exchange::refusal::Refusal;
use crate::exchange::retry::RetryRules;
use crate::exchange::time::MonoNs;
use crate::govern::breaker::Breakers;
use crate::govern::walk::{At, AttemptEnd, Fault, Over, Step, Walk};
use crate::io::buffers::Buffers;
use crate::io::turn::{Connected, Event, Turn};
use crate::io::{Chunk, Io, Recall, Stream, TICK};
use crate::shard::Shard;
use crate::upstream::Upstream;
use crate::upstream::outgoing::{FLAT_MAX, From, Outgoing};
use crate::upstream::request::{Parts, write_head};
use codec::http1::{Fields, HeadScan};
use std::net::SocketAddr;
use store::ending::StatusClass;

/// A head of an answer, and the connection its body comes from.
pub(super) struct Answer<S> {
    /// The connection; its inbox begins with the head.
    pub upstream: Upstream<S>,
    /// The head.
    pub head: AnswerHead,
    /// Whether the request was wholly sent: else the connection cannot be used again.
    pub sent: bool,
    /// When the first byte toward the upstream was handed over.
    pub begun: MonoNs,
}

/// Walks until there is an answer or nothing left to try.
pub(super) async fn walk<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    request: &Request,
    call: &mut Call<'_>,
    held: &mut Held,
) -> Result<Answer<I::Stream>, Unserved> {
    // One attempt a candidate, and its replay: what this stage can carry out.
    let once = RetryRules { attempts: 1, ..call.snapshot.retry };
    let mut walk = Walk::new(call.left, shard.turns.next(call.group));
    loop {
        let at = At { mono: shard.mono(), chance: shard.chance.next() };
        let mut gate = Breakers::new(call.candidates, &call.snapshot.breaker, at);
        let (place, fresh) = match walk.next(at, &once, call.candidates, &mut gate) {
            Step::Try { place, fresh } => (place, fresh),
            Step::Over(Over::Refuse(refusal)) => return Err(after_body(refusal)),
            Step::Wait { .. } | Step::Over(Over::Answer(_)) => {
                return Err(after_body(Refusal::Internal));
            }
        };
        if let Some(bundle) = &held.bundle {
            bundle.standing().map_err(after_body)?;
        }
        if fresh {
            shard.counters.replays.increment();
        }
        open::aim(shard, call, held, &mut client.model, place);
        held.record.attempt(call.attempt());
        shard.counters.attempts.increment();
        match attempt(shard, client, request, call, held, fresh).await {
            Ok(answer) => return Ok(answer),
            Err(Ended::ClientGone) => return Err(Unserved::ClientGone),
            Err(Ended::Attempt(end)) => {
                let (class, possibly_billed) = recorded(end, held.stage);
                held.record.attempt_ended(class, possibly_billed);
                walk.end(end, at, &once);
            }
        }
    }
}

/// What came of an attempt without an answer, and whether the upstream may bill it all the same.
fn recorded(end: AttemptEnd, stage: Stage) -> (StatusClass, bool) {
    let sent = stage == Stage::Sent;
    match end {
        AttemptEnd::Unreachable => (StatusClass::Unreachable, false),
        // A reused connection that was dead from the start has carried the request nowhere.
        AttemptEnd::Stale => (StatusClass::Cut, false),
        AttemptEnd::Cut { .. } => (StatusClass::Cut, sent),
        AttemptEnd::Timeout { .. } => (StatusClass::Timeout, sent),
        AttemptEnd::Fault(_) => (StatusClass::Invalid, sent),
    }
}

enum Ended {
    Attempt(AttemptEnd),
    ClientGone,
}

async fn attempt<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    request: &Request,
    call: &mut Call<'_>,
    held: &mut Held,
    fresh: bool,
) -> Result<Answer<I::Stream>, Ended> {
    let provider = call.snapshot.provider(call.current().provider);
    let mut upstream = connection(shard, client, call, provider, fresh).await?;
    let mut outgoing = Outgoing::new(shard.buffers.take());
    let buffers: &Buffers = &shard.buffers;
    write_request((&mut outgoing, buffers), client, request, call, provider, held.record.attempts);
    settle::sent(shard, held);
    let begun = shard.mono();
    let outcome = exchange(shard, client, call, &mut upstream, &mut outgoing).await;
    match outcome {
        Ok((head, sent)) => {
            shard.buffers.give(std::mem::take(&mut outgoing.written));
            Ok(Answer { upstream, head, sent, begun })
        }
        Err(ended) => {
            // The lent buffer must be home before the request can be sent again.
            upstream.stream.shutdown();
            while upstream.stream.writing() {
                if let Event::UpstreamWritten(done) =
                    Turn::upstream(&mut upstream.stream, &client.timer).await
                {
                    outgoing.give_back(done.chunk, &mut call.received.bytes);
                }
            }
            shard.buffers.give(std::mem::take(&mut outgoing.written));
            upstream.discard(&shard.buffers);
            Err(ended)
        }
    }
}

/// A pooled connection, unless a fresh one is asked for; else a new one.
async fn connection<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    call: &Call<'_>,
    provider: &Provider,
    fresh: bool,
) -> Result<Upstream<I::Stream>, Ended> {
    let addresses = shard.addresses.borrow().clone();
    let tick = shard.wheel.tick();
    if !fresh {
        let age_max = (call.snapshot.deadlines.pooled.as_millis() / TICK.as_millis()) as u64;
        let mut nth = 0;
        while let Some(address) = addresses.nth(provider, nth) {
            if let Some(found) = shard.pool.check_out(address, tick, age_max, &shard.buffers) {
                shard.counters.upstream_reused.increment();
                return Ok(found);
            }
            nth += 1;
        }
    }
    client.timer.arm(call.snapshot.deadlines.connect);
    let mut nth = 0;
    while let Some(address) = addresses.nth(provider, nth) {
        match connect(shard, client, address, tick).await {
            Connect::Made(upstream) => {
                client.timer.disarm();
                shard.counters.upstream_connections.increment();
                return Ok(upstream);
            }
            Connect::Failed => nth += 1,
            Connect::Late => break,
        }
    }
    client.timer.disarm();
    Err(Ended::Attempt(AttemptEnd::Unreachable))
}

enum Connect<S> {
    Made(Upstream<S>),
    Failed,
    Late,
}

async fn connect<I: Io>(
    shard: &Shard<I>,
    client: &Client<I::Stream>,
    address: SocketAddr,
    tick: u64,
) -> Connect<I::Stream> {
    let Ok(mut stream) = shard.io.connect(address) else { return Connect::Failed };
    match Connected::new(&mut stream, &client.timer).await {
        Some(Ok(())) => Connect::Made(Upstream::new(stream, address, tick, shard.buffers.take())),
        Some(Err(_)) => Connect::Failed,
        None => {
            stream.shutdown();
            Connect::Late
        }
    }
}

/// Head and body, as one flat piece or as pieces of the buffers they lie in.
fn write_request<S>(
    (outgoing, buffers): (&mut Outgoing, &Buffers),
    client: &Client<S>,
    request: &Request,
    call: &Call<'_>,
    provider: &Provider,
    number: u8,
) {
    let edit = call.edit.map(|span| (span.start, span.end));
    let body = call.received.body();
    let (cut, resume) = edit.unwrap_or((body.len(), body.len()));
    let replacement: &[u8] = if edit.is_some() { &client.model } else { &[] };
    let body_len = body.len() - (resume - cut) + replacement.len();
    let (query, lines) = client.forward.split_at(request.query_len);
    let unchanged = client.forward.len() - request.query_len;
    let kept = if edit.is_some() { request.digests_at - request.query_len } else { unchanged };
    let parts = Parts {
        path: "/chat/completions",
        query,
        lines: &lines[..kept],
        request_id: &call.id,
        attempt: number,
        body_len: body_len as u64,
    };
    let out = &mut outgoing.written;
    write_head(out, provider, provider.credential(call.current().credential), &parts);
    if out.len() + body_len <= FLAT_MAX {
        let room = out.len() + body_len;
        buffers.grow(out, room);
        out.extend_from_slice(&body[..cut]);
        out.extend_from_slice(replacement);
        out.extend_from_slice(&body[resume..]);
        let end = out.len();
        outgoing.push(From::Written, 0, end);
        return;
    }
    let head_end = out.len();
    out.extend_from_slice(replacement);
    let end = out.len();
    let at = call.received.start;
    outgoing.push(From::Written, 0, head_end);
    outgoing.push(From::Request, at, at + cut);
    outgoing.push(From::Written, head_end, end);
    outgoing.push(From::Request, at + resume, call.received.end);
}

/// Writes the request and reads until the answer's head is complete.
async fn exchange<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    call: &mut Call<'_>,
    upstream: &mut Upstream<I::Stream>,
    outgoing: &mut Outgoing,
) -> Result<(AnswerHead, bool), Ended> {
    let deadlines = &call.snapshot.deadlines;
    let mut wait =
        Wait { sent: false, late: false, got_bytes: false, interims: 0, scan: HeadScan::new() };
    start_next(upstream, outgoing, &mut call.received.bytes);
    client.timer.arm(deadlines.write_stall);
    loop {
        read_on(upstream, &shard.buffers);
        match Turn::both(&mut client.stream, &mut upstream.stream, &client.timer).await {
            Event::UpstreamWritten(done) => {
                outgoing.give_back(done.chunk, &mut call.received.bytes);
                if done.result.is_ok() && start_next(upstream, outgoing, &mut call.received.bytes) {
                    client.timer.arm(deadlines.write_stall);
                } else {
                    // After a failed write an answer may be here all the same: the read tells.
                    wait.sent |= done.result.is_ok();
                    // The answer may take minutes; what a replay needs is written again.
                    shard.buffers.give(std::mem::take(&mut outgoing.written));
                    client.timer.arm(deadlines.first_byte);
                }
            }
            Event::UpstreamRead(done) => {
                upstream.inbox = done.buffer;
                let ended = !matches!(done.result, Ok(n) if n > 0);
                let (caller_id, buffers) = (client.caller_id(), &shard.buffers);
                if let Some(result) = wait.judge(upstream, ended, caller_id, buffers) {
                    client.timer.disarm();
                    return result.map(|head| (head, wait.sent)).map_err(Ended::Attempt);
                }
            }
            Event::ClientRead(done) => {
                client.absorb(done);
                client.shed_inbox(&shard.buffers);
                if client.presence == Presence::Gone {
                    client.timer.disarm();
                    return Err(Ended::ClientGone);
                }
            }
            Event::Fired => {
                wait.late = true;
                client.timer.disarm();
                upstream.stream.shutdown();
            }
            Event::ClientWritten(_) => {}
        }
    }
}

/// What is known while an answer's head is awaited.
struct Wait {
    sent: bool,
    late: bool,
    got_bytes: bool,
    interims: u16,
    scan: HeadScan,
}

/// Interim heads that one answer may have: one every few seconds for as long as a first byte may
/// take. Without a bound a broken upstream would keep a core busy until then.
const INTERIMS_MAX: u16 = 256;

impl Wait {
    /// The head, the end of the attempt, or nothing yet.
    fn judge<S: Stream>(
        &mut self,
        upstream: &mut Upstream<S>,
        ended: bool,
        caller_id: Option<&[u8]>,
        buffers: &Buffers,
    ) -> Option<Result<AnswerHead, AttemptEnd>> {
        self.got_bytes |= !upstream.inbox.is_empty();
        match self.parse(upstream, caller_id, buffers) {
            Some(result) => Some(result),
            None if !ended => None,
            None if self.late => Some(Err(AttemptEnd::Timeout { sent: self.sent })),
            None if self.got_bytes || upstream.uses == 0 => {
                Some(Err(AttemptEnd::Cut { sent: self.sent }))
            }
            None => Some(Err(AttemptEnd::Stale)),
        }
    }

    /// The field table lives on this stack only.
    #[inline(never)]
    fn parse<S: Stream>(
        &mut self,
        upstream: &mut Upstream<S>,
        caller_id: Option<&[u8]>,
        buffers: &Buffers,
    ) -> Option<Result<AnswerHead, AttemptEnd>> {
        let mut fields = Fields::new();
        loop {
            match self.scan.response(&upstream.inbox, &mut fields, false) {
                Err(_) => return Some(Err(AttemptEnd::Fault(Fault::INVALID))),
                Ok(None) => return None,
                Ok(Some(head)) if head.is_interim() => {
                    self.interims += 1;
                    if self.interims > INTERIMS_MAX {
                        return Some(Err(AttemptEnd::Fault(Fault::INVALID)));
                    }
                    // 100, 102 and 103 are about this hop or hints nobody asked for: dropped.
                    upstream.inbox.drain(..head.head_len);
                    self.scan = HeadScan::new();
                }
                Ok(Some(head)) => {
                    let bytes = &upstream.inbox;
                    let written = buffers.take();
                    let head = AnswerHead::read(bytes, &head, &fields, caller_id, written);
                    return Some(Ok(head));
                }
            }
        }
    }
}

/// Starts the next piece; false when there is none.
fn start_next<S: Stream>(
    upstream: &mut Upstream<S>,
    outgoing: &mut Outgoing,
    request: &mut Vec<u8>,
) -> bool {
    match outgoing.next(request) {
        Some(Chunk { bytes, start, end }) => {
            upstream.stream.start_write(Chunk { bytes, start, end });
            true
        }
        None => false,
    }
}

/// Keeps a read posted, with room.
fn read_on<S: Stream>(upstream: &mut Upstream<S>, buffers: &Buffers) {
    if upstream.stream.reading() {
        return;
    }
    let mut buffer = std::mem::take(&mut upstream.inbox);
    if buffer.capacity() == 0 {
        buffer = buffers.take();
    }
    if buffer.len() == buffer.capacity() {
        // A head larger than one buffer; the parser bounds it.
        let larger = 2 * buffer.capacity();
        buffers.grow(&mut buffer, larger);
    }
    upstream.stream.start_read(buffer, Recall::Never);
}
