use super::*;
use crate::io::Stream;
use std::cell::Cell;

fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Names of tasks in the order they ran.
fn order_of(seed: u64, order: Order) -> Vec<usize> {
    let world = ScriptWorld::new(seed);
    world.set_order(order);
    let ran = Rc::new(RefCell::new(Vec::new()));
    for name in 0..20 {
        let ran = ran.clone();
        world.spawn(async move { ran.borrow_mut().push(name) });
    }
    world.run_until(world.sleep(TICK)).unwrap();
    assert_eq!(world.tasks(), 0);
    ran.take()
}

#[test]
fn tasks_run_in_the_order_they_became_ready_or_in_one_the_seed_decides() {
    let fifo: Vec<usize> = (0..20).collect();
    assert_eq!(order_of(1, Order::Fifo), fifo);
    assert_eq!(order_of(1, Order::Seeded), order_of(1, Order::Seeded));
    assert_ne!(order_of(1, Order::Seeded), fifo);
    assert_ne!(order_of(1, Order::Seeded), order_of(2, Order::Seeded));
}

#[test]
fn a_place_is_used_again_and_a_late_ring_does_not_reach_its_next_tenant() {
    let world = ScriptWorld::new(0);
    let late = Rc::new(RefCell::new(None));
    let keep = late.clone();
    world.spawn(poll_fn(move |cx| {
        *keep.borrow_mut() = Some(cx.waker().clone());
        Poll::Ready(())
    }));
    world.run_until(world.sleep(TICK)).unwrap();
    let polls = Rc::new(Cell::new(0));
    let count = polls.clone();
    world.spawn(poll_fn(move |_| {
        count.set(count.get() + 1);
        Poll::Pending
    }));
    world.run_until(world.sleep(TICK)).unwrap();
    late.take().unwrap().wake();
    world.run_until(world.sleep(TICK)).unwrap();
    assert_eq!(polls.get(), 1);
    assert_eq!(world.tasks(), 1);
}

#[test]
fn sleepers_wake_at_their_instant_in_the_order_they_lay_down_and_a_dropped_sleep_never() {
    let world = ScriptWorld::new(0);
    let woke = Rc::new(RefCell::new(Vec::new()));
    for (name, ms) in [(0, 30), (1, 10), (2, 30), (3, 0), (4, 600_000)] {
        let (io, woke) = (world.io(), woke.clone());
        world.spawn(async move {
            io.sleep(Duration::from_millis(ms)).await;
            woke.borrow_mut().push((name, io.now().mono.0 / 1_000_000));
        });
    }
    drop(world.sleep(Duration::from_millis(5)));
    world.run_until(world.sleep(Duration::from_secs(600))).unwrap();
    assert_eq!(*woke.borrow(), [(3, 0), (1, 10), (0, 30), (2, 30), (4, 600_000)]);
}

#[test]
fn the_wall_clock_moves_by_itself_and_by_hand_and_the_monotonic_one_only_by_sleep() {
    let world = ScriptWorld::new(0);
    assert_eq!((world.now().mono, world.now().wall), (MonoNs(0), WALL_START));
    world.run_until(world.io().tick()).unwrap();
    assert_eq!(world.now().wall, UnixMs(WALL_START.0 + 100));
    for wall in [WALL_START.0 - 86_400_000, 50] {
        let mono = world.now().mono;
        world.set_wall(UnixMs(wall));
        assert_eq!((world.now().mono, world.now().wall), (mono, UnixMs(wall)));
        world.run_until(world.io().tick()).unwrap();
        assert_eq!(world.now().wall, UnixMs(wall + 100));
    }
}

#[test]
fn a_hang_is_a_value_that_says_where_and_why() {
    let world = ScriptWorld::new(0);
    world.run_until(world.sleep(Duration::from_millis(250))).unwrap();
    let stuck = world.run_until(std::future::pending::<()>()).unwrap_err();
    assert_eq!((stuck.at_ms, stuck.cause), (250, StuckCause::NobodySleeps));
    assert!(stuck.to_string().starts_with("stuck at 250 virtual ms: nothing is ready"));

    let io = world.io();
    world.spawn(async move {
        loop {
            io.tick().await;
        }
    });
    let stuck = world.run_until(std::future::pending::<()>()).unwrap_err();
    assert_eq!((stuck.cause, stuck.tasks), (StuckCause::Time, 1));
    assert_eq!(stuck.at_ms, 3_600_250);
    let spins = poll_fn(|cx| {
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    });
    let stuck = world.run_until(spins).unwrap_err();
    assert_eq!(stuck.cause, StuckCause::Steps);
}

