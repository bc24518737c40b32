//! The stream scan: the bytes of one answer, piece by piece, as parts of events.
//!
//! ```
//! use codec::sse::{Dialect, Kind, Reach, StreamScan};
//!
//! let mut scan = StreamScan::new(Dialect::Chat);
//! let mut rest: &[u8] = b": hi\n\ndata: {\"choices\":[]}\n\ndata: [DO";
//! let mut kinds = Vec::new();
//! while let Some(part) = scan.next(rest) {
//!     kinds.push((part.len, part.kind, part.reach));
//!     rest = &rest[part.len..];
//! }
//! assert_eq!(kinds[0], (5, Kind::Silent, Reach::Whole));
//! assert_eq!(kinds[2], (22, Kind::Preamble, Reach::Whole));
//! assert_eq!(kinds[3], (9, Kind::Preamble, Reach::Open));
//! assert!(!scan.at_boundary());
//! ```

use super::Dialect;
use super::event::Event;
use super::part::{Part, Reach};
use super::splitter::{Field, Line, Splitter, Token};
use super::tally::Tally;
use super::verdict::Verdict;
use crate::json::{ErrorFacts, SaidText, ShortText};
use crate::usage::{Provenance, UsageEnvelope, UsageFlags, envelope};

/// A scan of one stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamScan {
    dialect: Dialect,
    splitter: Splitter,
    place: Place,
    /// Bytes since the event, comment or mark in progress began; of the last one between two.
    length: u64,
    event: Event,
    /// What the last part was that ended something.
    last: Verdict,
    tally: Tally,
}

/// Where the stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Between two events.
    Boundary,
    /// Inside the mark.
    Mark,
    /// Inside a comment that belongs to no event.
    Comment,
    /// Inside an event.
    Event,
}

