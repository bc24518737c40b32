//! One connection: reads requests, plays their scripts one after the other. While a script waits
//! nothing is read: a peer that pipelines meets back-pressure. Bound: one request, one read.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::context::Context;
use super::pages::{self, Page};
use super::request::{Reading, Request};
use super::run::{Run, Written, would_wait};
use super::script::{Action, Script};
use crate::clock;
use crate::loopback;
use crate::poll::{Interest, Ready};
use crate::tls::Socket;
use crate::wire::Fault;

/// How long an ended connection is kept for the peer to read: longer than any test's read.
const LINGER: Duration = Duration::from_secs(10);

/// A hanging script gives up after this: above the gateway's longest deadline.
const HANG: Duration = Duration::from_secs(900);

/// Capacity above which an emptied input buffer is given back.
const INPUT_KEPT: usize = 256 << 10;

/// Whether the connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Keep,
    Drop,
}

#[derive(Debug)]
enum Phase {
    /// Between requests or within one.
    Reading,
    /// A script runs.
    Playing(Run),
    /// Nothing more is sent; what comes is thrown away until the peer leaves.
    Draining,
    /// The same without reading: the peer's sending side fills up.
    Lingering,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Socket,
    token: u64,
    number: u64,
    requests: u64,
    phase: Phase,
    interest: Interest,
    /// Received and not yet consumed.
    input: Vec<u8>,
    reading: Option<Reading>,
    wake_at: Option<Instant>,
    continue_sent: bool,
    /// The request whose script hangs: it ends when the peer leaves.
    hung: Option<u64>,
}

enum Step {
    /// Go on with the bytes behind so many.
    Next(usize),
    /// More bytes or another event is needed.
    Wait,
    Drop,
}

impl Connection {
    pub(super) fn new(stream: Socket, token: u64, number: u64) -> Connection {
        Connection {
            stream,
            token,
            number,
            requests: 0,
            phase: Phase::Reading,
            interest: Interest::Read,
            input: Vec::new(),
            reading: None,
            wake_at: None,
            continue_sent: false,
            hung: None,
        }
    }

    /// The stream, for registering it.
    pub(super) fn stream(&self) -> &Socket {
        &self.stream
    }

    /// An event.
    pub(super) fn ready(
        &mut self,
        ready: Ready,
        context: &mut Context,
        scratch: &mut [u8],
    ) -> Fate {
        if ready.broken && !ready.readable {
            return Fate::Drop;
        }
        if ready.writable && matches!(self.phase, Phase::Playing(_)) && self.wake_at.is_none() {
            return self.resume(context);
        }
        if ready.readable {
            return self.readable(ready.broken, context, scratch);
        }
        Fate::Keep
    }

    /// A timer. `at` tells a timer of an earlier wait from the present one.
    pub(super) fn woken(&mut self, at: Instant, context: &mut Context) -> Fate {
        if self.wake_at != Some(at) {
            return Fate::Keep;
        }
        self.wake_at = None;
        match self.phase {
            Phase::Playing(_) => self.resume(context),
            Phase::Reading => Fate::Keep,
            Phase::Draining | Phase::Lingering => {
                self.hung = None;
                Fate::Drop
            }
        }
    }

    /// The connection is going: a script cut short is noted as such.
    pub(super) fn close(self, context: &mut Context) {
        let mut left = self.hung;
        if let Phase::Playing(run) = &self.phase {
            left = run.sequence;
            run.end(false, context);
        }
        if let Some(sequence) = left {
            context.tally.peer_left(sequence);
        }
    }

