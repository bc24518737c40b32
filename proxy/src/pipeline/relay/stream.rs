//! A stream of events. Up to the commit point its head and preamble stay here, so that another
//! candidate may still be asked; after it every wake-up takes in what came and sends on what may
//! go, in one write.
//!
//! Heartbeats and errors of our own are put in between two events only. A stream ends cleanly if
//! its terminator was seen, or a reason to finish and the end of its framing; any other end is
//! told in-band, or inside an event by breaking the body off.
//!
//! What is rare (a beat, an error, a client that leaves) runs in a future of its own on the heap,
//! so that every connection's future stays small.

use super::beat;
use super::flow::Flow;
use super::incoming::{Incoming, LOOK_AHEAD};
use super::pricing;
use super::waiting::Wait;
use super::{ClientFraming, Delivered, Unfit, finish_head, lost_ending};
use crate::exchange::outcome::{Ending, Outcome};
use crate::exchange::refusal::Refusal;
use crate::io::buffers::Buffers;
use crate::io::{Chunk, Io, Recall, Stream};
use crate::pipeline::After;
use crate::pipeline::client::{Client, Lost};
use crate::pipeline::held::Held;
use crate::pipeline::leaving;
use crate::pipeline::open::Call;
use codec::http1;
use std::time::Duration;
use store::record::flag;

/// How long the end of a body may take after the stream's own end: it mostly is in the same
/// packet or the next, and a connection whose answer has ended can be used again. The client has
/// all events by then; what it waits for is the end of its own body.
const AFTER_END: Duration = Duration::from_millis(300);

/// The same of a stream in gzip: behind its events it has a checksum, and whoever decodes it takes
/// one without for broken. As long as an upstream may take for a packet of some bytes.
const AFTER_CODED_END: Duration = Duration::from_secs(5);

/// Room for the framing of chunks beside their data.
const CHUNK_FRAMING_BYTES: usize = 64;

/// A stream on its way through.
pub(in crate::pipeline) struct Streaming<'a, I: Io> {
    pub(super) incoming: Incoming<'a, I>,
    pub(super) flow: Flow,
    /// In ticks: when the record was last told what has passed; once `ending`, until when the end
    /// of the body is waited for.
    tick: u64,
    /// The stream's own end was seen, and the end of its body is waited for.
    ending: bool,
    /// Its own end was seen, and the end of its body will not come.
    ended: bool,
    /// Nobody can tell its body from its framing any more.
    garbled: bool,
    /// The client was told that it broke.
    told: bool,
}

/// Whether a stream is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// More is to come.
    Not,
    /// It came to its end.
    Clean(Ending),
    /// Its framing ended before it did.
    Broken,
}

