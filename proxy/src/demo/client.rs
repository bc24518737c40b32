//! A blocking client for one request: enough HTTP to show an answer as a client sees it, whole or
//! as far as it reads.
//!
//! Deliberately not: connections that are used again, redirects, codings. Every answer ends with
//! its connection.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest silence of the answer: the demo's own upstream is silent for a second at most.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Largest answer: those of the demo are below 8 KiB.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Bytes of one read: small, so that a client can leave in the middle of an answer.
const READ_BYTES: usize = 512;

/// What is asked, and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask<'a> {
    pub(super) at: SocketAddr,
    pub(super) path: &'a str,
    /// Goes out as a bearer token.
    pub(super) key: &'a str,
    pub(super) body: &'a str,
}

/// What came back.
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    /// Without its framing.
    pub(super) body: String,
    /// It is here to its end.
    whole: bool,
}

impl Answer {
    /// The value of a field, by its name in lower case.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// Posts and reads the answer to the end of the connection.
pub(super) fn post(ask: &Ask<'_>) -> io::Result<Answer> {
    let answer = read(ask, |_| false)?;
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "an answer without its end");
    answer.whole.then_some(answer).ok_or_else(broken)
}

/// Posts, and hangs up as soon as `enough` of the answer is here.
pub(super) fn post_and_leave(
    ask: &Ask<'_>,
    enough: impl Fn(&Answer) -> bool,
) -> io::Result<Answer> {
    read(ask, enough)
}

fn read(ask: &Ask<'_>, enough: impl Fn(&Answer) -> bool) -> io::Result<Answer> {
    let Ask { at, path, key, body } = *ask;
    let mut stream = TcpStream::connect_timeout(&at, SILENCE_MAX)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {at}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len(),
    );
    stream.write_all(request.as_bytes())?;
    let (mut bytes, mut piece) = (Vec::new(), [0; READ_BYTES]);
    while bytes.len() < ANSWER_BYTES_MAX {
        let got = stream.read(&mut piece)?;
        if got == 0 {
            break;
        }
        bytes.extend_from_slice(piece.get(..got).unwrap_or_default());
        if let Some(answer) = parse(&bytes).filter(&enough) {
            return Ok(answer);
        }
    }
    parse(&bytes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no HTTP answer"))
}

/// The answer as far as it is here; `None` before its head is.
fn parse(bytes: &[u8]) -> Option<Answer> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, rest) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let answer = Answer { status, head: head.to_owned(), body: String::new(), whole: false };
    let (body, whole) = match answer.field("content-length") {
        Some(length) => (rest.to_owned(), length.parse() == Ok(rest.len())),
        None => chunks(rest)?,
    };
    Some(Answer { body, whole, ..answer })
}

/// The data of a chunked body, and whether its last chunk is here; `None` if it is no such body.
fn chunks(mut rest: &str) -> Option<(String, bool)> {
    let mut data = String::new();
    while let Some((size, behind)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some((data, behind == "\r\n"));
        }
        match behind.get(..size) {
            Some(chunk) => data.push_str(chunk),
            None => {
                data.push_str(behind);
                break;
            }
        }
        let Some(next) = behind.get(size..).and_then(|end| end.strip_prefix("\r\n")) else { break };
        rest = next;
    }
    Some((data, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_framing_says_so_and_not_before() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let body = "5\r\nhello\r\na\r\n, traveler\r\n0\r\n\r\n";
        for end in 0..=body.len() {
            let answer = parse(format!("{head}{}", &body[..end]).as_bytes()).unwrap();
            assert!("hello, traveler".starts_with(&answer.body), "{end}: {:?}", answer.body);
            assert_eq!(answer.whole, end == body.len(), "{end}");
        }
        let length = |n: usize| format!("HTTP/1.1 200 OK\r\ncontent-length: {n}\r\n\r\nhello");
        assert!(parse(length(5).as_bytes()).unwrap().whole);
        assert!(!parse(length(6).as_bytes()).unwrap().whole);
        assert!(parse(b"HTTP/1.1 200 OK\r\n").is_none());
    }
}