    fn readable(&mut self, broken: bool, context: &mut Context, scratch: &mut [u8]) -> Fate {
        match self.phase {
            Phase::Playing(_) | Phase::Lingering => {
                // not the time to read; a broken connection would be reported for ever
                if broken {
                    return Fate::Drop;
                }
                self.note_a_peer_that_left(context);
                let blocked = matches!(self.interest, Interest::Write | Interest::Both);
                let interest = if blocked { Interest::Write } else { Interest::Nothing };
                return self.watch(interest, context);
            }
            Phase::Reading | Phase::Draining => {}
        }
        let n = match self.stream.read(scratch) {
            Ok(0) => return Fate::Drop,
            Ok(n) => n,
            Err(error) if would_wait(&error) => return Fate::Keep,
            Err(_) => return Fate::Drop,
        };
        if matches!(self.phase, Phase::Draining) {
            return Fate::Keep;
        }
        if self.input.is_empty() {
            // the usual case, one whole request in one read, is served from where it lies
            let (used, fate) = self.consume(&scratch[..n], context);
            self.input.extend_from_slice(&scratch[used..n]);
            return fate;
        }
        self.input.extend_from_slice(&scratch[..n]);
        self.consume_input(context)
    }

    /// A peer that ends its side while a script waits has most likely given the call up. The script
    /// goes on: it may have closed only half.
    fn note_a_peer_that_left(&self, context: &mut Context) {
        if let Phase::Playing(Run { sequence: Some(sequence), .. }) = &self.phase
            && self.stream.peer_left()
        {
            context.tally.peer_left(*sequence);
        }
    }

    fn consume_input(&mut self, context: &mut Context) -> Fate {
        let mut input = std::mem::take(&mut self.input);
        let (used, fate) = self.consume(&input, context);
        input.drain(..used);
        if input.is_empty() && input.capacity() > INPUT_KEPT {
            input = Vec::new();
        }
        self.input = input;
        fate
    }

    /// Serves the requests in `bytes`; says how many bytes are done with.
    fn consume(&mut self, bytes: &[u8], context: &mut Context) -> (usize, Fate) {
        let mut used = 0;
        while matches!(self.phase, Phase::Reading) && used < bytes.len() {
            match self.step(&bytes[used..], context) {
                Step::Next(n) => used += n,
                Step::Wait => break,
                Step::Drop => return (used, Fate::Drop),
            }
        }
        (used, Fate::Keep)
    }

    fn step(&mut self, bytes: &[u8], context: &mut Context) -> Step {
        let mut reading = match self.reading.take() {
            Some(reading) => reading,
            None => match Reading::begin(bytes) {
                Ok(Some(reading)) => reading,
                Ok(None) => return Step::Wait,
                Err(fault) => return self.malformed(bytes, fault, context),
            },
        };
        let whole = match reading.take(bytes) {
            Ok(whole) => whole,
            Err(fault) => return self.malformed(bytes, fault, context),
        };
        let len = reading.len();
        if whole {
            return self.serve(&reading.request(bytes), len, context);
        }
        if reading.worth_an_early_look()
            && let request = reading.request(bytes)
            && context.early(&request).is_some_and(|at| request.body.len() as u64 >= at)
        {
            return self.serve(&request, len, context);
        }
        if reading.expects_continue && !self.continue_sent {
            self.continue_sent = true;
            // 25 bytes into an empty send buffer cannot fall short
            if self.stream.write(b"HTTP/1.1 100 Continue\r\n\r\n").is_err() {
                return Step::Drop;
            }
        }
        self.reading = Some(reading);
        Step::Wait
    }

    fn serve(&mut self, request: &Request<'_>, len: usize, context: &mut Context) -> Step {
        self.continue_sent = false;
        let (method, path, version) = request.head.request_line().unwrap_or_default();
        let last = version == b"HTTP/1.0"
            || request.head.field("connection").is_some_and(|v| v.eq_ignore_ascii_case(b"close"));
        let (script, sequence) = match pages::page(method, path) {
            Page::Own(own) => {
                let script = pages::answer(own, context);
                return self.play(script, None, last, len, context);
            }
            Page::Call(dialect) => context.call(dialect, request, self.number, self.requests),
            page => context.other(page == Page::Models, request, self.number, self.requests),
        };
        self.requests += 1;
        self.play(script, Some(sequence), last, len, context)
    }

    fn malformed(&mut self, bytes: &[u8], fault: Fault, context: &mut Context) -> Step {
        let (script, sequence) = context.malformed(bytes, fault, self.number, self.requests);
        self.requests += 1;
        self.play(script, Some(sequence), true, bytes.len(), context)
    }

