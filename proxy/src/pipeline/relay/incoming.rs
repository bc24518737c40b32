//! An answer as it comes in: the connection, the head, the body decoded so far. Both forms of an
//! answer, whole and stream, stand on it.
//!
//! It judges nothing but the framing, and writes nothing to the client.

use crate::exchange::time::MonoNs;
use crate::io::turn::{Event, Side, Turn};
use crate::io::{Io, Recall, Stream};
use crate::pipeline::answer::AnswerHead;
use crate::pipeline::arriving::Arriving;
use crate::pipeline::client::Client;
use crate::pipeline::dispatch::Answer;
use crate::pipeline::open::Call;
use crate::shard::Shard;
use crate::upstream::Upstream;
use crate::upstream::outgoing::From;
use codec::http1::{Framing, TrailerRule};

/// Bytes of a body that are looked at before the first byte goes out (DESIGN §6, commit point).
pub(super) const LOOK_AHEAD: usize = 64 * 1024;

/// Largest piece of a long answer that is held at once.
const PIECE_MAX: usize = 2 * LOOK_AHEAD;

/// An answer that comes in.
pub(in crate::pipeline) struct Incoming<'a, I: Io> {
    pub(super) shard: &'a Shard<I>,
    /// Gone once the answer has been taken from it.
    upstream: Option<Upstream<I::Stream>>,
    /// What has come of the body.
    pub(super) body: Arriving,
    /// The head.
    pub(super) head: AnswerHead,
    /// The upstream connection may be used again once the body is complete.
    reusable: bool,
    /// Whether a posted read can be asked back.
    pub(super) recall: Recall,
    /// The connection is watched, and no read is posted.
    napping: bool,
    /// Bytes the last read brought.
    got: usize,
    /// Which buffer a write of the request still has.
    lent: Option<From>,
    /// When the attempt began.
    pub(super) begun: MonoNs,
    /// When what is being worked on arrived.
    pub(super) arrived: MonoNs,
}

/// What ended a wait for more of an answer.
pub(super) enum Came {
    /// Bytes, or the end that completes the body.
    Some,
    /// The end came too early.
    Cut,
    /// The deadline fired; the read is still posted.
    Fired,
    /// The client sent something, or left: see its presence.
    Client,
}

