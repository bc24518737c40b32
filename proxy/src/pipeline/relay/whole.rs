//! A whole answer. If all of it is here within the look-ahead it goes out in one piece; a longer
//! one is passed on as it comes, its last KiB always kept back until the price is in the record.

use super::pricing::{self, status_ending};
use super::{ClientFraming, Facts, Reply, client_framing, finish_head};
use crate::exchange::outcome::{Ending, Outcome};
use crate::exchange::refusal::Refusal;
use crate::exchange::time::MonoNs;
use crate::io::turn::{Event, Turn};
use crate::io::{Chunk, Io, Recall, Stream};
use crate::pipeline::answer::AnswerHead;
use crate::pipeline::arriving::Arriving;
use crate::pipeline::client::{Client, Lost, Presence};
use crate::pipeline::dispatch::Answer;
use crate::pipeline::held::Held;
use crate::pipeline::open::Call;
use crate::pipeline::parse::Request;
use crate::pipeline::{After, Unserved, after_body};
use crate::shard::Shard;
use crate::upstream::Upstream;
use crate::upstream::outgoing::FLAT_MAX;
use codec::http1::{self, Framing, TrailerRule};

/// Bytes of a body that are looked at before the first byte goes out (DESIGN §6, commit point).
const LOOK_AHEAD: usize = 64 * 1024;

/// The last bytes of an answer, which wait for the price: nobody has the whole answer without
/// them, and no one misses them for the microsecond it takes.
const WITHHELD: usize = 1024;

/// Largest piece of a long answer that is held at once.
const PIECE_MAX: usize = 2 * LOOK_AHEAD;

/// Room for the length of a chunk, its line ends and the last chunk.
const CHUNK_FRAMING_BYTES: usize = 64;

/// What came of it.
pub(crate) struct Delivered {
    /// For the record.
    pub outcome: Outcome,
    /// What becomes of the client's connection.
    pub after: After,
}

/// An answer on its way through.
struct Relay<'a, I: Io> {
    shard: &'a Shard<I>,
    /// Gone once the answer has been taken from it.
    upstream: Option<Upstream<I::Stream>>,
    body: Arriving,
    reply: Reply,
    head: AnswerHead,
    /// The upstream connection may be used again once the body is complete.
    reusable: bool,
    /// Body bytes already fed to the reader.
    fed: usize,
    /// When the attempt began.
    begun: MonoNs,
    /// When what is being worked on arrived.
    arrived: MonoNs,
}

/// Passes the answer on.
pub(crate) async fn pump<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    request: &Request,
    call: &mut Call<'_>,
    held: &mut Held,
    answer: Answer<I::Stream>,
) -> Result<Delivered, Unserved> {
    let begun = answer.begun;
    let mut relay = Relay::new(shard, answer);
    held.record.status = relay.head.status;
    if let Err(unsent) = relay.look_ahead(client, call).await {
        pricing::unsent(shard, call, held, &relay.reply, (relay.head.status, &unsent));
        shard.buffers.give(std::mem::take(&mut relay.head.written));
        shard.buffers.give(std::mem::take(&mut relay.body.buffer));
        relay.retire(false);
        return Err(unsent);
    }
    // The commit point: from here on nothing is replayed, so the request need not be kept.
    call.received.let_go();
    let own = begun.since(call.complete) + shard.mono().since(relay.arrived);
    held.record.overhead_us = u32::try_from(own / 1000).unwrap_or(u32::MAX);
    let payer = held.bundle.clone();
    let facts = Facts {
        request_id: &call.id,
        attempts: held.record.attempts,
        overhead_us: held.record.overhead_us,
        dialect: request.route.dialect(),
        limits: payer.as_ref().map(|bundle| &bundle.limits),
        now: shard.now(),
        close: !request.keep_alive,
        is_10: request.minor == 0,
    };
    if relay.body.done {
        held.record.relayed_bytes = relay.body.len() as u64;
        settle_usage(&relay, call, held);
        Ok(relay.send_whole(client, call, &facts).await)
    } else {
        Ok(relay.send_on(client, request, call, held, &facts).await)
    }
}

fn settle_usage<I: Io>(relay: &Relay<'_, I>, call: &Call<'_>, held: &mut Held) {
    pricing::answer(relay.shard, call, held, &relay.reply, (&relay.head, relay.begun));
}

/// How a further read ended.
enum More {
    /// Bytes, or the end that completes the body.
    Some,
    /// The end came too early.
    Cut,
    /// Nothing came in time.
    Late,
    /// The client is gone.
    ClientGone,
}

