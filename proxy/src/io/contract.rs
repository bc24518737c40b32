//! What every transport promises, checked alike on the scripted one, on io_uring and on epoll.
//! A check that holds on one of them only is a difference between a test and the field.
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
    };
}

mod bytes;
mod descriptors;
mod endings;
mod stage;
mod waits;

use super::{Chunk, Io, ReadDone, Recall, Stream, WriteDone};
use stage::Stage;
use std::future::poll_fn;
use std::net::SocketAddr;
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
    let (far, _) = io.accept(listener).await.unwrap();
    poll_fn(|cx| near.poll_connected(cx)).await.unwrap();
    (near, far)
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
async fn once<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    poll_fn(|cx| Poll::Ready(poll(cx))).await
}
