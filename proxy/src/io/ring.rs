//! The transport on monoio: io_uring, or epoll where the kernel refuses it.
//!
//! monoio's read and write are futures that must not be dropped while in flight. Each stream
//! therefore owns two boxed loops, allocated once per connection, that outlive every wait: the
//! reader loop and the writer loop. A one-place mailbox hands a buffer in and the result out.
//! The loops are polled by whoever waits on the stream, so no waker is stored here.
//!
//! It deliberately knows nothing of HTTP, deadlines or pools.

use super::lent::{Rest, Tail};
use super::listen::RingListener;
use super::mail::{Mail, ReadPlace, WritePlace};
use super::{Chunk, Io, ReadDone, Recall, Stream, WriteDone};
use crate::exchange::time::{MonoNs, Now};
use crate::shard::clock;
use monoio::io::{AsyncReadRent, AsyncWriteRent, CancelableAsyncReadRent, OwnedReadHalf};
use monoio::net::TcpStream;
use std::cell::UnsafeCell;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Bytes that the kernel takes for a client beyond what is on its way to it. Left alone it takes
/// some megabytes: memory that a client which does not read holds for nothing, and a third of it
/// has to be read before the next write moves, so that a slow reader looks like a stalled one.
const UNSENT_BYTES_MAX: u32 = 256 * 1024;

/// The monoio back end. Stateless: the runtime is the thread's.
#[derive(Clone, Copy, Debug, Default)]
pub struct RingIo;

impl Io for RingIo {
    type Stream = RingStream;
    type Listener = RingListener;

    async fn accept(&self, listener: &RingListener) -> io::Result<(RingStream, SocketAddr)> {
        let (stream, peer) = poll_fn(|cx| listener.poll_accept(cx)).await?;
        // Without it the last small write of an answer waits for the peer's delayed ACK.
        stream.set_nodelay(true)?;
        let stream = RingStream::new(stream, false);
        // Best effort: without it a slow client only costs more.
        with_socket(stream.mail.fd, |s| drop(s.set_tcp_notsent_lowat(UNSENT_BYTES_MAX)));
        Ok((stream, peer))
    }

    fn stop_listening(&self, listener: &RingListener) {
        with_socket(listener.fd(), |s| drop(s.shutdown(std::net::Shutdown::Both)));
    }

    fn connect(&self, to: SocketAddr) -> io::Result<RingStream> {
        let socket = socket2::Socket::new(
            socket2::Domain::for_address(to),
            socket2::Type::STREAM.nonblocking().cloexec(),
            Some(socket2::Protocol::TCP),
        )?;
        socket.set_tcp_nodelay(true)?;
        match socket.connect(&to.into()) {
            Ok(()) => {}
            Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(e) => return Err(e),
        }
        Ok(RingStream::new(TcpStream::from_std(socket.into())?, true))
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        monoio::spawn(task);
    }

    async fn tick(&self) {
        monoio::time::sleep(super::TICK).await;
    }

    fn now(&self) -> Now {
        clock::now()
    }

    fn mono(&self) -> MonoNs {
        clock::mono()
    }
}

/// A TCP connection with its two loops.
pub struct RingStream {
    mail: Rc<Mail>,
    reader: Pin<Box<dyn Future<Output = ()>>>,
    writer: Pin<Box<dyn Future<Output = ()>>>,
}

impl RingStream {
    fn new(stream: TcpStream, connecting: bool) -> RingStream {
        let fd = stream.as_raw_fd();
        let mail = Rc::new(Mail::new(fd, connecting));
        let stream = Rc::new(UnsafeCell::new(stream));
        let write_half = WriteHalf(stream.clone());
        RingStream {
            reader: Box::pin(read_loop(OwnedReadHalf(stream), mail.clone())),
            writer: Box::pin(write_loop(write_half, mail.clone(), connecting)),
            mail,
        }
    }
}

// === impl Stream for RingStream ===

