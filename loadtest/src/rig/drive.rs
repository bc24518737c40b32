//! The loop of the rig: which connection an event concerns, and what is written because of it. All
//! events of a wait are handled before the next wait; a message is written as soon as the one
//! before it is read, and only what finds no room is watched for.
//!
//! No clock is read while a phase lasts unless latencies are asked for: a timer ends it.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use super::framing::{Kind, Lane};
use super::report::Upstream;
use super::side::{Got, Side};
use crate::latency::{histogram, record};
use crate::poll::{Interest, Poller, Ready};
use crate::slots::RESERVED;
use crate::tls::{Identity, Socket, Trust};
use crate::{clock, loopback};

/// Bytes of one read: a whole message of the usual sizes.
const SCRATCH_BYTES: usize = 64 << 10;

/// How long a connect may take; on loopback it is made or refused at once.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// How long to serve the upstream between two looks at a target that is not there yet.
const RETRY: Duration = Duration::from_millis(20);

/// Tokens of upstream connections; those of clients are below.
const PROVIDERS: u64 = 1 << 32;
const LISTENER: u64 = RESERVED;
const TIMER: u64 = RESERVED | 1;

/// How a phase is watched.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Look {
    /// Latencies are measured.
    pub(super) latency: bool,
    /// Events are asked for over and over instead of slept for.
    pub(super) spin: bool,
}

/// What a phase came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) requests: u64,
    pub(super) answered: u64,
    pub(super) unexpected: u64,
    pub(super) unexpected_status: u16,
    pub(super) lost: u64,
    pub(super) reconnects: u64,
    pub(super) upstream: Upstream,
    pub(super) elapsed: Duration,
    /// Processor time of this thread meanwhile.
    pub(super) cpu: Duration,
    pub(super) latency: Option<Histogram<u64>>,
}

#[derive(Debug)]
struct Client {
    side: Side,
    /// A request is under way …
    asked: bool,
    /// … since then, if latencies are asked for.
    since: Option<Instant>,
}

/// Clients and upstream of one gateway.
pub(super) struct Drive {
    poller: Poller,
    listener: TcpListener,
    timer: OwnedFd,
    target: SocketAddr,
    /// Whom clients believe, if they speak TLS.
    trust: Option<Trust>,
    /// Who the upstream is, if it speaks TLS.
    identity: Option<Identity>,
    request: Vec<u8>,
    answer: Vec<u8>,
    scratch: Vec<u8>,
    clients: Vec<Client>,
    providers: Vec<Option<Side>>,
    free: Vec<usize>,
    answers: Lane,
    requests: Lane,
    /// Answers are followed by the next request.
    issuing: bool,
    /// The timer of the phase has run out.
    over: bool,
    under_way: usize,
    counts: Counts,
}

impl Drive {
    /// Takes the upstream's address and accepts connections on it from now on.
    pub(super) fn bind(upstream: SocketAddr, answer: Vec<u8>) -> io::Result<Drive> {
        loopback::check(&upstream.to_string(), upstream).map_err(io::Error::other)?;
        let (poller, listener) = (Poller::new()?, loopback::listen(upstream)?);
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        poller.add(&listener, LISTENER, Interest::Read)?;
        poller.add(&timer, TIMER, Interest::Read)?;
        let target = listener.local_addr()?;
        Ok(Drive {
            poller,
            listener,
            timer,
            target,
            trust: None,
            identity: None,
            request: Vec::new(),
            answer,
            scratch: vec![0; SCRATCH_BYTES],
            clients: Vec::new(),
            providers: Vec::new(),
            free: Vec::new(),
            answers: Lane::new(Kind::Answers),
            requests: Lane::new(Kind::Requests),
            issuing: false,
            over: false,
            under_way: 0,
            counts: Counts::default(),
        })
    }

    /// Sides that are given something speak TLS from now on.
    pub(super) fn secure(&mut self, trust: Option<Trust>, identity: Option<Identity>) {
        (self.trust, self.identity) = (trust, identity);
    }

