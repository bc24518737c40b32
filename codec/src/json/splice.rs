//! A rewrite of a body as a list of borrowed pieces: everything that is not replaced goes on as
//! it came, byte for byte, and nothing is copied.
//!
//! Edits name spans of the scanned body and stand in the order of the body; they never overlap.
//! It knows nothing of JSON beyond the two insertions below: a replacement is bytes that the
//! caller has already written as JSON. Bound: [`EDITS_MAX`] edits, so [`SEGMENTS_MAX`] pieces.

use super::span::{RequestSpans, Span};

/// Edits of one body: the model, the usage option, a cap, and one to spare.
pub const EDITS_MAX: usize = 4;

/// Pieces of an edited body: a replacement each and what lies before, between and after.
pub const SEGMENTS_MAX: usize = 2 * EDITS_MAX + 1;

const USAGE_MEMBER: &[u8] = br#""stream_options":{"include_usage":true},"#;
const USAGE_OBJECT: &[u8] = br#"{"include_usage":true}"#;
const USAGE_FIRST: &[u8] = br#""include_usage":true,"#;
const TRUE: &[u8] = b"true";

/// Why an edit was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpliceError {
    /// More than [`EDITS_MAX`] edits.
    Full,
    /// It overlaps an edit already taken, or lies outside the body.
    Misplaced,
}

#[derive(Clone, Copy, Debug, Default)]
struct Edit<'e> {
    span: Span,
    bytes: &'e [u8],
}

/// Edits of one body, in its order.
#[derive(Clone, Copy, Debug)]
pub struct Edits<'e> {
    body: &'e [u8],
    edits: [Edit<'e>; EDITS_MAX],
    count: usize,
}

/// An edited body as pieces in order.
#[derive(Clone, Copy, Debug)]
pub struct Segments<'e> {
    pieces: [&'e [u8]; SEGMENTS_MAX],
    count: usize,
    total: usize,
}

impl<'e> Edits<'e> {
    /// No edits yet.
    #[must_use]
    pub fn new(body: &'e [u8]) -> Self {
        Self { body, edits: [Edit::default(); EDITS_MAX], count: 0 }
    }

    /// Puts `bytes` in the place of `span`; an empty span inserts.
    ///
    /// # Errors
    ///
    /// If there are too many edits, or this one overlaps another or the body's end.
    pub fn replace(&mut self, span: Span, bytes: &'e [u8]) -> Result<(), SpliceError> {
        if span.start > span.end || span.end > self.body.len() {
            return Err(SpliceError::Misplaced);
        }
        let taken = self.edits.get(..self.count).unwrap_or_default();
        let at = taken.iter().take_while(|edit| edit.span.start <= span.start).count();
        let before = at.checked_sub(1).and_then(|index| taken.get(index));
        let overlaps = before.is_some_and(|edit| edit.span.end > span.start)
            || taken.get(at).is_some_and(|edit| span.end > edit.span.start);
        if overlaps {
            return Err(SpliceError::Misplaced);
        }
        let Some(room) = self.edits.get_mut(at..=self.count) else { return Err(SpliceError::Full) };
        room.rotate_right(1);
        if let Some(place) = room.first_mut() {
            *place = Edit { span, bytes };
        }
        self.count += 1;
        Ok(())
    }

    /// Puts `model`, written as a JSON string with its quotes, in the place of the model.
    ///
    /// # Errors
    ///
    /// As [`Self::replace`].
    pub fn replace_model(
        &mut self,
        spans: &RequestSpans,
        model: &'e [u8],
    ) -> Result<(), SpliceError> {
        self.replace(spans.model.quoted(), model)
    }

    /// Makes `stream_options.include_usage` true, whatever the body says; no edit if it is.
    ///
    /// # Errors
    ///
    /// As [`Self::replace`].
    pub fn force_usage(&mut self, spans: &RequestSpans) -> Result<(), SpliceError> {
        match spans.usage_edit() {
            Some((span, bytes)) => self.replace(span, bytes),
            None => Ok(()),
        }
    }

    /// Whether the body goes on as it came.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The edited body.
    #[must_use]
    pub fn segments(&self) -> Segments<'e> {
        let mut segments = Segments { pieces: [&[]; SEGMENTS_MAX], count: 0, total: 0 };
        let mut from = 0;
        for edit in self.edits.iter().take(self.count) {
            segments.push(self.body.get(from..edit.span.start).unwrap_or_default());
            segments.push(edit.bytes);
            from = edit.span.end;
        }
        segments.push(self.body.get(from..).unwrap_or_default());
        segments
    }
}

impl RequestSpans {
    /// What is put where so that `stream_options.include_usage` is true, whatever the body says;
    /// nothing if it is. An empty span inserts.
    #[must_use]
    pub fn usage_edit(&self) -> Option<(Span, &'static [u8])> {
        let Some(options) = self.stream_options else {
            // The object is never empty: it holds the model.
            return Some((inside(self.object), USAGE_MEMBER));
        };
        match options.include_usage {
            Some(include) if include.value => None,
            Some(include) => Some((include.span, TRUE)),
            None if options.is_null || options.is_empty => Some((options.span, USAGE_OBJECT)),
            None => Some((inside(options.span), USAGE_FIRST)),
        }
    }
}

/// Just behind an opening brace.
fn inside(object: Span) -> Span {
    let at = object.start.saturating_add(1);
    Span { start: at, end: at }
}

impl<'e> Segments<'e> {
    fn push(&mut self, piece: &'e [u8]) {
        if piece.is_empty() {
            return;
        }
        if let Some(place) = self.pieces.get_mut(self.count) {
            *place = piece;
            self.count += 1;
            self.total += piece.len();
        }
    }

    /// The pieces, none of them empty.
    #[must_use]
    pub fn pieces(&self) -> &[&'e [u8]] {
        self.pieces.get(..self.count).unwrap_or_default()
    }

    /// Length of all pieces together: the new Content-Length.
    #[must_use]
    pub fn total_len(&self) -> usize {
        self.total
    }

    /// Appends the edited body to `out`: for bodies small enough that one buffer is cheaper than
    /// many pieces.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        out.reserve(self.total);
        for piece in self.pieces() {
            out.extend_from_slice(piece);
        }
    }
}
