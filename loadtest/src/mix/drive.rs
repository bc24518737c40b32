//! The loop of the load: gives requests to idle connections while the run lasts, then waits for
//! what is under way.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::book::{Book, Outcome};
use super::class::Class;
use super::client::{Client, Tools};
use super::report::Report;
use super::request::{self, Prepared, Shared};
use super::schedule::Schedule;
use crate::clock;
use crate::poll::Poller;
use crate::standin::Known;
use crate::timers::Timers;
use crate::tls::Trust;

/// Failed connects in a row after which the run ends: the target is not there.
const UNREACHABLE_MAX: u32 = 100;

/// How often timeouts are looked for.
const TICK: Duration = Duration::from_millis(100);

/// Bytes of one read.
const SCRATCH_BYTES: usize = 64 << 10;

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) target: SocketAddr,
    /// Whom clients believe, if they speak TLS.
    pub(crate) trust: Option<Trust>,
    pub(crate) key: String,
    pub(crate) connections: usize,
    /// Requests begin within this time …
    pub(crate) time: Duration,
    /// … and there are at most so many.
    pub(crate) requests_max: u64,
    pub(crate) classes: Vec<Class>,
    /// Part of each class, summing up to 1.
    pub(crate) weights: Vec<f64>,
    pub(crate) model: String,
    pub(crate) model_prefix: String,
    pub(crate) messages_prefix: String,
    /// Answers are held against what the stand-in sends.
    pub(crate) check: bool,
    pub(crate) body_bytes: usize,
    pub(crate) rate: Option<f64>,
    pub(crate) timeout: Duration,
    pub(crate) seed: u64,
}

/// Why a run did not come to its end.
#[derive(Debug)]
pub(crate) enum RunError {
    Io(io::Error),
    Unreachable(SocketAddr),
}

impl fmt::Display for RunError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Io(error) => write!(out, "load: {error}"),
            RunError::Unreachable(target) => write!(out, "{target} does not accept connections"),
        }
    }
}

impl std::error::Error for RunError {}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> RunError {
        RunError::Io(error)
    }
}

/// Runs the load and reports.
pub(crate) fn run(settings: &Settings) -> Result<Report, RunError> {
    let mut drive = Drive::new(settings)?;
    drive.drive()?;
    let elapsed = clock::now().saturating_duration_since(drive.start);
    Ok(Report::new(settings, &drive.book, elapsed, drive.schedule.begun()))
}

struct Drive<'a> {
    settings: &'a Settings,
    poller: Poller,
    timers: Timers,
    prepared: Vec<Prepared>,
    clients: Vec<Client>,
    /// Places of clients without a request.
    idle: Vec<usize>,
    schedule: Schedule,
    book: Book,
    outcomes: Vec<(usize, Outcome, Duration)>,
    start: Instant,
    unreachable: u32,
}

