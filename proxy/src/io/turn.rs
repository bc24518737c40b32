//! One wait of a connection: whatever happens first among its operations in flight and its
//! deadline. This is the only place where a connection waits for more than one thing; a wait that
//! ends leaves every other operation untouched (see the rule in `io`).

use super::wheel::Timer;
use super::{ReadDone, Stream, WriteDone};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What ended a wait.
#[derive(Debug)]
pub enum Event {
    /// The upstream's read is done.
    UpstreamRead(ReadDone),
    /// The upstream took the whole chunk, or failed to.
    UpstreamWritten(WriteDone),
    /// The client's read is done.
    ClientRead(ReadDone),
    /// The client took the whole chunk, or failed to.
    ClientWritten(WriteDone),
    /// A side that was watched has something to read, or has ended.
    Stirred(Side),
    /// The deadline fired. It stays fired until armed again or disarmed.
    Fired,
}

/// One of the two connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Toward the client.
    Client,
    /// Toward the upstream.
    Upstream,
}

/// Waits for the first event. Sides without an operation in flight are silent.
pub struct Turn<'a, S> {
    client: Option<&'a mut S>,
    upstream: Option<&'a mut S>,
    timer: &'a Timer,
}

impl<'a, S: Stream> Turn<'a, S> {
    /// Waits on the client alone.
    pub fn client(client: &'a mut S, timer: &'a Timer) -> Turn<'a, S> {
        Turn { client: Some(client), upstream: None, timer }
    }

    /// Waits on the upstream alone.
    pub fn upstream(upstream: &'a mut S, timer: &'a Timer) -> Turn<'a, S> {
        Turn { client: None, upstream: Some(upstream), timer }
    }

    /// Waits on both.
    pub fn both(client: &'a mut S, upstream: &'a mut S, timer: &'a Timer) -> Turn<'a, S> {
        Turn { client: Some(client), upstream: Some(upstream), timer }
    }
}

impl<S: Stream> Future for Turn<'_, S> {
    type Output = Event;

    /// Writes are asked before reads, so that a buffer is back before the next one is filled,
    /// and the deadline last: a result that has arrived is never called late.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Event> {
        let turn = self.get_mut();
        if let Some(upstream) = &mut turn.upstream {
            if let Poll::Ready(done) = upstream.poll_write(cx) {
                return Poll::Ready(Event::UpstreamWritten(done));
            }
            if let Poll::Ready(done) = upstream.poll_read(cx) {
                return Poll::Ready(Event::UpstreamRead(done));
            }
            // How it ended is for the read to say.
            if upstream.poll_watch(cx).is_ready() {
                return Poll::Ready(Event::Stirred(Side::Upstream));
            }
        }
        if let Some(client) = &mut turn.client {
            if let Poll::Ready(done) = client.poll_write(cx) {
                return Poll::Ready(Event::ClientWritten(done));
            }
            if let Poll::Ready(done) = client.poll_read(cx) {
                return Poll::Ready(Event::ClientRead(done));
            }
            if client.poll_watch(cx).is_ready() {
                return Poll::Ready(Event::Stirred(Side::Client));
            }
        }
        turn.timer.poll_fired(cx).map(|()| Event::Fired)
    }
}

/// Waits until a fresh stream is connected, has failed to, or the deadline fires.
pub struct Connected<'a, S> {
    stream: &'a mut S,
    timer: &'a Timer,
}

impl<'a, S: Stream> Connected<'a, S> {
    /// Waits on a stream that [`super::Io::connect`] returned.
    pub fn new(stream: &'a mut S, timer: &'a Timer) -> Connected<'a, S> {
        Connected { stream, timer }
    }
}

impl<S: Stream> Future for Connected<'_, S> {
    /// `None` when the deadline fired.
    type Output = Option<std::io::Result<()>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let wait = self.get_mut();
        if let Poll::Ready(result) = wait.stream.poll_connected(cx) {
            return Poll::Ready(Some(result));
        }
        wait.timer.poll_fired(cx).map(|()| None)
    }
}

/// Waits until data may pass over a connected stream, it has turned out that none ever will, or
/// the deadline fires.
pub struct Secured<'a, S> {
    stream: &'a mut S,
    timer: &'a Timer,
}

impl<'a, S: Stream> Secured<'a, S> {
    /// Waits for the handshake of a stream, if it has one.
    pub fn new(stream: &'a mut S, timer: &'a Timer) -> Secured<'a, S> {
        Secured { stream, timer }
    }
}

impl<S: Stream> Future for Secured<'_, S> {
    /// `None` when the deadline fired.
    type Output = Option<std::io::Result<()>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let wait = self.get_mut();
        if let Poll::Ready(result) = wait.stream.poll_secured(cx) {
            return Poll::Ready(Some(result));
        }
        wait.timer.poll_fired(cx).map(|()| None)
    }
}

/// Waits, without lending a buffer, until a client has bytes (or an end) to read, or the deadline
/// fires.
pub struct Watching<'a, S> {
    stream: &'a mut S,
    timer: &'a Timer,
}

impl<'a, S: Stream> Watching<'a, S> {
    /// Waits on a stream whose watch was started.
    pub fn new(stream: &'a mut S, timer: &'a Timer) -> Watching<'a, S> {
        Watching { stream, timer }
    }
}

impl<S: Stream> Future for Watching<'_, S> {
    /// `None` when the deadline fired.
    type Output = Option<std::io::Result<()>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let wait = self.get_mut();
        if let Poll::Ready(result) = wait.stream.poll_watch(cx) {
            return Poll::Ready(Some(result));
        }
        wait.timer.poll_fired(cx).map(|()| None)
    }
}