impl<'a, I: Io> Relay<'a, I> {
    fn new(shard: &'a Shard<I>, answer: Answer<I::Stream>) -> Relay<'a, I> {
        let Answer { mut upstream, head, sent, begun } = answer;
        let reply = Reply::new(&head);
        let buffer = std::mem::take(&mut upstream.inbox);
        let body = Arriving::new(buffer, head.len, head.framing, TrailerRule::DropAll);
        Relay {
            shard,
            upstream: Some(upstream),
            body,
            reply,
            reusable: sent && head.keep_alive,
            head,
            fed: 0,
            begun,
            arrived: shard.mono(),
        }
    }

    /// Reads until the body is complete or the look-ahead is full, and judges what can be judged.
    async fn look_ahead(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &Call<'_>,
    ) -> Result<(), Unserved> {
        self.head.judge().map_err(after_body)?;
        loop {
            self.take_in().map_err(|_| after_body(Refusal::UpstreamInvalid))?;
            if self.body.done {
                return match self.reply.judge_whole() {
                    // A count of tokens is no completion.
                    Err(Refusal::EmptyCompletion) if call.is_free => Ok(()),
                    judged => judged.map_err(after_body),
                };
            }
            if self.body.len() >= LOOK_AHEAD {
                return Ok(());
            }
            match self.read_more(client, call).await {
                More::Some => {}
                More::Cut => return Err(after_body(Refusal::UpstreamCut)),
                More::Late => return Err(after_body(Refusal::UpstreamTimeout)),
                More::ClientGone => return Err(Unserved::ClientGone),
            }
        }
    }

    /// Decodes and reads what has arrived.
    fn take_in(&mut self) -> Result<(), &'static str> {
        self.body.decode()?;
        self.reply.feed(self.body.body().get(self.fed..).unwrap_or_default());
        self.fed = self.body.len();
        Ok(())
    }

    /// One more read of the answer, with an eye on the client.
    async fn read_more(&mut self, client: &mut Client<I::Stream>, call: &Call<'_>) -> More {
        let Some(upstream) = &mut self.upstream else { return More::Cut };
        if !upstream.stream.reading() {
            if let Some(capacity) = self.body.wanted_capacity() {
                // What was announced is read into one place, as far as a piece goes.
                let whole = self.body.announced().map_or(0, |n| n.min(PIECE_MAX as u64) as usize);
                let capacity = capacity.max(self.body.end + whole).min(PIECE_MAX);
                self.body.grow_to(capacity, &self.shard.buffers);
            }
            let buffer = std::mem::take(&mut self.body.buffer);
            upstream.stream.start_read(buffer, Recall::Never);
        }
        client.timer.arm(call.snapshot.deadlines.between_bytes);
        let mut late = false;
        loop {
            let turn = Turn::both(&mut client.stream, &mut upstream.stream, &client.timer);
            match turn.await {
                Event::UpstreamRead(done) => {
                    client.timer.disarm();
                    self.body.buffer = done.buffer;
                    self.arrived = self.shard.mono();
                    return match done.result {
                        Ok(n) if n > 0 => More::Some,
                        Ok(_) if !late && self.body.end_of_connection() => More::Some,
                        _ if late => More::Late,
                        _ => More::Cut,
                    };
                }
                Event::UpstreamWritten(done) => {
                    // An early answer: the rest of the request need not arrive any more.
                    self.shard.buffers.give(done.chunk.bytes);
                }
                Event::ClientRead(done) => {
                    client.absorb(done);
                    client.shed_inbox(&self.shard.buffers);
                    if client.presence == Presence::Gone {
                        client.timer.disarm();
                        return More::ClientGone;
                    }
                }
                Event::Fired => {
                    late = true;
                    client.timer.disarm();
                    upstream.stream.shutdown();
                }
                Event::ClientWritten(_) => {}
            }
        }
    }

    /// Parts with the upstream connection: back to the pool if its answer ended where it should.
    fn retire(&mut self, whole: bool) {
        let Some(upstream) = self.upstream.take() else { return };
        let clean = self.body.done && self.body.surplus().is_empty();
        if whole && clean && self.reusable && self.head.framing != Framing::UntilClose {
            self.shard.pool.check_in(upstream, &self.shard.buffers);
        } else {
            upstream.discard(&self.shard.buffers);
        }
    }

    /// All of it is here.
    async fn send_whole(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &Call<'_>,
        facts: &Facts<'_>,
    ) -> Delivered {
        let mut out = std::mem::take(&mut self.head.written);
        let length = self.body.len();
        let framing = ClientFraming::Length(length as u64);
        finish_head(&mut out, framing, facts, client.caller_id());
        let flat = out.len() + length <= FLAT_MAX;
        if flat {
            let room = out.len() + length;
            self.shard.buffers.grow(&mut out, room);
            out.extend_from_slice(self.body.body());
        }
        // Before the client is written to: the next call may use the connection meanwhile.
        self.retire(true);
        let mut buffer = std::mem::take(&mut self.body.buffer);
        let stall = call.snapshot.deadlines.write_stall;
        let (chunk, mut result) = client.send(Chunk::whole(out), stall).await;
        self.shard.buffers.give(chunk.bytes);
        if !flat && result.is_ok() {
            let (start, end) = (self.body.start, self.body.end);
            let (chunk, second) = client.send(Chunk { bytes: buffer, start, end }, stall).await;
            buffer = chunk.bytes;
            result = second;
        }
        self.shard.buffers.give(buffer);
        delivered(self.head.status, result, facts.close)
    }

