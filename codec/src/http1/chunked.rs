//! The chunked coding, one step at a time.
//!
//! Sizes are hexadecimal digits alone, lines end in CR LF alone, extensions follow their grammar
//! without white space and are dropped, as is the trailer. Every step takes in the bytes it looked
//! at, so nothing has to be shown twice and a size line may be cut anywhere.
//! Bounds: [`CHUNK_LINE_BYTES_MAX`] for one size line, [`CHUNK_EXCESS_MAX`] for framing that
//! outgrows the data it frames, 16 digits for a size; the trailer has its own. Data is not bounded
//! here: the caller counts what it keeps.

use super::TrailerRule;
use super::bytes::is_token;
use super::trailer::Trailer;

/// Bytes of one size line with its extensions, without CR LF. Signatures of 64 digits fit with
/// room.
pub const CHUNK_LINE_BYTES_MAX: u32 = 1024;

/// Bytes by which size lines may outgrow 16 bytes a chunk and twice the data, over a whole body.
/// Tiny chunks with long extensions would otherwise cost a hundred bytes of work for one of data.
pub const CHUNK_EXCESS_MAX: u64 = 16 * 1024;

/// Framing that every chunk may have for nothing.
const CHUNK_ALLOWANCE: u64 = 16;

/// Digits of a size: no more fit a `u64`, and nobody needs leading zeros beyond them.
const SIZE_DIGITS_MAX: u32 = 16;

/// Why a chunked body was refused. Its connection cannot be used any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChunkError {
    /// No digit where a size belongs, something else than digits in it, or too many of them.
    Size,
    /// An extension that does not follow the grammar.
    Extension,
    /// A size line longer than its bound.
    LineTooLong,
    /// More framing than data, over the whole body.
    Excess,
    /// CR or LF alone, or something else where CR LF belongs.
    LineEnd,
    /// A trailer line that is not a field.
    TrailerField,
    /// A trailer field that belongs in a head.
    TrailerReserved,
    /// A trailer section over its bounds.
    TrailerTooLarge,
}

impl ChunkError {
    /// The fault in a few words, without anything of the input.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Size => "malformed chunk size",
            Self::Extension => "malformed chunk extension",
            Self::LineTooLong => "chunk size line too long",
            Self::Excess => "too much chunk framing for its data",
            Self::LineEnd => "chunk line not ended by CR LF",
            Self::TrailerField => "malformed trailer field",
            Self::TrailerReserved => "field not allowed in a trailer",
            Self::TrailerTooLarge => "trailer section too large",
        }
    }
}

impl core::fmt::Display for ChunkError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(self.text())
    }
}

impl core::error::Error for ChunkError {}

/// What the next bytes of a body are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyStep {
    /// `input[start..end]` is body, what lies before it was framing; go on with `input[end..]`.
    Data {
        /// Where the body bytes start.
        start: usize,
        /// Behind the last of them.
        end: usize,
    },
    /// All of the input was framing, or there was none.
    NeedMore,
    /// The body is complete; `input[consumed..]` is not part of it.
    End {
        /// Framing that was still taken.
        consumed: usize,
    },
}

/// Outcome of [`Chunked::compact`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// Where the decoded body ends so far. Once finished, pipelined bytes lie from here to the
    /// buffer's end; until then the buffer ends here and the next read goes behind it.
    pub decoded_end: usize,
    /// Whether the body is complete.
    pub finished: bool,
}

/// A body that [`Chunked::compact`] cannot follow any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbled {
    /// Where the body ends that was decoded before it, and with it the buffer.
    pub decoded_end: usize,
    /// What is wrong with the framing.
    pub error: ChunkError,
}

impl From<Garbled> for ChunkError {
    fn from(garbled: Garbled) -> ChunkError {
        garbled.error
    }
}

/// The state of one chunked body.
#[derive(Clone, Debug)]
pub struct Chunked {
    at: At,
    /// Of the size while it is read, then bytes of data still to come.
    left: u64,
    /// Bytes of the size line so far, its digits first.
    line: u32,
    excess: u64,
    plain: bool,
    trailer: Trailer,
}

/// Where the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    SizeStart,
    Size,
    ExtensionNameStart,
    ExtensionName,
    ExtensionValueStart,
    ExtensionValue,
    Quoted,
    QuotedPair,
    QuotedEnd,
    SizeLineFeed,
    Data,
    DataCarriageReturn,
    DataLineFeed,
    Trailer,
    End,
}

// === impl Chunked ===

impl Chunked {
    /// Before the first size line.
    #[must_use]
    pub const fn new(rule: TrailerRule) -> Self {
        Self {
            at: At::SizeStart,
            left: 0,
            line: 0,
            excess: 0,
            plain: true,
            trailer: Trailer::new(rule),
        }
    }

