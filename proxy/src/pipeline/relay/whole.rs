//! A whole answer. If all of it is here within the look-ahead it goes out in one piece; a longer
//! one is passed on as it comes, its last KiB always kept back until the price is in the record.

use super::incoming::{Came, Incoming, LOOK_AHEAD};
use super::pricing::{self, status_ending};
use super::reply::Worth;
use super::{ClientFraming, Delivered, Reply, Unfit, client_framing, finish_head, lost_ending};
use crate::exchange::outcome::{Ending, Outcome};
use crate::io::{Chunk, Io};
use crate::pipeline::After;
use crate::pipeline::client::{Client, Lost, Presence};
use crate::pipeline::held::Held;
use crate::pipeline::leaving;
use crate::pipeline::open::Call;
use crate::upstream::outgoing::FLAT_MAX;
use codec::http1;

/// The last bytes of an answer, which wait for the price: nobody has the whole answer without
/// them, and no one misses them for the microsecond it takes.
const WITHHELD: usize = 1024;

/// Room for the length of a chunk, its line ends and the last chunk.
const CHUNK_FRAMING_BYTES: usize = 64;

/// An answer on its way through.
pub(in crate::pipeline) struct Whole<'a, I: Io> {
    pub(super) incoming: Incoming<'a, I>,
    pub(super) reply: Reply,
    /// Body bytes already fed to the reader.
    fed: usize,
}

