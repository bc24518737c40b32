//! A round trip on a connection that stands allocates nothing, on both real back ends.

#![cfg(test)]

use bench::alloc::{Counts, counted};
use std::future::Future;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use tollgate::io::listen::RingListener;
use tollgate::io::ring::{RingIo, RingStream};
use tollgate::io::runtime::{Choice, ShardRuntime};
use tollgate::io::turn::{Event, Turn};
use tollgate::io::wheel::Wheel;
use tollgate::io::{Chunk, Io, Recall, Stream};

#[global_allocator]
static ALLOCATOR: bench::alloc::Counting = bench::alloc::Counting;

/// Rounds before counting: everything that grows once has grown.
const WARM_UP: usize = 200;
const ROUNDS: usize = 1_000;
const MESSAGE: usize = 2_048;

#[test]
fn the_allocator_counts() {
    let (counts, boxed) = bench::alloc::count(|| Box::new([0_u8; 100]));
    assert_eq!((counts.allocations, counts.bytes, counts.frees), (1, 100, 0));
    let (counts, ()) = bench::alloc::count(|| drop(boxed));
    assert_eq!(counts, Counts { allocations: 0, bytes: 0, frees: 1 });
    let (counts, _) = bench::alloc::count(|| {
        let mut bytes = vec![0_u8; 10];
        bytes.reserve_exact(90);
        bytes
    });
    assert_eq!(counts.allocations, 2);
}

#[test]
fn a_round_trip_on_io_uring_allocates_nothing() {
    match ShardRuntime::build(Choice::Uring) {
        Ok(mut runtime) => steady(&mut runtime),
        Err(e) => eprintln!("the kernel refuses io_uring ({e}): not counted"),
    }
}

#[test]
fn a_round_trip_on_epoll_allocates_nothing() {
    steady(&mut ShardRuntime::build(Choice::Epoll).unwrap());
}

fn steady(runtime: &mut ShardRuntime) {
    let driver = runtime.driver();
    for recall in [Recall::Never, Recall::Able] {
        let counts = runtime.block_on(rounds(recall));
        println!("{driver}, {recall:?}: {counts:?} in {ROUNDS} round trips");
        assert_eq!(counts.allocations, 0, "{driver}, {recall:?}");
        assert_eq!(counts.frees, 0, "{driver}, {recall:?}");
    }
}

/// A question and an answer a round, each end waiting as a connection does: in a turn, with a
/// timer armed anew.
async fn rounds(recall: Recall) -> Counts {
    let (mut near, mut far) = pair().await;
    let wheel = Wheel::new();
    let timer = wheel.timer();
    let mut before = Counts::default();
    let mut near_bytes = Vec::with_capacity(2 * MESSAGE);
    let mut far_bytes = Vec::with_capacity(2 * MESSAGE);
    near_bytes.resize(MESSAGE, b'q');
    for round in 0..WARM_UP + ROUNDS {
        if round == WARM_UP {
            before = counted();
        }
        timer.arm(std::time::Duration::from_secs(60));
        far_bytes.clear();
        far.start_read(far_bytes, recall);
        {
            // In flight before there is anything: the read waits, as an idle client's does.
            let mut turn = pin!(Turn::client(&mut far, &timer));
            assert!(poll_fn(|cx| Poll::Ready(turn.as_mut().poll(cx).is_pending())).await);
        }
        near_bytes = send(&mut near, near_bytes).await;
        let Event::ClientRead(done) = Turn::client(&mut far, &timer).await else {
            panic!("the far end waited for its read alone");
        };
        assert_eq!(done.result.unwrap(), MESSAGE);
        far_bytes = send(&mut far, done.buffer).await;
        near_bytes.clear();
        near.start_read(near_bytes, recall);
        let done = poll_fn(|cx| near.poll_read(cx)).await;
        assert_eq!(done.result.unwrap(), MESSAGE);
        near_bytes = done.buffer;
    }
    counted().since(before)
}

async fn send(stream: &mut RingStream, bytes: Vec<u8>) -> Vec<u8> {
    stream.start_write(Chunk::whole(bytes));
    let done = poll_fn(|cx| stream.poll_write(cx)).await;
    done.result.unwrap();
    done.chunk.bytes
}

async fn pair() -> (RingStream, RingStream) {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let listener = RingListener::from_std(listener).unwrap();
    let at = listener.local_addr();
    let mut near = RingIo.connect(at).unwrap();
    let (far, _) = RingIo.accept(&listener).await.unwrap();
    poll_fn(|cx| near.poll_connected(cx)).await.unwrap();
    (near, far)
}