    fn play(
        &mut self,
        script: Rc<Script>,
        sequence: Option<u64>,
        last: bool,
        len: usize,
        context: &mut Context,
    ) -> Step {
        self.phase = Phase::Playing(Run::new(script, sequence, last));
        match self.advance(context) {
            Fate::Keep => Step::Next(len),
            Fate::Drop => Step::Drop,
        }
    }

    /// Goes on with a script that waited, then with the requests that came meanwhile.
    fn resume(&mut self, context: &mut Context) -> Fate {
        if self.advance(context) == Fate::Drop {
            return Fate::Drop;
        }
        if !matches!(self.phase, Phase::Reading) {
            return Fate::Keep;
        }
        let fate = self.consume_input(context);
        if fate == Fate::Keep && matches!(self.phase, Phase::Reading) {
            return self.watch(Interest::Read, context);
        }
        fate
    }

    /// Plays as far as possible without waiting.
    fn advance(&mut self, context: &mut Context) -> Fate {
        loop {
            let Phase::Playing(run) = &mut self.phase else { return Fate::Keep };
            let script = Rc::clone(&run.script);
            let Some(action) = script.actions.get(run.at) else {
                return self.finish(context);
            };
            match action {
                Action::Send(bytes) => match run.write(&mut self.stream, bytes) {
                    Written::All => {}
                    Written::Blocked => return self.watch(Interest::Write, context),
                    Written::Pause => return self.pause(script.pace_ms, context),
                    Written::Failed => return Fate::Drop,
                },
                Action::WaitMs(ms) => {
                    run.at += 1;
                    return self.pause(*ms, context);
                }
                Action::Close => return self.end_in_order(context),
                Action::Reset if !run.has_left(&self.stream) => {
                    return self.watch(Interest::Write, context);
                }
                Action::CloseHard | Action::Reset => {
                    run.end(script.read.whole, context);
                    if *action == Action::Reset
                        && loopback::reset_on_close(self.stream.stream()).is_err()
                    {
                        context.trouble += 1;
                    }
                    self.phase = Phase::Draining;
                    return Fate::Drop;
                }
                Action::Hang => {
                    run.end(false, context);
                    self.hung = run.sequence;
                    return self.stay(script.early.is_some(), HANG, context);
                }
            }
        }
    }

    fn finish(&mut self, context: &mut Context) -> Fate {
        if let Phase::Playing(run) = &self.phase {
            if run.last {
                return self.end_in_order(context);
            }
            run.end(run.script.read.whole, context);
        }
        self.phase = Phase::Reading;
        Fate::Keep
    }

    /// Ends the sending side; the peer still gets what was sent. A script that has not read its
    /// request leaves the rest unread.
    fn end_in_order(&mut self, context: &mut Context) -> Fate {
        let mut early = false;
        if let Phase::Playing(run) = &self.phase {
            early = run.script.early.is_some();
            run.end(run.script.read.whole, context);
        }
        if self.stream.end().is_err() {
            return Fate::Drop;
        }
        self.stay(early, LINGER, context)
    }

    /// Sends nothing more and waits for the peer to leave; reads on unless told not to.
    fn stay(&mut self, unread: bool, limit: Duration, context: &mut Context) -> Fate {
        self.wake(limit, context);
        if unread {
            self.phase = Phase::Lingering;
            return self.watch(Interest::Nothing, context);
        }
        self.phase = Phase::Draining;
        self.watch(Interest::Read, context)
    }

    fn pause(&mut self, ms: u64, context: &mut Context) -> Fate {
        self.wake(Duration::from_millis(ms), context);
        // room to write would be reported over and over while nothing is to be written
        match self.interest {
            Interest::Write | Interest::Both => self.watch(Interest::Nothing, context),
            Interest::Read | Interest::Nothing => Fate::Keep,
        }
    }

    fn wake(&mut self, after: Duration, context: &mut Context) {
        let at = clock::now() + after;
        self.wake_at = Some(at);
        context.timers.set(at, self.token);
    }

    fn watch(&mut self, interest: Interest, context: &mut Context) -> Fate {
        if self.interest != interest {
            if context.poller.change(&self.stream, self.token, interest).is_err() {
                return Fate::Drop;
            }
            self.interest = interest;
        }
        Fate::Keep
    }
}