#[test]
fn a_world_that_goes_takes_its_tasks_and_their_connections_with_it() {
    let world = ScriptWorld::new(0);
    let listener = world.listen(at(80)).unwrap();
    let (io, witness) = (world.io(), Rc::new(()));
    let held = witness.clone();
    world.spawn(async move {
        let _held = held;
        let _kept = io.accept(&listener).await;
        std::future::pending::<()>().await;
    });
    let client = world.dial(at(80)).unwrap();
    world.run_until(world.sleep(TICK)).unwrap();
    let inside = Rc::downgrade(&world.io.world);
    let gone = async move { client.closed().await.unwrap() };
    assert_eq!(Rc::strong_count(&witness), 2);
    drop(world);
    assert_eq!(Rc::strong_count(&witness), 1);
    assert!(inside.upgrade().is_some(), "the client still holds it");
    drop(gone);
    assert!(inside.upgrade().is_none());
}

/// Sends `sent` through a link cut by `chop`; the sizes of the reads.
fn reads(seed: u64, chop: Chop, sent: &[u8]) -> Vec<usize> {
    let world = ScriptWorld::new(seed);
    let upstream = world.serve(at(80)).unwrap();
    let client = world.dial(at(80)).unwrap();
    client.chop(chop);
    world
        .run_until(async {
            client.send(sent).await.unwrap();
            client.fin();
            let served = upstream.accept().await.unwrap();
            let (mut sizes, mut all) = (Vec::new(), Vec::new());
            loop {
                let more = served.read_some().await.unwrap();
                if more.is_empty() {
                    break;
                }
                sizes.push(more.len());
                all.extend(more);
            }
            assert_eq!(all, sent);
            sizes
        })
        .unwrap()
}

#[test]
fn reads_are_cut_as_asked_and_lose_nothing() {
    let sent: Vec<u8> = (0..100).collect();
    assert_eq!(reads(0, Chop::Whole, &sent), [100]);
    assert_eq!(reads(0, Chop::AtMost(1), &sent), [1; 100]);
    assert_eq!(reads(0, Chop::AtMost(0), &sent), [1; 100]);
    assert_eq!(reads(0, Chop::AtMost(40), &sent), [40, 40, 20]);
    assert_eq!(reads(0, Chop::Cuts(vec![90, 7, 7, 0, 200]), &sent), [7, 83, 10]);
    let random = reads(5, Chop::Random(9), &sent);
    assert_eq!(random, reads(5, Chop::Random(9), &sent));
    assert_ne!(random, reads(6, Chop::Random(9), &sent));
    assert!(random.iter().all(|size| (1..=9).contains(size)));
}

#[test]
fn a_sender_waits_once_the_capacity_is_full_and_its_patience_is_virtual() {
    let world = ScriptWorld::new(0);
    world.set_link(LinkOptions { capacity: 1_000, ..LinkOptions::default() });
    let upstream = world.serve(at(80)).unwrap();
    let client = world.dial(at(80)).unwrap();
    client.set_patience(Duration::from_secs(7));
    world
        .run_until(async {
            let served = upstream.accept().await.unwrap();
            client.send(&[1; 1_000]).await.unwrap();
            let stuck = client.send(&[2]).await.unwrap_err();
            assert!(matches!(stuck.fault, PeerFault::TimedOut));
            assert_eq!(stuck.at_ms, 7_000);
            assert_eq!(served.read_exact_or_eof(300).await.unwrap(), [1; 300]);
            client.send(&[3; 300]).await.unwrap();
            client.fin();
            assert_eq!(served.read_until_eof().await.unwrap().len(), 1_000);
        })
        .unwrap();
}

#[test]
fn peers_find_patterns_across_reads_and_keep_what_lies_behind() {
    let text = b"HTTP/1.1 200 OK\r\nx: \r\r\n\r\nbody and more";
    for cut in 0..=text.len() {
        let world = ScriptWorld::new(0);
        let upstream = world.serve(at(80)).unwrap();
        let client = world.dial(at(80)).unwrap();
        let io = world.io();
        world.spawn(async move {
            let served = upstream.accept().await.unwrap();
            served.send_split(text, &[cut]).await.unwrap();
            io.sleep(TICK).await;
        });
        world
            .run_until(async {
                let head = client.read_until(b"\r\n\r\n").await.unwrap();
                assert_eq!(head, text[..25]);
                assert_eq!(client.read_exact_or_eof(4).await.unwrap(), b"body");
                let short = client.read_until(b"\n").await.unwrap_err();
                assert!(matches!(short.fault, PeerFault::Ended));
                assert_eq!(short.got, b" and more");
            })
            .unwrap();
    }
}

