//! The rig for streams against itself, the floor, and servers that answer by script.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use super::client::{Client, State};
use super::drive::{Drive, Fates};
use super::first::{self, Openings};
use super::pace::Pace;
use super::text::{Request, Text};
use crate::floor::Floor;
use crate::standin::Dialect;
use crate::tls::{Identity, Papers, Socket, Trust};

const FREE: ([u8; 4], u16) = ([127, 0, 0, 1], 0);
const LIMIT: Duration = Duration::from_secs(10);
const TIME: Duration = Duration::from_millis(200);

fn text(dialect: Dialect) -> Text {
    Text::new(dialect, Request { host: "a", key: "k", model: "ok", body_bytes: 1024 })
}

fn bound(target: Option<SocketAddr>, dialect: Dialect, prompt: bool) -> Drive {
    let mut drive = Drive::bind(FREE.into()).unwrap();
    let target = target.unwrap_or_else(|| drive.upstream().unwrap());
    drive.set(target, text(dialect), true, prompt);
    drive
}

/// Every stream came whole, `streams` of them.
fn clean(fates: Fates, streams: u64) {
    assert_eq!(fates, Fates { opened: streams, whole: streams, failed: 0, beats: 0 });
}

#[test]
fn each_pace_delivers_what_it_sends_through_the_floor_and_without() {
    let even = Pace::Even { per_second: 2000.0, batch: 1 };
    let burst = Pace::Even { per_second: 100.0, batch: 20 };
    for (pace, dialect, relayed) in [
        (Pace::PingPong, Dialect::Chat, false),
        (Pace::PingPong, Dialect::Messages, true),
        (even, Dialect::Chat, true),
        (burst, Dialect::Chat, true),
        (burst, Dialect::Messages, false),
    ] {
        let mut drive = bound(None, dialect, true);
        let floor = Floor::start(FREE.into(), drive.upstream().unwrap()).unwrap();
        if relayed {
            drive.set(floor.addr(), text(dialect), true, true);
        }
        drive.connect(8, LIMIT).unwrap();
        drive.open(LIMIT).unwrap();
        drive.phase(pace, TIME, false).unwrap();
        let counts = drive.counts.clone();
        assert!(counts.delivered > 8 && counts.elapsed >= TIME, "{pace:?}: {counts:?}");
        assert!(counts.sent.abs_diff(counts.delivered) <= 8 * 20, "{pace:?}: {counts:?}");
        assert!(counts.delay.unwrap().len() > 8, "{pace:?}");
        drive.end(LIMIT).unwrap();
        clean(drive.fates, 8);
    }
}

#[test]
fn over_tls_streams_come_whole() {
    let papers = Papers::made().unwrap();
    let mut drive = bound(None, Dialect::Chat, true);
    let identity = Identity::of_pem(&papers.chain, &papers.key).unwrap();
    drive.secure(Some(Trust::of_pem(&papers.ca).unwrap()), Some(identity));
    drive.connect(200, LIMIT).unwrap();
    drive.open(LIMIT).unwrap();
    drive.phase(Pace::Even { per_second: 100.0, batch: 20 }, TIME, false).unwrap();
    assert!(drive.counts.delivered > 20, "{}", drive.counts.delivered);
    drive.end(LIMIT).unwrap();
    clean(drive.fates, 200);
}

#[test]
fn held_streams_open_and_end_whole() {
    let mut drive = bound(None, Dialect::Chat, true);
    let floor = Floor::start(FREE.into(), drive.upstream().unwrap()).unwrap();
    drive.set(floor.addr(), text(Dialect::Chat), false, true);
    drive.connect(300, LIMIT).unwrap();
    drive.open(LIMIT).unwrap();
    assert!((0..300).all(|stream| drive.state(stream) == State::Open));
    drive.end(LIMIT).unwrap();
    clean(drive.fates, 300);
}

