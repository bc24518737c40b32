//! What the content of an answer says: its sum, and of a stream how it ended. Keeps the last bytes
//! alone. Bound: `TAIL_MAX`.

use crate::standin::Digest;

/// Bytes looked at for the end of a stream: above the last two events of any dialect, an error in
/// place of them included.
const TAIL_MAX: usize = 4 << 10;

/// How an answer ended as its dialect sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is no stream.
    Plain,
    /// `[DONE]` or `message_stop` came last.
    Terminated,
    /// An error came last.
    Failed,
    /// Neither.
    Open,
}

/// What was seen of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) kind: Kind,
    pub(super) content: Digest,
}

/// Looks at content as it comes.
#[derive(Debug)]
pub(super) struct Look {
    stream: bool,
    bytes: u64,
    sum: crc32fast::Hasher,
    tail: Vec<u8>,
}

impl Look {
    /// At the first byte; `stream` is what the head says.
    pub(super) fn new(stream: bool) -> Look {
        Look { stream, bytes: 0, sum: crc32fast::Hasher::new(), tail: Vec::new() }
    }

    pub(super) fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.sum.update(piece);
        if self.stream {
            self.tail.extend_from_slice(&piece[piece.len().saturating_sub(TAIL_MAX)..]);
            // dropped in large steps: bytes that come one by one must not move all of it each time
            if self.tail.len() > 2 * TAIL_MAX {
                self.tail.drain(..self.tail.len() - TAIL_MAX);
            }
        }
    }

    /// At the last byte.
    pub(super) fn seen(&self) -> Seen {
        let (name, data) = last_event(&self.tail);
        let kind = if !self.stream {
            Kind::Plain
        } else if data == b"[DONE]" || name == b"message_stop" {
            Kind::Terminated
        } else if name == b"error" || data.starts_with(b"{\"error\"") {
            Kind::Failed
        } else {
            Kind::Open
        };
        let content = Digest { bytes: self.bytes, crc32: self.sum.clone().finalize() };
        Seen { kind, content }
    }
}

/// Name and data of the last event; comments are none.
fn last_event(text: &[u8]) -> (&[u8], &[u8]) {
    let (mut name, mut data, mut last) = (&b""[..], None, (&b""[..], &b""[..]));
    for line in text.split(|&byte| matches!(byte, b'\n' | b'\r')) {
        if let Some(value) = line.strip_prefix(b"event: ") {
            name = value;
        } else if let Some(value) = line.strip_prefix(b"data: ") {
            data = Some(value);
            last = (name, value);
        } else if line.is_empty() && data.take().is_some() {
            name = b"";
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::{Kind, Look};

    fn kind(text: &str, piece: usize) -> Kind {
        let mut look = Look::new(true);
        for part in text.as_bytes().chunks(piece) {
            look.add(part);
        }
        let seen = look.seen();
        assert_eq!(seen.content.crc32, crc32fast::hash(text.as_bytes()));
        assert_eq!(seen.content.bytes, text.len() as u64);
        seen.kind
    }

    #[test]
    fn the_end_of_a_stream_is_told_in_any_pieces() {
        let long = format!("data: {{\"a\":\"{}\"}}\n\n", "data: [DONE] ".repeat(3000));
        let stop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        let error = "event: error\r\ndata: {\"type\":\"error\"}\r\n\r\n";
        for (text, expected) in [
            (String::new(), Kind::Open),
            (": comment\n\n".to_owned(), Kind::Open),
            ("data: {\"choices\":[]}\n\n".to_owned(), Kind::Open),
            ("data: {}\n\ndata: [DONE]\n\n".to_owned(), Kind::Terminated),
            ("data: {}\r\rdata: [DONE]\r\r: bye\r\r".to_owned(), Kind::Terminated),
            (format!("{long}{stop}"), Kind::Terminated),
            (format!("{stop}data: {{\"more\":1}}\n\n"), Kind::Open),
            (format!("{long}{error}"), Kind::Failed),
            ("data: {}\n\ndata: {\"error\":{}}\n\n".to_owned(), Kind::Failed),
        ] {
            for piece in [1, 7, 1000, usize::MAX] {
                assert_eq!(kind(&text, piece), expected, "{piece} {text:.100}");
            }
        }
    }

    #[test]
    fn what_is_no_stream_is_summed_alone() {
        let mut look = Look::new(false);
        look.add(b"data: [DONE]\n\n");
        assert_eq!(look.seen().kind, Kind::Plain);
    }
}
