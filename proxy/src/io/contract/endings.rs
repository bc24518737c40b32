//! How operations in flight end, and what the other end of a connection sees of it.

use super::stage::Stage;
use super::{finish_read, is_end, once, pair, read, write};
use crate::io::{Chunk, Io, Recall, Stream};
use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::pin::pin;

on_every_transport! {
    shutdown_ends_a_read_in_flight_with_the_end_of_the_stream
    shutdown_ends_a_write_in_flight_with_an_error
    shutdown_ends_a_watch_in_flight
    shutdown_ends_a_connect_that_hangs
    a_connect_to_nobody_is_refused
    after_an_end_of_stream_writes_still_pass
    a_reset_is_an_error_not_an_end
    a_reset_ends_a_write_in_flight
    a_write_to_a_closed_peer_ends_in_an_error
    a_stream_dropped_with_a_read_in_flight_is_closed
    the_buffers_of_a_dropped_stream_come_home
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
    for accepting in [false, true] {
        let (listener, at) = stage.listen();
        if accepting {
            let io = stage.io();
            let mut accept = pin!(io.accept(&listener));
            assert!(once(|cx| accept.as_mut().poll(cx)).await.is_pending());
        }
        drop(listener);
        // io_uring closes the port a turn later; until then it still connects.
        for _ in 0..2 {
            stage.io().tick().await;
        }
        let refused = match stage.io().connect(at) {
            Ok(mut stream) => poll_fn(|cx| stream.poll_connected(cx)).await,
            Err(e) => Err(e),
        };
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
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
    near.shutdown();
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
    assert!(is_end(&stage, read(&mut near, Vec::with_capacity(64)).await));
    write(&mut near, b"accepted").await.result.unwrap();
    let error = write(&mut near, b"refused").await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
}

async fn a_stream_dropped_with_a_read_in_flight_is_closed<S: Stage>(stage: S) {
    for recall in [Recall::Never, Recall::Able] {
        let (mut near, mut far) = pair(&stage).await;
        near.start_read(Vec::with_capacity(64), recall);
        assert!(once(|cx| near.poll_read(cx)).await.is_pending());
        drop(near);
        assert!(is_end(&stage, read(&mut far, Vec::with_capacity(64)).await));
    }
    let (mut near, mut far) = pair(&stage).await;
    near.start_read(Vec::with_capacity(64), Recall::Never);
    assert!(once(|cx| near.poll_read(cx)).await.is_pending());
    near.abort();
    drop(near);
    let done = read(&mut far, Vec::with_capacity(64)).await;
    assert_eq!(done.result.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

/// Lent and not begun, in flight, done and not taken: whoever has them, the shard gets them back.
async fn the_buffers_of_a_dropped_stream_come_home<S: Stage>(stage: S) {
    let buffers = stage.buffers();
    for recall in [Recall::Never, Recall::Able] {
        for begun in [false, true] {
            let (mut near, _far) = pair(&stage).await;
            near.start_read(buffers.take(), recall);
            let mut large = buffers.take_room(MORE_THAN_FITS);
            large.resize(MORE_THAN_FITS, 7);
            near.start_write(Chunk::whole(large));
            if begun {
                assert!(once(|cx| near.poll_read(cx)).await.is_pending());
                assert!(once(|cx| near.poll_write(cx)).await.is_pending());
            }
            assert!(buffers.lent() >= 2);
            drop(near);
            while buffers.lent() > 0 {
                stage.io().tick().await;
            }
        }
        let (mut near, mut far) = pair(&stage).await;
        near.start_read(buffers.take(), recall);
        near.recall_read();
        write(&mut far, b"x").await.result.unwrap();
        drop(near);
        while buffers.lent() > 0 {
            stage.io().tick().await;
        }
    }
}
