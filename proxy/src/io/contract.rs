//! What every transport promises, checked alike on the scripted one, on io_uring and on epoll.
//! A check that holds on one of them only is a difference between a test and the field.
//!
//! Both ends of a connection are streams of the transport under test, on one thread. Nothing
//! sleeps: timers are fired by hand, and a hang is ended by a watchdog made of ticks.

mod descriptors;
mod stage;

use super::turn::{Event, Turn};
use super::wheel::Wheel;
use super::{Chunk, Io, ReadDone, Recall, Stream, TICK, WriteDone};
use stage::{Stage, on_ring, on_script};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

macro_rules! on_every_transport {
    ($($check:ident)*) => {
        mod scripted { $(#[test] fn $check() { super::on_script(super::$check) })* }
        mod uring {
            use crate::io::runtime::Choice;
            $(#[test] fn $check() { super::on_ring(Choice::Uring, super::$check) })*
        }
        mod epoll {
            use crate::io::runtime::Choice;
            $(#[test] fn $check() { super::on_ring(Choice::Epoll, super::$check) })*
        }
    };
}

on_every_transport! {
    a_wait_that_ends_by_its_timer_loses_no_byte
    a_recalled_read_brings_data_or_the_buffer_and_loses_nothing
    a_recall_before_the_first_poll_brings_the_buffer_back
    a_read_that_cannot_be_recalled_goes_on
    shutdown_ends_a_read_in_flight_with_the_end_of_the_stream
    shutdown_ends_a_write_in_flight_with_an_error
    shutdown_ends_a_watch_in_flight
    shutdown_ends_a_connect_that_hangs
    a_connect_to_nobody_is_refused
    after_an_end_of_stream_writes_still_pass
    a_reset_is_an_error_not_an_end
    a_reset_ends_a_write_in_flight
    a_write_to_a_closed_peer_ends_in_an_error
    a_large_write_reaches_a_slow_reader_whole
    only_the_named_part_of_a_chunk_is_written
    a_watch_sees_bytes_and_takes_none
    a_stream_dropped_with_a_read_in_flight_is_closed
    no_foreign_bytes_when_reset_and_timeout_meet
}

// === both ends ===

/// A connection of the transport to itself: who dialled, who accepted.
async fn pair<S: Stage>(stage: &S) -> (Streams<S>, Streams<S>) {
    let (listener, at) = stage.listen();
    pair_at(stage, &listener, at).await
}

type Streams<S> = <<S as Stage>::Io as Io>::Stream;

async fn pair_at<S: Stage>(
    stage: &S,
    listener: &<S::Io as Io>::Listener,
    at: std::net::SocketAddr,
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

async fn both<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> (A, B) {
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

// === the checks ===

async fn a_wait_that_ends_by_its_timer_loses_no_byte<S: Stage>(stage: S) {
    let (mut near, mut far) = pair(&stage).await;
    let wheel = Wheel::new();
    let timer = wheel.timer();
    let (mut got, mut sent) = (Vec::new(), Vec::new());
    let (mut fired, mut elapsed) = (0, TICK);
    for round in 0..1_000_u32 {
        near.start_read(Vec::with_capacity(64), Recall::Never);
        timer.arm(TICK);
        assert!(once(|cx| pin!(Turn::client(&mut near, &timer)).poll(cx)).await.is_pending());
        let bytes = round.to_be_bytes();
        sent.extend(bytes);
        elapsed += TICK * 3;
        if round % 2 == 0 {
            wheel.advance(elapsed);
            far.start_write(Chunk::whole(bytes.to_vec()));
            let _ = once(|cx| far.poll_write(cx)).await;
        } else {
            write(&mut far, &bytes).await.result.unwrap();
            wheel.advance(elapsed);
        }
        let mut event = Turn::client(&mut near, &timer).await;
        if let Event::Fired = event {
            fired += 1;
            timer.disarm();
            if far.writing() {
                poll_fn(|cx| far.poll_write(cx)).await.result.unwrap();
            }
            event = Turn::client(&mut near, &timer).await;
        }
        let Event::ClientRead(done) = event else { panic!("{event:?}") };
        assert_eq!(done.result.unwrap(), done.buffer.len());
        got.extend(done.buffer);
        if far.writing() {
            poll_fn(|cx| far.poll_write(cx)).await.result.unwrap();
        }
    }
    assert_eq!(got, sent);
    assert!(fired > 0 || stage.is_script(), "the timer never won: nothing was checked");
}

async fn a_recalled_read_brings_data_or_the_buffer_and_loses_nothing<S: Stage>(stage: S) {
    let (mut near, mut far) = pair(&stage).await;
    let (mut got, mut sent) = (b"old".to_vec(), b"old".to_vec());
    let (mut interrupted, mut data) = (0, 0);
    got.reserve(8 * 1024);
    for round in 0..900_u32 {
        near.start_read(got, Recall::Able);
        assert!(once(|cx| near.poll_read(cx)).await.is_pending());
        let bytes = round.to_be_bytes();
        match round % 3 {
            0 => write(&mut far, &bytes).await.result.unwrap(),
            1 => {
                near.recall_read();
                write(&mut far, &bytes).await.result.unwrap();
            }
            _ => {}
        }
        near.recall_read();
        let mut done = finish_read(&mut near).await;
        match done.result {
            Ok(count) => {
                assert!(count > 0);
                data += 1;
            }
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Interrupted);
                interrupted += 1;
            }
        }
        if round % 3 != 2 {
            sent.extend(bytes);
        }
        while done.buffer.len() < sent.len() {
            done = read(&mut near, done.buffer).await;
            assert!(done.result.unwrap() > 0);
        }
        assert_eq!(done.buffer, sent, "round {round}");
        got = done.buffer;
    }
    assert!(interrupted >= 300, "{interrupted} interrupted, {data} with data");
}

async fn a_recall_before_the_first_poll_brings_the_buffer_back<S: Stage>(stage: S) {
    let (mut near, mut far) = pair(&stage).await;
    near.start_read(Vec::with_capacity(64), Recall::Able);
    near.recall_read();
    let done = finish_read(&mut near).await;
    assert_eq!(done.result.unwrap_err().kind(), ErrorKind::Interrupted);
    assert!(!near.reading());
    write(&mut far, b"later").await.result.unwrap();
    assert_eq!(read(&mut near, done.buffer).await.buffer, b"later");
}

async fn a_read_that_cannot_be_recalled_goes_on<S: Stage>(stage: S) {
    let (mut near, mut far) = pair(&stage).await;
    near.recall_read(); // nothing in flight: nothing to ask back, now or later
    near.start_read(Vec::with_capacity(64), Recall::Never);
    assert!(once(|cx| near.poll_read(cx)).await.is_pending());
    near.recall_read();
    write(&mut far, b"data").await.result.unwrap();
    assert_eq!(finish_read(&mut near).await.buffer, b"data");
    near.start_read(Vec::with_capacity(64), Recall::Able);
    assert!(once(|cx| near.poll_read(cx)).await.is_pending());
    write(&mut far, b"more").await.result.unwrap();
    assert_eq!(finish_read(&mut near).await.buffer, b"more");
}

async fn shutdown_ends_a_read_in_flight_with_the_end_of_the_stream<S: Stage>(stage: S) {
    for recall in [Recall::Never, Recall::Able] {
        let (mut near, mut far) = pair(&stage).await;
        near.start_read(Vec::with_capacity(64), recall);
        assert!(once(|cx| near.poll_read(cx)).await.is_pending());
        near.shutdown();
        assert_eq!(finish_read(&mut near).await.result.unwrap(), 0);
        assert!(write(&mut near, b"x").await.result.is_err());
        assert_eq!(read(&mut far, Vec::with_capacity(64)).await.result.unwrap(), 0);
    }
}

/// More than any back end keeps for a peer that does not read.
const MORE_THAN_FITS: usize = 32 * 1024 * 1024;

async fn shutdown_ends_a_write_in_flight_with_an_error<S: Stage>(stage: S) {
    let (mut near, _far) = pair(&stage).await;
    near.start_write(Chunk::whole(vec![7; MORE_THAN_FITS]));
    assert!(once(|cx| near.poll_write(cx)).await.is_pending());
    near.shutdown();
    let done = poll_fn(|cx| near.poll_write(cx)).await;
    assert!(done.result.is_err());
    assert_eq!((done.chunk.start, done.chunk.end), (0, MORE_THAN_FITS));
    assert_eq!(done.chunk.bytes.len(), MORE_THAN_FITS);
}

async fn shutdown_ends_a_watch_in_flight<S: Stage>(stage: S) {
    let (mut near, _far) = pair(&stage).await;
    near.start_watch();
    assert!(once(|cx| near.poll_watch(cx)).await.is_pending());
    near.shutdown();
    poll_fn(|cx| near.poll_watch(cx)).await.unwrap();
    assert_eq!(read(&mut near, Vec::with_capacity(64)).await.result.unwrap(), 0);
}

async fn shutdown_ends_a_connect_that_hangs<S: Stage>(stage: S) {
    let hole = stage.black_hole();
    let mut stream = stage.io().connect(hole.at).unwrap();
    assert!(once(|cx| stream.poll_connected(cx)).await.is_pending());
    for _ in 0..3 {
        stage.io().tick().await;
    }
    assert!(once(|cx| stream.poll_connected(cx)).await.is_pending());
    stream.shutdown();
    let error = poll_fn(|cx| stream.poll_connected(cx)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

async fn a_connect_to_nobody_is_refused<S: Stage>(stage: S) {
    let (listener, at) = stage.listen();
    drop(listener);
    // The back end may close the port a turn later; until then it may even connect.
    for _ in 0..3 {
        stage.io().tick().await;
    }
    let refused = match stage.io().connect(at) {
        Ok(mut stream) => poll_fn(|cx| stream.poll_connected(cx)).await,
        Err(e) => Err(e),
    };
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

async fn after_an_end_of_stream_writes_still_pass<S: Stage>(stage: S) {
    let (mut near, mut far) = pair(&stage).await;
    write(&mut far, b"question").await.result.unwrap();
    far.shutdown_write();
    let done = read(&mut near, Vec::with_capacity(64)).await;
    assert_eq!(done.buffer, b"question");
    for _ in 0..2 {
        assert_eq!(read(&mut near, Vec::with_capacity(64)).await.result.unwrap(), 0);
    }
    for answer in [b"first".as_slice(), b"second"] {
        write(&mut near, answer).await.result.unwrap();
        assert_eq!(read(&mut far, Vec::with_capacity(64)).await.buffer, answer);
    }
    assert!(write(&mut far, b"too late").await.result.is_err());
    drop(near);
    assert_eq!(read(&mut far, Vec::with_capacity(64)).await.result.unwrap(), 0);
}

async fn a_reset_is_an_error_not_an_end<S: Stage>(stage: S) {
    for in_flight in [false, true] {
        let (mut near, far) = pair(&stage).await;
        near.start_read(Vec::with_capacity(64), Recall::Never);
        if in_flight {
            assert!(once(|cx| near.poll_read(cx)).await.is_pending());
        }
        far.abort();
        drop(far);
        let done = finish_read(&mut near).await;
        assert_eq!(done.result.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert!(write(&mut near, b"x").await.result.is_err());
    }
}

async fn a_reset_ends_a_write_in_flight<S: Stage>(stage: S) {
    let (mut near, far) = pair(&stage).await;
    near.start_write(Chunk::whole(vec![7; MORE_THAN_FITS]));
    assert!(once(|cx| near.poll_write(cx)).await.is_pending());
    drop(far); // with bytes unread: a reset without being asked
    assert!(poll_fn(|cx| near.poll_write(cx)).await.result.is_err());
}

async fn a_write_to_a_closed_peer_ends_in_an_error<S: Stage>(stage: S) {
    let (mut near, far) = pair(&stage).await;
    drop(far);
    assert_eq!(read(&mut near, Vec::with_capacity(64)).await.result.unwrap(), 0);
    write(&mut near, b"accepted").await.result.unwrap();
    let error = write(&mut near, b"refused").await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
}

async fn a_large_write_reaches_a_slow_reader_whole<S: Stage>(stage: S) {
    const SIZE: usize = 8 * 1024 * 1024;
    let (mut near, mut far) = pair(&stage).await;
    let bytes: Vec<u8> =
        (0..SIZE as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let writing = write(&mut near, &bytes);
    let reading = async {
        let (mut got, mut buffer) = (Vec::with_capacity(SIZE), Vec::new());
        for room in [1, 1_000, 17_000].into_iter().cycle() {
            if got.len() == SIZE {
                return got;
            }
            buffer.clear();
            buffer.reserve_exact(room);
            let done = read(&mut far, buffer).await;
            assert!(done.result.unwrap() > 0);
            buffer = done.buffer;
            got.extend_from_slice(&buffer);
        }
        got
    };
    let (written, got) = both(writing, reading).await;
    written.result.unwrap();
    assert!(got == bytes, "other bytes than were sent");
}

async fn only_the_named_part_of_a_chunk_is_written<S: Stage>(stage: S) {
    let (mut near, mut far) = pair(&stage).await;
    near.start_write(Chunk { bytes: b"0123456789".to_vec(), start: 3, end: 7 });
    let done = poll_fn(|cx| near.poll_write(cx)).await;
    done.result.unwrap();
    assert_eq!((done.chunk.start, done.chunk.end, done.chunk.bytes.len()), (3, 7, 10));
    near.start_write(Chunk { bytes: b"empty".to_vec(), start: 2, end: 2 });
    poll_fn(|cx| near.poll_write(cx)).await.result.unwrap();
    near.shutdown_write();
    let done = read(&mut far, Vec::with_capacity(64)).await;
    assert_eq!(done.buffer, b"3456");
    assert_eq!(read(&mut far, done.buffer).await.result.unwrap(), 0);
}

async fn a_watch_sees_bytes_and_takes_none<S: Stage>(stage: S) {
    let (mut near, mut far) = pair(&stage).await;
    for round in 0..300_u32 {
        near.start_watch();
        assert!(once(|cx| near.poll_watch(cx)).await.is_pending());
        write(&mut far, &round.to_be_bytes()).await.result.unwrap();
        poll_fn(|cx| near.poll_watch(cx)).await.unwrap();
        let done = read(&mut near, Vec::with_capacity(64)).await;
        assert_eq!(done.buffer, round.to_be_bytes());
    }
    near.start_watch();
    assert!(once(|cx| near.poll_watch(cx)).await.is_pending());
    far.abort();
    drop(far);
    poll_fn(|cx| near.poll_watch(cx)).await.unwrap();
    let error = read(&mut near, Vec::with_capacity(64)).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "the watch used the error up");
}

async fn a_stream_dropped_with_a_read_in_flight_is_closed<S: Stage>(stage: S) {
    for recall in [Recall::Never, Recall::Able] {
        let (mut near, mut far) = pair(&stage).await;
        near.start_read(Vec::with_capacity(64), recall);
        assert!(once(|cx| near.poll_read(cx)).await.is_pending());
        drop(near);
        assert_eq!(read(&mut far, Vec::with_capacity(64)).await.result.unwrap(), 0);
    }
    let (mut near, mut far) = pair(&stage).await;
    near.start_read(Vec::with_capacity(64), Recall::Never);
    assert!(once(|cx| near.poll_read(cx)).await.is_pending());
    near.abort();
    drop(near);
    let done = read(&mut far, Vec::with_capacity(64)).await;
    assert_eq!(done.result.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

/// Byte that fills a buffer lying in the pool: any other value there was written by someone
/// who no longer owns it.
const CANARY: u8 = 0xC5;
const BUFFER: usize = 512;
/// In front of what is read: must come back untouched.
const KEPT: usize = 16;

async fn no_foreign_bytes_when_reset_and_timeout_meet<S: Stage>(stage: S) {
    let (listener, at) = stage.listen();
    let mut pool: Vec<Vec<u8>> = (0..8).map(|_| vec![CANARY; BUFFER]).collect();
    for round in 0..10_000_u32 {
        let (mut near, mut far) = pair_at(&stage, &listener, at).await;
        let mut buffer = pool.remove(round as usize % pool.len());
        assert!(buffer.iter().all(|b| *b == CANARY), "round {round}: written to in the pool");
        buffer.truncate(KEPT);
        let recall = if round % 2 == 0 { Recall::Never } else { Recall::Able };
        near.start_read(buffer, recall);
        assert!(once(|cx| near.poll_read(cx)).await.is_pending());
        let bytes = round.to_be_bytes();
        if round % 3 == 0 {
            far.start_write(Chunk::whole(bytes.to_vec()));
            let _ = once(|cx| far.poll_write(cx)).await;
        }
        far.abort();
        match round % 4 {
            0 => drop(far),
            1 => {
                drop(far);
                near.shutdown();
            }
            2 => {
                near.recall_read();
                drop(far);
            }
            _ => {
                near.shutdown();
                drop(far);
            }
        }
        if round % 5 == 4 {
            drop(near); // with the read in flight: the buffer is the kernel's until it ends
            pool.push(vec![CANARY; BUFFER]);
            continue;
        }
        let mut done = finish_read(&mut near).await;
        if done.result.is_err_and(|e| e.kind() == ErrorKind::Interrupted) {
            near.shutdown();
            done = read(&mut near, done.buffer).await;
        }
        let (kept, fresh) = done.buffer.split_at(KEPT);
        assert!(kept.iter().all(|b| *b == CANARY), "round {round}: content overwritten");
        assert!(bytes.starts_with(fresh), "round {round}: foreign bytes {fresh:?}");
        done.buffer.clear();
        done.buffer.resize(BUFFER, CANARY);
        pool.push(done.buffer);
    }
}

#[test]
fn tasks_of_the_transport_run_beside_each_other() {
    on_script(spawned_tasks_run);
    on_ring(super::runtime::Choice::Epoll, spawned_tasks_run);
}

async fn spawned_tasks_run<S: Stage>(stage: S) {
    let (mut near, mut far) = pair(&stage).await;
    let got = Rc::new(RefCell::new(Vec::new()));
    let keep = got.clone();
    stage.io().spawn(async move {
        let done = read(&mut far, Vec::with_capacity(64)).await;
        *keep.borrow_mut() = done.buffer;
    });
    write(&mut near, b"ping").await.result.unwrap();
    assert_eq!(read(&mut near, Vec::with_capacity(64)).await.result.unwrap(), 0);
    assert_eq!(*got.borrow(), b"ping");
}
