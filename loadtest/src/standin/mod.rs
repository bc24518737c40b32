//! A provider that answers by script: HTTP/1.1, `POST …/chat/completions`, `…/messages` and
//! `…/messages/count_tokens`, whole and as streams; the *model name* selects the scenario
//! (`loadtest/scenarios`). It records what it received and what it answered; the gateway's
//! `x-tollgate-request-id` joins the two sides.
//!
//! Deliberately not: authentication, limits, truth of any token count. Invariants: requests of
//! a connection are answered in order; loopback only; nothing is read while a script waits.
//! Bounds: named constants in `server`, `request`, `tally`, `context`, `stream`.

mod args;
mod ask;
mod call;
mod compile;
mod completion;
mod connection;
mod context;
mod gzip;
mod library;
mod message;
mod pages;
mod request;
mod run;
mod scenario;
mod script;
mod server;
mod stream;
mod tally;
mod tool;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

pub use args::main_from_args;
pub use ask::Dialect;
pub use compile::ScenarioError;
pub(crate) use completion::usual;
pub use library::LibraryError;
pub use script::{Digest, Usage};
pub use tally::{Counts, ENTRIES_MAX, Entry, hashed};

use crate::clock;
use crate::loopback;
use crate::poll::Poller;
use crate::tls::Identity;
use context::Context;
use library::Library;
use server::{Command, Server};
use tally::Tally;

/// The content of the usual stream in its parts: before content, a content event, behind it.
pub(crate) fn stream_parts(model: &str, dialect: Dialect) -> [Vec<u8>; 3] {
    stream::parts(model, dialect).unwrap_or_else(|error| unreachable!("constant: {error}"))
}

/// What answers a model can give to a request of this kind: status and content of each, as a
/// client sees them through a gateway that asks for usage on its own account, or without one.
pub(crate) struct Known(Library);

impl Known {
    /// Of the scenarios that come with the package.
    pub(crate) fn load() -> Result<Known, LibraryError> {
        Library::load(None, &[]).map(Known)
    }

    /// Every answer of every round; those that are cut are there as far as they go.
    pub(crate) fn answers(
        &mut self,
        model: &str,
        dialect: Dialect,
        stream: bool,
        include_usage: bool,
    ) -> Vec<(u16, Digest)> {
        let mut answers = Vec::new();
        for asked in [include_usage, true] {
            let form = ask::Form { dialect, stream, include_usage: asked };
            for script in &self.0.play(model.as_bytes(), form).scripts {
                let seen = if include_usage { script.read.content } else { script.read.shown };
                answers.push((script.read.status, seen));
            }
        }
        answers
    }
}

/// How a stand-in is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Addresses to listen on, loopback only; port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Who it is: with one, all addresses speak TLS.
    pub identity: Option<Identity>,
    /// A folder of scenario files beside the built-in ones.
    pub folder: Option<PathBuf>,
    /// Texts of further scenario files; a later scenario replaces an earlier one of its name.
    pub scenarios: Vec<String>,
    /// Entries the tally keeps; 0 turns it off (sums are always kept).
    pub entries_max: usize,
    /// How many of the last requests are kept in full.
    pub captured_max: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
            identity: None,
            folder: None,
            scenarios: Vec::new(),
            entries_max: ENTRIES_MAX,
            captured_max: 0,
        }
    }
}

/// Why a stand-in did not start.
#[derive(Debug)]
pub enum StartError {
    /// An address is not loopback.
    Address(String),
    /// The scenarios are wrong.
    Library(LibraryError),
    /// The system refused.
    Io(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Address(text) => out.write_str(text),
            StartError::Library(error) => error.fmt(out),
            StartError::Io(error) => write!(out, "stand-in: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> StartError {
        StartError::Io(error)
    }
}

/// A running stand-in; dropping it stops it.
#[derive(Debug)]
pub struct Standin {
    addrs: Vec<SocketAddr>,
    commands: Sender<Command>,
    wake: UnixStream,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Standin {
    /// Starts one on a thread of its own; it accepts connections when this returns.
    pub fn start(config: Config) -> Result<Standin, StartError> {
        let mut listeners = Vec::with_capacity(config.listen.len());
        let mut addrs = Vec::with_capacity(config.listen.len());
        for addr in &config.listen {
            loopback::check(&addr.to_string(), *addr)
                .map_err(|error| StartError::Address(error.to_string()))?;
            let listener = loopback::listen(*addr)?;
            addrs.push(listener.local_addr()?);
            listeners.push(listener);
        }
        if addrs.is_empty() {
            return Err(StartError::Address("no address to listen on".to_owned()));
        }
        let (commands, received) = mpsc::channel();
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let (told, started) = mpsc::channel();
        let thread = std::thread::Builder::new().name("standin".to_owned()).spawn(move || {
            // scripts are shared by Rc and so are built on the thread that plays them
            let server = Library::load(config.folder.as_deref(), &config.scenarios)
                .map_err(StartError::Library)
                .and_then(|library| {
                    let tally = Tally::new(config.entries_max, config.captured_max);
                    let context = Context::new(Poller::new()?, library, tally);
                    Ok(Server::new(context, listeners, config.identity, received, woken)?)
                });
            let (outcome, server) = match server {
                Ok(server) => (Ok(()), Some(server)),
                Err(error) => (Err(error), None),
            };
            match (told.send(outcome), server) {
                (Ok(()), Some(server)) => server.run(),
                _ => Ok(()),
            }
        })?;
        match started.recv() {
            Ok(Ok(())) => Ok(Standin { addrs, commands, wake, thread: Some(thread) }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(StartError::Io(io::Error::other("its thread ended at once"))),
        }
    }

    /// The first address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addrs[0]
    }

    /// All addresses it listens on.
    pub fn addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    /// All entries of the tally, in order of arrival.
    pub fn tally(&self) -> Vec<Entry> {
        self.ask(Command::Entries)
    }

    /// Waits until `count` entries have ended, at most for `limit`, then gives all entries.
    pub fn tally_of(&self, count: usize, limit: Duration) -> Vec<Entry> {
        self.ask(|to| Command::EntriesWhen(count, clock::now() + limit, to))
    }

    /// The last requests in full, oldest first (`Config::captured_max`).
    pub fn captured(&self) -> Vec<Vec<u8>> {
        self.ask(Command::Captured)
    }

    /// The sums over all requests.
    pub fn counts(&self) -> Counts {
        self.ask(Command::Counts)
    }

    /// Forgets entries, captures and sums.
    pub fn clear(&self) {
        self.ask(Command::Clear);
    }

    /// Stops it, closing its connections.
    pub fn stop(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        // a thread that has ended by itself hears nothing and is joined all the same
        let _deaf = self.commands.send(Command::Stop).is_err();
        self.ring();
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the stand-in panicked")))
    }

    fn ask<T: Default>(&self, command: impl FnOnce(Sender<T>) -> Command) -> T {
        let (to, answer) = mpsc::channel();
        if self.commands.send(command(to)).is_err() {
            return T::default();
        }
        self.ring();
        answer.recv().unwrap_or_default()
    }

    fn ring(&self) {
        // full means that it has been rung already
        let _full = (&self.wake).write(&[1]).is_err();
    }
}

impl Drop for Standin {
    fn drop(&mut self) {
        // nobody is left to hear of it
        let _failed = self.end().is_err();
    }
}
