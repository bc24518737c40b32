//! One connection of the load and the request on it. Sends as its class does, reads what comes,
//! notes the outcome. The driver decides what is asked next.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::answer::{AnswerReader, AtEnd, Progress};
use super::book::Outcome;
use super::class::Leave;
use super::content::Seen;
use super::request::Prepared;
use crate::clock;
use crate::loopback;
use crate::poll::{Interest, Poller, Ready};
use crate::timers::Timers;
use crate::tls::{Socket, Trust};

/// What the client needs of the driver.
pub(super) struct Tools<'a> {
    pub(super) poller: &'a Poller,
    pub(super) timers: &'a mut Timers,
    pub(super) prepared: &'a [Prepared],
    pub(super) target: SocketAddr,
    pub(super) trust: Option<&'a Trust>,
    /// Outcomes: class, outcome, latency.
    pub(super) outcomes: &'a mut Vec<(usize, Outcome, Duration)>,
    pub(super) connections: &'a mut u64,
    pub(super) surplus: &'a mut u64,
}

#[derive(Debug)]
struct Job {
    class: usize,
    from: Instant,
    sent: usize,
    answers_left: u32,
    /// The peer takes nothing more; its answer may be there all the same.
    deaf: bool,
}

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    at: u64,
    /// Tells events of this connection from those of its predecessors.
    generation: u64,
    stream: Option<Socket>,
    interest: Interest,
    reader: AnswerReader,
    job: Option<Job>,
    wake_at: Option<Instant>,
}

impl Client {
    pub(super) fn new(at: u64) -> Client {
        Client {
            at,
            generation: 0,
            stream: None,
            interest: Interest::Read,
            reader: AnswerReader::default(),
            job: None,
            wake_at: None,
        }
    }

    /// The token of its present connection.
    pub(super) fn token(&self) -> u64 {
        self.at | (self.generation & 0x7fff_ffff) << 32
    }

    /// The client of a token.
    pub(super) fn place(token: u64) -> usize {
        (token & 0xffff_ffff) as usize
    }

    /// Whether it can be given a request.
    pub(super) fn idle(&self) -> bool {
        self.job.is_none()
    }

    /// Begins a request of `class`.
    pub(super) fn begin(&mut self, class: usize, from: Instant, tools: &mut Tools<'_>) {
        let answers_left = tools.prepared[class].answers;
        self.job = Some(Job { class, from, sent: 0, answers_left, deaf: false });
        if self.stream.is_none() && self.connect(tools).is_none() {
            self.finish(Outcome::Unreachable, tools);
            return;
        }
        self.reader.looks = tools.prepared[class].looks();
        self.send(tools);
    }

    /// An event of its connection.
    pub(super) fn ready(&mut self, ready: Ready, tools: &mut Tools<'_>, scratch: &mut [u8]) {
        if ready.token != self.token() {
            return;
        }
        if ready.writable && self.job.is_some() && self.wake_at.is_none() {
            self.send(tools);
        }
        if (ready.readable || ready.broken) && self.stream.is_some() {
            let shaking = self.shaking();
            self.read(tools, scratch);
            if shaking && !self.shaking() && self.wake_at.is_none() {
                self.send(tools);
            }
        }
    }

    /// A timer of its connection.
    pub(super) fn woken(&mut self, at: Instant, tools: &mut Tools<'_>) {
        if self.wake_at != Some(at) {
            return;
        }
        self.wake_at = None;
        let Some(job) = &self.job else { return };
        let prepared = &tools.prepared[job.class];
        if job.sent >= prepared.limit && prepared.leave.is_some() {
            self.leave(tools);
        } else {
            self.send(tools);
        }
    }

    /// Gives the request up if it began before `latest`.
    pub(super) fn expire(&mut self, now: Instant, timeout: Duration, tools: &mut Tools<'_>) {
        let late = |job: &Job| now.saturating_duration_since(job.from) > timeout;
        if self.job.as_ref().is_some_and(late) {
            self.finish(Outcome::TimedOut, tools);
            self.hang_up();
        }
    }

    fn shaking(&self) -> bool {
        self.stream.as_ref().is_some_and(Socket::shaking)
    }

    fn connect(&mut self, tools: &mut Tools<'_>) -> Option<()> {
        let stream = loopback::connect(tools.target).ok()?;
        let stream = Socket::calling(stream, tools.target.ip(), tools.trust).ok()?;
        self.generation += 1;
        self.reader = AnswerReader::default();
        self.interest = Interest::Read;
        tools.poller.add(&stream, self.token(), Interest::Read).ok()?;
        *tools.connections += 1;
        self.stream = Some(stream);
        Some(())
    }