    /// The upstream's address.
    pub(super) fn upstream(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Connects the clients, waiting at most `limit` until the target accepts.
    pub(super) fn connect(
        &mut self,
        target: SocketAddr,
        connections: usize,
        request: Vec<u8>,
        limit: Duration,
    ) -> io::Result<()> {
        loopback::check(&target.to_string(), target).map_err(io::Error::other)?;
        (self.target, self.request) = (target, request);
        let until = clock::now() + limit;
        while self.clients.len() < connections {
            match self.dial() {
                Ok(side) => {
                    self.poller.add(&side.stream, self.clients.len() as u64, side.interest)?;
                    self.clients.push(Client { side, asked: false, since: None });
                }
                Err(error) if clock::now() >= until => return Err(error),
                Err(_) => self.turn(&mut Vec::new(), Some(RETRY))?,
            }
        }
        while self.clients.iter().any(|client| client.side.stream.shaking()) {
            if clock::now() >= until {
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{target}: no TLS")));
            }
            self.turn(&mut Vec::new(), Some(RETRY))?;
        }
        Ok(())
    }

    /// Sends requests for `time`, then waits at most `drain` for the answers still due.
    pub(super) fn phase(
        &mut self,
        time: Duration,
        drain: Duration,
        look: Look,
    ) -> io::Result<Counts> {
        let connections = self.counts.upstream.connections;
        self.counts = Counts { latency: look.latency.then(histogram), ..Counts::default() };
        self.counts.upstream.connections = connections;
        let (begin, cpu) = (clock::now(), thread_time());
        self.arm(time)?;
        self.issuing = true;
        for at in 0..self.clients.len() {
            self.ask(at)?;
        }
        let (mut ready, timeout) = (Vec::new(), look.spin.then_some(Duration::ZERO));
        while !self.over {
            self.turn(&mut ready, timeout)?;
        }
        self.issuing = false;
        self.arm(drain)?;
        while self.under_way > 0 && !self.over {
            self.turn(&mut ready, timeout)?;
        }
        self.counts.elapsed = clock::now().saturating_duration_since(begin);
        self.counts.cpu = thread_time().saturating_sub(cpu);
        for at in 0..self.clients.len() {
            if self.clients[at].asked {
                self.lose(at)?;
            }
        }
        Ok(self.counts.clone())
    }

    /// Sets the timer anew; a time of zero is over at once.
    fn arm(&mut self, time: Duration) -> io::Result<()> {
        let time = time.max(Duration::from_nanos(1));
        let value = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        self.over = false;
        Ok(())
    }

    fn turn(&mut self, ready: &mut Vec<Ready>, timeout: Option<Duration>) -> io::Result<()> {
        self.poller.wait(ready, timeout)?;
        for event in ready.drain(..) {
            match event.token {
                LISTENER => self.accept(),
                // it stays ready until it is armed again, which ends the phase it stands for
                TIMER => self.over = true,
                token if token < PROVIDERS => {
                    self.client(usize::try_from(token).unwrap_or(usize::MAX), event.writable)?;
                }
                token => {
                    let at = usize::try_from(token - PROVIDERS).unwrap_or(usize::MAX);
                    if self.provider(at, event.writable).is_none() {
                        self.close(at);
                    }
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            // a connection that cannot be kept is closed by being dropped
            let socket = loopback::tune(&stream)
                .and_then(|()| Socket::called(stream, self.identity.as_ref()));
            let Ok(side) = socket.map(Side::new) else { continue };
            let at = self.free.pop().unwrap_or(self.providers.len());
            if at == self.providers.len() {
                self.providers.push(None);
            }
            if self.poller.add(&side.stream, PROVIDERS + at as u64, side.interest).is_err() {
                self.free.push(at);
                continue;
            }
            self.counts.upstream.connections += 1;
            self.providers[at] = Some(side);
        }
    }

    /// Answers the requests of an upstream connection; `None` ends it.
    fn provider(&mut self, at: usize, writable: bool) -> Option<()> {
        // an event of a connection closed a moment ago finds none, or finds nothing to read
        let Some(Some(side)) = self.providers.get_mut(at) else { return Some(()) };
        if writable {
            side.flush(&self.answer).ok()?;
        }
        match side.read(&mut self.scratch) {
            Got::Nothing => {}
            Got::End => return None,
            Got::Bytes(n) => {
                let mut bytes = &self.scratch[..n];
                while !bytes.is_empty() {
                    let Ok(fed) = side.reader.feed(&mut self.requests, bytes) else {
                        self.counts.upstream.faults += 1;
                        return None;
                    };
                    bytes = &bytes[fed.used..];
                    if fed.over {
                        self.counts.upstream.requests += 1;
                        side.send(&self.answer).ok()?;
                    }
                }
            }
        }
        watch(&self.poller, side, PROVIDERS + at as u64).ok()
    }

    fn close(&mut self, at: usize) {
        if self.providers[at].take().is_some() {
            self.free.push(at);
        }
    }

    /// Reads the answer of a client and sends its next request.
    fn client(&mut self, at: usize, writable: bool) -> io::Result<()> {
        let Some(client) = self.clients.get_mut(at) else { return Ok(()) };
        if writable && client.side.flush(&self.request).is_err() {
            return self.lose(at);
        }
        let n = match client.side.read(&mut self.scratch) {
            Got::Nothing => return watch(&self.poller, &mut client.side, at as u64),
            Got::End => return self.lose(at),
            Got::Bytes(n) => n,
        };
        if !client.asked {
            self.counts.unexpected += 1;
            return self.renew(at);
        }
        let Ok(fed) = client.side.reader.feed(&mut self.answers, &self.scratch[..n]) else {
            return self.lose(at);
        };
        if !fed.over {
            return watch(&self.poller, &mut client.side, at as u64);
        }
        client.asked = false;
        self.under_way -= 1;
        self.counts.answered += 1;
        if client.side.reader.status != 200 {
            self.counts.unexpected += 1;
            if self.counts.unexpected_status == 0 {
                self.counts.unexpected_status = client.side.reader.status;
            }
        }
        if let (Some(since), Some(latency)) = (client.since, &mut self.counts.latency) {
            record(latency, clock::now().saturating_duration_since(since));
        }
        if fed.used < n {
            self.counts.unexpected += 1;
        }
        if fed.used < n || client.side.reader.last || !client.side.written() {
            // bytes nobody asked for, an announced end, or an answer before the whole request:
            // nothing more can be said on this connection
            return self.renew(at);
        }
        if self.issuing { self.ask(at) } else { Ok(()) }
    }

    fn ask(&mut self, at: usize) -> io::Result<()> {
        let Some(client) = self.clients.get_mut(at) else { return Ok(()) };
        client.asked = true;
        self.under_way += 1;
        self.counts.requests += 1;
        client.since = self.counts.latency.is_some().then(clock::now);
        // a connection that broke meanwhile says so with its next event, which loses the request
        let _broken = client.side.send(&self.request).is_err();
        watch(&self.poller, &mut client.side, at as u64)
    }

    /// The connection has ended; so has the request on it.
    fn lose(&mut self, at: usize) -> io::Result<()> {
        if let Some(client) = self.clients.get_mut(at)
            && client.asked
        {
            client.asked = false;
            self.under_way -= 1;
            self.counts.lost += 1;
        }
        self.renew(at)
    }

    /// Connects anew. The run ends if that fails: without its target it measures nothing.
    fn renew(&mut self, at: usize) -> io::Result<()> {
        let side = self.dial()?;
        self.poller.add(&side.stream, at as u64, side.interest)?;
        self.clients[at].side = side;
        self.counts.reconnects += 1;
        if self.issuing { self.ask(at) } else { Ok(()) }
    }

    fn dial(&self) -> io::Result<Side> {
        let stream = TcpStream::connect_timeout(&self.target, CONNECT_LIMIT)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.target)))?;
        loopback::tune(&stream)?;
        Socket::calling(stream, self.target.ip(), self.trust.as_ref()).map(Side::new)
    }
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanos)
}

/// Watches for room exactly while something is left to write.
fn watch(poller: &Poller, side: &mut Side, token: u64) -> io::Result<()> {
    let wanted = side.wanted();
    if side.interest != wanted {
        poller.change(&side.stream, token, wanted)?;
        side.interest = wanted;
    }
    Ok(())
}
