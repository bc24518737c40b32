//! The floor passes every byte on, in both directions, whatever the framing.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::Floor;
use crate::standin::{Config, Standin};

const LIMIT: Duration = Duration::from_secs(10);
const FREE: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

fn request(model: &str, fields: &str, pad: usize) -> Vec<u8> {
    let body = format!("{{\"model\":\"{model}\",\"messages\":\"{}\"}}", "x".repeat(pad));
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

/// Sends and reads `length` bytes, or up to the end of the connection.
fn exchange(addr: SocketAddr, bytes: &[u8], piece: usize, length: u64) -> Vec<u8> {
    let mut stream = connect(addr);
    for part in bytes.chunks(piece) {
        stream.write_all(part).unwrap();
    }
    let mut answer = Vec::new();
    stream.take(length).read_to_end(&mut answer).unwrap();
    answer
}

#[test]
fn answers_are_relayed_byte_for_byte() {
    let standin = Standin::start(Config { captured_max: 1, ..Config::default() }).unwrap();
    let floor = Floor::start(FREE.into(), standin.addr()).unwrap();
    for model in [
        "ok",
        "big-5m",
        "chunked",
        "chunked-small",
        "chunked-ext-trailer",
        "close-delimited",
        "http10",
        "interim",
        "s204",
        "s304",
        "s429",
        "huge-head",
        "gzip",
        "cut-body",
        "cut-chunked",
    ] {
        for (pad, piece) in [(10, 1), (2048, 4096), (3 << 20, 100_000)] {
            let sent = request(model, "Connection: close\r\n", pad);
            let direct = exchange(standin.addr(), &sent, sent.len(), u64::MAX);
            // the floor knows nothing of `Connection: close` and keeps the client's connection
            let length = direct.len() as u64;
            let relayed = exchange(floor.addr(), &sent, piece, length);
            assert_eq!(relayed, direct, "{model} {pad}");
            assert_eq!(standin.captured(), [sent], "{model} {pad}");
        }
    }
}

#[test]
fn connections_stay_and_upstream_ones_are_reused() {
    let standin = Standin::start(Config::default()).unwrap();
    let floor = Floor::start(FREE.into(), standin.addr()).unwrap();
    for _ in 0..3 {
        let mut stream = connect(floor.addr());
        let pair = [request("ok", "", 10), request("s400", "", 10)].concat();
        for bytes in [&pair[..], &request("chunked", "", 10)] {
            stream.write_all(bytes).unwrap();
        }
        let mut text = Vec::new();
        let mut piece = [0; 4096];
        while !text.ends_with(b"\r\n0\r\n\r\n") {
            let n = stream.read(&mut piece).unwrap();
            assert_ne!(n, 0);
            text.extend_from_slice(&piece[..n]);
        }
        let text = String::from_utf8(text).unwrap();
        let statuses: Vec<_> =
            text.match_indices("HTTP/1.1 ").map(|(at, _)| &text[at + 9..at + 12]).collect();
        assert_eq!(statuses, ["200", "400", "200"]);
    }
    assert_eq!(standin.counts().connections, 1);
}

#[test]
fn a_slow_reader_gets_everything() {
    let standin = Standin::start(Config::default()).unwrap();
    let floor = Floor::start(FREE.into(), standin.addr()).unwrap();
    let mut streams: Vec<_> = (0..8).map(|_| connect(floor.addr())).collect();
    for stream in &mut streams {
        stream.write_all(&request("big-5m", "", 10)).unwrap();
    }
    // all sixteen sides are full by the time the last of them is read
    for stream in streams.iter_mut().rev() {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let mut body = vec![0; 5 << 20];
        stream.read_exact(&mut body).unwrap();
        assert!(body.ends_with(b"}"));
    }
}

#[test]
fn an_end_without_an_answer_is_passed_on() {
    let listener = TcpListener::bind(SocketAddr::from(FREE)).unwrap();
    let floor = Floor::start(FREE.into(), listener.local_addr().unwrap()).unwrap();
    let mut client = connect(floor.addr());
    client.write_all(&request("ok", "", 10)).unwrap();
    let (upstream, _) = listener.accept().unwrap();
    upstream.shutdown(Shutdown::Both).unwrap();
    drop(upstream);
    let mut bytes = Vec::new();
    // the floor's close is orderly or a reset, by what was still unread; never an answer
    let _reset = client.read_to_end(&mut bytes).is_err();
    assert!(bytes.is_empty());
}

#[test]
fn only_loopback_is_relayed_to() {
    let error = Floor::start(FREE.into(), "192.0.2.1:80".parse().unwrap()).expect_err("open");
    assert!(error.to_string().contains("not loopback"), "{error}");
}