impl<'a, I: Io> Incoming<'a, I> {
    pub(super) fn new(shard: &'a Shard<I>, answer: Answer<I::Stream>) -> Incoming<'a, I> {
        let Answer { mut upstream, head, lent, begun } = answer;
        let buffer = std::mem::take(&mut upstream.inbox);
        let body = Arriving::new(buffer, head.len, head.framing, TrailerRule::DropAll);
        let reusable = lent.is_none() && head.keep_alive;
        let arrived = shard.mono();
        Incoming {
            shard,
            upstream: Some(upstream),
            body,
            head,
            reusable,
            recall: Recall::Never,
            napping: false,
            got: 0,
            lent,
            begun,
            arrived,
        }
    }

    /// Keeps a read posted, unless the connection is only watched.
    pub(super) fn read_on(&mut self) {
        let Some(upstream) = &mut self.upstream else { return };
        if upstream.stream.reading() || self.napping {
            return;
        }
        if let Some(capacity) = self.body.wanted_capacity() {
            // What was announced is read into one place, as far as a piece goes.
            let whole = self.body.announced().map_or(0, |n| n.min(PIECE_MAX as u64) as usize);
            let capacity = capacity.max(self.body.end + whole).min(PIECE_MAX);
            self.body.grow_to(capacity, &self.shard.buffers);
        }
        let buffer = std::mem::take(&mut self.body.buffer);
        upstream.stream.start_read(buffer, self.recall);
    }

    /// Waits for more, with an eye on the client; the client's timer is armed by the caller.
    /// `late` says that the connection was shut down because its time was over.
    pub(super) async fn more(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &mut Call<'_>,
    ) -> Came {
        self.read_on();
        let Some(upstream) = &mut self.upstream else { return Came::Cut };
        loop {
            let turn = Turn::both(&mut client.stream, &mut upstream.stream, &client.timer);
            match turn.await {
                Event::UpstreamRead(done) => {
                    self.body.buffer = done.buffer;
                    self.arrived = self.shard.mono();
                    self.got = *done.result.as_ref().unwrap_or(&0);
                    return match done.result {
                        Ok(n) if n > 0 => Came::Some,
                        Ok(_) if self.body.end_of_connection() => Came::Some,
                        _ => Came::Cut,
                    };
                }
                // An early answer: the rest of the request need not arrive any more.
                Event::UpstreamWritten(done) => match self.lent.take() {
                    Some(From::Request) => call.received.bytes = done.chunk.bytes,
                    Some(From::Written) | None => self.shard.buffers.give(done.chunk.bytes),
                },
                Event::ClientRead(done) => {
                    client.absorb(done);
                    client.shed_inbox(&self.shard.buffers);
                    return Came::Client;
                }
                Event::Fired => return Came::Fired,
                Event::Stirred(Side::Client) => {
                    client.stir();
                    client.look_again(&self.shard.buffers);
                }
                Event::Stirred(Side::Upstream) => {
                    self.napping = false;
                    upstream.stream.start_read(self.shard.buffers.take(), self.recall);
                }
                Event::ClientWritten(_) => {}
            }
        }
    }

    /// Nothing comes: watches the upstream without a buffer, unless bytes of it are held here.
    pub(super) async fn nap(&mut self, client: &Client<I::Stream>) -> Option<Came> {
        let upstream = self.upstream.as_mut().filter(|upstream| upstream.stream.reading())?;
        client.timer.disarm();
        upstream.stream.recall_read();
        while upstream.stream.reading() {
            let Event::UpstreamRead(done) =
                Turn::upstream(&mut upstream.stream, &client.timer).await
            else {
                continue;
            };
            self.body.buffer = done.buffer;
            match done.result {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(n) if n > 0 => return Some(Came::Some),
                Ok(_) if self.body.end_of_connection() => return Some(Came::Some),
                _ => return Some(Came::Cut),
            }
        }
        if self.body.let_go(&self.shard.buffers) {
            self.napping = true;
            upstream.stream.start_watch();
        }
        None
    }

    /// Lets the body go that has come, unless a read has its buffer.
    pub(super) fn forget(&mut self) -> bool {
        let home = !self.upstream.as_ref().is_some_and(|upstream| upstream.stream.reading());
        if home {
            self.body.drop_front(0);
        }
        home
    }

    /// One more read of an answer nobody waits for; false when it is to end.
    pub(super) async fn drained(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &mut Call<'_>,
    ) -> bool {
        loop {
            let tick = client.timer.tick();
            let Some(rest) = call.leaving.as_ref().and_then(|leaving| leaving.rest(tick)) else {
                return false;
            };
            client.timer.arm(rest);
            let came = self.more(client, call).await;
            client.timer.disarm();
            return match came {
                Came::Some => {
                    let got = self.got;
                    call.leaving.as_mut().is_some_and(|leaving| leaving.take(got))
                }
                Came::Client => continue,
                Came::Cut | Came::Fired => false,
            };
        }
    }

    /// Whether the request was wholly sent.
    pub(super) fn is_sent(&self) -> bool {
        self.lent.is_none()
    }

    /// Parts with the upstream connection and whatever it has of ours, so that another candidate
    /// can be asked.
    pub(super) async fn part(&mut self, client: &Client<I::Stream>, call: &mut Call<'_>) {
        if self.body.done && self.is_sent() {
            self.retire();
        } else {
            self.cut(client, call).await;
        }
    }

    /// Takes the body's buffer back from a read that is of no more use, ending the connection.
    pub(super) async fn cut(&mut self, client: &Client<I::Stream>, call: &mut Call<'_>) {
        let Some(mut upstream) = self.upstream.take() else { return };
        upstream.stream.shutdown();
        client.timer.disarm();
        while upstream.stream.reading() || upstream.stream.writing() {
            match Turn::upstream(&mut upstream.stream, &client.timer).await {
                Event::UpstreamRead(done) => self.body.buffer = done.buffer,
                Event::UpstreamWritten(done) => match self.lent.take() {
                    Some(From::Request) => call.received.bytes = done.chunk.bytes,
                    Some(From::Written) | None => self.shard.buffers.give(done.chunk.bytes),
                },
                _ => {}
            }
        }
        upstream.discard(&self.shard.buffers);
    }

    /// Parts with the upstream connection: back to the pool if its answer ended where it should.
    pub(super) fn retire(&mut self) {
        let Some(upstream) = self.upstream.take() else { return };
        let clean = self.body.done && self.body.surplus().is_empty();
        if clean && self.reusable && self.head.framing != Framing::UntilClose {
            self.shard.pool.check_in(upstream, &self.shard.buffers);
        } else {
            upstream.discard(&self.shard.buffers);
        }
    }

    /// Gives the buffers back that are left.
    pub(super) fn shed(&mut self) {
        self.shard.buffers.give(std::mem::take(&mut self.head.written));
        self.shard.buffers.give(std::mem::take(&mut self.body.buffer));
    }
}