/// How a further read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl<'a, I: Io> Whole<'a, I> {
    pub(super) fn new(incoming: Incoming<'a, I>) -> Whole<'a, I> {
        let reply = Reply::new(&incoming.head);
        Whole { incoming, reply, fed: 0 }
    }

    /// Reads until the body is complete or the look-ahead is full, and judges what can be judged.
    pub(super) async fn look(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &mut Call<'_>,
    ) -> Result<(), Unfit> {
        self.incoming.head.judge()?;
        let success = self.incoming.head.is_success();
        loop {
            self.take_in().map_err(|_| Unfit::garbled(&self.incoming))?;
            if self.incoming.body.done {
                if !success {
                    return Err(Unfit::Error);
                }
                return match self.reply.worth() {
                    // The client has been told that a stream comes.
                    Worth::Something if call.begun => Err(Unfit::Invalid),
                    Worth::Something => Ok(()),
                    Worth::Error => Err(Unfit::Error),
                    Worth::Malformed => Err(Unfit::Invalid),
                    // A count of tokens is no completion.
                    Worth::Nothing if call.is_free => Ok(()),
                    Worth::Nothing => Err(Unfit::Empty),
                };
            }
            if self.incoming.body.len() >= LOOK_AHEAD {
                return match success {
                    true if call.begun => Err(Unfit::Invalid),
                    true => Ok(()),
                    // An error of that length is judged by what is here of it, and not kept.
                    false => Err(Unfit::Error),
                };
            }
            match self.read_more(client, call, true).await {
                More::Some => {}
                More::Cut => return Err(Unfit::Cut),
                More::Late => return Err(Unfit::Late),
                More::ClientGone => return Err(Unfit::ClientGone),
            }
        }
    }

    /// Whether it is longer than what is looked at before it is passed on.
    pub(super) fn is_long(&self) -> bool {
        !self.incoming.body.done && self.incoming.body.len() >= LOOK_AHEAD
    }

    /// Decodes and reads what has arrived, up to where that cannot be done.
    fn take_in(&mut self) -> Result<(), &'static str> {
        let body = &mut self.incoming.body;
        let decoded = body.decode();
        self.reply.feed(body.body().get(self.fed..).unwrap_or_default());
        self.fed = body.len();
        decoded
    }

    /// One more read of the answer, with an eye on the client. `unheard`: it has nothing yet.
    async fn read_more(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &mut Call<'_>,
        unheard: bool,
    ) -> More {
        let most = call.snapshot.deadlines.half_closed;
        loop {
            let between = call.snapshot.deadlines.between_bytes;
            let patience = client.patience(most).filter(|_| unheard);
            client.timer.arm(patience.map_or(between, |rest| rest.min(between)));
            let came = self.incoming.more(client, call).await;
            if matches!(came, Came::Fired) && unheard {
                client.give_up(most);
            }
            let more = match came {
                Came::Some => More::Some,
                Came::Cut => More::Cut,
                Came::Client | Came::Fired if client.presence == Presence::Gone => More::ClientGone,
                Came::Client => continue,
                Came::Fired => {
                    Box::pin(self.incoming.cut(client, call)).await;
                    More::Late
                }
            };
            client.timer.disarm();
            return more;
        }
    }

    /// Reads on for nobody.
    pub(super) async fn drain(&mut self, client: &mut Client<I::Stream>, call: &mut Call<'_>) {
        while !self.incoming.body.done {
            if self.incoming.forget() {
                self.fed = 0;
            }
            if !self.incoming.drained(client, call).await || self.take_in().is_err() {
                break;
            }
        }
    }

    /// Prices it, by what it said it used, else by the rule of its ending.
    pub(super) fn settle(&self, call: &Call<'_>, held: &mut Held, ending: Ending) {
        pricing::unreadable(held, self.incoming.head.status, self.reply.is_unread());
        let read = (self.reply.usage(), self.reply.said());
        pricing::answer(call, held, &self.incoming, read, ending);
    }

    /// Passes it on.
    pub(super) async fn pump(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &mut Call<'_>,
        held: &mut Held,
    ) -> Delivered {
        if self.incoming.body.done {
            held.record.relayed_bytes = self.incoming.body.len() as u64;
            self.settle(call, held, Ending::Succeeded);
            self.send_whole(client, call, held).await
        } else {
            self.send_on(client, call, held).await
        }
    }

    /// All of it is here.
    async fn send_whole(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &Call<'_>,
        held: &Held,
    ) -> Delivered {
        let incoming = &mut self.incoming;
        let shard = incoming.shard;
        let status = incoming.head.status;
        let mut out = std::mem::take(&mut incoming.head.written);
        let length = incoming.body.len();
        let framing = ClientFraming::Length(length as u64);
        finish_head(&mut out, (framing, call.origin.close), client, (shard, call, held));
        let flat = out.len() + length <= FLAT_MAX;
        if flat {
            let room = out.len() + length;
            shard.buffers.grow(&mut out, room);
            out.extend_from_slice(incoming.body.body());
        }
        // Before the client is written to: the next call may use the connection meanwhile.
        incoming.retire();
        let mut buffer = std::mem::take(&mut incoming.body.buffer);
        let stall = call.snapshot.deadlines.write_stall;
        let (chunk, mut result) = client.send(Chunk::whole(out), stall).await;
        shard.buffers.give(chunk.bytes);
        if !flat && result.is_ok() {
            let (start, end) = (incoming.body.start, incoming.body.end);
            let (chunk, second) = client.send(Chunk { bytes: buffer, start, end }, stall).await;
            buffer = chunk.bytes;
            result = second;
        }
        shard.buffers.give(buffer);
        delivered(status, result, call.origin.close)
    }

    /// More is to come: passes on what is here but the last KiB, again and again.
    async fn send_on(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &mut Call<'_>,
        held: &mut Held,
    ) -> Delivered {
        let body = &self.incoming.body;
        let announced = body.announced().map(|rest| rest + body.len() as u64);
        let framing = client_framing(self.incoming.head.framing, announced, call.origin.is_10);
        let close = call.origin.close || framing == ClientFraming::Close;
        let status = self.incoming.head.status;
        let mut out = std::mem::take(&mut self.incoming.head.written);
        let of = (self.incoming.shard, &*call, &*held);
        finish_head(&mut out, (framing, close), client, of);
        let stall = call.snapshot.deadlines.write_stall;
        let ending = loop {
            let done = self.incoming.body.done;
            let keep = if done { 0 } else { WITHHELD };
            let passing = self.incoming.body.len().saturating_sub(keep);
            held.record.relayed_bytes += passing as u64;
            if done {
                self.settle(call, held, Ending::Succeeded);
            } else {
                let read = (self.reply.usage(), self.reply.said());
                pricing::passing(self.incoming.shard, call, held, read, status);
            }
            let (back, sent) = self.send_piece(client, out, framing, keep, stall).await;
            out = back;
            match sent {
                Ok(()) if done => break status_ending(status),
                Ok(()) => {}
                Err(lost) => {
                    if !done && lost == Lost::Gone {
                        Box::pin(self.left(client, call, held)).await;
                    }
                    break lost_ending(lost);
                }
            }
            match self.read_more(client, call, false).await {
                More::Some if self.take_in().is_ok() => {}
                More::Some | More::Cut => break Ending::UpstreamCut,
                More::Late => break Ending::Deadline,
                More::ClientGone => {
                    Box::pin(self.left(client, call, held)).await;
                    break Ending::ClientLeft;
                }
            }
        };
        self.incoming.shard.buffers.give(out);
        self.finish(call, held, ending, framing, close)
    }

    async fn left(&mut self, client: &mut Client<I::Stream>, call: &mut Call<'_>, held: &mut Held) {
        if leaving::left(self.incoming.shard, client, call, held) {
            self.drain(client, call).await;
        }
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
        let Incoming { shard, body, .. } = &mut self.incoming;
        let end = body.len().saturating_sub(keep);
        if framing == ClientFraming::Chunked {
            let room = out.len() + end + CHUNK_FRAMING_BYTES;
            shard.buffers.grow(&mut out, room);
            http1::chunk(&mut out, body.body().get(..end).unwrap_or_default());
            if body.done {
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
            let start = body.start;
            let bytes = std::mem::take(&mut body.buffer);
            let piece = Chunk { bytes, start, end: start + end };
            let (chunk, sent) = client.send(piece, stall).await;
            body.buffer = chunk.bytes;
            result = sent;
        }
        body.drop_front(body.len() - end);
        self.fed = body.len();
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
        self.settle(call, held, ending);
        let status = self.incoming.head.status;
        let whole = self.incoming.body.done && ending == status_ending(status);
        self.incoming.retire();
        self.incoming.shed();
        let after = match framing {
            // Only a reset tells this client that the end is not the end.
            ClientFraming::Close if !whole => After::Abort,
            _ if whole && !close => After::Keep,
            _ => After::Close,
        };
        Delivered { outcome: Outcome { ending, status }, after }
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
