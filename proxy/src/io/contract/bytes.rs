//! The bytes that arrive are those that were sent, and no buffer holds any others.

use super::stage::Stage;
use super::{both, finish_read, once, pair, pair_at, read, write};
use crate::io::{Chunk, Recall, Stream};
use std::future::poll_fn;
use std::io::ErrorKind;

on_every_transport! {
    a_large_write_reaches_a_slow_reader_whole
    only_the_named_part_of_a_chunk_is_written
    a_watch_sees_bytes_and_takes_none
    no_foreign_bytes_when_reset_and_timeout_meet
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

/// Byte that fills a buffer lying in the pool: any other value there was written by someone
/// who no longer owns it.
const CANARY: u8 = 0xC5;
const BUFFER: usize = 512;
/// In front of what is read: must come back untouched.
const KEPT: usize = 16;

async fn no_foreign_bytes_when_reset_and_timeout_meet<S: Stage>(stage: S) {
    let (listener, at) = stage.listen();
    let mut pool: Vec<Vec<u8>> = (0..8).map(|_| vec![CANARY; BUFFER]).collect();
    for round in 0..S::ROUNDS {
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