    fn send(&mut self, tools: &mut Tools<'_>) {
        let (Some(job), Some(stream)) = (&mut self.job, &mut self.stream) else { return };
        let prepared = &tools.prepared[job.class];
        while job.sent < prepared.limit && !job.deaf {
            match stream.write(&prepared.bytes[prepared.next(job.sent)]) {
                Ok(n) => job.sent += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if waits(&error) => {
                    let blocked = stream.blocked();
                    self.watch(blocked, tools);
                    return;
                }
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    return self.refused(tools);
                }
                Err(_) => {
                    // the answer may lie in our buffer: reading decides
                    job.deaf = true;
                    break;
                }
            }
            if prepared.every_ms > 0 && job.sent < prepared.limit {
                let pause = Duration::from_millis(prepared.every_ms);
                self.wake(pause, tools);
                self.watch(Interest::Read, tools);
                return;
            }
        }
        let leaves =
            matches!(prepared.leave, Some(Leave::InHead | Leave::InBody | Leave::BeforeAnswer));
        let after = Duration::from_millis(prepared.leave_after_ms);
        self.watch(Interest::Read, tools);
        if leaves && after.is_zero() {
            self.leave(tools);
        } else if leaves {
            self.wake(after, tools);
        }
    }

    fn read(&mut self, tools: &mut Tools<'_>, scratch: &mut [u8]) {
        let Some(stream) = &mut self.stream else { return };
        match stream.read(scratch) {
            Ok(0) => self.ended(false, tools),
            Ok(n) => self.received(&scratch[..n], tools),
            Err(error) if waits(&error) || error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => self.refused(tools),
            Err(_) => self.ended(true, tools),
        }
    }

    fn received(&mut self, mut bytes: &[u8], tools: &mut Tools<'_>) {
        while !bytes.is_empty() {
            let Some(job) = &self.job else {
                *tools.surplus += bytes.len() as u64;
                self.hang_up();
                return;
            };
            let prepared = &tools.prepared[job.class];
            if prepared.leave == Some(Leave::InAnswer) {
                let after = Duration::from_millis(prepared.leave_after_ms);
                if after.is_zero() {
                    self.leave(tools);
                    return;
                }
                if self.wake_at.is_none() {
                    self.wake(after, tools);
                }
            }
            match self.reader.feed(bytes) {
                Progress::More => return,
                Progress::Over { status, last, used, seen } => {
                    bytes = &bytes[used..];
                    self.answered(status, seen, last, tools);
                    if self.stream.is_none() {
                        return;
                    }
                }
                Progress::Invalid => {
                    self.finish(Outcome::Invalid, tools);
                    self.hang_up();
                }
            }
        }
    }

    fn answered(&mut self, status: u16, seen: Option<Seen>, last: bool, tools: &mut Tools<'_>) {
        let Some(job) = &mut self.job else { return };
        let prepared = &tools.prepared[job.class];
        let outcome = prepared.outcome(status, seen);
        // clients drop the connection on which a stream told them of an error
        let last = last || prepared.last || outcome == Outcome::StreamError;
        let unsent = job.sent < prepared.limit;
        job.answers_left -= 1;
        if job.answers_left == 0 || last {
            self.finish(outcome, tools);
        } else {
            let (class, latency) = (job.class, clock::now() - job.from);
            tools.outcomes.push((class, outcome, latency));
        }
        // an answer to half a request: the rest cannot be told from the next one
        if last || unsent {
            self.hang_up();
        }
    }

    fn ended(&mut self, reset: bool, tools: &mut Tools<'_>) {
        let outcome = match self.reader.end(reset) {
            AtEnd::Nothing => Outcome::Closed,
            AtEnd::Over { status, seen } => match &self.job {
                Some(job) => tools.prepared[job.class].outcome(status, seen),
                None => Outcome::Status(status),
            },
            AtEnd::Cut => Outcome::Cut,
        };
        // an idle connection may be closed at any time
        self.finish(outcome, tools);
        self.hang_up();
    }

    fn refused(&mut self, tools: &mut Tools<'_>) {
        self.finish(Outcome::Unreachable, tools);
        self.hang_up();
    }

    fn leave(&mut self, tools: &mut Tools<'_>) {
        let Some(job) = &self.job else { return };
        let reset = tools.prepared[job.class].reset;
        self.finish(Outcome::Left, tools);
        if let Some(stream) = &self.stream
            && reset
        {
            // a stream that is broken already is left all the same
            let _broken = loopback::reset_on_close(stream.stream()).is_err();
        }
        self.hang_up();
    }

    /// The request is done with; a pair that ends early has one outcome for what it lacks.
    fn finish(&mut self, outcome: Outcome, tools: &mut Tools<'_>) {
        let Some(job) = self.job.take() else { return };
        let latency = clock::now().saturating_duration_since(job.from);
        tools.outcomes.push((job.class, outcome, latency));
        self.wake_at = None;
    }

    fn hang_up(&mut self) {
        self.stream = None;
        self.reader = AnswerReader::default();
        self.generation += 1;
    }

    fn wake(&mut self, after: Duration, tools: &mut Tools<'_>) {
        let at = clock::now() + after;
        self.wake_at = Some(at);
        let token = self.token();
        tools.timers.set(at, token);
    }

    fn watch(&mut self, interest: Interest, tools: &mut Tools<'_>) {
        let token = self.token();
        let Some(stream) = &self.stream else { return };
        if self.interest != interest && tools.poller.change(stream, token, interest).is_ok() {
            self.interest = interest;
        }
    }
}

fn waits(error: &std::io::Error) -> bool {
    // a connect under way takes bytes once it is done
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected)
}
