//! What the reply scan found, and how a value at a known place becomes a fact.

use super::paths::{Leaf, TextPlace};
use crate::usage::{ReportedUsage, UsageFlags};

/// Bytes of a token that are kept: keys of the table, counts, short codes. The longest key has
/// 27 bytes, a `u64` 20; what is longer is cut and no longer equal to anything.
pub const TOKEN_MAX: usize = 48;

/// A short text of an answer, escapes as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortText {
    bytes: [u8; TOKEN_MAX],
    length: usize,
    cut: bool,
}

/// The token in progress.
pub(super) type Token = ShortText;

/// What an answer says about an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorFacts {
    /// `error.code`, text or number.
    pub code: Option<ShortText>,
    /// `error.type`.
    pub kind: Option<ShortText>,
    /// `error.status`.
    pub status: Option<ShortText>,
}

/// What the reply scan found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyFacts {
    /// The counts, as reported.
    pub usage: ReportedUsage,
    /// An `error` that is an object or a text.
    pub error: Option<ErrorFacts>,
    /// The answer says something: text, a call, a refusal.
    pub content: bool,
    /// The last `finish_reason`, `stop_reason` or `finishReason`.
    pub finish: Option<ShortText>,
    /// `object`.
    pub object: Option<ShortText>,
    /// `type`.
    pub kind: Option<ShortText>,
    /// `status` of a response.
    pub status: Option<ShortText>,
    /// The document was closed.
    pub complete: bool,
    /// It could not be followed; what stands here is from before that.
    pub malformed: bool,
}

impl ShortText {
    pub(super) fn new() -> Self {
        Self { bytes: [0; TOKEN_MAX], length: 0, cut: false }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = self.bytes.get_mut(self.length..).unwrap_or_default();
        let taken = bytes.len().min(room.len());
        if let (Some(place), Some(bytes)) = (room.get_mut(..taken), bytes.get(..taken)) {
            place.copy_from_slice(bytes);
        }
        self.length += taken;
        self.cut |= taken < bytes.len();
    }

    /// The bytes, if all of them are here.
    pub(super) fn whole(&self) -> Option<&[u8]> {
        if self.cut { None } else { Some(self.as_bytes()) }
    }

    /// The bytes that were kept.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Whether more was said than is kept.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Whether it is exactly this text.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        self.whole() == Some(text.as_bytes())
    }
}

impl ReplyFacts {
    /// A container opens at a known place.
    pub(super) fn open(&mut self, leaf: Leaf, object: bool) {
        match leaf {
            Leaf::Error if object => self.begin_error(),
            Leaf::Content => self.content |= object,
            Leaf::Usage(_) => self.usage.flags.insert(UsageFlags::NOT_A_NUMBER),
            Leaf::Error | Leaf::Text(_) | Leaf::Pass => {}
        }
    }

    /// A string at a known place.
    pub(super) fn text(&mut self, leaf: Leaf, text: &ShortText) {
        match leaf {
            Leaf::Error => self.begin_error(),
            Leaf::Content => self.content |= text.length > 0,
            Leaf::Usage(_) => self.usage.flags.insert(UsageFlags::NOT_A_NUMBER),
            Leaf::Text(place) => self.place(place, *text),
            Leaf::Pass => {}
        }
    }

    /// A number or literal at a known place.
    pub(super) fn scalar(&mut self, leaf: Leaf, scalar: &ShortText) {
        if scalar.is("null") {
            return;
        }
        match leaf {
            Leaf::Usage(field) => match scalar.whole() {
                Some(number) => self.usage.read(field, number),
                None => self.usage.flags.insert(UsageFlags::NOT_A_NUMBER),
            },
            Leaf::Text(TextPlace::ErrorCode) => self.place(TextPlace::ErrorCode, *scalar),
            Leaf::Error | Leaf::Content | Leaf::Text(_) | Leaf::Pass => {}
        }
    }

    /// The first error counts; later ones keep what it said.
    fn begin_error(&mut self) {
        self.error.get_or_insert_default();
    }

    fn place(&mut self, place: TextPlace, text: ShortText) {
        match place {
            TextPlace::Finish => self.finish = Some(text),
            TextPlace::Object => self.object = Some(text),
            TextPlace::Kind => self.kind = Some(text),
            TextPlace::Status => self.status = Some(text),
            TextPlace::ErrorCode => self.error.get_or_insert_default().code = Some(text),
            TextPlace::ErrorKind => self.error.get_or_insert_default().kind = Some(text),
            TextPlace::ErrorStatus => self.error.get_or_insert_default().status = Some(text),
        }
    }
}
