//! The splitter: a stream of bytes as lines of fields, after WHATWG HTML 9.2.6.
//!
//! It copies nothing and keeps nothing of a value: each step takes some bytes from the front and
//! says what they are. Steps tile the input, so whoever forwards bytes counts them here. A line
//! ends at LF, CR or CRLF, and at nothing else; a CR counts at once, and if its LF comes later,
//! that LF is a step of its own. It decides nothing about events: a blank line is a blank line.
//!
//! Bound: the name of one field, [`NAME_MAX`] bytes.

use memchr::{memchr2, memchr3};

/// Bytes of a field's name that are kept while it arrives in pieces: the longest known one.
const NAME_MAX: usize = 5;

/// The byte order mark, which a stream may begin with.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Where a stream stands between two pieces.
#[derive(Clone, Copy, Debug)]
pub struct Splitter {
    state: State,
    /// The last byte was a CR that ended a line: an LF would belong to it.
    after_cr: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// At the very beginning, this many bytes of the mark seen.
    Start(usize),
    /// Before the first byte of a line.
    Line,
    /// Inside the name of a field.
    Name(Name),
    /// Behind the colon: one space is not part of the value.
    Colon(Field),
    /// Inside a value.
    Value(Field),
}

/// The name of a field, as far as it has arrived.
#[derive(Clone, Copy, Debug)]
struct Name {
    bytes: [u8; NAME_MAX],
    /// More than [`NAME_MAX`]: no known name.
    length: usize,
}

/// The fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `data`.
    Data,
    /// `event`.
    Event,
    /// `id`.
    Id,
    /// `retry`.
    Retry,
    /// A line that begins with a colon.
    Comment,
    /// Any other name: the line means nothing.
    Unknown,
}

/// Some bytes from the front of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'b> {
    /// How many; never 0.
    pub len: usize,
    /// What they are.
    pub token: Token<'b>,
}

/// What bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'b> {
    /// A byte order mark at the very beginning, or the first bytes of one.
    Mark {
        /// All of it has been seen.
        whole: bool,
    },
    /// The beginning of a line whose field cannot be told yet.
    Name,
    /// A line or a part of one.
    Line(Line<'b>),
    /// A blank line.
    Blank,
    /// The LF of a CR that has ended a line already.
    LineFeed,
}

/// A line, or as much of it as is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'b> {
    /// Its field.
    pub field: Field,
    /// The first part of it: what was said of the same field before is another line.
    pub opens: bool,
    /// A piece of its value, without the space behind the colon.
    pub value: &'b [u8],
    /// The line is over.
    pub closes: bool,
}

// === impl Splitter ===

impl Default for Splitter {
    fn default() -> Self {
        Self::new()
    }
}

impl Splitter {
    /// At the beginning of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self { state: State::Start(0), after_cr: false }
    }

    /// Takes a step; `None` if there are no bytes to take.
    #[inline(always)]
    pub fn step<'b>(&mut self, bytes: &'b [u8]) -> Option<Step<'b>> {
        let &first = bytes.first()?;
        if std::mem::take(&mut self.after_cr) && first == b'\n' {
            return Some(Step { len: 1, token: Token::LineFeed });
        }
        Some(match self.state {
            State::Line => self.line(bytes),
            State::Value(field) => self.value(field, false, 0, bytes),
            State::Colon(field) => self.value(field, false, space(bytes), bytes),
            State::Name(name) => self.name(name, bytes),
            State::Start(seen) => self.mark(seen, bytes),
        })
    }

    /// Whether an LF, if it comes next, belongs to a line that is over.
    #[must_use]
    pub fn awaits_line_feed(&self) -> bool {
        self.after_cr
    }

    /// At the first byte of a line.
    #[inline(always)]
    fn line<'b>(&mut self, bytes: &'b [u8]) -> Step<'b> {
        self.state = State::Line;
        // What nearly all lines are.
        if bytes.starts_with(b"data: ") {
            return self.value(Field::Data, true, 6, bytes);
        }
        match self.line_end(bytes, 0) {
            0 => self.name(Name { bytes: [0; NAME_MAX], length: 0 }, bytes),
            len => Step { len, token: Token::Blank },
        }
    }

    /// Inside a name, of which `name` has been seen before.
    #[inline(always)]
    fn name<'b>(&mut self, mut name: Name, bytes: &'b [u8]) -> Step<'b> {
        let end = memchr3(b':', b'\n', b'\r', bytes);
        name.push(bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default());
        let Some(end) = end else {
            self.state = State::Name(name);
            return Step { len: bytes.len(), token: Token::Name };
        };
        let field = name.field();
        if bytes.get(end) != Some(&b':') {
            return self.value(field, true, end, bytes);
        }
        let behind = bytes.get(end + 1..).unwrap_or_default();
        let step = self.value(field, true, end + 1 + space(behind), bytes);
        if behind.is_empty() {
            self.state = State::Colon(field);
        }
        step
    }

    /// Inside a value, whose next byte stands at `start`.
    #[inline(always)]
    fn value<'b>(&mut self, field: Field, opens: bool, start: usize, bytes: &'b [u8]) -> Step<'b> {
        let rest = bytes.get(start..).unwrap_or_default();
        let found = memchr2(b'\n', b'\r', rest);
        let value = rest.get(..found.unwrap_or(rest.len())).unwrap_or_default();
        let end = start + value.len();
        self.state = if found.is_some() { State::Line } else { State::Value(field) };
        let len = end + self.line_end(bytes, end);
        Step { len, token: Token::Line(Line { field, opens, value, closes: found.is_some() }) }
    }

    /// At the beginning of the stream, `seen` bytes of the mark behind it.
    fn mark<'b>(&mut self, seen: usize, bytes: &'b [u8]) -> Step<'b> {
        let rest = MARK.get(seen..).unwrap_or_default();
        if bytes.starts_with(rest) {
            self.state = State::Line;
            return Step { len: rest.len(), token: Token::Mark { whole: true } };
        }
        if rest.starts_with(bytes) {
            self.state = State::Start(seen + bytes.len());
            return Step { len: bytes.len(), token: Token::Mark { whole: false } };
        }
        if seen == 0 {
            return self.line(bytes);
        }
        // It was the name of a field that nobody knows.
        self.name(Name { bytes: [0; NAME_MAX], length: NAME_MAX + 1 }, bytes)
    }

    /// How many bytes of a line's end stand at `at`; 0 if no line ends there.
    #[inline(always)]
    fn line_end(&mut self, bytes: &[u8], at: usize) -> usize {
        match bytes.get(at..) {
            Some([b'\r', b'\n', ..]) => 2,
            Some([b'\r', rest @ ..]) => {
                self.after_cr = rest.is_empty();
                1
            }
            Some([b'\n', ..]) => 1,
            _ => 0,
        }
    }
}

/// Bytes of the one space that may stand between the colon and the value.
fn space(behind: &[u8]) -> usize {
    usize::from(behind.first() == Some(&b' '))
}

// === impl Name ===

impl Name {
    fn push(&mut self, bytes: &[u8]) {
        let end = self.length.saturating_add(bytes.len());
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(bytes);
        }
        self.length = end;
    }

    fn field(&self) -> Field {
        match self.bytes.get(..self.length) {
            Some(b"") => Field::Comment,
            Some(b"data") => Field::Data,
            Some(b"event") => Field::Event,
            Some(b"id") => Field::Id,
            Some(b"retry") => Field::Retry,
            _ => Field::Unknown,
        }
    }
}
