//! One connection: two ends, each with the bytes that have arrived for it. Pure state; who waits
//! is woken, and nothing here knows time or addresses.
//!
//! It follows Linux, and where it differs it is the harsher of the two:
//! - An end of stream comes after the bytes sent before it; the other direction stays open.
//! - A close with bytes unread, and a close after `abort`, is a reset. So is the answer to bytes
//!   that reach an end which has closed or shut down both ways: the write that sent them is
//!   accepted, the next one fails.
//! - A reset throws away what had arrived and was not read yet (Linux keeps it readable): an
//!   answer that relies on being read before a reset is an answer that gets lost in the field.
//! - The first call after a reset is told `ConnectionReset` (`BrokenPipe` where the stream had
//!   already ended cleanly, as Linux does); then reads find the end and writes a broken pipe.
//! - After a shutdown of its own both ways an end reads what had arrived, then the end.
//!
//! Bounds: the capacity of an end (back-pressure), one reader and one writer waiting per end.

use super::chop::Chop;
use super::seed::Seed;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Bytes that may lie unread at an end before its peer's writes wait. Near what loopback
/// sockets hold by default, so a reader that stops is noticed by large writes only.
pub const CAPACITY: usize = 256 * 1024;

/// How a connection behaves.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// Bytes that may lie unread at each end.
    pub capacity: usize,
    /// How what the dialler reads is cut.
    pub to_dialer: Chop,
    /// How what the accepting side reads is cut.
    pub to_acceptor: Chop,
}

impl Default for LinkOptions {
    fn default() -> LinkOptions {
        LinkOptions { capacity: CAPACITY, to_dialer: Chop::Whole, to_acceptor: Chop::Whole }
    }
}

/// Which end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Dialer,
    Acceptor,
}

impl Side {
    pub(super) fn other(self) -> Side {
        match self {
            Side::Dialer => Side::Acceptor,
            Side::Acceptor => Side::Dialer,
        }
    }
}

/// How the other side of a connection went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It ended its direction (and may have closed).
    Fin,
    /// It reset the connection.
    Reset,
}

/// A link shared by its two ends.
pub(super) type Shared = Rc<RefCell<Link>>;

#[derive(Debug)]
pub(super) struct Link {
    phase: Phase,
    dialer: End,
    acceptor: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting,
    Open,
    Failed(io::ErrorKind),
}

#[derive(Debug)]
struct End {
    arrived: VecDeque<u8>,
    capacity: usize,
    chop: Chop,
    seed: Seed,
    /// Bytes read so far: the position that cuts are counted in.
    position: u64,
    /// The peer has ended its direction.
    heard_end: bool,
    /// This end has ended its own.
    sent_end: bool,
    /// Closed or shut down both ways: bytes that arrive are answered by a reset.
    deaf: bool,
    /// The connection was reset, by either side.
    dead: bool,
    /// What the next call is told of a reset by the peer.
    error: Option<io::ErrorKind>,
    /// The close is to be a reset.
    abort: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

// === impl Link ===

impl Link {
    pub(super) fn connecting(options: &LinkOptions, seed: &Seed) -> Shared {
        Rc::new(RefCell::new(Link {
            phase: Phase::Connecting,
            dialer: End::new(options.capacity, options.to_dialer.clone(), seed),
            acceptor: End::new(options.capacity, options.to_acceptor.clone(), seed),
        }))
    }

    /// Whether the handshake is still under way.
    pub(super) fn is_connecting(&self) -> bool {
        self.phase == Phase::Connecting
    }

    /// How the handshake ended, once it has.
    pub(super) fn outcome(&self) -> Option<io::Result<()>> {
        match self.phase {
            Phase::Connecting => None,
            Phase::Open => Some(Ok(())),
            Phase::Failed(kind) => Some(Err(kind.into())),
        }
    }

    /// The handshake succeeded.
    pub(super) fn open(&mut self) {
        self.phase = Phase::Open;
        self.wake_all();
    }

    /// The handshake failed.
    pub(super) fn fail(&mut self, kind: io::ErrorKind) {
        self.phase = Phase::Failed(kind);
        self.wake_all();
    }

    pub(super) fn set_chop(&mut self, reader: Side, chop: Chop) {
        self.end(reader).chop = chop;
    }

    pub(super) fn poll_connected(
        &mut self,
        side: Side,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_connecting() {
            self.end(side).writer = Some(cx.waker().clone());
        }
        self.outcome().map_or(Poll::Pending, Poll::Ready)
    }

    /// Moves what has arrived for `side` behind the content of `into`, never past its capacity.
    pub(super) fn poll_take(
        &mut self,
        side: Side,
        into: &mut Vec<u8>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.poll_readable(side, cx).is_pending() {
            return Poll::Pending;
        }
        let end = self.end(side);
        if end.arrived.is_empty()
            && !end.heard_end
            && let Some(kind) = end.error.take()
        {
            return Poll::Ready(Err(kind.into()));
        }
        let taken = end.take(into);
        if taken > 0 {
            self.end(side.other()).wake_writer();
        }
        Poll::Ready(Ok(taken))
    }

