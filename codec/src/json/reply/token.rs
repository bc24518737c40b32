//! The token in progress, for tokens that arrive in more than one piece, and the short texts
//! that are kept of an answer. Both have a fixed place and forget what is longer.

/// Bytes of a token that are kept: keys of the table, counts, short codes. The longest key has
/// 27 bytes, a `u64` 20; what is longer is cut and no longer equal to anything.
pub(super) const TOKEN_MAX: usize = 48;

/// Bytes of a short text that are kept: reasons to finish and codes of errors. The longest code
/// of a provider we know has 30; a scan, which is part of every connection, holds four of them.
pub const SHORT_TEXT_MAX: usize = 36;

/// A short text of an answer, escapes as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortText {
    bytes: [u8; SHORT_TEXT_MAX],
    length: u8,
    cut: bool,
}

impl ShortText {
    /// As much of `text` as is kept; `cut` if it is already less than was said.
    pub(super) fn of(text: &[u8], cut: bool) -> Self {
        let mut bytes = [0; SHORT_TEXT_MAX];
        let kept = text.get(..SHORT_TEXT_MAX).unwrap_or(text);
        if let Some(place) = bytes.get_mut(..kept.len()) {
            place.copy_from_slice(kept);
        }
        let length = u8::try_from(kept.len()).unwrap_or(u8::MAX);
        Self { bytes, length, cut: cut || kept.len() < text.len() }
    }

    /// The bytes that were kept.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// Whether more was said than is kept.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Whether it is exactly this text.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        !self.cut && self.as_bytes() == text.as_bytes()
    }
}

/// The beginning of a token of which the end has not arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    bytes: [u8; TOKEN_MAX],
    length: u8,
    cut: bool,
}

impl Token {
    pub(super) fn new() -> Self {
        Self { bytes: [0; TOKEN_MAX], length: 0, cut: false }
    }

    /// The next token begins; what the bytes hold no longer counts.
    pub(super) fn clear(&mut self) {
        self.length = 0;
        self.cut = false;
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = self.bytes.get_mut(usize::from(self.length)..).unwrap_or_default();
        let taken = bytes.len().min(room.len());
        if let (Some(place), Some(bytes)) = (room.get_mut(..taken), bytes.get(..taken)) {
            place.copy_from_slice(bytes);
        }
        self.length += u8::try_from(taken).unwrap_or_default();
        self.cut |= taken < bytes.len();
    }

    /// The bytes that were kept, and whether there were more.
    pub(super) fn kept(&self) -> (&[u8], bool) {
        (self.bytes.get(..usize::from(self.length)).unwrap_or_default(), self.cut)
    }
}
