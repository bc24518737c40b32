//! Clients and upstream of a gateway, and the phases of a run. Both ends are on one thread and one
//! clock, so that an event can wait for the one before it to be read, and a delay is a difference
//! of two looks at that clock.

mod turn;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};

use crate::latency::histogram;
use crate::poll::{Interest, Poller};
use crate::slots::RESERVED;
use crate::streams::client::{Client, State};
use crate::streams::pace::{Due, Pace};
use crate::streams::provider::Provider;
use crate::streams::text::Text;
use crate::tls::{Identity, Socket, Trust};
use crate::{clock, loopback};

/// Bytes of one read: many events.
const SCRATCH_BYTES: usize = 64 << 10;

/// How long a connect may take; on loopback it is made or refused at once.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// How long to serve the upstream between two looks at a target that is not there yet.
const RETRY: Duration = Duration::from_millis(20);

/// How long events under way at the end of a phase are waited for.
const SETTLE: Duration = Duration::from_secs(2);

/// Streams that may be opening at once: below every backlog on the way.
const OPENING_MAX: usize = 128;

const LISTENER: u64 = RESERVED;

/// What happened in a phase.
#[derive(Clone, Debug, Default)]
pub(in crate::streams) struct Counts {
    pub(in crate::streams) sent: u64,
    pub(in crate::streams) delivered: u64,
    pub(in crate::streams) elapsed: Duration,
    /// Processor time of this thread meanwhile.
    pub(in crate::streams) cpu: Duration,
    pub(in crate::streams) delay: Option<Histogram<u64>>,
}

/// What happened to streams, over all phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::streams) struct Fates {
    pub(in crate::streams) opened: u64,
    pub(in crate::streams) whole: u64,
    pub(in crate::streams) failed: u64,
    pub(in crate::streams) beats: u64,
}

/// The upstream's side of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Sending {
    provider: Option<usize>,
    /// Content events written.
    events: u64,
    /// When the last one was written, while it alone is under way.
    since: Option<Instant>,
}

/// Clients and upstream of one gateway.
pub(in crate::streams) struct Drive {
    poller: Poller,
    listener: TcpListener,
    target: SocketAddr,
    /// Whom clients believe, if they speak TLS.
    trust: Option<Trust>,
    /// Who the upstream is, if it speaks TLS.
    identity: Option<Identity>,
    text: Text,
    /// Several content events in one write.
    batch: Vec<u8>,
    scratch: Vec<u8>,
    clients: Vec<Client>,
    sendings: Vec<Sending>,
    providers: Vec<Option<Provider>>,
    free: Vec<usize>,
    pace: Pace,
    /// Delays are measured.
    timed: bool,
    /// The first content event follows the preamble in the same write.
    prompt: bool,
    /// Whose turn it is in an even pace.
    next: usize,
    opening: usize,
    /// Streams whose preamble alone was written, in mode `first`.
    pub(in crate::streams) preluded: Vec<usize>,
    pub(in crate::streams) counts: Counts,
    pub(in crate::streams) fates: Fates,
}

impl Drive {
    /// Takes the upstream's address and accepts connections on it from now on.
    pub(in crate::streams) fn bind(upstream: SocketAddr) -> io::Result<Drive> {
        loopback::check(&upstream.to_string(), upstream).map_err(io::Error::other)?;
        let (poller, listener) = (Poller::new()?, loopback::listen(upstream)?);
        poller.add(&listener, LISTENER, Interest::Read)?;
        let target = listener.local_addr()?;
        Ok(Drive {
            poller,
            listener,
            target,
            trust: None,
            identity: None,
            text: Text::default(),
            batch: Vec::new(),
            scratch: vec![0; SCRATCH_BYTES],
            clients: Vec::new(),
            sendings: Vec::new(),
            providers: Vec::new(),
            free: Vec::new(),
            pace: Pace::Held,
            timed: false,
            prompt: true,
            next: 0,
            opening: 0,
            preluded: Vec::new(),
            counts: Counts::default(),
            fates: Fates::default(),
        })
    }

    /// Sides that are given something speak TLS from now on.
    pub(in crate::streams) fn secure(&mut self, trust: Option<Trust>, identity: Option<Identity>) {
        (self.trust, self.identity) = (trust, identity);
    }

