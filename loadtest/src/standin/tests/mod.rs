//! The stand-in over real sockets, with a client that knows nothing of its code. Every read has a
//! deadline, so that a fault is a failure and not a hang.

mod library;
mod scripts;
mod serving;
mod streams;
mod tally;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::{Config, Standin};

/// Far above any wait of a script played here.
const LIMIT: Duration = Duration::from_secs(10);

fn standin() -> Standin {
    Standin::start(Config { captured_max: 8, ..Config::default() }).unwrap()
}

fn connect(standin: &Standin) -> TcpStream {
    let stream = TcpStream::connect(standin.addr()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn body(model: &str) -> String {
    format!("{{\"model\":\"{model}\",\"messages\":[{{\"role\":\"user\",\"content\":\"hello\"}}]}}")
}

fn post(model: &str, fields: &str) -> Vec<u8> {
    let body = body(model);
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: standin.test\r\n{fields}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Fin,
    Reset,
}

/// All bytes up to the end of the connection.
fn read_to_end(stream: &mut TcpStream) -> (Vec<u8>, End) {
    let (mut bytes, mut piece) = (Vec::new(), [0; 64 << 10]);
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return (bytes, End::Fin),
            Ok(n) => bytes.extend_from_slice(&piece[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                return (bytes, End::Reset);
            }
            Err(error) => panic!("after {} bytes: {error}", bytes.len()),
        }
    }
}

/// One answer with a content-length, and not a byte more.
fn read_answer(stream: &mut TcpStream) -> (u16, String, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    (status, head, body)
}

fn ask(stream: &mut TcpStream, model: &str, fields: &str) -> (u16, String, Vec<u8>) {
    stream.write_all(&post(model, fields)).unwrap();
    read_answer(stream)
}

/// What the stand-in sends to one request that asks for the end of the connection behind it.
fn all_of(standin: &Standin, model: &str) -> (Vec<u8>, End) {
    let mut stream = connect(standin);
    stream.write_all(&post(model, "Connection: close\r\n")).unwrap();
    read_to_end(&mut stream)
}
