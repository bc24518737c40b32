//! The transport: owned buffers in and out, one trait over monoio (io_uring or epoll) and a
//! scripted twin for tests.
//!
//! The rule this trait exists for: a read in flight is never dropped with its task's future,
//! because on io_uring the bytes it received would be lost. So an operation belongs to the
//! *stream*: `start_read` lends a buffer, `poll_read` asks for it back, and a wait that gives up
//! leaves the operation where it is. A deadline never cancels; it calls `shutdown` and the
//! operation ends by itself.
//!
//! Bound: one read and one write in flight per stream.

pub mod affinity;
pub mod buffers;
pub mod heap;
mod lent;
pub mod listen;
mod mail;
pub mod ring;
pub mod runtime;
pub mod script;
pub mod tls;
pub mod turn;
pub mod wheel;

use crate::exchange::time::{MonoNs, Now};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

/// The step of the coarse clock: every deadline of a shard is a multiple of it. 100 ms is far
/// below the shortest configurable deadline and costs ten wake-ups a second on an idle core.
pub const TICK: Duration = Duration::from_millis(100);

/// Bytes one read brings at most, so that what a turn does with them (scanning, copying) is
/// bounded: 64 KiB of JSON are some 15 µs.
pub const READ_BYTES_MAX: usize = 64 * 1024;

/// The world as one shard sees it.
pub trait Io: Clone + 'static {
    /// A connection.
    type Stream: Stream;
    /// A bound port.
    type Listener: 'static;

    /// The next connection from a client. A dropped wait loses none; one waiter at a time.
    fn accept(
        &self,
        listener: &Self::Listener,
    ) -> impl Future<Output = io::Result<(Self::Stream, SocketAddr)>>;

    /// Ends a pending and every later [`Io::accept`] on `listener` with an error, and refuses
    /// further connections.
    fn stop_listening(&self, listener: &Self::Listener);

    /// Begins to connect. The stream exists at once, so that a deadline can shut it down;
    /// [`Stream::poll_connected`] says when it is usable.
    fn connect(&self, to: SocketAddr) -> io::Result<Self::Stream>;

    /// The same connection with TLS over it, where the transport can do that.
    fn secure(&self, stream: Self::Stream, side: tls::Side<'_>) -> io::Result<Self::Stream> {
        let _ = (stream, side);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Runs `task` on this thread.
    fn spawn(&self, task: impl Future<Output = ()> + 'static);

    /// Returns once [`TICK`] has passed.
    fn tick(&self) -> impl Future<Output = ()>;

    /// Both clocks, read now.
    fn now(&self) -> Now;

    /// The monotonic clock alone, which is cheaper.
    fn mono(&self) -> MonoNs {
        self.now().mono
    }
}

/// A buffer on its way out: `bytes[start..end]` is what is to be written.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The lent buffer; comes back from [`Stream::poll_write`] unchanged.
    pub bytes: Vec<u8>,
    /// First byte to write.
    pub start: usize,
    /// One past the last byte to write.
    pub end: usize,
}

impl Chunk {
    /// All of `bytes`.
    pub fn whole(bytes: Vec<u8>) -> Chunk {
        let end = bytes.len();
        Chunk { bytes, start: 0, end }
    }
}

/// Whether a read may later be asked back with [`Stream::recall_read`]; being able to costs
/// some 50 ns, so only the reads of idle clients are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recall {
    /// It can.
    Able,
    /// It ends by data, by the end of the stream, or by a shutdown.
    Never,
}

/// What a finished read brings back.
#[derive(Debug)]
pub struct ReadDone {
    /// Bytes appended; 0 is the end of the stream.
    pub result: io::Result<usize>,
    /// The lent buffer; old content untouched, new bytes behind it.
    pub buffer: Vec<u8>,
}

/// What a finished write brings back.
#[derive(Debug)]
pub struct WriteDone {
    /// Whether every byte was taken.
    pub result: io::Result<()>,
    /// The lent chunk.
    pub chunk: Chunk,
}

/// One connection. Not `Send`; lives and dies on one shard.
pub trait Stream: 'static {
    /// Ready once a stream from [`Io::connect`] is connected, or has failed to.
    fn poll_connected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ready once data may pass: after the handshake of a secured connection, else at once. The
    /// stream must be connected.
    fn poll_secured(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let _ = cx;
        Poll::Ready(Ok(()))
    }

    /// Lends `buffer` to a read that appends to it. Its spare capacity must not be empty, and
    /// no other read may be in flight. Only a `recall`able one can be asked back.
    fn start_read(&mut self, buffer: Vec<u8>, recall: Recall);

    /// Whether a read is in flight or finished and not yet taken.
    fn reading(&self) -> bool;

    /// The result of the read in flight. Pending for ever if there is none.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<ReadDone>;

    /// Asks for the buffer of a recallable read in flight back. The read still ends through
    /// `poll_read`: with data that had arrived, or with [`io::ErrorKind::Interrupted`].
    fn recall_read(&mut self);

    /// Starts to wait for bytes (or the end) without holding a buffer; no read may be in flight.
    fn start_watch(&mut self);

    /// Ready when a read would not wait. Pending for ever if no watch was started.
    fn poll_watch(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Lends a chunk to a write that ends when all of it was taken, or failed.
    fn start_write(&mut self, chunk: Chunk);

    /// Whether a write is in flight or finished and not yet taken.
    fn writing(&self) -> bool;

    /// The result of the write in flight. Pending for ever if there is none.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<WriteDone>;

    /// Hands as many of `bytes` to the peer as can be taken at once, without waiting, and says
    /// how many those were. No write may be in flight. For the last words of a connection: whoever
    /// has more to say writes.
    fn part_with(&self, bytes: &[u8]) -> usize;

    /// Ends both directions: operations in flight end by themselves.
    fn shutdown(&self);

    /// Ends the sending direction after what was written: the peer reads an end of stream.
    fn shutdown_write(&self);

    /// Makes the close that follows a reset: an answer that broke must not look complete.
    fn abort(&self);
}

#[cfg(test)]
mod contract;
