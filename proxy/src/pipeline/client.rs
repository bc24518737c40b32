//! A client's connection, as the stages see it: what it has sent and not yet been asked for, and
//! whether it is still there.
//!
//! While an exchange runs one read stays posted. It is the watch that sees a client leave, and at
//! the same time the read that the next request begins with; pipelined bytes beyond one buffer
//! are simply not read until their turn comes.

use super::authenticate::Caller;
use super::leaving;
use super::refuse::Told;
use super::tracing;
use crate::io::buffers::{BUFFER_BYTES, Buffers};
use crate::io::turn::{Event, Turn};
use crate::io::wheel::Timer;
use crate::io::{Chunk, ReadDone, Recall, Stream};
use std::time::Duration;

/// What is known of the client's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// It may send more.
    Here,
    /// It has ended its side; it still gets its answer.
    HalfClosed,
    /// The connection was reset.
    Gone,
}

/// Why bytes could not be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The client is not there any more.
    Gone,
    /// It takes no bytes.
    Stalled,
}

/// One client's connection.
pub(super) struct Client<S> {
    /// The connection.
    pub stream: S,
    /// The one deadline of this connection's task; every wait arms it anew.
    pub timer: Timer,
    /// Received and not consumed; without content while a read has it.
    pub inbox: Vec<u8>,
    /// Whether it is still there.
    pub presence: Presence,
    /// When it ended its side, in ticks of its shard.
    ended: u64,
    /// It is watched without a buffer: no read can be posted until it stirs.
    pub watching: bool,
    /// It has stirred, and nobody has read since.
    stirred: bool,
    /// When it was last given a byte, in ticks of its shard.
    pub spoke: u64,
    /// Scratch of the parse stage: query and field lines that go on.
    pub forward: Vec<u8>,
    /// Scratch of the parse stage: the request id the caller sent, to be echoed; empty if none.
    pub caller_id: Vec<u8>,
    /// Scratch of the parse stage: the session the client named in its head; empty if none.
    pub session: Vec<u8>,
    /// Who the client says it is.
    pub(super) caller: Caller,
    /// Scratch of the resolve stage: the sent model's name as a JSON string.
    pub model: Vec<u8>,
}

impl<S: Stream> Client<S> {
    /// A connection from which nothing has come.
    pub(super) fn new(stream: S, timer: Timer) -> Client<S> {
        Client {
            stream,
            timer,
            inbox: Vec::new(),
            presence: Presence::Here,
            ended: 0,
            watching: false,
            stirred: false,
            spoke: 0,
            forward: Vec::new(),
            caller_id: Vec::new(),
            session: Vec::new(),
            caller: Caller::default(),
            model: Vec::new(),
        }
    }

    /// The caller's own request id.
    pub(super) fn caller_id(&self) -> Option<&[u8]> {
        (!self.caller_id.is_empty()).then_some(&self.caller_id)
    }