    /// Ready when a read would not wait: bytes, the end, or an error still to be told.
    pub(super) fn poll_readable(&mut self, side: Side, cx: &mut Context<'_>) -> Poll<()> {
        let failed = matches!(self.phase, Phase::Failed(_));
        let end = self.end(side);
        if !end.arrived.is_empty() || end.heard_end || end.dead || end.deaf || failed {
            return Poll::Ready(());
        }
        end.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Hands as many of `bytes` to the other end as fit.
    pub(super) fn poll_put(
        &mut self,
        side: Side,
        bytes: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let connecting = self.is_connecting();
        let end = self.end(side);
        if let Some(kind) = end.error.take() {
            return Poll::Ready(Err(kind.into()));
        }
        if end.dead || end.sent_end {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let peer = self.end(side.other());
        if peer.deaf {
            self.reset(side.other());
            return Poll::Ready(Ok(bytes.len()));
        }
        let room = peer.capacity.saturating_sub(peer.arrived.len());
        if connecting || (room == 0 && !bytes.is_empty()) {
            self.end(side).writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let (fits, _) = bytes.split_at(bytes.len().min(room));
        peer.arrived.extend(fits);
        peer.wake_reader();
        Poll::Ready(Ok(fits.len()))
    }

    /// Ready once the peer is seen to have ended or reset; takes no bytes.
    pub(super) fn poll_gone(&mut self, side: Side, cx: &mut Context<'_>) -> Poll<Gone> {
        let end = self.end(side);
        if end.dead {
            return Poll::Ready(Gone::Reset);
        }
        if end.heard_end {
            return Poll::Ready(Gone::Fin);
        }
        end.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// `side` sends no more.
    pub(super) fn end_writing(&mut self, side: Side) {
        let end = self.end(side);
        end.sent_end = true;
        end.wake_writer();
        let dead = end.dead;
        let peer = self.end(side.other());
        if !dead {
            peer.heard_end = true;
        }
        peer.wake_reader();
    }

    /// `side` sends no more and reads no more than what has arrived.
    pub(super) fn end_both(&mut self, side: Side) {
        if self.is_connecting() {
            return self.fail(io::ErrorKind::ConnectionReset); // as Linux says it
        }
        self.end_writing(side);
        let end = self.end(side);
        end.deaf = true;
        end.wake_reader();
        self.end(side.other()).wake_writer();
    }

    /// The close of `side` is to be a reset.
    pub(super) fn set_abort(&mut self, side: Side) {
        self.end(side).abort = true;
    }

    /// `side` is gone for good.
    pub(super) fn close(&mut self, side: Side) {
        let end = self.end(side);
        if end.abort || !end.arrived.is_empty() {
            self.reset(side);
        }
        self.end_both(side);
    }

    /// `by` resets the connection.
    pub(super) fn reset(&mut self, by: Side) {
        let end = self.end(by);
        if end.dead {
            return;
        }
        end.dead = true;
        end.arrived.clear();
        let peer = self.end(by.other());
        // Bytes thrown away in front of an end would make the cut look like a clean end.
        peer.heard_end &= peer.arrived.is_empty();
        let kind = match peer.heard_end {
            true => io::ErrorKind::BrokenPipe,
            false => io::ErrorKind::ConnectionReset,
        };
        peer.error = Some(kind);
        peer.dead = true;
        peer.arrived.clear();
        self.wake_all();
    }

    fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Dialer => &mut self.dialer,
            Side::Acceptor => &mut self.acceptor,
        }
    }

    fn wake_all(&mut self) {
        for end in [&mut self.dialer, &mut self.acceptor] {
            end.wake_reader();
            end.wake_writer();
        }
    }
}

// === impl End ===

impl End {
    fn new(capacity: usize, chop: Chop, seed: &Seed) -> End {
        End {
            arrived: VecDeque::new(),
            capacity,
            chop,
            seed: Seed::new(seed.draw()),
            position: 0,
            heard_end: false,
            sent_end: false,
            deaf: false,
            dead: false,
            error: None,
            abort: false,
            reader: None,
            writer: None,
        }
    }

    fn take(&mut self, into: &mut Vec<u8>) -> usize {
        let room = into.capacity() - into.len();
        let limit = self.chop.limit(self.position, self.arrived.len(), &self.seed);
        let count = limit.min(room);
        into.extend(self.arrived.drain(..count));
        self.position += count as u64;
        count
    }

    fn wake_reader(&mut self) {
        if let Some(waker) = self.reader.take() {
            waker.wake();
        }
    }

    fn wake_writer(&mut self) {
        if let Some(waker) = self.writer.take() {
            waker.wake();
        }
    }
}