impl StreamScan {
    /// At the beginning of a stream.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            splitter: Splitter::new(),
            place: Place::Boundary,
            length: 0,
            event: Event::new(),
            last: Verdict::SILENT,
            tally: Tally::default(),
        }
    }

    /// The next part of a piece: take its bytes off the front and ask again, until there is none.
    pub fn next(&mut self, bytes: &[u8]) -> Option<Part> {
        let mut len = 0;
        if self.place == Place::Boundary && !bytes.is_empty() {
            if let Some(part) = self.trailing(bytes) {
                return Some(part);
            }
            self.length = 0;
        }
        let before = self.length;
        while let Some(step) = self.splitter.step(bytes.get(len..).unwrap_or_default()) {
            len += step.len;
            self.length += step.len as u64;
            if let Some(verdict) = self.take(&step.token) {
                self.place = Place::Boundary;
                self.last = verdict;
                return Some(part(len, before, &verdict, Reach::Whole));
            }
        }
        (len > 0).then(|| self.unfinished(len, before))
    }

    /// The stream has ended, however it did: what was held back may go. What it left unfinished
    /// counts as far as it came; there is a part for it if that is an event, of no bytes.
    pub fn end(&mut self) -> Option<Part> {
        let begun = std::mem::replace(&mut self.place, Place::Boundary);
        if begun != Place::Event {
            return None;
        }
        self.splitter = Splitter::new();
        let verdict = self.close(false);
        Some(part(0, self.length, &verdict, Reach::Cut))
    }

    /// Whether other bytes may be put in here: heartbeats, an error of our own.
    #[must_use]
    pub fn at_boundary(&self) -> bool {
        self.place == Place::Boundary
    }

    /// Whether the stream is over, so that `rest`, which comes next, is no part of it: all but the
    /// LF that may still belong to its terminator. A gemini stream has no such end.
    #[must_use]
    pub fn is_over(&self, rest: &[u8]) -> bool {
        let ends = self.tally.terminated && self.dialect != Dialect::Gemini;
        ends && self.place == Place::Boundary
            && !(self.splitter.awaits_line_feed() && rest.first() == Some(&b'\n'))
    }

    /// Whether the event in progress is certain to be the usage chunk of a chat stream, though not
    /// whole: its list of choices was empty, and usage has come.
    #[must_use]
    pub fn is_in_usage(&self) -> bool {
        let facts = self.event.facts();
        self.dialect == Dialect::Chat
            && self.place == Place::Event
            && facts.choices_over
            && !facts.choice
            && facts.error.is_none()
            && !facts.usage.is_empty()
    }

    /// Whether the dialect's terminator was seen.
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        self.tally.terminated
    }

    /// Whether the answer came to its end as it should, and nothing said otherwise.
    #[must_use]
    pub fn is_succeeded(&self) -> bool {
        self.tally.success && self.tally.error.is_none()
    }

    /// Whether the final count was seen.
    #[must_use]
    pub fn is_reported(&self) -> bool {
        self.tally.reported
    }

    /// Whether nothing was said: neither content nor usage nor a reason to finish.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let tally = &self.tally;
        // The terminal event of responses has no reason beside its name.
        let finished =
            tally.finish.is_some() || (self.dialect == Dialect::Responses && tally.success);
        !tally.content && !finished && tally.usage.is_empty()
    }

    /// The usage. Its provenance is `Reported` only with the final count; until then its buckets
    /// hold what was noted on the way.
    #[must_use]
    pub fn usage(&self) -> UsageEnvelope {
        let mut usage = envelope(&self.tally.usage);
        usage.provenance = match usage.provenance {
            _ if !self.tally.reported => Provenance::Missing,
            _ if usage.flags.contains(UsageFlags::IMPOSSIBLE) => Provenance::Estimated,
            _ => Provenance::Reported,
        };
        if self.tally.content {
            usage.note_content();
        }
        usage
    }

    /// The text the model has said, the event in progress included.
    #[must_use]
    pub fn said(&self) -> SaidText {
        let unfinished = match self.place {
            Place::Event => self.event.facts().said,
            Place::Boundary | Place::Mark | Place::Comment => SaidText::default(),
        };
        self.tally.said.with(unfinished)
    }

    /// The first error, if there was one.
    #[must_use]
    pub fn error(&self) -> Option<&ErrorFacts> {
        self.tally.error.as_ref()
    }

    /// The last reason to finish, if there was one.
    #[must_use]
    pub fn finish(&self) -> Option<&ShortText> {
        self.tally.finish.as_ref()
    }

    /// The LF whose CR ended the last event.
    fn trailing(&mut self, bytes: &[u8]) -> Option<Part> {
        if !self.splitter.awaits_line_feed() || bytes.first() != Some(&b'\n') {
            return None;
        }
        let step = self.splitter.step(bytes)?;
        let before = self.length;
        self.length += step.len as u64;
        Some(part(step.len, before, &self.last, Reach::Trailing))
    }

    /// Takes a token; a verdict if it ends something.
    #[inline(always)]
    fn take(&mut self, token: &Token<'_>) -> Option<Verdict> {
        match token {
            Token::Line(line) => self.line(line),
            Token::Blank if self.place == Place::Event => Some(self.close(true)),
            Token::Blank => Some(Verdict::SILENT),
            Token::Mark { whole: true } => Some(Verdict::MARK),
            Token::Mark { whole: false } => {
                self.place = Place::Mark;
                None
            }
            Token::Name => {
                self.place = Place::Event;
                None
            }
            Token::LineFeed => None,
        }
    }

    #[inline(always)]
    fn line(&mut self, line: &Line<'_>) -> Option<Verdict> {
        if line.field == Field::Comment && self.place != Place::Event {
            self.place = Place::Comment;
            return line.closes.then_some(Verdict::SILENT);
        }
        self.place = Place::Event;
        self.event.take(line);
        None
    }

    /// The event is over; `framed` by its blank line, or else by the end of the stream.
    fn close(&mut self, framed: bool) -> Verdict {
        let verdict = self.event.close(self.dialect);
        let counts = framed || self.event.is_complete();
        self.tally.take(self.dialect, &verdict, self.event.facts(), counts);
        self.event.restart();
        verdict
    }

    /// The end of a piece inside something.
    fn unfinished(&self, len: usize, before: u64) -> Part {
        match self.place {
            Place::Event => {
                let verdict = self.event.verdict(self.dialect);
                let reach = if verdict.certain { Reach::Passing } else { Reach::Open };
                part(len, before, &verdict, reach)
            }
            Place::Mark => part(len, before, &Verdict::MARK, Reach::Open),
            Place::Comment | Place::Boundary => part(len, before, &Verdict::SILENT, Reach::Passing),
        }
    }
}

fn part(len: usize, before: u64, verdict: &Verdict, reach: Reach) -> Part {
    Part { len, before, kind: verdict.kind, terminator: verdict.terminator, reach }
}
