//! One interface over the four framings of a body.
//!
//! Says which of the arriving bytes are body, when the body is complete and whether an end of the
//! connection is a clean one. Deliberately does not keep or copy data, and does not bound it: the
//! caller counts against its own cap.

use super::{BodyStep, ChunkError, Chunked, Framing, TrailerRule};

/// Why a body cannot be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyError {
    /// The chunked coding is broken.
    Chunk(ChunkError),
    /// The connection ended so many bytes before the announced length.
    CutInLength {
        /// Bytes that never came.
        missing: u64,
    },
    /// The connection ended before the last chunk and its trailer.
    CutInChunks,
}

impl BodyError {
    /// The fault in a few words, without anything of the input.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Chunk(error) => error.text(),
            Self::CutInLength { .. } => "connection ended before the announced length",
            Self::CutInChunks => "connection ended inside a chunked body",
        }
    }
}

impl core::fmt::Display for BodyError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(self.text())
    }
}

impl core::error::Error for BodyError {}

impl From<ChunkError> for BodyError {
    fn from(error: ChunkError) -> Self {
        Self::Chunk(error)
    }
}

/// How far one body has come.
#[derive(Clone, Debug)]
pub enum BodyProgress {
    /// A body of known length: bytes still to come. A head without body is one of length zero.
    Length {
        /// Bytes still to come.
        left: u64,
    },
    /// A chunked body.
    Chunked(Chunked),
    /// A body that the end of the connection ends.
    UntilClose,
}

impl BodyProgress {
    /// Before the first body byte.
    #[must_use]
    pub fn new(framing: Framing, rule: TrailerRule) -> Self {
        match framing {
            Framing::None => Self::Length { left: 0 },
            Framing::Length(left) => Self::Length { left },
            Framing::Chunked => Self::Chunked(Chunked::new(rule)),
            Framing::UntilClose => Self::UntilClose,
        }
    }

    /// Looks at the next bytes of the connection. Call until it answers other than data; bytes
    /// behind the end are the caller's surplus.
    ///
    /// # Errors
    /// When the chunked coding is broken.
    pub fn step(&mut self, input: &[u8]) -> Result<BodyStep, BodyError> {
        match self {
            Self::Length { left: 0 } => Ok(BodyStep::End { consumed: 0 }),
            _ if input.is_empty() && !self.is_finished() => Ok(BodyStep::NeedMore),
            Self::Length { left } => {
                let end = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                *left -= end as u64;
                Ok(BodyStep::Data { start: 0, end })
            }
            Self::Chunked(chunked) => Ok(chunked.step(input)?),
            Self::UntilClose => Ok(BodyStep::Data { start: 0, end: input.len() }),
        }
    }

    /// Whether the body is complete without the connection ending.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match self {
            Self::Length { left } => *left == 0,
            Self::Chunked(chunked) => chunked.is_finished(),
            Self::UntilClose => false,
        }
    }

    /// The connection has ended here.
    ///
    /// # Errors
    /// Unless the body was complete or is one that the connection's end completes.
    pub fn end_of_connection(&self) -> Result<(), BodyError> {
        match self {
            Self::Length { left: 0 } | Self::UntilClose => Ok(()),
            Self::Length { left } => Err(BodyError::CutInLength { missing: *left }),
            Self::Chunked(chunked) if chunked.is_finished() => Ok(()),
            Self::Chunked(_) => Err(BodyError::CutInChunks),
        }
    }
}
