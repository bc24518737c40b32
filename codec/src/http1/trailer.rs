//! The trailer section behind the last chunk: judged byte by byte, then dropped.
//!
//! No trailer field is ever forwarded or merged into the head. A line that is none ends the
//! connection, because it may be the next request in the eyes of another reader. In requests a
//! field that would matter in a head is refused as well; providers send such fields, there they are
//! just dropped.

use super::ChunkError;
use super::bytes::is_token;

/// Bytes of a trailer section. It carries checksums and timings, and is thrown away.
pub const TRAILER_BYTES_MAX: u32 = 8 * 1024;

/// Lines of a trailer section.
pub const TRAILER_FIELDS_MAX: u8 = 32;

/// What happens to a trailer field that would decide framing, routing, identity or content in a
/// head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrailerRule {
    /// The body is refused: for requests.
    RefuseReserved,
    /// It is dropped like every other: for responses.
    DropAll,
}

/// Names that frame a body, choose its target or say who sends it. Not a list of all that RFC 9110
/// keeps out of trailers: what only describes the content is harmless, since it is dropped.
const RESERVED: [&[u8]; 24] = [
    b"te",
    b"host",
    b"cookie",
    b"expect",
    b"api-key",
    b"trailer",
    b"upgrade",
    b"x-api-key",
    b"forwarded",
    b"connection",
    b"set-cookie",
    b"max-forwards",
    b"authorization",
    b"content-range",
    b"content-length",
    b"x-goog-api-key",
    b"x-tollgate-key",
    b"x-forwarded-for",
    b"content-encoding",
    b"proxy-connection",
    b"x-forwarded-host",
    b"transfer-encoding",
    b"x-forwarded-proto",
    b"proxy-authorization",
];

/// The longest of [`RESERVED`].
const RESERVED_BYTES_MAX: usize = 19;

/// Where in the section the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    LineStart,
    Name,
    Value,
    LineFeed,
    LastLineFeed,
}

/// The state of one trailer section.
#[derive(Clone, Debug)]
pub(super) struct Trailer {
    rule: TrailerRule,
    at: At,
    lines: u8,
    bytes: u32,
    /// The name so far in lower case, as far as it can still be a reserved one.
    name: [u8; RESERVED_BYTES_MAX],
    name_len: usize,
}

// === impl Trailer ===

impl Trailer {
    pub(super) const fn new(rule: TrailerRule) -> Self {
        let name = [0; RESERVED_BYTES_MAX];
        Self { rule, at: At::LineStart, lines: 0, bytes: 0, name, name_len: 0 }
    }

    /// Whether no field line has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// Takes bytes up to and with the blank line: how many, or `None` when it has not come yet.
    pub(super) fn take(&mut self, input: &[u8]) -> Result<Option<usize>, ChunkError> {
        for (index, &byte) in input.iter().enumerate() {
            self.bytes += 1;
            if self.bytes > TRAILER_BYTES_MAX {
                return Err(ChunkError::TrailerTooLarge);
            }
            if self.at == At::LastLineFeed {
                return if byte == b'\n' { Ok(Some(index + 1)) } else { Err(ChunkError::LineEnd) };
            }
            self.at = self.next(byte)?;
        }
        Ok(None)
    }

    fn next(&mut self, byte: u8) -> Result<At, ChunkError> {
        match (self.at, byte) {
            (At::LineStart, b'\r') => Ok(At::LastLineFeed),
            (At::LineStart, _) if is_token(byte) => self.open_line(byte),
            (At::Name, b':') => self.close_name(),
            (At::Name, _) if is_token(byte) => {
                self.note_name(byte);
                Ok(At::Name)
            }
            (At::Value, b'\r') => Ok(At::LineFeed),
            (At::Value, b'\t' | b' '..=b'~' | 0x80..) => Ok(At::Value),
            (At::LineFeed | At::LastLineFeed, b'\n') => Ok(At::LineStart),
            (At::LineFeed | At::LastLineFeed, _) | (_, b'\n') => Err(ChunkError::LineEnd),
            (At::LineStart | At::Name | At::Value, _) => Err(ChunkError::TrailerField),
        }
    }

    fn open_line(&mut self, byte: u8) -> Result<At, ChunkError> {
        self.lines += 1;
        if self.lines > TRAILER_FIELDS_MAX {
            return Err(ChunkError::TrailerTooLarge);
        }
        self.name_len = 0;
        self.note_name(byte);
        Ok(At::Name)
    }

    fn note_name(&mut self, byte: u8) {
        if let Some(slot) = self.name.get_mut(self.name_len) {
            *slot = byte.to_ascii_lowercase();
        }
        self.name_len = self.name_len.saturating_add(1);
    }

    fn close_name(&self) -> Result<At, ChunkError> {
        let reserved = self.name.get(..self.name_len).is_some_and(|name| RESERVED.contains(&name));
        match self.rule {
            TrailerRule::RefuseReserved if reserved => Err(ChunkError::TrailerReserved),
            TrailerRule::RefuseReserved | TrailerRule::DropAll => Ok(At::Value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RESERVED, RESERVED_BYTES_MAX};

    #[test]
    fn every_reserved_name_fits_and_is_in_lower_case() {
        assert_eq!(RESERVED.iter().map(|name| name.len()).max(), Some(RESERVED_BYTES_MAX));
        assert!(RESERVED.iter().all(|name| !name.iter().any(u8::is_ascii_uppercase)));
    }
}