impl<'a> Drive<'a> {
    fn new(settings: &'a Settings) -> Result<Drive<'a>, RunError> {
        let host = settings.target.to_string();
        let shared = Shared {
            host: &host,
            key: &settings.key,
            model: &settings.model,
            model_prefix: &settings.model_prefix,
            messages_prefix: &settings.messages_prefix,
            body_bytes: settings.body_bytes,
        };
        let mut known = match settings.check {
            true => Some(Known::load().map_err(io::Error::other)?),
            false => None,
        };
        let classes = settings.classes.iter();
        let prepared: Vec<Prepared> =
            classes.map(|class| request::prepare(class, shared, known.as_mut())).collect();
        let start = clock::now();
        Ok(Drive {
            settings,
            poller: Poller::new()?,
            timers: Timers::default(),
            prepared,
            clients: (0..settings.connections as u64).map(Client::new).collect(),
            idle: (0..settings.connections).rev().collect(),
            schedule: Schedule::new(&settings.weights, settings.seed, settings.rate, start),
            book: Book::new(&settings.classes),
            outcomes: Vec::new(),
            start,
            unreachable: 0,
        })
    }

    fn drive(&mut self) -> Result<(), RunError> {
        let mut scratch = vec![0; SCRATCH_BYTES];
        let mut ready = Vec::new();
        let end = self.start + self.settings.time;
        let mut tick = self.start + TICK;
        loop {
            let now = clock::now();
            let open = now < end && self.schedule.begun() < self.settings.requests_max;
            if open {
                self.begin(now)?;
            } else if self.idle.len() == self.clients.len() {
                return Ok(());
            }
            let timeout = self.sleep(now, tick, open);
            self.poller.wait(&mut ready, Some(timeout))?;
            for event in ready.drain(..) {
                let place = Client::place(event.token);
                self.with(place, |client, tools| client.ready(event, tools, &mut scratch));
                if open {
                    // closed loop: the next request leaves with the answer still warm
                    self.begin(clock::now())?;
                }
            }
            let now = clock::now();
            while let Some((at, token)) = self.timers.due(now) {
                self.with(Client::place(token), |client, tools| {
                    if client.token() == token {
                        client.woken(at, tools);
                    }
                });
            }
            if now >= tick {
                tick = now + TICK;
                for place in 0..self.clients.len() {
                    let timeout = self.settings.timeout;
                    self.with(place, |client, tools| client.expire(now, timeout, tools));
                }
            }
        }
    }

    /// Gives requests that are due to idle clients; at most one to each, since a client that leaves
    /// at once is idle again and would keep this loop from ever looking at the clock.
    fn begin(&mut self, now: Instant) -> Result<(), RunError> {
        for _ in 0..self.idle.len() {
            let Some(&place) = self.idle.last() else { return Ok(()) };
            let early = self.schedule.due().is_some_and(|due| due > now);
            if early || self.schedule.begun() >= self.settings.requests_max {
                return Ok(());
            }
            self.idle.pop();
            let (class, from) = self.schedule.next(now);
            self.with_busy(place, |client, tools| client.begin(class, from, tools));
            if self.unreachable >= UNREACHABLE_MAX {
                return Err(RunError::Unreachable(self.settings.target));
            }
        }
        Ok(())
    }

    fn sleep(&self, now: Instant, tick: Instant, open: bool) -> Duration {
        let mut sleep = tick.saturating_duration_since(now);
        if let Some(timer) = self.timers.sleep(|| now) {
            sleep = sleep.min(timer);
        }
        if open && !self.idle.is_empty() {
            // in a closed loop an idle client is due at once
            let due = self.schedule.due().unwrap_or(now);
            sleep = sleep.min(due.saturating_duration_since(now));
        }
        sleep
    }

    /// Lets a client act, notes the outcomes and whether it has become idle.
    fn with(&mut self, place: usize, act: impl FnOnce(&mut Client, &mut Tools<'_>)) {
        if self.clients.get(place).is_some_and(|client| !client.idle()) {
            self.with_busy(place, act);
        } else {
            self.act(place, act);
        }
    }

    fn with_busy(&mut self, place: usize, act: impl FnOnce(&mut Client, &mut Tools<'_>)) {
        self.act(place, act);
        if self.clients.get(place).is_some_and(Client::idle) {
            self.idle.push(place);
        }
    }

    fn act(&mut self, place: usize, act: impl FnOnce(&mut Client, &mut Tools<'_>)) {
        let Some(client) = self.clients.get_mut(place) else { return };
        let mut tools = Tools {
            poller: &self.poller,
            timers: &mut self.timers,
            prepared: &self.prepared,
            target: self.settings.target,
            trust: self.settings.trust.as_ref(),
            outcomes: &mut self.outcomes,
            connections: &mut self.book.connections,
            surplus: &mut self.book.surplus,
        };
        act(client, &mut tools);
        for (class, outcome, latency) in self.outcomes.drain(..) {
            match outcome {
                Outcome::Unreachable => self.unreachable += 1,
                _ => self.unreachable = 0,
            }
            self.book.note(&self.settings.classes, class, outcome, latency);
        }
    }
}