impl Stream for RingStream {
    fn poll_connected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.mail.connected.borrow().is_none() {
            let _ = self.writer.as_mut().poll(cx);
        }
        match self.mail.connected.borrow_mut().take() {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        }
    }

    fn start_read(&mut self, buffer: Vec<u8>, recall: Recall) {
        debug_assert!(buffer.len() < buffer.capacity(), "a read needs room");
        debug_assert!(!self.mail.reading.get(), "one read at a time");
        *self.mail.read.borrow_mut() = ReadPlace::Lent(buffer, recall);
        self.mail.reading.set(true);
    }

    fn reading(&self) -> bool {
        self.mail.reading.get()
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<ReadDone> {
        if !self.mail.reading.get() {
            return Poll::Pending;
        }
        let _ = self.reader.as_mut().poll(cx);
        let mut place = self.mail.read.borrow_mut();
        if let ReadPlace::Done(_) = *place
            && let ReadPlace::Done(done) = std::mem::replace(&mut *place, ReadPlace::Empty)
        {
            self.mail.reading.set(false);
            return Poll::Ready(done);
        }
        Poll::Pending
    }

    fn recall_read(&mut self) {
        let mut place = self.mail.read.borrow_mut();
        match std::mem::replace(&mut *place, ReadPlace::Empty) {
            // Not begun: a canceller would have nothing to cancel, and the read would go on.
            ReadPlace::Lent(buffer, Recall::Able) => {
                let result = Err(io::ErrorKind::Interrupted.into());
                *place = ReadPlace::Done(ReadDone { result, buffer });
            }
            other => *place = other,
        }
        let canceller = self.mail.canceller.take();
        *self.mail.canceller.borrow_mut() = canceller.cancel();
    }

    fn start_watch(&mut self) {
        debug_assert!(!self.mail.reading.get(), "one read at a time");
        *self.mail.read.borrow_mut() = ReadPlace::Watch;
        self.mail.reading.set(true);
    }

    fn poll_watch(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.mail.reading.get() {
            return Poll::Pending;
        }
        let _ = self.reader.as_mut().poll(cx);
        let mut place = self.mail.read.borrow_mut();
        if let ReadPlace::Ready(_) = *place
            && let ReadPlace::Ready(result) = std::mem::replace(&mut *place, ReadPlace::Empty)
        {
            self.mail.reading.set(false);
            return Poll::Ready(result);
        }
        Poll::Pending
    }

    fn start_write(&mut self, chunk: Chunk) {
        debug_assert!(!self.mail.writing.get(), "one write at a time");
        *self.mail.write.borrow_mut() = WritePlace::Lent(chunk);
        self.mail.writing.set(true);
    }

    fn writing(&self) -> bool {
        self.mail.writing.get()
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<WriteDone> {
        if !self.mail.writing.get() {
            return Poll::Pending;
        }
        let _ = self.writer.as_mut().poll(cx);
        let mut place = self.mail.write.borrow_mut();
        if let WritePlace::Done(_) = *place
            && let WritePlace::Done(done) = std::mem::replace(&mut *place, WritePlace::Empty)
        {
            self.mail.writing.set(false);
            return Poll::Ready(done);
        }
        Poll::Pending
    }

    fn part_with(&self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        with_socket(self.mail.fd, |s| taken = s.send_with_flags(bytes, flags).unwrap_or(0));
        taken
    }

    fn shutdown(&self) {
        with_socket(self.mail.fd, |s| drop(s.shutdown(std::net::Shutdown::Both)));
    }

    fn shutdown_write(&self) {
        with_socket(self.mail.fd, |s| drop(s.shutdown(std::net::Shutdown::Write)));
    }

    fn abort(&self) {
        with_socket(self.mail.fd, |s| drop(s.set_linger(Some(std::time::Duration::ZERO))));
    }
}

/// Runs `act` on a borrowed view of a descriptor. What `act` fails at is of no use to anyone: the
/// socket is on its way out.
fn with_socket(fd: RawFd, act: impl FnOnce(&socket2::SockRef<'_>)) {
    #[expect(unsafe_code, reason = "a descriptor owned by the caller is borrowed for one call")]
    // SAFETY: the caller owns the socket behind `fd` (the loops of a stream, or a listener) and
    // is alive for the length of this call, which is as long as the borrow lasts.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    act(&socket2::SockRef::from(&fd));
}

// === the loops ===

async fn read_loop(mut half: OwnedReadHalf<TcpStream>, mail: Rc<Mail>) {
    loop {
        let job = poll_fn(|_| {
            let mut place = mail.read.borrow_mut();
            match *place {
                ReadPlace::Lent(..) | ReadPlace::Watch => {
                    Poll::Ready(std::mem::replace(&mut *place, ReadPlace::Empty))
                }
                ReadPlace::Empty | ReadPlace::Done(_) | ReadPlace::Ready(_) => Poll::Pending,
            }
        })
        .await;
        let done = match job {
            ReadPlace::Lent(buffer, Recall::Never) => {
                let (result, tail) = half.read(Tail(buffer)).await;
                ReadPlace::Done(ReadDone { result, buffer: tail.into_buffer() })
            }
            ReadPlace::Lent(buffer, Recall::Able) => {
                let handle = mail.canceller.borrow().handle();
                let (result, tail) = half.cancelable_read(Tail(buffer), handle).await;
                let (result, buffer) = (canceled(result), tail.into_buffer());
                ReadPlace::Done(ReadDone { result, buffer })
            }
            ReadPlace::Watch => ReadPlace::Ready(watch(&half).await),
            ReadPlace::Empty | ReadPlace::Done(_) | ReadPlace::Ready(_) => continue,
        };
        *mail.read.borrow_mut() = done;
    }
}

async fn watch(half: &OwnedReadHalf<TcpStream>) -> io::Result<()> {
    #[expect(unsafe_code, reason = "monoio hides the stream of a split half behind UnsafeCell")]
    // SAFETY: `readable` takes `&self`; the write half only ever makes short-lived `&mut`
    // borrows inside monoio's own non-async entry points on this same thread, so none is alive
    // while this shared borrow is used to build the poll operation.
    let stream = unsafe { &*half.0.get() };
    stream.readable(false).await
}

/// The writer's share of the stream. monoio's own write half shuts the sending direction down
/// when it is dropped: a FIN before the close, so that an aborted answer would look complete.
struct WriteHalf(Rc<UnsafeCell<TcpStream>>);

impl WriteHalf {
    async fn write(&mut self, rest: Rest) -> (io::Result<usize>, Rest) {
        #[expect(unsafe_code, reason = "monoio's write takes &mut where a shared use is meant")]
        // SAFETY: as in monoio's own halves: the stream clones its descriptor when the operation
        // is built, on this one thread, and touches nothing that the reader's operation uses.
        let stream = unsafe { &mut *self.0.get() };
        stream.write(rest).await
    }
}

async fn write_loop(mut half: WriteHalf, mail: Rc<Mail>, connecting: bool) {
    if connecting {
        let result = finish_connect(&half, mail.fd).await;
        *mail.connected.borrow_mut() = Some(result);
    }
    loop {
        let chunk = poll_fn(|_| {
            let mut place = mail.write.borrow_mut();
            match std::mem::replace(&mut *place, WritePlace::Empty) {
                WritePlace::Lent(chunk) => Poll::Ready(chunk),
                other => {
                    *place = other;
                    Poll::Pending
                }
            }
        })
        .await;
        let done = write_all(&mut half, chunk).await;
        *mail.write.borrow_mut() = WritePlace::Done(done);
    }
}

async fn write_all(half: &mut WriteHalf, chunk: Chunk) -> WriteDone {
    let (start, end) = (chunk.start, chunk.end);
    let mut rest = Rest(chunk);
    let result = loop {
        if rest.0.start >= rest.0.end {
            break Ok(());
        }
        let (result, back) = half.write(rest).await;
        rest = back;
        match result {
            Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => rest.0.start += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => break Err(e),
        }
    };
    WriteDone { result, chunk: Chunk { bytes: rest.into_buffer(), start, end } }
}

async fn finish_connect(half: &WriteHalf, fd: RawFd) -> io::Result<()> {
    #[expect(unsafe_code, reason = "monoio hides the stream of a split half behind UnsafeCell")]
    // SAFETY: as in `watch`; nothing reads or writes before the connection stands.
    let stream = unsafe { &*half.0.get() };
    stream.writable(false).await?;
    #[expect(unsafe_code, reason = "a descriptor owned by this loop is borrowed for one call")]
    // SAFETY: the descriptor is owned by `half`, which is alive here.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    let socket = socket2::SockRef::from(&fd);
    if let Some(error) = socket.take_error()? {
        return Err(error);
    }
    // A shutdown before the handshake ended also makes the socket writable.
    socket.peer_addr().map(drop)
}

/// Maps the two spellings of "canceled" (ring and epoll) to one.
fn canceled(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(e) if e.raw_os_error() == Some(libc::ECANCELED) => {
            Err(io::ErrorKind::Interrupted.into())
        }
        other => other,
    }
}