#[test]
fn the_first_event_is_timed_from_its_own_write() {
    let mut drive = bound(None, Dialect::Chat, false);
    let floor = Floor::start(FREE.into(), drive.upstream().unwrap()).unwrap();
    drive.set(floor.addr(), text(Dialect::Chat), true, false);
    drive.connect(4, LIMIT).unwrap();
    let gap = Duration::from_millis(50);
    let openings = Openings { streams: 4, per_second: 100.0, gap, spin: false };
    first::phase(&mut drive, openings, Duration::from_millis(400), LIMIT).unwrap();
    let delay = drive.counts.delay.clone().unwrap();
    assert!(delay.len() >= 4 && delay.len() == drive.counts.delivered, "{:?}", drive.counts);
    // the gap is not in it
    assert!(delay.value_at_quantile(0.5) < 50_000, "{}", delay.value_at_quantile(0.5));
    clean(drive.fates, delay.len());
}

/// A client that is given `bytes` in pieces, then state and events.
fn fed(dialect: Dialect, bytes: &[u8], piece: usize, total: u64) -> (State, u64, u64) {
    let listener = TcpListener::bind(SocketAddr::from(FREE)).unwrap();
    let at = listener.local_addr().unwrap();
    let socket = Socket::calling(std::net::TcpStream::connect(at).unwrap(), at.ip(), None).unwrap();
    let (text, mut client) = (text(dialect), Client::new(socket));
    client.ask();
    client.total = Some(total);
    for part in bytes.chunks(piece) {
        client.feed(part, &text);
        if client.state == State::Failed {
            break;
        }
    }
    (client.state, client.events, client.beats)
}

#[test]
fn a_stream_is_read_alike_in_any_pieces_and_heartbeats_are_told_apart() {
    for (dialect, beat) in [
        (Dialect::Chat, ": keep-alive\n\n"),
        (Dialect::Messages, ": keep-alive\n\n"),
        (Dialect::Messages, "event: ping\ndata: {\"type\":\"ping\"}\n\n"),
    ] {
        let text = text(dialect);
        let beat = format!("{:x}\r\n{beat}\r\n", beat.len()).into_bytes();
        let all = [
            &text.opening[..],
            &text.event,
            &beat,
            &text.event,
            &text.event,
            &beat,
            &beat,
            &text.tail,
        ]
        .concat();
        for piece in 1..all.len() {
            assert_eq!(fed(dialect, &all, piece, 3), (State::Done, 3, 3), "{piece}");
        }
    }
}

#[test]
fn a_byte_too_few_too_many_or_another_one_fails_the_stream() {
    let text = text(Dialect::Chat);
    let good = [&text.opening[..], &text.event, &text.event, &text.tail].concat();
    assert_eq!(fed(Dialect::Chat, &good, good.len(), 2).0, State::Done);
    let mut other = good.clone();
    let at = text.opening.len() + 40;
    other[at] ^= 1;
    let early = [&text.opening[..], &text.event, b"0\r\n\r\n"].concat();
    let refused = b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n".to_vec();
    let twice = [&good[..], b"x"].concat();
    let repeated = [&text.opening[..], &text.event, &text.event, &text.event, &text.tail].concat();
    for (bytes, name) in [
        (other, "another byte"),
        (early, "an early end"),
        (refused, "a refusal"),
        (twice, "a byte too many"),
        (repeated, "an event too many"),
    ] {
        assert_eq!(fed(Dialect::Chat, &bytes, 7, 2).0, State::Failed, "{name}");
    }
}

#[test]
fn a_server_that_breaks_streams_is_told_so() {
    let listener = TcpListener::bind(SocketAddr::from(FREE)).unwrap();
    let target = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = [0; 8192];
            assert!(stream.read(&mut bytes).unwrap() > 0);
            stream.write_all(&text(Dialect::Chat).opening).unwrap();
        }
    });
    let mut drive = bound(Some(target), Dialect::Chat, true);
    drive.connect(3, LIMIT).unwrap();
    drive.open(LIMIT).unwrap();
    drive.end(LIMIT).unwrap();
    assert_eq!(drive.fates, Fates { opened: 3, whole: 0, failed: 3, beats: 0 });
    server.join().unwrap();
}

#[test]
fn only_loopback_is_spoken_to() {
    let far: SocketAddr = "192.0.2.1:80".parse().unwrap();
    let error = bound(Some(far), Dialect::Chat, true).connect(1, LIMIT).expect_err("far");
    assert!(error.to_string().contains("not loopback"), "{error}");
    assert!(Drive::bind("192.0.2.1:0".parse().unwrap()).is_err());
}
