//! Where a body ends: by length, by chunks or by the end of the connection. Strict about what it
//! accepts, so that a relay's framing mistakes show as faults here. Decoded bytes are handed out,
//! never kept.

use super::head::{Head, number};

/// How the end of a body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// There is none.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunks up to the empty one, then trailers.
    Chunked,
    /// All bytes up to the end of the connection.
    UntilClose,
}

/// Why a message cannot be framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The start line or a field line has no shape.
    Line,
    /// Length and chunks, two lengths, or a length that is no number.
    Length,
    /// A transfer coding other than chunked alone.
    Coding,
    /// A chunk's size line, its end or the trailers.
    Chunk,
}

impl Framing {
    /// The framing of a request.
    pub(crate) fn of_request(head: &Head<'_>) -> Result<Framing, Fault> {
        Ok(declared(head)?.unwrap_or(Framing::None))
    }

    /// The framing of an answer to a request that was not HEAD.
    pub(crate) fn of_answer(head: &Head<'_>, status: u16) -> Result<Framing, Fault> {
        let declared = declared(head)?;
        if status < 200 || status == 204 || status == 304 {
            return Ok(Framing::None);
        }
        Ok(declared.unwrap_or(Framing::UntilClose))
    }
}

fn declared(head: &Head<'_>) -> Result<Option<Framing>, Fault> {
    let mut framing = None;
    for field in head.fields() {
        let (name, value) = field.ok_or(Fault::Line)?;
        // the length of the name spares two comparisons for almost every field
        let found = match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                Framing::Length(number(value).ok_or(Fault::Length)?)
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Fault::Coding);
                }
                Framing::Chunked
            }
            _ => continue,
        };
        if framing.replace(found).is_some() {
            return Err(Fault::Length);
        }
    }
    Ok(framing)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Left(u64),
    UntilClose,
    Size { size: u64, digits: u8 },
    Extension(u64),
    SizeEnd(u64),
    Data(u64),
    DataCr,
    DataLf,
    TrailerStart,
    Trailer,
    TrailerEnd,
    LastLf,
    Done,
}

/// Hex digits of a chunk size: 16 would overflow the sum of sizes.
const SIZE_DIGITS_MAX: u8 = 15;

/// Reads one body piece by piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyReader {
    state: State,
}

impl BodyReader {
    /// At the first byte of the body.
    pub(crate) fn new(framing: Framing) -> BodyReader {
        let state = match framing {
            Framing::None | Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Left(length),
            Framing::Chunked => State::Size { size: 0, digits: 0 },
            Framing::UntilClose => State::UntilClose,
        };
        BodyReader { state }
    }

    /// Whether the body is over.
    pub(crate) fn done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the end of the connection would end the body well.
    pub(crate) fn ends_with_close(&self) -> bool {
        matches!(self.state, State::Done | State::UntilClose)
    }

    /// Takes bytes of the body from `bytes`, hands the content to `content` and says how many were
    /// used: fewer than all only if the body is over.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        mut content: impl FnMut(&[u8]),
    ) -> Result<usize, Fault> {
        let mut at = 0;
        while at < bytes.len() && self.state != State::Done {
            let rest = &bytes[at..];
            at += match self.state {
                State::Left(left) => {
                    let (taken, left) = take(rest, left, &mut content);
                    self.state = if left == 0 { State::Done } else { State::Left(left) };
                    taken
                }
                State::Data(left) => {
                    let (taken, left) = take(rest, left, &mut content);
                    self.state = if left == 0 { State::DataCr } else { State::Data(left) };
                    taken
                }
                State::UntilClose => {
                    content(rest);
                    rest.len()
                }
                state => {
                    self.state = step(state, rest[0])?;
                    1
                }
            };
        }
        Ok(at)
    }
}

fn take(rest: &[u8], left: u64, content: &mut impl FnMut(&[u8])) -> (usize, u64) {
    let taken = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
    content(&rest[..taken]);
    (taken, left - taken as u64)
}

