//! A piece of a head, as an offset and a length.
//!
//! Two `u16`, because a head ends within 32 KiB. Deliberately holds no pointer: the buffer travels
//! to the kernel and back between two uses. Reading a span out of the wrong buffer yields an empty
//! slice, never a panic.

/// Where a piece of a head lies in its buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: u16,
    len: u16,
}

impl Span {
    pub(super) const EMPTY: Self = Self { start: 0, len: 0 };

    /// `None` when the piece lies beyond what a head may be.
    pub(super) fn new(start: usize, len: usize) -> Option<Self> {
        Some(Self { start: u16::try_from(start).ok()?, len: u16::try_from(len).ok()? })
    }

    /// Where `part` lies in the buffer at address `base`, for a part that a parser has cut out of
    /// the head there. A head ends within 32 KiB, so nothing is cut off.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a head is bounded far below u16::MAX")]
    pub(super) fn within(base: usize, part: &[u8]) -> Self {
        let start = part.as_ptr().addr().wrapping_sub(base);
        debug_assert!(start.saturating_add(part.len()) <= usize::from(u16::MAX));
        Self { start: start as u16, len: part.len() as u16 }
    }

    /// The bytes of this piece.
    #[inline]
    #[must_use]
    pub fn of(self, buf: &[u8]) -> &[u8] {
        buf.get(self.start()..self.end()).unwrap_or_default()
    }

    /// Offset of the first byte.
    #[inline]
    #[must_use]
    pub fn start(self) -> usize {
        usize::from(self.start)
    }

    /// Offset behind the last byte.
    #[inline]
    #[must_use]
    pub fn end(self) -> usize {
        usize::from(self.start) + usize::from(self.len)
    }

    /// Number of bytes.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        usize::from(self.len)
    }

    /// Whether there is no byte in it.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}
