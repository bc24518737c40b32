//! The rig against itself, the floor, and small servers that answer by script.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use super::drive::{Counts, Drive, Look};
use super::message;
use crate::floor::Floor;
use crate::tls::{Identity, Papers, Trust};

const FREE: ([u8; 4], u16) = ([127, 0, 0, 1], 0);
const LIMIT: Duration = Duration::from_secs(10);
const TIME: Duration = Duration::from_millis(250);

fn request(body_bytes: usize) -> Vec<u8> {
    message::request(message::Request { host: "a", key: "k", model: "ok", body_bytes })
}

fn bind(answer_bytes: usize) -> Drive {
    Drive::bind(FREE.into(), message::answer(answer_bytes)).unwrap()
}

fn run(drive: &mut Drive, target: SocketAddr, connections: usize, body_bytes: usize) -> Counts {
    drive.connect(target, connections, request(body_bytes), LIMIT).unwrap();
    drive.phase(TIME, LIMIT, Look::default()).unwrap()
}

/// Every request got its good answer on its first connection.
fn clean(counts: &Counts) {
    assert!(counts.answered > 0, "{counts:?}");
    assert_eq!(counts.requests, counts.answered, "{counts:?}");
    let faults = (counts.unexpected, counts.lost, counts.reconnects, counts.upstream.faults);
    assert_eq!(faults, (0, 0, 0, 0), "{counts:?}");
}

#[test]
fn both_messages_are_what_they_say() {
    let sent = String::from_utf8(request(2048)).unwrap();
    let (head, body) = sent.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"));
    assert!(head.contains("\r\nAuthorization: Bearer k\r\n"));
    assert!(head.ends_with("\r\nContent-Length: 2048") && body.len() == 2048);
    let answer = String::from_utf8(message::answer(823)).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.ends_with("\r\ncontent-length: 823") && body.len() == 823);
    let json: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(json["usage"]["total_tokens"], 576);
}

#[test]
fn the_rig_answers_itself() {
    let mut drive = bind(823);
    let target = drive.upstream().unwrap();
    let counts = run(&mut drive, target, 16, 2048);
    clean(&counts);
    assert_eq!(counts.upstream.requests, counts.answered);
    assert_eq!((counts.upstream.connections, counts.latency.is_none()), (16, true));
}

#[test]
fn over_tls_the_rig_answers_itself() {
    let papers = Papers::made().unwrap();
    let mut drive = bind(823);
    let identity = Identity::of_pem(&papers.chain, &papers.key).unwrap();
    drive.secure(Some(Trust::of_pem(&papers.ca).unwrap()), Some(identity));
    let target = drive.upstream().unwrap();
    let counts = run(&mut drive, target, 16, 2048);
    clean(&counts);
    assert_eq!(counts.upstream.requests, counts.answered);
    let mut drive = bind(823);
    drive.secure(Some(Trust::of_pem(&papers.ca).unwrap()), None);
    let target = drive.upstream().unwrap();
    let refused = drive.connect(target, 1, request(2048), TIME).expect_err("no TLS there");
    assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
}

#[test]
fn through_the_floor_every_request_reaches_the_upstream() {
    for (spin, body, answer) in [(false, 2048, 823), (true, 2048, 823), (false, 3 << 20, 3 << 20)] {
        let mut drive = bind(answer);
        let floor = Floor::start(FREE.into(), drive.upstream().unwrap()).unwrap();
        drive.connect(floor.addr(), 4, request(body), LIMIT).unwrap();
        let look = Look { latency: true, spin };
        for _ in 0..2 {
            // a phase begins with nothing of the one before, on the same connections
            let counts = drive.phase(TIME, LIMIT, look).unwrap();
            clean(&counts);
            assert_eq!(counts.upstream.requests, counts.answered);
            assert_eq!(counts.upstream.connections, 4);
            assert_eq!(counts.latency.unwrap().len(), counts.answered);
            assert!(counts.elapsed >= TIME && counts.cpu > Duration::ZERO);
        }
    }
}

#[test]
fn a_target_that_does_not_accept_is_an_error() {
    let gone = TcpListener::bind(SocketAddr::from(FREE)).unwrap().local_addr().unwrap();
    let error = bind(823).connect(gone, 1, request(2048), Duration::ZERO).expect_err("refused");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "{error}");
}

#[test]
fn only_loopback_is_spoken_to() {
    let far: SocketAddr = "192.0.2.1:80".parse().unwrap();
    let error = bind(823).connect(far, 1, request(2048), LIMIT).expect_err("not loopback");
    assert!(error.to_string().contains("not loopback"), "{error}");
    assert!(Drive::bind("192.0.2.1:0".parse().unwrap(), Vec::new()).is_err());
}

/// What a scripted server does with the `n`th request it reads, counted over all connections.
type Script = fn(n: u64, stream: &mut TcpStream) -> io::Result<Then>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Stay,
    Close,
}