/// One byte of chunk framing.
fn step(state: State, byte: u8) -> Result<State, Fault> {
    Ok(match (state, byte) {
        (State::Size { size, digits }, digit) if digit.is_ascii_hexdigit() => {
            if digits == SIZE_DIGITS_MAX {
                return Err(Fault::Chunk);
            }
            let value = char::from(digit).to_digit(16).map_or(0, u64::from);
            State::Size { size: size * 16 + value, digits: digits + 1 }
        }
        (State::Size { size, digits: 1.. }, b'\r') => State::SizeEnd(size),
        (State::Size { size, digits: 1.. }, b';') => State::Extension(size),
        (State::Extension(size), b'\r') => State::SizeEnd(size),
        (State::Extension(size), other) if other != b'\n' => State::Extension(size),
        (State::SizeEnd(0), b'\n') => State::TrailerStart,
        (State::SizeEnd(size), b'\n') => State::Data(size),
        (State::DataCr, b'\r') => State::DataLf,
        (State::DataLf, b'\n') => State::Size { size: 0, digits: 0 },
        (State::TrailerStart, b'\r') => State::LastLf,
        (State::LastLf, b'\n') => State::Done,
        (State::Trailer, b'\r') => State::TrailerEnd,
        (State::TrailerStart | State::Trailer, other) if other != b'\n' => State::Trailer,
        (State::TrailerEnd, b'\n') => State::TrailerStart,
        _ => return Err(Fault::Chunk),
    })
}

#[cfg(test)]
mod tests {
    use super::{BodyReader, Fault, Framing};
    use crate::wire::Head;

    fn read(framing: Framing, bytes: &[u8], piece: usize) -> Result<(Vec<u8>, usize, bool), Fault> {
        let mut reader = BodyReader::new(framing);
        let (mut content, mut used) = (Vec::new(), 0);
        for part in bytes.chunks(piece) {
            used += reader.feed(part, |piece| content.extend_from_slice(piece))?;
        }
        Ok((content, used, reader.done()))
    }

    #[test]
    fn chunks_are_read_alike_in_any_pieces() {
        let bytes = b"5;a=b\r\nhello\r\n06\r\n world\r\n0\r\nx-sum: 1\r\n\r\nNEXT";
        for piece in 1..=bytes.len() {
            let (content, used, done) = read(Framing::Chunked, bytes, piece).unwrap();
            assert_eq!(content, b"hello world", "{piece}");
            assert_eq!((used, done), (bytes.len() - 4, true), "{piece}");
        }
    }

    #[test]
    fn broken_chunks_are_faults() {
        for bad in [
            "zz\r\n",
            "\r\n",
            "5\nhello",
            "5;x\nhello",
            "1\r\nab",
            "-1\r\n",
            " 1\r\n",
            "0\r\nx\n",
            "1234567890123456\r\n",
            "0x1\r\n",
        ] {
            assert_eq!(read(Framing::Chunked, bad.as_bytes(), 1), Err(Fault::Chunk), "{bad:?}");
        }
    }

    #[test]
    fn lengths_end_where_they_say() {
        let (content, used, done) = read(Framing::Length(3), b"abcdef", 2).unwrap();
        assert_eq!((content.as_slice(), used, done), (&b"abc"[..], 3, true));
        assert!(!read(Framing::Length(9), b"abcdef", 2).unwrap().2);
        assert!(read(Framing::None, b"", 1).unwrap().2);
    }

    #[test]
    fn framing_is_strict() {
        let of = |fields: &str| {
            let text = format!("POST / HTTP/1.1\r\n{fields}\r\n");
            Framing::of_request(&Head::find(text.as_bytes()).unwrap())
        };
        assert_eq!(of("Content-Length: 5\r\n"), Ok(Framing::Length(5)));
        assert_eq!(of("transfer-encoding: Chunked\r\n"), Ok(Framing::Chunked));
        assert_eq!(of("a: b\r\n"), Ok(Framing::None));
        assert_eq!(of("content-length: 1\r\ncontent-length: 1\r\n"), Err(Fault::Length));
        assert_eq!(of("content-length: 1\r\ntransfer-encoding: chunked\r\n"), Err(Fault::Length));
        assert_eq!(of("content-length: +1\r\n"), Err(Fault::Length));
        assert_eq!(of("transfer-encoding: gzip, chunked\r\n"), Err(Fault::Coding));
        assert_eq!(of("content-length : 1\r\n"), Err(Fault::Line));
    }
}
