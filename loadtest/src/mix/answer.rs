//! Answers as they arrive on a client's connection, one after the other. Keeps a head that is not
//! whole and nothing of the bodies. Bound: `HEAD_BYTES_MAX`.

use super::content::{Look, Seen};
use crate::wire::{BodyReader, Framing, Head};

/// Largest head that is waited for.
const HEAD_BYTES_MAX: usize = 2 << 20;

/// What bytes made of the present answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// All bytes were taken, the answer is not over.
    More,
    /// It is over, after so many of the bytes given.
    Over { status: u16, last: bool, used: usize, seen: Option<Seen> },
    /// It cannot be framed.
    Invalid,
}

/// What the end of the connection makes of the present answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtEnd {
    /// No byte of it had come.
    Nothing,
    /// It ends by that.
    Over { status: u16, seen: Option<Seen> },
    /// It is cut.
    Cut,
}

/// Reads the answers of one connection.
#[derive(Debug, Default)]
pub(super) struct AnswerReader {
    held: Vec<u8>,
    present: Option<Present>,
    /// Content is looked at, not only framed.
    pub(super) looks: bool,
}

#[derive(Debug)]
struct Present {
    status: u16,
    /// The connection ends behind it.
    last: bool,
    body: BodyReader,
    look: Option<Look>,
}

impl AnswerReader {
    /// Takes bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Progress {
        if self.present.is_some() {
            return self.body(bytes, 0);
        }
        let before = self.held.len();
        if before == 0 {
            return match self.head(bytes) {
                Ok(at) if self.present.is_some() => self.body(&bytes[at..], at),
                Ok(at) => {
                    self.held.extend_from_slice(&bytes[at..]);
                    Progress::More
                }
                Err(()) => Progress::Invalid,
            };
        }
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(bytes);
        match self.head(&held) {
            // the head ends within the fresh bytes: only there can a body begin
            Ok(at) if self.present.is_some() => self.body(&held[at..], at - before),
            Ok(at) if held.len() - at > HEAD_BYTES_MAX => Progress::Invalid,
            Ok(at) => {
                held.drain(..at);
                self.held = held;
                Progress::More
            }
            Err(()) => Progress::Invalid,
        }
    }

    /// The connection has ended in order (`reset` if not).
    pub(super) fn end(&mut self, reset: bool) -> AtEnd {
        match &self.present {
            Some(present) if present.body.ends_with_close() && !reset => {
                AtEnd::Over { status: present.status, seen: present.seen() }
            }
            Some(_) => AtEnd::Cut,
            None if self.held.is_empty() => AtEnd::Nothing,
            None => AtEnd::Cut,
        }
    }

    /// Skips interim heads; on the final one says where its body begins.
    fn head(&mut self, bytes: &[u8]) -> Result<usize, ()> {
        let mut at = 0;
        while let Some(head) = Head::find(&bytes[at..]) {
            let status = head.status().ok_or(())?;
            at += head.len();
            if status < 200 && status != 101 {
                continue;
            }
            let framing = Framing::of_answer(&head, status).map_err(|_| ())?;
            let last = framing == Framing::UntilClose
                || head.start_line().starts_with(b"HTTP/1.0")
                || head.field("connection").is_some_and(|v| v.eq_ignore_ascii_case(b"close"));
            let look = self.looks.then(|| Look::new(streams(&head)));
            self.present = Some(Present { status, last, body: BodyReader::new(framing), look });
            break;
        }
        Ok(at)
    }

    fn body(&mut self, bytes: &[u8], before: usize) -> Progress {
        let Some(present) = &mut self.present else { return Progress::More };
        let Present { body, look, .. } = present;
        let framed = match look {
            Some(look) => body.feed(bytes, |piece| look.add(piece)),
            None => body.feed(bytes, |_| {}),
        };
        let Ok(used) = framed else { return Progress::Invalid };
        if !present.body.done() {
            return Progress::More;
        }
        let Present { status, last, .. } = *present;
        let over = Progress::Over { status, last, used: before + used, seen: present.seen() };
        self.present = None;
        over
    }
}

impl Present {
    fn seen(&self) -> Option<Seen> {
        self.look.as_ref().map(Look::seen)
    }
}

fn streams(head: &Head<'_>) -> bool {
    const STREAM: &[u8] = b"text/event-stream";
    head.field("content-type")
        .and_then(|value| value.get(..STREAM.len()))
        .is_some_and(|value| value.eq_ignore_ascii_case(STREAM))
}

#[cfg(test)]
mod tests {
    use super::{AnswerReader, AtEnd, Progress};

    #[test]
    fn answers_are_read_alike_in_any_pieces() {
        let text = [
            "HTTP/1.1 103 Early\r\nA: b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            "HTTP/1.1 429 No\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
            "1\r\nx\r\n0\r\n\r\n",
        ]
        .concat()
        .into_bytes();
        for piece in 1..=text.len() {
            let (mut reader, mut seen) = (AnswerReader::default(), Vec::new());
            for mut part in text.chunks(piece) {
                while !part.is_empty() {
                    match reader.feed(part) {
                        Progress::More => break,
                        Progress::Over { status, last, used, .. } => {
                            seen.push((status, last));
                            part = &part[used..];
                        }
                        Progress::Invalid => panic!("{piece}"),
                    }
                }
            }
            assert_eq!(seen, [(200, false), (429, true)], "{piece}");
            assert_eq!(reader.end(false), AtEnd::Nothing);
        }
    }

    #[test]
    fn the_end_of_a_connection_ends_or_cuts() {
        for (text, reset, end) in [
            ("", false, AtEnd::Nothing),
            ("HTTP/1.1 2", false, AtEnd::Cut),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", false, AtEnd::Cut),
            ("HTTP/1.1 200 OK\r\n\r\nab", false, AtEnd::Over { status: 200, seen: None }),
            ("HTTP/1.1 200 OK\r\n\r\nab", true, AtEnd::Cut),
        ] {
            let mut reader = AnswerReader::default();
            if !text.is_empty() {
                assert_eq!(reader.feed(text.as_bytes()), Progress::More);
            }
            assert_eq!(reader.end(reset), end, "{text:?}");
        }
        assert_eq!(
            AnswerReader::default().feed(b"HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\n"),
            Progress::Invalid
        );
    }
}
