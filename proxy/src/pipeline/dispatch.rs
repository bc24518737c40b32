//! Sends the request and waits for the head of an answer. What to do after an attempt is decided
//! by `govern::walk`; this file only carries it out.

use super::answer::AnswerHead;
use super::client::{Client, Presence};
use super::heading::Wait;
use super::held::Held;
use super::open::{self, Call};
use super::parse::Request;
use super::rewrite::write_request;
use super::walking::{Failed, Walking};
use super::{Unserved, after_body, leaving, relay, settle};
use crate::config::snapshot::Provider;
use crate::exchange::refusal::Refusal;
use crate::exchange::time::MonoNs;
use crate::govern::walk::{self, AttemptEnd, Over, Step};
use crate::io::buffers::Buffers;
use crate::io::turn::{Event, Turn};
use crate::io::{Chunk, Io, Recall, Stream, TICK};
use crate::shard::Shard;
use crate::upstream::Upstream;
use crate::upstream::dial::{Undialled, dial};
use crate::upstream::outgoing::{From, Outgoing};
use std::time::Duration;

/// A head of an answer, and the connection its body comes from.
pub(super) struct Answer<S> {
    /// The connection; its inbox begins with the head.
    pub upstream: Upstream<S>,
    /// The head.
    pub head: AnswerHead,
    /// The buffer that a write of the request still has, if it was not wholly sent.
    pub lent: Option<From>,
    /// When the first byte toward the upstream was handed over.
    pub begun: MonoNs,
}

/// Where a walk leads.
pub(super) enum Way<S> {
    /// An answer has begun to come.
    Comes(Answer<S>),
    /// Nothing is left to try, and this answer is told that came before.
    Kept(walk::Answer),
}

/// Walks until an answer begins to come, or nothing is left to try.
pub(super) async fn walk<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    request: &Request,
    call: &mut Call<'_>,
    held: &mut Held,
    walking: &mut Walking,
) -> Result<Way<I::Stream>, Unserved> {
    loop {
        if shard.cut.get() {
            return Err(after_body(Refusal::ShuttingDown));
        }
        let (step, since) = walking.next(shard, call);
        let (place, fresh) = match step {
            Step::Try { place, fresh } => (place, fresh),
            Step::Wait { until } => {
                Box::pin(pause(shard, client, call, held, until)).await?;
                call.waited(since, shard.mono());
                continue;
            }
            Step::Over(Over::Answer(answer)) => return Ok(Way::Kept(answer)),
            Step::Over(Over::Refuse(refusal)) => return Err(after_body(refusal)),
        };
        if let Some(bundle) = &held.bundle
            && let Err(refusal) = bundle.standing()
        {
            walking.abandoned(shard, call);
            return Err(after_body(refusal));
        }
        if fresh {
            shard.counters.replays.increment();
        }
        open::aim(shard, call, held, (&mut client.model, &client.session), place);
        let fallbacks = held.record.fallbacks;
        held.record.attempt(call.attempt());
        shard.counters.attempts.increment();
        shard.counters.fallbacks.add(u64::from(held.record.fallbacks - fallbacks));
        match attempt(shard, client, request, call, held, fresh).await {
            Ok(answer) => return Ok(Way::Comes(answer)),
            Err(Ended::ClientGone) => {
                walking.abandoned(shard, call);
                return Err(Unserved::ClientGone);
            }
            Err(Ended::Attempt(_)) if shard.cut.get() => {
                walking.abandoned(shard, call);
                return Err(after_body(Refusal::ShuttingDown));
            }
            Err(Ended::Attempt(end)) => {
                call.waited(since, shard.mono());
                walking.failed(shard, call, held, Failed { end, kept: None });
            }
        }
    }
}

