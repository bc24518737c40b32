//! Waits that end while an operation is in flight, and operations that are asked back.

use super::stage::Stage;
use super::{finish_read, once, pair, pair_at, read, write};
use crate::io::turn::{Event, Turn};
use crate::io::wheel::Wheel;
use crate::io::{Chunk, Io, Recall, Stream, TICK};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

on_every_transport! {
    a_wait_that_ends_by_its_timer_loses_no_byte
    a_recalled_read_brings_data_or_the_buffer_and_loses_nothing
    a_recall_before_the_first_poll_brings_the_buffer_back
    a_read_that_cannot_be_recalled_goes_on
    an_accept_given_up_loses_no_connection
    the_task_that_polled_last_is_the_one_that_wakes
    tasks_of_the_transport_run_beside_each_other
}

async fn a_wait_that_ends_by_its_timer_loses_no_byte<S: Stage>(stage: S) {
    let (mut near, mut far) = pair(&stage).await;
    let wheel = Wheel::new();
    let timer = wheel.timer();
    let (mut got, mut sent) = (Vec::new(), Vec::new());
    let mut elapsed = TICK;
    for round in 0..1_000_u32 {
        near.start_read(Vec::with_capacity(64), Recall::Never);
        timer.arm(TICK);
        assert!(once(|cx| pin!(Turn::client(&mut near, &timer)).poll(cx)).await.is_pending());
        let bytes = round.to_be_bytes();
        sent.extend(bytes);
        elapsed += TICK * 3;
        // The timer a moment before the bytes, and alone; a moment before; a moment after.
        if round % 3 < 2 {
            wheel.advance(elapsed);
        }
        if round % 3 == 0 {
            let event = once(|cx| pin!(Turn::client(&mut near, &timer)).poll(cx)).await;
            assert!(matches!(event, Poll::Ready(Event::Fired)));
        }
        far.start_write(Chunk::whole(bytes.to_vec()));
        let _ = once(|cx| far.poll_write(cx)).await;
        if round % 3 == 2 {
            wheel.advance(elapsed);
        }
        let mut event = Turn::client(&mut near, &timer).await;
        if let Event::Fired = event {
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

async fn an_accept_given_up_loses_no_connection<S: Stage>(stage: S) {
    let (listener, at) = stage.listen();
    let io = stage.io();
    for round in 0..100_u32 {
        {
            let mut given_up = pin!(io.accept(&listener));
            assert!(once(|cx| given_up.as_mut().poll(cx)).await.is_pending());
        }
        let (mut near, mut far) = pair_at(&stage, &listener, at).await;
        write(&mut near, &round.to_be_bytes()).await.result.unwrap();
        let done = read(&mut far, Vec::with_capacity(64)).await;
        assert_eq!(done.buffer, round.to_be_bytes());
    }
}

/// A pooled connection is watched by one task and used by another.
async fn the_task_that_polled_last_is_the_one_that_wakes<S: Stage>(stage: S) {
    let (mut near, mut far) = pair(&stage).await;
    let mut nobody = Context::from_waker(Waker::noop());
    near.start_read(Vec::with_capacity(64), Recall::Never);
    assert!(near.poll_read(&mut nobody).is_pending());
    stage.io().spawn(async move {
        write(&mut far, b"for the second").await.result.unwrap();
        far.start_watch();
        assert!(far.poll_watch(&mut Context::from_waker(Waker::noop())).is_pending());
        poll_fn(|cx| far.poll_watch(cx)).await.unwrap();
        assert_eq!(read(&mut far, Vec::with_capacity(64)).await.buffer, b"go");
        far.shutdown();
    });
    let done = finish_read(&mut near).await;
    assert_eq!(done.buffer, b"for the second");
    write(&mut near, b"go").await.result.unwrap();
    let done = read(&mut near, done.buffer).await;
    assert_eq!(done.result.unwrap(), 0);
}

async fn tasks_of_the_transport_run_beside_each_other<S: Stage>(stage: S) {
    let (mut near, mut far) = pair(&stage).await;
    let got = Rc::new(RefCell::new(Vec::new()));
    let keep = got.clone();
    stage.io().spawn(async move {
        let done = read(&mut far, Vec::with_capacity(64)).await;
        *keep.borrow_mut() = done.buffer;
        far.shutdown();
    });
    write(&mut near, b"ping").await.result.unwrap();
    assert_eq!(read(&mut near, Vec::with_capacity(64)).await.result.unwrap(), 0);
    assert_eq!(*got.borrow(), b"ping");
}
