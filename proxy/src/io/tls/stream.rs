//! A secured connection over another stream, with the same promises: an operation belongs to the
//! stream, a wait that gives up loses nothing.
//!
//! What comes from the network is read into a buffer that is only held while something is on its
//! way. A read that waits lends the caller's own buffer to the network and gives it back, or a
//! fresh one of the same size, when there is plaintext; so a connection that waits holds what a
//! plain one does, and an idle one nothing but its keys.
//!
//! An end of the connection without the end of the session is an error: bytes may be missing.
//! After our own shutdown it is an end, as on every stream. The end of our direction is told by
//! [`Stream::shutdown`] and [`Stream::shutdown_write`], never by a drop or an abort, and never
//! behind a write that was cut.
//!
//! Bounds: those of `reading` and `writing`, its two halves.

mod reading;
mod writing;

use super::session::{Progress, Session};
use crate::io::buffers::Buffers;
use crate::io::{Chunk, ReadDone, Recall, Stream, WriteDone};
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// A connection with TLS over it.
pub struct Tls<S> {
    under: S,
    buffers: Rc<Buffers>,
    phase: Phase,
    /// In cells for the calls that end a connection, which take it shared.
    session: RefCell<Session>,
    /// Records that are not whole, or not yet read. Without content while the network has it.
    inbox: RefCell<Vec<u8>>,
    /// Plaintext that did not fit, from `spilled` on.
    spill: Vec<u8>,
    spilled: usize,
    read: Reading,
    /// The caller wants its buffer back.
    recalled: bool,
    /// What the next read is told once nothing is left to be read.
    fault: Option<io::Error>,
    write: Option<Writing>,
    /// What the session itself had to say and could not yet; goes out before the next data.
    owed: Vec<u8>,
    /// Our direction has been ended, or is not to be.
    silent: Cell<bool>,
    /// We have ended both directions.
    shut: Cell<bool>,
    /// A read has ended for that reason.
    over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The handshake is under way.
    Shaking,
    /// Data may pass.
    Open,
    /// The peer broke the rules, or we could not go on.
    Failed,
}

enum Reading {
    Empty,
    /// The caller's buffer is here.
    Lent(Vec<u8>, Recall),
    /// The network has it.
    Under(Recall),
    Watch,
}

struct Writing {
    chunk: Chunk,
    /// First byte not yet sealed.
    next: usize,
}

/// An error of the session as one of the connection. What rustls says names no secret.
pub(super) fn broken(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl<S: Stream> Tls<S> {
    /// Over a stream that may still be connecting.
    pub(super) fn new(under: S, session: Session, buffers: Rc<Buffers>) -> Tls<S> {
        Tls {
            under,
            buffers,
            phase: Phase::Shaking,
            session: RefCell::new(session),
            inbox: RefCell::default(),
            spill: Vec::new(),
            spilled: 0,
            read: Reading::Empty,
            recalled: false,
            fault: None,
            write: None,
            owed: Vec::new(),
            silent: Cell::new(false),
            shut: Cell::new(false),
            over: false,
        }
    }

    // === the handshake ===

    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.phase {
                Phase::Open => return Poll::Ready(Ok(())),
                Phase::Failed => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                Phase::Shaking => {}
            }
            if let Err(error) = ready!(self.poll_shake(cx)) {
                self.phase = Phase::Failed;
                return Poll::Ready(Err(error));
            }
        }
    }

    /// One step of the handshake: a flight out, or bytes in.
    fn poll_shake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.under.writing() {
            let done = ready!(self.under.poll_write(cx));
            self.buffers.give(done.chunk.bytes);
            done.result?;
            if !self.spill.is_empty() {
                // Data has come, so no more of the handshake does; what lies behind it is read
                // when it is asked for.
                self.phase = Phase::Open;
                self.tidy();
                return Poll::Ready(Ok(()));
            }
        }
        if self.under.reading() {
            let done = ready!(self.under.poll_read(cx));
            self.keep(done.buffer);
            if done.result? == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        let mut out = self.buffers.take();
        let Tls { session, inbox, spill, buffers, .. } = self;
        let session = session.get_mut();
        let progress = session.shake(inbox.get_mut(), &mut out, |plain| {
            buffers.give(std::mem::replace(spill, buffers.take_room(plain.len())));
            spill.extend_from_slice(plain);
        });
        if let Ok(Progress::Send) = progress {
            self.under.start_write(Chunk::whole(out));
            return Poll::Ready(Ok(()));
        }
        if progress.is_err() {
            session.alert(&mut out);
            self.under.part_with(&out);
        }
        self.buffers.give(out);
        match progress.map_err(broken)? {
            Progress::Wait => {
                let lent = self.lend()?;
                self.under.start_read(lent, Recall::Never);
            }
            Progress::Open | Progress::Send => self.phase = Phase::Open,
        }
        self.tidy();
        Poll::Ready(Ok(()))
    }
}