    /// More is to come: passes on what is here but the last KiB, again and again.
    async fn send_on(
        &mut self,
        client: &mut Client<I::Stream>,
        request: &Request,
        call: &Call<'_>,
        held: &mut Held,
        facts: &Facts<'_>,
    ) -> Delivered {
        let announced = self.body.announced().map(|rest| rest + self.body.len() as u64);
        let framing = client_framing(self.head.framing, announced, request.minor);
        let close = facts.close || framing == ClientFraming::Close;
        let facts = Facts { close, is_10: facts.is_10, ..*facts };
        let mut out = std::mem::take(&mut self.head.written);
        finish_head(&mut out, framing, &facts, client.caller_id());
        let stall = call.snapshot.deadlines.write_stall;
        let ending = loop {
            let done = self.body.done;
            let keep = if done { 0 } else { WITHHELD };
            let passing = self.body.len().saturating_sub(keep);
            held.record.relayed_bytes += passing as u64;
            if done {
                settle_usage(self, call, held);
            } else {
                pricing::passing(self.shard, call, held, &self.reply, self.head.status);
            }
            let (back, sent) = self.send_piece(client, out, framing, keep, stall).await;
            out = back;
            match sent {
                Ok(()) if done => break status_ending(self.head.status),
                Ok(()) => {}
                Err(lost) => break lost_ending(lost),
            }
            match self.read_more(client, call).await {
                More::Some if self.take_in().is_ok() => {}
                More::Some | More::Cut => break Ending::UpstreamCut,
                More::Late => break Ending::Deadline,
                More::ClientGone => break Ending::ClientLeft,
            }
        };
        self.shard.buffers.give(out);
        self.finish(call, held, ending, framing, close)
    }

    /// Sends all but the last `keep` bytes of what is here, after whatever `out` holds.
    async fn send_piece(
        &mut self,
        client: &mut Client<I::Stream>,
        mut out: Vec<u8>,
        framing: ClientFraming,
        keep: usize,
        stall: std::time::Duration,
    ) -> (Vec<u8>, Result<(), Lost>) {
        let end = self.body.len().saturating_sub(keep);
        if framing == ClientFraming::Chunked {
            let room = out.len() + end + CHUNK_FRAMING_BYTES;
            self.shard.buffers.grow(&mut out, room);
            http1::chunk(&mut out, self.body.body().get(..end).unwrap_or_default());
            if self.body.done {
                out.extend_from_slice(http1::LAST_CHUNK);
            }
        }
        let mut result = Ok(());
        if !out.is_empty() {
            let (chunk, sent) = client.send(Chunk::whole(out), stall).await;
            out = chunk.bytes;
            out.clear();
            result = sent;
        }
        if framing != ClientFraming::Chunked && result.is_ok() && end > 0 {
            let start = self.body.start;
            let bytes = std::mem::take(&mut self.body.buffer);
            let piece = Chunk { bytes, start, end: start + end };
            let (chunk, sent) = client.send(piece, stall).await;
            self.body.buffer = chunk.bytes;
            result = sent;
        }
        self.body.drop_front(self.body.len() - end);
        self.fed = self.body.len();
        (out, result)
    }

    fn finish(
        &mut self,
        call: &Call<'_>,
        held: &mut Held,
        ending: Ending,
        framing: ClientFraming,
        close: bool,
    ) -> Delivered {
        settle_usage(self, call, held);
        let whole = self.body.done && ending == status_ending(self.head.status);
        self.retire(whole);
        self.shard.buffers.give(std::mem::take(&mut self.body.buffer));
        let after = match framing {
            // Only a reset tells this client that the end is not the end.
            ClientFraming::Close if !whole => After::Abort,
            _ if whole && !close => After::Keep,
            _ => After::Close,
        };
        Delivered { outcome: Outcome { ending, status: self.head.status }, after }
    }
}

fn delivered(status: u16, result: Result<(), Lost>, close: bool) -> Delivered {
    match result {
        Ok(()) => {
            let outcome = Outcome { ending: status_ending(status), status };
            Delivered { outcome, after: if close { After::Close } else { After::Keep } }
        }
        Err(lost) => {
            let outcome = Outcome { ending: lost_ending(lost), status };
            Delivered { outcome, after: After::Close }
        }
    }
}

fn lost_ending(lost: Lost) -> Ending {
    match lost {
        Lost::Gone => Ending::ClientLeft,
        Lost::Stalled => Ending::WriteStall,
    }
}