#[test]
fn a_peer_reads_while_its_own_send_waits() {
    let world = ScriptWorld::new(0);
    let upstream = world.serve(at(80)).unwrap();
    let client = Rc::new(world.dial(at(80)).unwrap());
    world.spawn(async move {
        let echo = upstream.accept().await.unwrap();
        loop {
            let bytes = echo.read_some().await.unwrap();
            if bytes.is_empty() {
                break;
            }
            echo.send(&bytes).await.unwrap();
        }
    });
    let sender = client.clone();
    let sent: Vec<u8> = (0..4 * CAPACITY).map(|i| (i / 251) as u8).collect();
    let expected = sent.clone();
    world.spawn(async move {
        sender.send(&sent).await.unwrap();
        sender.fin();
    });
    let got = world.run_until(client.read_until_eof()).unwrap().unwrap();
    assert!(got == expected);
}

#[test]
fn pieces_of_a_split_send_are_seen_one_by_one() {
    let world = ScriptWorld::new(0);
    let upstream = world.serve(at(80)).unwrap();
    let client = world.dial(at(80)).unwrap();
    world.spawn(async move { client.send_split(b"abcdef", &[1, 3, 3]).await.unwrap() });
    world
        .run_until(async {
            let served = upstream.accept().await.unwrap();
            assert_eq!(served.read_some().await.unwrap(), b"a");
            assert_eq!(served.read_some().await.unwrap(), b"bc");
            assert_eq!(served.read_some().await.unwrap(), b"def");
            assert_eq!(served.read_some().await.unwrap(), b"");
        })
        .unwrap();
}

#[test]
fn a_close_with_bytes_unread_is_a_reset_that_takes_what_was_on_its_way() {
    let world = ScriptWorld::new(0);
    let upstream = world.serve(at(80)).unwrap();
    let client = world.dial(at(80)).unwrap();
    world
        .run_until(async {
            let served = upstream.accept().await.unwrap();
            client.send(b"a body nobody reads").await.unwrap();
            served.send(b"413").await.unwrap();
            drop(served);
            assert_eq!(client.closed().await.unwrap(), Gone::Reset);
            let error = client.read_until_eof().await.unwrap_err();
            assert!(matches!(error.fault, PeerFault::Broken(io::ErrorKind::ConnectionReset)));
            assert_eq!(error.got, b"");
            let error = client.send(b"more").await.unwrap_err();
            assert!(matches!(error.fault, PeerFault::Broken(io::ErrorKind::BrokenPipe)));
        })
        .unwrap();
}

#[test]
fn a_close_after_everything_was_read_is_an_end_and_a_late_write_breaks_the_next() {
    let world = ScriptWorld::new(0);
    let upstream = world.serve(at(80)).unwrap();
    let client = world.dial(at(80)).unwrap();
    world
        .run_until(async {
            let served = upstream.accept().await.unwrap();
            served.send(b"bye").await.unwrap();
            drop(served);
            assert_eq!(client.closed().await.unwrap(), Gone::Fin);
            assert_eq!(client.read_until_eof().await.unwrap(), b"bye");
            client.send(b"accepted").await.unwrap();
            let error = client.send(b"refused").await.unwrap_err();
            assert!(matches!(error.fault, PeerFault::Broken(io::ErrorKind::BrokenPipe)));
        })
        .unwrap();
}

#[test]
fn connects_are_refused_delayed_or_swallowed_as_the_address_says() {
    let world = ScriptWorld::new(0);
    let io = world.io();
    let _upstream = world.serve(at(80)).unwrap();
    world.set_black_hole(at(81));
    world.set_connect_delay(at(80), Duration::from_millis(1_234));
    world.set_connect_delay(at(82), Duration::from_secs(2));
    let outcome = |to| {
        let mut stream = io.connect(to).unwrap();
        world
            .run_within(Duration::from_secs(60), poll_fn(|cx| stream.poll_connected(cx)))
            .map(|result| (result.map_err(|e| e.kind()), world.now().mono.0 / 1_000_000))
    };
    assert_eq!(outcome(at(80)).unwrap(), (Ok(()), 1_234));
    assert_eq!(outcome(at(82)).unwrap(), (Err(io::ErrorKind::ConnectionRefused), 3_234));
    assert_eq!(outcome(at(81)).unwrap_err().cause, StuckCause::NobodySleeps);
    assert_eq!(world.dial(at(83)).map(drop).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    assert_eq!(world.serve(at(80)).map(drop).unwrap_err().kind(), io::ErrorKind::AddrInUse);
}

#[test]
fn a_listener_that_goes_resets_who_waits_and_frees_its_address() {
    let world = ScriptWorld::new(0);
    let listener = world.listen(at(0)).unwrap();
    let here = listener.local_addr();
    assert_ne!(here.port(), 0);
    let client = world.dial(here).unwrap();
    drop(listener);
    assert_eq!(world.run_until(client.closed()).unwrap().unwrap(), Gone::Reset);
    assert!(world.dial(here).is_err());
    assert!(world.listen(here).is_ok());
}