impl<'a, I: Io> Streaming<'a, I> {
    pub(super) fn new(mut incoming: Incoming<'a, I>, call: &Call<'_>) -> Streaming<'a, I> {
        let events = beat::events_of(call.origin.dialect);
        let mut flow = Flow::new(events, incoming.head.coding, call.hide_usage);
        if call.begun {
            flow.no_mark();
        }
        incoming.recall = Recall::Able;
        Streaming {
            incoming,
            flow,
            tick: 0,
            ending: false,
            ended: false,
            garbled: false,
            told: false,
        }
    }

    /// Reads to the commit point.
    pub(super) async fn look(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &mut Call<'_>,
        held: &mut Held,
    ) -> Result<(), Unfit> {
        if call.begun && !self.flow.is_plain() {
            // The head that the client has says nothing of a coding.
            return Err(Unfit::Invalid);
        }
        loop {
            self.take_in();
            if self.flow.first_error().is_some() {
                return Err(Unfit::Error);
            }
            if self.flow.has_begun() || self.incoming.body.len() >= LOOK_AHEAD {
                let over = self.flow.is_terminated() && self.flow.is_empty();
                return if over { Err(Unfit::Empty) } else { Ok(()) };
            }
            if self.incoming.body.done {
                let empty = self.flow.is_read() && self.flow.is_empty();
                return if empty { Err(Unfit::Empty) } else { Ok(()) };
            }
            if self.garbled {
                return Err(Unfit::garbled(&self.incoming));
            }
            match self.wait(client, call, held, None).await {
                Wait::Some => {}
                Wait::Cut => return Err(Unfit::Cut),
                Wait::Late => return Err(Unfit::Late),
                Wait::Left | Wait::Stalled => return Err(Unfit::ClientGone),
            }
        }
    }

    /// Decodes and reads what has arrived, up to where that cannot be done.
    fn take_in(&mut self) {
        let Incoming { body, .. } = &mut self.incoming;
        let before = body.len();
        self.garbled |= body.decode().is_err();
        if body.len() > before || body.done {
            self.flow.take_in(body);
        }
        if body.done {
            self.flow.end(true, body);
        }
        // Where the body would end nobody can tell any more.
        self.ended |= self.flow.has_surplus();
    }

    /// Passes the stream on from the commit point to its end.
    pub(super) async fn pump(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &mut Call<'_>,
        held: &mut Held,
    ) -> Delivered {
        let framing = beat::framing(call.origin.is_10);
        let close = call.origin.close || framing == ClientFraming::Close;
        let mut out = std::mem::take(&mut self.incoming.head.written);
        if call.begun {
            out.clear();
        } else {
            let of = (self.incoming.shard, &*call, &*held);
            finish_head(&mut out, (framing, close), client, of);
            call.begun = true;
        }
        let ending = loop {
            let over = self.over();
            self.settle(call, held, over);
            self.pass(&mut out, framing);
            match over {
                Over::Not => self.incoming.read_on(),
                Over::Clean(_) if framing == ClientFraming::Chunked => {
                    written(&mut out, &self.incoming.shard.buffers);
                    out.extend_from_slice(http1::LAST_CHUNK);
                }
                Over::Clean(_) | Over::Broken => {}
            }
            let (back, sent) = send(client, call, out).await;
            // Nobody needs it while the stream is silent.
            self.incoming.shard.buffers.give(back);
            out = Vec::new();
            match (sent, over) {
                (Err(lost), _) => break Box::pin(self.lost(client, call, held, lost)).await,
                (Ok(()), Over::Clean(ending)) => break ending,
                (Ok(()), Over::Broken) => {
                    let refusal = Refusal::UpstreamCut;
                    break Box::pin(self.broken(client, call, held, (&mut out, refusal))).await;
                }
                (Ok(()), Over::Not) => {}
            }
            let terminated = self.flow.is_terminated();
            let limit = if terminated { Some(self.end_in(client.timer.tick())) } else { None };
            let came = self.wait(client, call, held, limit).await;
            match came {
                Wait::Some => self.take_in(),
                Wait::Left => break Box::pin(self.lost(client, call, held, Lost::Gone)).await,
                Wait::Stalled => break Ending::WriteStall,
                // Nothing follows an end, and an error that was told is one.
                _ if terminated || self.flow.is_told_off() => self.ended = true,
                came => {
                    let refusal = match came {
                        Wait::Late if self.incoming.shard.cut.get() => Refusal::ShuttingDown,
                        Wait::Late => Refusal::UpstreamTimeout,
                        _ => Refusal::UpstreamCut,
                    };
                    break Box::pin(self.broken(client, call, held, (&mut out, refusal))).await;
                }
            }
        };
        self.incoming.shard.buffers.give(out);
        self.finish(call, held, ending, (framing, close))
    }

    /// How long the end of the body may still take, since the stream's own was seen.
    fn end_in(&mut self, tick: u64) -> Duration {
        if !std::mem::replace(&mut self.ending, true) {
            let span = if self.flow.is_plain() { AFTER_END } else { AFTER_CODED_END };
            self.tick = tick + leaving::ticks(span);
        }
        leaving::span(self.tick.saturating_sub(tick))
    }

    /// How the stream ended, if it did.
    fn over(&self) -> Over {
        let flow = &self.flow;
        if !self.incoming.body.done && !self.ended && !self.garbled {
            Over::Not
        } else if self.garbled && !flow.is_terminated() && !flow.is_told_off() {
            Over::Broken
        } else if flow.has_error() {
            Over::Clean(Ending::UpstreamError)
        } else if flow.is_terminated() || flow.is_succeeded() || !flow.is_read() {
            Over::Clean(Ending::Succeeded)
        } else {
            Over::Broken
        }
    }

    /// Price before the last bytes; before that, what has passed so far, some ten times a second.
    fn settle(&mut self, call: &Call<'_>, held: &mut Held, over: Over) {
        // What goes next counts: an answer that nobody can read is charged by its bytes.
        held.record.relayed_bytes += self.flow.clear() as u64;
        let tick = self.incoming.shard.wheel.tick();
        if self.flow.is_terminated() || matches!(over, Over::Clean(_)) {
            let failed = self.flow.has_error();
            let ending = if failed { Ending::UpstreamError } else { Ending::Succeeded };
            self.price(call, held, ending);
        } else if tick != self.tick {
            self.tick = tick;
            let shard = self.incoming.shard;
            let read = (self.flow.usage(), self.flow.said());
            pricing::passing(shard, call, held, read, self.incoming.head.status);
        }
    }

    /// Prices it, by what it said it used, else by the rule of its ending.
    fn price(&self, call: &Call<'_>, held: &mut Held, ending: Ending) {
        held.record.set(flag::STREAM);
        if self.flow.is_terminated() {
            held.record.set(flag::TERMINATED);
        }
        pricing::unreadable(held, self.incoming.head.status, !self.flow.is_read());
        let read = (self.flow.usage(), self.flow.said());
        pricing::answer(call, held, &self.incoming, read, ending);
    }

    /// The same of one of which nothing more comes: what its unfinished event said counts.
    pub(super) fn close(&mut self, call: &Call<'_>, held: &mut Held, ending: Ending) {
        self.flow.end(false, &mut self.incoming.body);
        self.price(call, held, ending);
    }

    /// Writes what may go behind whatever `out` holds.
    fn pass(&mut self, out: &mut Vec<u8>, framing: ClientFraming) {
        let body = &mut self.incoming.body;
        let clear = self.flow.clear();
        let bytes = body.body().get(..clear).unwrap_or_default();
        if clear == 0 {
            return;
        }
        written(out, &self.incoming.shard.buffers);
        let room = out.len() + clear + CHUNK_FRAMING_BYTES;
        self.incoming.shard.buffers.grow(out, room);
        match framing {
            ClientFraming::Chunked => http1::chunk(out, bytes),
            ClientFraming::Length(_) | ClientFraming::Close => out.extend_from_slice(bytes),
        }
        body.drop_front(body.len() - clear);
        self.flow.gone();
    }

    /// The stream broke. Between two events the client is told so.
    async fn broken(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &mut Call<'_>,
        held: &mut Held,
        (out, refusal): (&mut Vec<u8>, Refusal),
    ) -> Ending {
        let ending = match refusal {
            Refusal::UpstreamTimeout => Ending::Deadline,
            Refusal::ShuttingDown => Ending::Shutdown,
            _ => Ending::UpstreamCut,
        };
        if !self.flow.is_plain() || !self.flow.is_between_events() {
            return ending;
        }
        // Whoever reads the end of it has its confirm, as with any other end.
        self.close(call, held, ending);
        written(out, &self.incoming.shard.buffers);
        beat::write_error(out, call, refusal);
        let (back, sent) = send(client, call, std::mem::take(out)).await;
        *out = back;
        self.told = sent.is_ok();
        ending
    }

    /// The client takes no more: what its answer used is still read, as far as the rule says.
    async fn lost(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &mut Call<'_>,
        held: &mut Held,
        lost: Lost,
    ) -> Ending {
        if !self.flow.is_terminated() && self.over() == Over::Not && lost == Lost::Gone {
            leaving::left(self.incoming.shard, client, call, held);
            self.drain(client, call).await;
        }
        lost_ending(lost)
    }

    /// Reads on for nobody.
    pub(super) async fn drain(&mut self, client: &mut Client<I::Stream>, call: &mut Call<'_>) {
        while self.over() == Over::Not && !self.flow.is_terminated() {
            if self.incoming.forget() {
                self.flow.forget();
            }
            if !self.incoming.drained(client, call).await {
                break;
            }
            self.take_in();
        }
    }

    fn finish(
        &mut self,
        call: &Call<'_>,
        held: &mut Held,
        ending: Ending,
        (framing, close): (ClientFraming, bool),
    ) -> Delivered {
        self.close(call, held, ending);
        self.incoming.retire();
        self.incoming.shed();
        let clean = matches!(ending, Ending::Succeeded | Ending::UpstreamError);
        let after = match framing {
            _ if clean && !close => After::Keep,
            _ if clean || self.told => After::Close,
            // Only a reset tells this client that the end is not the end.
            ClientFraming::Close => After::Abort,
            ClientFraming::Chunked | ClientFraming::Length(_) => After::Close,
        };
        Delivered { outcome: Outcome { ending, status: self.incoming.head.status }, after }
    }
}

/// Something is to be written into `out`, which may have gone home meanwhile.
fn written(out: &mut Vec<u8>, buffers: &Buffers) {
    if out.capacity() == 0 {
        *out = buffers.take();
    }
}

/// Sends what `out` holds; gives it back empty.
async fn send<S: Stream>(
    client: &mut Client<S>,
    call: &Call<'_>,
    out: Vec<u8>,
) -> (Vec<u8>, Result<(), Lost>) {
    if out.is_empty() {
        return (out, Ok(()));
    }
    let stall = call.snapshot.deadlines.write_stall;
    let (chunk, sent) = client.send(Chunk::whole(out), stall).await;
    let mut out = chunk.bytes;
    out.clear();
    (out, sent)
}
