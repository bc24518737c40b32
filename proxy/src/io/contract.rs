//! What every transport promises, checked alike on the scripted one, on io_uring and on epoll, and
//! on each of them with TLS over it. A check that holds on one of them only is a difference between
//! a test and the field.
//!
//! Both ends of a connection are streams of the transport under test, on one thread. Nothing
//! sleeps: timers are fired by hand, and a hang is ended by a watchdog made of ticks.

/// Each check as a test on each transport.
macro_rules! on_every_transport {
    ($($check:ident)*) => {
        mod scripted {
            use crate::io::contract::stage::on_script;
            $(#[test] fn $check() { on_script(super::$check) })*
        }
        mod uring {
            use crate::io::{contract::stage::on_ring, runtime::Choice};
            $(#[test] fn $check() { on_ring(Choice::Uring, super::$check) })*
        }
        mod epoll {
            use crate::io::{contract::stage::on_ring, runtime::Choice};
            $(#[test] fn $check() { on_ring(Choice::Epoll, super::$check) })*
        }
        mod secured {
            use crate::io::contract::secured::Secured;
            use crate::io::contract::stage::{on_ring, on_script};
            use crate::io::runtime::Choice;
            $(#[test] fn $check() {
                on_script(|stage| super::$check(Secured::over(stage)));
                on_ring(Choice::Uring, |stage| super::$check(Secured::over(stage)));
                on_ring(Choice::Epoll, |stage| super::$check(Secured::over(stage)));
            })*
        }
    };
}

mod bytes;
mod descriptors;
mod endings;
mod secured;
mod stage;
mod waits;

use super::{Chunk, Io, ReadDone, Recall, Stream, WriteDone};
use stage::Stage;
use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Poll};

/// A connection of the transport to itself: who dialled, who accepted.
async fn pair<S: Stage>(stage: &S) -> (Streams<S>, Streams<S>) {
    let (listener, at) = stage.listen();
    pair_at(stage, &listener, at).await
}

type Streams<S> = <<S as Stage>::Io as Io>::Stream;

async fn pair_at<S: Stage>(
    stage: &S,
    listener: &<S::Io as Io>::Listener,
    at: SocketAddr,
) -> (Streams<S>, Streams<S>) {
    let io = stage.io();
    let mut near = io.connect(at).unwrap();
    let (mut far, _) = io.accept(listener).await.unwrap();
    poll_fn(|cx| near.poll_connected(cx)).await.unwrap();
    stage.greet(&mut near, &mut far).await;
    (near, far)
}

/// The end of a stream whose peer has gone without a word: bytes may be missing, which only TLS
/// can tell.
fn is_end<S: Stage>(_: &S, done: ReadDone) -> bool {
    match done.result {
        Ok(count) => count == 0 && !S::TELLS_CUTS,
        Err(error) => error.kind() == ErrorKind::UnexpectedEof && S::TELLS_CUTS,
    }
}

/// Both, beside each other.
pub(super) async fn both<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> (A, B) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut a_done, mut b_done) = (None, None);
    poll_fn(|cx| {
        if a_done.is_none()
            && let Poll::Ready(done) = a.as_mut().poll(cx)
        {
            a_done = Some(done);
        }
        if b_done.is_none()
            && let Poll::Ready(done) = b.as_mut().poll(cx)
        {
            b_done = Some(done);
        }
        if a_done.is_some() && b_done.is_some() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    (a_done.unwrap(), b_done.unwrap())
}

async fn finish_read(stream: &mut impl Stream) -> ReadDone {
    poll_fn(|cx| stream.poll_read(cx)).await
}

async fn read(stream: &mut impl Stream, buffer: Vec<u8>) -> ReadDone {
    stream.start_read(buffer, Recall::Never);
    finish_read(stream).await
}

async fn write(stream: &mut impl Stream, bytes: &[u8]) -> WriteDone {
    stream.start_write(Chunk::whole(bytes.to_vec()));
    poll_fn(|cx| stream.poll_write(cx)).await
}

/// Polls once: starts what is to be in flight.
pub(super) async fn once<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    poll_fn(|cx| Poll::Ready(poll(cx))).await
}
