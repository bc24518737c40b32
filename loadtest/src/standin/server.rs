//! The loop of the stand-in's thread: listeners, connections, timers, and the commands of its
//! handle. Bounds: `CONNECTIONS_MAX` connections; one read of `SCRATCH_BYTES` at a time.

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

use super::connection::{Connection, Fate};
use super::context::Context;
use super::tally::{Counts, Entry};
use crate::clock;
use crate::loopback;
use crate::poll::{Interest, Ready};
use crate::slots::{RESERVED, Slots};
use crate::tls::{Identity, Socket};

/// Connections at once: above any load here, below the usual limit of descriptors. One more is
/// accepted and closed at once.
const CONNECTIONS_MAX: usize = 16_384;

/// Bytes of one read: a whole request of ordinary size.
const SCRATCH_BYTES: usize = 64 << 10;

const WAKE: u64 = u64::MAX;

/// What the handle asks for.
#[derive(Debug)]
pub(super) enum Command {
    Entries(Sender<Vec<Entry>>),
    /// Answers once so many entries have ended, or at the instant.
    EntriesWhen(usize, Instant, Sender<Vec<Entry>>),
    Captured(Sender<Vec<Vec<u8>>>),
    Counts(Sender<Counts>),
    Clear(Sender<()>),
    Stop,
}

/// The state of the thread.
pub(super) struct Server {
    context: Context,
    listeners: Vec<TcpListener>,
    /// Who it is, if it speaks TLS.
    identity: Option<Identity>,
    connections: Slots<Connection>,
    commands: Receiver<Command>,
    wake: UnixStream,
    waiting: Vec<(usize, Instant, Sender<Vec<Entry>>)>,
}

impl Server {
    pub(super) fn new(
        context: Context,
        listeners: Vec<TcpListener>,
        identity: Option<Identity>,
        commands: Receiver<Command>,
        wake: UnixStream,
    ) -> io::Result<Server> {
        context.poller.add(&wake, WAKE, Interest::Read)?;
        for (at, listener) in (0_u64..).zip(&listeners) {
            context.poller.add(listener, RESERVED | at, Interest::Read)?;
        }
        Ok(Server {
            context,
            listeners,
            identity,
            connections: Slots::new(),
            commands,
            wake,
            waiting: Vec::new(),
        })
    }

    /// Runs until the handle says stop or is gone.
    pub(super) fn run(mut self) -> io::Result<()> {
        let mut scratch = vec![0; SCRATCH_BYTES];
        let mut ready = Vec::new();
        loop {
            let timeout = self.context.timers.sleep(clock::now);
            self.context.poller.wait(&mut ready, timeout)?;
            for event in ready.drain(..) {
                if event.token == WAKE {
                    if self.obey() == Fate::Drop {
                        return Ok(());
                    }
                } else if event.token & RESERVED != 0 {
                    self.accept(event.token & !RESERVED);
                } else {
                    self.serve(event, &mut scratch);
                }
            }
            self.fire();
            self.report();
        }
    }

    fn serve(&mut self, event: Ready, scratch: &mut [u8]) {
        let Some(connection) = self.connections.get_mut(event.token) else { return };
        if connection.ready(event, &mut self.context, scratch) == Fate::Drop {
            self.drop(event.token);
        }
    }

    fn fire(&mut self) {
        if self.context.timers.is_empty() {
            return;
        }
        let now = clock::now();
        while let Some((at, token)) = self.context.timers.due(now) {
            let Some(connection) = self.connections.get_mut(token) else { continue };
            if connection.woken(at, &mut self.context) == Fate::Drop {
                self.drop(token);
            }
        }
    }

    fn drop(&mut self, token: u64) {
        if let Some(connection) = self.connections.remove(token) {
            connection.close(&mut self.context);
            self.context.tally.disconnection();
        }
    }

    fn accept(&mut self, at: u64) {
        let Ok(at) = usize::try_from(at) else { return };
        while let Some(Ok((stream, _))) = self.listeners.get(at).map(TcpListener::accept) {
            let full = self.connections.len() >= CONNECTIONS_MAX;
            let socket = loopback::tune(&stream)
                .and_then(|()| Socket::called(stream, self.identity.as_ref()));
            match socket {
                Ok(socket) if !full => self.admit(socket),
                Ok(_) | Err(_) => self.context.trouble += 1,
            }
        }
    }

    fn admit(&mut self, stream: Socket) {
        let number = self.context.tally.connection();
        let token = self.connections.insert_with(|token| Connection::new(stream, token, number));
        let added = self.connections.get_mut(token).is_some_and(|connection| {
            self.context.poller.add(connection.stream(), token, Interest::Read).is_ok()
        });
        if !added {
            self.context.trouble += 1;
            self.drop(token);
        }
    }

    fn obey(&mut self) -> Fate {
        // one byte or many: all commands are taken below
        let mut bytes = [0; 64];
        let hung_up = matches!(io::Read::read(&mut self.wake, &mut bytes), Ok(0));
        while let Ok(command) = self.commands.try_recv() {
            // a receiver that is gone no longer wants its answer
            let _gone = match command {
                Command::Entries(to) => to.send(self.context.tally.entries(0).collect()).is_err(),
                Command::EntriesWhen(count, until, to) => {
                    self.context.timers.set(until, WAKE);
                    self.waiting.push((count, until, to));
                    false
                }
                Command::Captured(to) => to.send(self.context.tally.captured()).is_err(),
                Command::Counts(to) => to.send(self.context.tally.counts()).is_err(),
                Command::Clear(to) => {
                    self.context.tally.clear();
                    to.send(()).is_err()
                }
                Command::Stop => return Fate::Drop,
            };
        }
        if hung_up { Fate::Drop } else { Fate::Keep }
    }

    fn report(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let (ended, now, tally) = (self.context.tally.ended(), clock::now(), &self.context.tally);
        self.waiting.retain(|(count, until, to)| {
            let due = ended >= *count || now >= *until;
            if due {
                // a receiver that is gone no longer wants its answer
                let _gone = to.send(tally.entries(0).collect()).is_err();
            }
            !due
        });
    }
}