/// Lets time pass before the next attempt, with an eye on the client.
async fn pause<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    call: &mut Call<'_>,
    held: &mut Held,
    until: MonoNs,
) -> Result<(), Unserved> {
    loop {
        let rest = Duration::from_nanos(until.since(shard.mono()));
        if rest.is_zero() {
            return Ok(());
        }
        let half_closed = call.snapshot.deadlines.half_closed;
        let sooner = match call.begun {
            true => relay::beat_in(client, call),
            false => client.patience(half_closed).unwrap_or(rest),
        };
        client.timer.arm(rest.min(sooner));
        match Turn::client(&mut client.stream, &client.timer).await {
            Event::ClientRead(done) => {
                client.absorb(done);
                client.shed_inbox(&shard.buffers);
            }
            Event::Fired if shard.cut.get() => return Err(after_body(Refusal::ShuttingDown)),
            Event::Fired if !call.begun => client.give_up(half_closed),
            Event::Fired if call.begun && relay::beat_in(client, call).is_zero() => {
                let sent = relay::beat(shard, client, call, held).await;
                sent.map_err(|_| Unserved::ClientGone)?;
            }
            _ => {}
        }
        if client.presence == Presence::Gone {
            return Err(Unserved::ClientGone);
        }
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
    let number = (held.record.attempts, shard.spans.wide());
    write_request((&mut outgoing, buffers), client, request, call, provider, number);
    settle::sent(shard, held);
    let begun = shard.mono();
    let outcome = exchange(shard, client, call, held, &mut upstream, &mut outgoing).await;
    match outcome {
        Ok((head, sent)) => {
            let lent = if sent { None } else { outgoing.lent() };
            shard.buffers.give(std::mem::take(&mut outgoing.written));
            Ok(Answer { upstream, head, lent, begun })
        }
        Err(ended) => {
            // The lent buffer must be home before the request can be sent again.
            upstream.stream.shutdown();
            client.timer.disarm();
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
            let to = (address, provider.tls.as_ref());
            if let Some(found) = shard.pool.check_out(to, tick, age_max, &shard.buffers) {
                shard.counters.upstream_reused.increment();
                return Ok(found);
            }
            nth += 1;
        }
    }
    let deadlines = call.snapshot.deadlines;
    client.timer.arm(deadlines.connect);
    let mut nth = 0;
    while let Some(address) = addresses.nth(provider, nth) {
        let tls = provider.tls.as_deref();
        match dial(&shard.io, address, tls, &client.timer, deadlines.tls).await {
            Ok(stream) => {
                client.timer.disarm();
                shard.counters.upstream_connections.increment();
                let to = (address, provider.tls.clone());
                return Ok(Upstream::new(stream, to, tick, shard.buffers.take()));
            }
            Err(Undialled::Refused) => {}
            Err(Undialled::Late) => break,
            Err(Undialled::Unsecured) => {
                shard.counters.upstream_tls_failures.increment();
                // The handshake has had its own time.
                client.timer.arm(deadlines.connect);
            }
            Err(Undialled::LateUnsecured) => {
                shard.counters.upstream_tls_failures.increment();
                break;
            }
        }
        nth += 1;
    }
    client.timer.disarm();
    Err(Ended::Attempt(AttemptEnd::Unreachable))
}

/// Writes the request and reads until the answer's head is complete.
async fn exchange<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    call: &mut Call<'_>,
    held: &mut Held,
    upstream: &mut Upstream<I::Stream>,
    outgoing: &mut Outgoing,
) -> Result<(AnswerHead, bool), Ended> {
    let deadlines = call.snapshot.deadlines;
    let mut wait = Wait::new();
    start_next(upstream, outgoing, &mut call.received.bytes);
    wait.arm(client, call, deadlines.write_stall);
    loop {
        read_on(upstream, &shard.buffers);
        match Turn::both(&mut client.stream, &mut upstream.stream, &client.timer).await {
            Event::UpstreamWritten(done) => {
                outgoing.give_back(done.chunk, &mut call.received.bytes);
                if done.result.is_ok() && start_next(upstream, outgoing, &mut call.received.bytes) {
                    wait.arm(client, call, deadlines.write_stall);
                } else {
                    // After a failed write an answer may be here all the same: the read tells.
                    wait.sent |= done.result.is_ok();
                    // The answer may take minutes; what a replay needs is written again.
                    shard.buffers.give(std::mem::take(&mut outgoing.written));
                    wait.arm(client, call, deadlines.first_byte);
                }
            }
            Event::UpstreamRead(done) => {
                upstream.inbox = done.buffer;
                let ended = !matches!(done.result, Ok(n) if n > 0);
                let (told, buffers) = ((client.caller_id(), shard.now().wall), &shard.buffers);
                if let Some(result) = wait.judge(upstream, ended, told, buffers) {
                    client.timer.disarm();
                    if result.is_err() && call.leaving.is_some() {
                        return Err(Ended::ClientGone);
                    }
                    return result.map(|head| (head, wait.sent)).map_err(Ended::Attempt);
                }
            }
            Event::ClientRead(done) => {
                client.absorb(done);
                client.shed_inbox(&shard.buffers);
                wait.arm_again(client, call);
            }
            Event::Fired if !wait.late && !shard.cut.get() && wait.is_early(client) => {
                if !call.begun {
                    client.give_up(deadlines.half_closed);
                } else if Box::pin(relay::beat(shard, client, call, held)).await.is_err() {
                    // It had waited long enough for a sign.
                    return Err(Ended::ClientGone);
                }
                wait.arm_again(client, call);
            }
            Event::Fired => {
                wait.late = true;
                client.timer.disarm();
                upstream.stream.shutdown();
            }
            Event::ClientWritten(_) | Event::Stirred(_) => {}
        }
        let unseen = client.presence == Presence::Gone && call.leaving.is_none();
        if unseen && !outlives(shard, client, call, held, &mut wait) {
            return Err(Ended::ClientGone);
        }
    }
}

/// The client is seen gone. Whether its answer is waited for all the same.
fn outlives<I: Io>(
    shard: &Shard<I>,
    client: &Client<I::Stream>,
    call: &mut Call<'_>,
    held: &mut Held,
    wait: &mut Wait,
) -> bool {
    client.timer.disarm();
    if !wait.sent || !leaving::left(shard, client, call, held) {
        return false;
    }
    // It was sent, and is for nobody: it is not sent again.
    call.received.let_go();
    wait.arm(client, call, call.rest(client.timer.tick()));
    true
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