    /// What an answer says again of its request.
    pub(super) fn told(&self) -> Told<'_> {
        Told { caller_id: self.caller_id(), trace: tracing::line(&self.forward) }
    }

    /// Forgets what the request before said of itself: the next one may be refused before its head
    /// is read.
    pub(super) fn forget(&mut self) {
        let Client { forward, caller_id, session, .. } = self;
        [forward, caller_id, session].into_iter().for_each(Vec::clear);
    }

    /// Lets go of scratch that an unusual head has made large: it would be kept for as long as the
    /// connection lives. Asleep, a connection keeps none.
    pub(super) fn shed(&mut self, keep: usize) {
        let Client { forward, caller_id, session, model, .. } = self;
        for scratch in [forward, caller_id, session, model] {
            if scratch.capacity() > keep {
                *scratch = Vec::new();
            }
        }
    }

    /// Posts the read that watches the client during an exchange, unless bytes of a next request
    /// are here already: those are not read past.
    pub(super) fn watch(&mut self, buffers: &Buffers) {
        if self.stream.reading() || self.presence != Presence::Here || !self.inbox.is_empty() {
            return;
        }
        let buffer = self.empty_inbox(buffers);
        self.stream.start_read(buffer, Recall::Able);
    }

    /// Asks the buffer of the posted read back, with whatever has arrived in it.
    pub(super) async fn take_back(&mut self) {
        self.timer.disarm();
        self.stream.recall_read();
        while self.stream.reading() && !self.watching {
            if let Event::ClientRead(done) = Turn::client(&mut self.stream, &self.timer).await {
                self.absorb(done);
            }
        }
    }

    /// Keeps an eye on a silent client without a buffer.
    pub(super) async fn nap(&mut self, buffers: &Buffers) {
        if !self.stream.reading() || self.watching {
            return;
        }
        self.take_back().await;
        if self.presence == Presence::Here && self.inbox.is_empty() {
            buffers.give(std::mem::take(&mut self.inbox));
            self.start_watch();
        }
    }

    /// Begins to watch, without a buffer.
    pub(super) fn start_watch(&mut self) {
        if !self.watching {
            self.watching = true;
            self.stream.start_watch();
        }
    }

    /// What was watched for has happened.
    pub(super) fn stir(&mut self) {
        (self.watching, self.stirred) = (false, true);
    }

    /// Reads again once it has stirred.
    pub(super) fn look_again(&mut self, buffers: &Buffers) {
        if std::mem::take(&mut self.stirred) {
            self.watch(buffers);
        }
    }

    /// The inbox without content, as a plain buffer again if a large head has made it grow.
    fn empty_inbox(&mut self, buffers: &Buffers) -> Vec<u8> {
        let mut buffer = std::mem::take(&mut self.inbox);
        if buffer.capacity() != BUFFER_BYTES {
            buffers.give(buffer);
            return buffers.take();
        }
        buffer.clear();
        buffer
    }

    /// Lets go of an inbox that stays empty: of a client that sends no more, and may wait for its
    /// answer for minutes.
    pub(super) fn shed_inbox(&mut self, buffers: &Buffers) {
        if self.presence != Presence::Here && self.inbox.is_empty() {
            buffers.give(std::mem::take(&mut self.inbox));
        }
    }

    /// Takes in a read that ended while an exchange runs.
    pub(super) fn absorb(&mut self, done: ReadDone) {
        self.inbox = done.buffer;
        match done.result {
            Ok(0) => (self.presence, self.ended) = (Presence::HalfClosed, self.timer.tick()),
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => self.presence = Presence::Gone,
        }
    }

    /// How much longer it is waited for, if it has ended its side and nothing can be written that
    /// would tell whether it is still there.
    pub(super) fn patience(&self, most: Duration) -> Option<Duration> {
        let until = self.ended + leaving::ticks(most);
        let rest = || leaving::span(until.saturating_sub(self.timer.tick()));
        (self.presence == Presence::HalfClosed).then(rest)
    }

    /// Takes it for gone if it is not waited for any more.
    pub(super) fn give_up(&mut self, most: Duration) {
        if self.patience(most).is_some_and(|rest| rest.is_zero()) {
            self.presence = Presence::Gone;
        }
    }

    /// Writes a chunk to its last byte and gives it back.
    pub(super) async fn send(
        &mut self,
        chunk: Chunk,
        stall: Duration,
    ) -> (Chunk, Result<(), Lost>) {
        let mut stalled = false;
        self.stream.start_write(chunk);
        self.timer.arm(stall);
        loop {
            match Turn::client(&mut self.stream, &self.timer).await {
                Event::ClientWritten(done) => {
                    self.timer.disarm();
                    self.spoke = self.timer.tick();
                    let result = match done.result {
                        Ok(()) => Ok(()),
                        Err(_) if stalled => Err(Lost::Stalled),
                        Err(_) => Err(Lost::Gone),
                    };
                    if result.is_err() {
                        self.presence = Presence::Gone;
                    }
                    return (done.chunk, result);
                }
                Event::ClientRead(done) => self.absorb(done),
                Event::Fired => {
                    stalled = true;
                    self.timer.disarm();
                    self.stream.shutdown();
                }
                Event::Stirred(_) => self.stir(),
                Event::UpstreamRead(_) | Event::UpstreamWritten(_) => {}
            }
        }
    }

    /// Closes after an answer that left part of the request unread: the client gets time to read
    /// the answer, since bytes nobody has read would turn the close into a reset.
    pub(super) async fn linger(&mut self, buffers: &Buffers) {
        self.stream.shutdown_write();
        self.timer.arm(LINGER);
        let mut left = LINGER_BYTES;
        while self.presence == Presence::Here && left > 0 {
            if !self.stream.reading() {
                let buffer = self.empty_inbox(buffers);
                self.stream.start_read(buffer, Recall::Never);
            }
            match Turn::client(&mut self.stream, &self.timer).await {
                Event::ClientRead(done) => {
                    left = left.saturating_sub(*done.result.as_ref().unwrap_or(&left));
                    self.absorb(done);
                }
                Event::Fired => break,
                _ => {}
            }
        }
        self.timer.disarm();
        self.stream.shutdown();
    }
}

/// Scratch that is kept between two requests: real clients' fields are below 2 KB.
pub(super) const SCRATCH_KEPT: usize = 4 * 1024;

/// How long a refused client may take to read its answer.
const LINGER: Duration = Duration::from_secs(2);

/// How much of what a refused client still sends is read away.
const LINGER_BYTES: usize = 1024 * 1024;