    /// The upstream's address.
    pub(in crate::streams) fn upstream(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Sets what is sent, to whom and how.
    pub(in crate::streams) fn set(
        &mut self,
        target: SocketAddr,
        text: Text,
        timed: bool,
        prompt: bool,
    ) {
        (self.target, self.text, self.timed, self.prompt) = (target, text, timed, prompt);
    }

    /// Connects `streams` clients, waiting at most `limit` until the target accepts.
    pub(in crate::streams) fn connect(
        &mut self,
        streams: usize,
        limit: Duration,
    ) -> io::Result<()> {
        loopback::check(&self.target.to_string(), self.target).map_err(io::Error::other)?;
        let until = clock::now() + limit;
        while self.clients.len() < streams {
            match TcpStream::connect_timeout(&self.target, CONNECT_LIMIT) {
                Ok(stream) => {
                    loopback::tune(&stream)?;
                    let socket = Socket::calling(stream, self.target.ip(), self.trust.as_ref())?;
                    self.poller.add(&socket, self.clients.len() as u64, Interest::Read)?;
                    self.clients.push(Client::new(socket));
                    self.sendings.push(Sending::default());
                }
                Err(error) if clock::now() >= until => {
                    let text = format!("{}: {error}", self.target);
                    return Err(io::Error::new(error.kind(), text));
                }
                Err(_) => self.turn(Some(RETRY))?,
            }
            while self.shaking() >= OPENING_MAX && clock::now() < until {
                self.turn(Some(RETRY))?;
            }
        }
        while self.shaking() > 0 && clock::now() < until {
            self.turn(Some(RETRY))?;
        }
        Ok(())
    }

    /// Clients whose handshake is under way: of the last ones, as they come about in order.
    fn shaking(&self) -> usize {
        let last = self.clients.iter().rev().take(2 * OPENING_MAX);
        last.filter(|client| client.stream.as_ref().is_some_and(Socket::shaking)).count()
    }

    /// Opens all streams and waits until each has its first content event.
    pub(in crate::streams) fn open(&mut self, limit: Duration) -> io::Result<()> {
        let until = clock::now() + limit;
        for at in 0..self.clients.len() {
            self.ask(at);
            while self.opening >= OPENING_MAX && clock::now() < until {
                self.turn(Some(RETRY))?;
            }
        }
        while self.opening > 0 && clock::now() < until {
            self.turn(Some(RETRY))?;
        }
        Ok(())
    }

    /// Sends events at a pace for `time`.
    pub(in crate::streams) fn phase(
        &mut self,
        pace: Pace,
        time: Duration,
        spin: bool,
    ) -> io::Result<()> {
        self.begin(pace);
        let (begin, cpu, mut due) = (clock::now(), thread_time(), Due::default());
        if pace == Pace::PingPong {
            for at in 0..self.clients.len() {
                self.send(at);
            }
        }
        loop {
            let since = clock::now().saturating_duration_since(begin);
            if since >= time {
                break;
            }
            for _ in 0..due.at(pace, since) {
                self.next = if self.next + 1 < self.clients.len() { self.next + 1 } else { 0 };
                self.send(self.next);
            }
            let wait = due.next(pace).unwrap_or(time).min(time).saturating_sub(since);
            self.turn(Some(if spin { Duration::ZERO } else { wait }))?;
        }
        self.counts.elapsed = clock::now().saturating_duration_since(begin);
        self.counts.cpu = thread_time().saturating_sub(cpu);
        self.settle()
    }

    /// Waits for events under way, so that a phase begins with none; they count for no phase.
    fn settle(&mut self) -> io::Result<()> {
        self.pace = Pace::Held;
        let (delivered, until) = (self.counts.delivered, clock::now() + SETTLE);
        while self.counts.delivered < self.counts.sent && clock::now() < until {
            self.turn(Some(RETRY))?;
        }
        self.counts.delivered = delivered;
        Ok(())
    }

    /// Begins to count anew.
    pub(in crate::streams) fn begin(&mut self, pace: Pace) {
        self.pace = pace;
        self.counts = Counts { delay: self.timed.then(histogram), ..Counts::default() };
        self.batch = match pace {
            Pace::Even { batch, .. } => self.text.event.repeat(batch as usize),
            Pace::PingPong | Pace::Held => self.text.event.clone(),
        };
    }

    /// Ends all streams and waits at most `limit` until they have come whole.
    pub(in crate::streams) fn end(&mut self, limit: Duration) -> io::Result<()> {
        for at in 0..self.clients.len() {
            self.finish(at);
        }
        let until = clock::now() + limit;
        while self.fates.whole + self.fates.failed < self.fates.opened && clock::now() < until {
            self.turn(Some(RETRY))?;
        }
        for client in &mut self.clients {
            self.fates.beats += std::mem::take(&mut client.beats);
        }
        Ok(())
    }

    /// How far a stream is.
    pub(in crate::streams) fn state(&self, stream: usize) -> State {
        self.clients[stream].state
    }
}

/// Processor time of this thread.
pub(in crate::streams) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanos)
}