// === impl Stream for Tls ===

impl<S: Stream> Stream for Tls<S> {
    fn poll_connected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.under.poll_connected(cx)
    }

    fn poll_secured(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_open(cx)
    }

    fn start_read(&mut self, buffer: Vec<u8>, recall: Recall) {
        debug_assert!(buffer.len() < buffer.capacity(), "a read needs room");
        debug_assert!(!self.reading(), "one read at a time");
        self.read = Reading::Lent(buffer, recall);
    }

    fn reading(&self) -> bool {
        !matches!(self.read, Reading::Empty)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<ReadDone> {
        if matches!(self.read, Reading::Empty | Reading::Watch) {
            return Poll::Pending;
        }
        if self.phase == Phase::Shaking {
            if self.recalled {
                return self.finish_read(Err(io::ErrorKind::Interrupted.into()));
            }
            if let Err(error) = ready!(self.poll_open(cx)) {
                return self.finish_read(Err(error));
            }
        }
        loop {
            if let Some(result) = self.deliver() {
                return self.finish_read(result);
            }
            if !self.under.reading() {
                if self.recalled {
                    return self.finish_read(Err(io::ErrorKind::Interrupted.into()));
                }
                if let Err(error) = self.ask() {
                    return self.finish_read(Err(error));
                }
            }
            let done = ready!(self.under.poll_read(cx));
            self.take_in(done);
        }
    }

    fn recall_read(&mut self) {
        if let Reading::Lent(_, Recall::Able) | Reading::Under(Recall::Able) = self.read {
            self.recalled = true;
            if self.phase != Phase::Shaking {
                self.under.recall_read();
            }
        }
    }

    fn start_watch(&mut self) {
        debug_assert!(!self.reading(), "one read at a time");
        self.read = Reading::Watch;
    }

    fn poll_watch(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !matches!(self.read, Reading::Watch) {
            return Poll::Pending;
        }
        let mut result = ready!(self.poll_open(cx));
        if result.is_ok() && !self.has_news() {
            if !self.under.reading() {
                self.under.start_watch();
            }
            result = ready!(self.under.poll_watch(cx));
        }
        self.read = Reading::Empty;
        Poll::Ready(result)
    }

    fn start_write(&mut self, chunk: Chunk) {
        debug_assert!(!self.writing(), "one write at a time");
        let next = chunk.start;
        self.write = Some(Writing { chunk, next });
    }

    fn writing(&self) -> bool {
        self.write.is_some()
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<WriteDone> {
        if self.write.is_none() {
            return Poll::Pending;
        }
        if let Err(error) = ready!(self.poll_open(cx)) {
            return self.finish_write(Err(error));
        }
        loop {
            if self.under.writing() {
                let done = ready!(self.under.poll_write(cx));
                self.buffers.give(done.chunk.bytes);
                if done.result.is_err() {
                    return self.finish_write(done.result);
                }
            }
            match self.seal() {
                Ok(true) => {}
                Ok(false) => {
                    self.pay();
                    return self.finish_write(Ok(()));
                }
                Err(error) => return self.finish_write(Err(error)),
            }
        }
    }

    /// Nothing can be said on a secured connection without its session.
    fn part_with(&self, _bytes: &[u8]) -> usize {
        0
    }

    fn shutdown(&self) {
        self.say_end();
        self.shut.set(true);
        self.under.shutdown();
    }

    fn shutdown_write(&self) {
        self.say_end();
        self.under.shutdown_write();
    }

    fn abort(&self) {
        self.silent.set(true);
        self.under.abort();
    }
}

/// Buffers of operations that were not begun with or not asked for; those that the network has
/// come home by themselves.
impl<S> Drop for Tls<S> {
    fn drop(&mut self) {
        self.buffers.give(std::mem::take(self.inbox.get_mut()));
        self.buffers.give(std::mem::take(&mut self.spill));
        if let Reading::Lent(buffer, _) = std::mem::replace(&mut self.read, Reading::Empty) {
            self.buffers.give(buffer);
        }
        if let Some(Writing { chunk, .. }) = self.write.take() {
            self.buffers.give(chunk.bytes);
        }
    }
}