/// Serves connections one after another until one comes that says nothing.
fn serve(script: Script) -> (SocketAddr, JoinHandle<u64>) {
    let listener = TcpListener::bind(SocketAddr::from(FREE)).unwrap();
    let addr = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let mut served = 0;
        let mut wire = vec![0; request(2048).len()];
        loop {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            let before = served;
            while stream.read_exact(&mut wire).is_ok() {
                assert_eq!(wire, request(2048));
                served += 1;
                if !matches!(script(served, &mut stream), Ok(Then::Stay)) {
                    break;
                }
            }
            if served == before {
                return served;
            }
        }
    });
    (addr, thread)
}

/// The number of requests the server read. The connection that says nothing is this one, unless
/// the rig's last came in place of an ended one.
fn end(target: SocketAddr, server: JoinHandle<u64>) -> u64 {
    let _ended = TcpStream::connect(target).is_err();
    server.join().unwrap()
}

/// One client against a scripted server; also gives the number of requests the server read.
fn scripted(script: Script) -> (Counts, u64) {
    let (target, server) = serve(script);
    let mut drive = bind(823);
    let counts = run(&mut drive, target, 1, 2048);
    drop(drive);
    (counts, end(target, server))
}

#[test]
fn answers_in_single_bytes_are_whole() {
    let (counts, served) = scripted(|_, stream| {
        stream.set_nodelay(true)?;
        for byte in message::answer(823) {
            stream.write_all(&[byte])?;
        }
        Ok(Then::Stay)
    });
    clean(&counts);
    assert_eq!(counts.answered, served);
}

#[test]
fn other_statuses_are_counted() {
    let (counts, served) = scripted(|n, stream| {
        let answer = message::answer(823);
        if n % 2 == 0 {
            stream.write_all(b"HTTP/1.1 503 No\r\n")?;
            stream.write_all(answer.strip_prefix(b"HTTP/1.1 200 OK\r\n").unwrap())?;
        } else {
            stream.write_all(&answer)?;
        }
        Ok(Then::Stay)
    });
    assert_eq!((counts.answered, counts.requests, counts.lost), (served, served, 0));
    assert!(served > 1);
    assert_eq!((counts.unexpected, counts.unexpected_status), (served / 2, 503));
    assert_eq!(counts.reconnects, 0);
}

#[test]
fn an_early_end_loses_its_request_and_no_other() {
    let (counts, served) = scripted(|n, stream| {
        let answer = message::answer(823);
        // in the head, in the body, before either, and behind it
        let kept = match n {
            2 => 20,
            4 => 400,
            6 => 0,
            8 => answer.len(),
            _ => {
                stream.write_all(&answer)?;
                return Ok(Then::Stay);
            }
        };
        stream.write_all(&answer[..kept])?;
        Ok(Then::Close)
    });
    assert!(served > 8, "{counts:?}");
    // the client may have written its next request before it heard of the end behind an answer
    let unheard = counts.lost.checked_sub(3).unwrap();
    assert!(unheard <= 1, "{counts:?}");
    assert_eq!((counts.requests, counts.answered), (served + unheard, served - 3));
    assert_eq!((counts.unexpected, counts.reconnects), (0, 4));
}

#[test]
fn surplus_bytes_are_counted_and_end_the_connection() {
    let (counts, served) = scripted(|n, stream| {
        let mut answer = message::answer(823);
        if n == 3 {
            answer.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        }
        stream.write_all(&answer)?;
        Ok(Then::Stay)
    });
    assert!(served > 3, "{counts:?}");
    assert_eq!((counts.answered, counts.lost), (served, 0));
    assert_eq!((counts.unexpected, counts.reconnects), (1, 1));
}

#[test]
fn an_announced_end_is_obeyed() {
    let (counts, served) = scripted(|n, stream| {
        if n % 2 == 1 {
            stream.write_all(&message::answer(823))?;
            return Ok(Then::Stay);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")?;
        Ok(Then::Close)
    });
    assert!(served > 1);
    assert_eq!((counts.answered, counts.lost, counts.unexpected), (served, 0, 0));
    assert_eq!(counts.reconnects, served / 2);
}

#[test]
fn an_answer_that_never_comes_is_lost() {
    let (target, server) = serve(|_, _| Ok(Then::Stay));
    let mut drive = bind(823);
    drive.connect(target, 1, request(2048), LIMIT).unwrap();
    let counts = drive.phase(TIME, TIME, Look::default()).unwrap();
    assert_eq!((counts.requests, counts.answered, counts.lost), (1, 0, 1));
    drop(drive);
    assert_eq!(end(target, server), 1);
}

#[test]
fn what_is_no_request_ends_its_upstream_connection() {
    let mut drive = bind(823);
    let target = drive.upstream().unwrap();
    let mut odd = TcpStream::connect(target).unwrap();
    odd.set_read_timeout(Some(LIMIT)).unwrap();
    odd.write_all(b"POST / HTTP/1.1\r\nno colon\r\n\r\n").unwrap();
    let counts = run(&mut drive, target, 2, 2048);
    assert_eq!((counts.upstream.faults, counts.lost, counts.unexpected), (1, 0, 0));
    assert_eq!(odd.read(&mut [0; 16]).unwrap(), 0);
}