    /// Whether the body is complete.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.at == At::End
    }

    /// Whether the bytes so far held neither extension nor trailer, so that they may be forwarded
    /// as they are.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// Looks at the next bytes of the body.
    ///
    /// # Errors
    /// The first fault; after it the decoder is not to be used.
    pub fn step(&mut self, input: &[u8]) -> Result<BodyStep, ChunkError> {
        let mut taken = 0;
        loop {
            let rest = input.get(taken..).unwrap_or_default();
            match self.at {
                At::End => return Ok(BodyStep::End { consumed: taken }),
                At::Data => {
                    if rest.is_empty() {
                        return Ok(BodyStep::NeedMore);
                    }
                    return Ok(self.data(taken, rest.len()));
                }
                At::Trailer => {
                    let end = self.trailer.take(rest)?;
                    self.plain &= self.trailer.is_empty();
                    let Some(count) = end else { return Ok(BodyStep::NeedMore) };
                    self.at = At::End;
                    taken += count;
                }
                _ => {
                    let Some(&byte) = rest.first() else { return Ok(BodyStep::NeedMore) };
                    self.at = self.framing(byte)?;
                    taken += 1;
                }
            }
        }
    }

    /// Decodes the bytes at `buf[from..]` in place: their data moves together at `from`, the
    /// framing goes. Call again after each read with `from` where the last call said the body ends.
    ///
    /// # Errors
    /// The first fault; the buffer then holds whatever was moved so far.
    pub fn compact(&mut self, buf: &mut Vec<u8>, from: usize) -> Result<Compacted, Garbled> {
        let from = from.min(buf.len());
        let (mut write, mut read) = (from, from);
        loop {
            let step = self.step(buf.get(read..).unwrap_or_default()).map_err(|error| {
                buf.truncate(write);
                Garbled { decoded_end: write, error }
            })?;
            match step {
                BodyStep::Data { start, end } => {
                    let (start, end) = (read + start, read + end);
                    if write != start {
                        buf.copy_within(start..end, write);
                    }
                    write += end - start;
                    read = end;
                }
                BodyStep::NeedMore => {
                    buf.truncate(write);
                    return Ok(Compacted { decoded_end: write, finished: false });
                }
                BodyStep::End { consumed } => {
                    // Pipelined bytes follow the body directly.
                    let surplus = (read + consumed)..buf.len();
                    let len = surplus.len();
                    buf.copy_within(surplus, write);
                    buf.truncate(write + len);
                    return Ok(Compacted { decoded_end: write, finished: true });
                }
            }
        }
    }

    fn data(&mut self, start: usize, available: usize) -> BodyStep {
        let count = usize::try_from(self.left).map_or(available, |left| left.min(available));
        self.left -= count as u64;
        if self.left == 0 {
            self.at = At::DataCarriageReturn;
        }
        BodyStep::Data { start, end: start + count }
    }

    fn framing(&mut self, byte: u8) -> Result<At, ChunkError> {
        match self.at {
            At::DataCarriageReturn => expect(byte, b'\r', At::DataLineFeed),
            At::DataLineFeed => expect(byte, b'\n', At::SizeStart),
            At::SizeLineFeed => {
                expect(byte, b'\n', At::Data)?;
                self.size_line_end()
            }
            _ => {
                if byte == b'\n' {
                    return Err(ChunkError::LineEnd);
                }
                self.line += u32::from(byte != b'\r');
                if self.line > CHUNK_LINE_BYTES_MAX {
                    return Err(ChunkError::LineTooLong);
                }
                self.size_line(byte)
            }
        }
    }

    fn size_line(&mut self, byte: u8) -> Result<At, ChunkError> {
        match (self.at, byte) {
            (At::SizeStart | At::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.digit(byte),
            (At::Size, b'\r') => Ok(At::SizeLineFeed),
            (At::Size, b';') => {
                self.plain = false;
                Ok(At::ExtensionNameStart)
            }
            (At::SizeStart | At::Size, _) => Err(ChunkError::Size),
            (At::ExtensionName | At::ExtensionValue | At::QuotedEnd, b'\r') => Ok(At::SizeLineFeed),
            (At::ExtensionName | At::ExtensionValue | At::QuotedEnd, b';') => {
                Ok(At::ExtensionNameStart)
            }
            (At::ExtensionName, b'=') => Ok(At::ExtensionValueStart),
            (At::ExtensionNameStart | At::ExtensionName, _) if is_token(byte) => {
                Ok(At::ExtensionName)
            }
            (At::ExtensionValueStart, b'"') => Ok(At::Quoted),
            (At::ExtensionValueStart | At::ExtensionValue, _) if is_token(byte) => {
                Ok(At::ExtensionValue)
            }
            (At::Quoted, b'"') => Ok(At::QuotedEnd),
            (At::Quoted, b'\\') => Ok(At::QuotedPair),
            (At::Quoted | At::QuotedPair, b'\t' | b' '..=b'~' | 0x80..) => Ok(At::Quoted),
            _ => Err(ChunkError::Extension),
        }
    }

    fn digit(&mut self, byte: u8) -> Result<At, ChunkError> {
        if self.line > SIZE_DIGITS_MAX {
            return Err(ChunkError::Size);
        }
        let value = match byte {
            b'0'..=b'9' => byte - b'0',
            _ => (byte | 0x20) - b'a' + 10,
        };
        // At most sixteen digits: nothing is shifted out.
        self.left = (self.left << 4) | u64::from(value);
        Ok(At::Size)
    }

    fn size_line_end(&mut self) -> Result<At, ChunkError> {
        let allowance = self.left.saturating_mul(2).saturating_add(CHUNK_ALLOWANCE);
        self.excess = (self.excess + u64::from(self.line)).saturating_sub(allowance);
        if self.excess > CHUNK_EXCESS_MAX {
            return Err(ChunkError::Excess);
        }
        self.line = 0;
        Ok(if self.left == 0 { At::Trailer } else { At::Data })
    }
}

fn expect(byte: u8, wanted: u8, then: At) -> Result<At, ChunkError> {
    if byte == wanted { Ok(then) } else { Err(ChunkError::LineEnd) }
}

#[cfg(test)]
mod tests;
