//! A blocking client for one request: enough HTTP to show an answer as a client sees it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest silence of the answer: the demo's own upstream answers at once.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Largest answer: those of the demo are below 2 KiB.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// What came back.
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) body: String,
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

/// Posts `body` to the chat route and reads the answer to the end of the connection.
pub(super) fn post(at: SocketAddr, key: &str, body: &str) -> io::Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&at, SILENCE_MAX)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {at}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len(),
    );
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes)?;
    parse(&bytes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no HTTP answer"))
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let answer = Answer { status, head: head.to_owned(), body: body.to_owned() };
    // Read to the end of the connection: the length tells whether it was the answer's end.
    let length = answer.field("content-length")?.parse::<usize>().ok()?;
    (length == answer.body.len()).then_some(answer)
}
