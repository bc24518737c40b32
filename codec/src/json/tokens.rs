//! The structure of one JSON document: a machine that stops at the end of what has arrived and
//! goes on from there, over a body that is contiguous and grows.
//!
//! It checks everything RFC 8259 asks and tells a [`Visit`] of keys, values and brackets; it
//! keeps no text and looks at no byte twice but an unfinished word, escape or character. Nesting
//! is one bit a level, so depth costs no stack. The top level must be an object.

use super::error::{JsonError, JsonErrorKind as Kind};
use super::number::{self, NumberState, NumberStop};
use super::span::Span;
use super::text::{self, Text, TextStop};

/// Deepest nesting taken (DESIGN §16.16): far beyond any real body, and one bit a level makes
/// it 128 bytes a scan.
pub const DEPTH_MAX: usize = 1024;

/// What the machine reports. `depth` is the number of containers around the thing named.
pub(super) trait Visit {
    /// A key whose closing quote is at `end`.
    fn key(&mut self, body: &[u8], depth: usize, text: Text, end: usize) -> Result<(), Kind>;
    /// A string value whose closing quote is at `end`.
    fn string(&mut self, body: &[u8], nest: &Nest, text: Text, end: usize) -> Result<(), Kind>;
    /// A number or a literal.
    fn scalar(&mut self, body: &[u8], depth: usize, span: Span) -> Result<(), Kind>;
    /// An opening bracket at `at`; `depth` without it.
    fn open(&mut self, depth: usize, object: bool, at: usize) -> Result<(), Kind>;
    /// A closing bracket just before `end`; `depth` without it.
    fn close(&mut self, depth: usize, end: usize);
}

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// The top-level object.
    Start,
    /// After `{`.
    KeyOrEnd,
    /// After a comma in an object.
    Key,
    /// Inside a key.
    InKey,
    /// After a key.
    Colon,
    /// After a colon, or a comma in an array.
    Value,
    /// After `[`.
    ValueOrEnd,
    /// Inside a string value.
    InString,
    /// Inside a number.
    InNumber,
    /// After a value.
    After,
    /// After the top-level object.
    Done,
}

/// The containers around the current position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nest {
    depth: usize,
    in_object: bool,
    /// Bit d: the container at depth d is an object.
    kinds: [u64; DEPTH_MAX / 64],
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens {
    pos: usize,
    expect: Expect,
    text: Text,
    number_start: usize,
    number: NumberState,
    nest: Nest,
}

/// What one token left behind: where to go on, and with what.
type Next = Result<(usize, Expect), Halt>;

/// Why the loop stops.
enum Halt {
    /// All that has arrived was looked at; go on here, with this.
    More(usize, Expect),
    Bad(Kind, usize),
}

impl Tokens {
    pub(super) fn new() -> Self {
        Self {
            pos: 0,
            expect: Expect::Start,
            text: Text::at(0),
            number_start: 0,
            number: NumberState::Start,
            nest: Nest { depth: 0, in_object: false, kinds: [0; DEPTH_MAX / 64] },
        }
    }

    pub(super) fn position(&self) -> usize {
        self.pos
    }

    pub(super) fn is_done(&self) -> bool {
        self.expect == Expect::Done
    }

    /// Goes on to the end of `body`.
    pub(super) fn run(&mut self, body: &[u8], visit: &mut impl Visit) -> Result<(), JsonError> {
        let mut pos = self.pos;
        let mut expect = self.expect;
        loop {
            let next = match expect {
                Expect::InString => self.string(body, pos, visit),
                Expect::InKey => self.key(body, pos, visit),
                Expect::InNumber => self.number(body, pos, visit),
                _ => self.between(body, pos, expect, visit),
            };
            match next {
                Ok(step) => (pos, expect) = step,
                Err(Halt::More(at, with)) => {
                    self.pos = at;
                    self.expect = with;
                    return Ok(());
                }
                Err(Halt::Bad(kind, offset)) => return Err(JsonError { kind, offset }),
            }
        }
    }

    /// A token that starts at the first byte from `pos` that is not whitespace.
    #[inline(always)]
    fn between(
        &mut self,
        body: &[u8],
        mut pos: usize,
        expect: Expect,
        visit: &mut impl Visit,
    ) -> Next {
        let byte = loop {
            match body.get(pos) {
                None => return Err(Halt::More(pos, expect)),
                Some(b' ' | b'\n' | b'\r' | b'\t') => pos += 1,
                Some(&byte) => break byte,
            }
        };
        match (expect, byte) {
            (Expect::After, b',') => Ok((pos + 1, self.after_comma())),
            (Expect::Key | Expect::KeyOrEnd, b'"') => Ok(self.begin_text(pos, Expect::InKey)),
            (Expect::Colon, b':') => Ok((pos + 1, Expect::Value)),
            (Expect::Value | Expect::ValueOrEnd, _) => self.value(body, pos, byte, expect, visit),
            (Expect::After | Expect::KeyOrEnd, b'}') if self.nest.in_object => {
                Ok(self.close(pos, visit))
            }
            (Expect::After, b']') if !self.nest.in_object => Ok(self.close(pos, visit)),
            (Expect::Start, b'{') => self.open(pos, true, visit),
            (Expect::Start, _) => Err(Halt::Bad(Kind::NotAnObject, pos)),
            (Expect::Done, _) => Err(Halt::Bad(Kind::TrailingBytes, pos)),
            _ => Err(Halt::Bad(Kind::UnexpectedByte, pos)),
        }
    }

    #[inline(always)]
    fn value(
        &mut self,
        body: &[u8],
        pos: usize,
        byte: u8,
        expect: Expect,
        visit: &mut impl Visit,
    ) -> Next {
        match byte {
            b'"' => Ok(self.begin_text(pos, Expect::InString)),
            b'{' => self.open(pos, true, visit),
            b'[' => self.open(pos, false, visit),
            b']' if expect == Expect::ValueOrEnd => Ok(self.close(pos, visit)),
            b'-' | b'0'..=b'9' => {
                self.number_start = pos;
                self.number = NumberState::Start;
                Ok((pos, Expect::InNumber))
            }
            b't' => self.literal(body, pos, b"true", expect, visit),
            b'f' => self.literal(body, pos, b"false", expect, visit),
            b'n' => self.literal(body, pos, b"null", expect, visit),
            _ => Err(Halt::Bad(Kind::UnexpectedByte, pos)),
        }
    }

    #[inline(always)]
    fn begin_text(&mut self, quote: usize, expect: Expect) -> (usize, Expect) {
        self.text = Text::at(quote + 1);
        (quote + 1, expect)
    }

    #[inline(always)]
    fn key(&mut self, body: &[u8], pos: usize, visit: &mut impl Visit) -> Next {
        match text::scan(body, pos, &mut self.text) {
            TextStop::Quote(end) => {
                let start = self.text.start;
                visit
                    .key(body, self.nest.depth, self.text, end)
                    .map_err(|kind| Halt::Bad(kind, start))?;
                match body.get(end + 1) {
                    Some(b':') => Ok((end + 2, Expect::Value)),
                    _ => Ok((end + 1, Expect::Colon)),
                }
            }
            TextStop::More(at) => Err(Halt::More(at, Expect::InKey)),
            TextStop::Bad(kind, at) => Err(Halt::Bad(kind, at)),
        }
    }

    #[inline(always)]
    fn string(&mut self, body: &[u8], pos: usize, visit: &mut impl Visit) -> Next {
        match text::scan(body, pos, &mut self.text) {
            TextStop::Quote(end) => {
                let start = self.text.start;
                visit
                    .string(body, &self.nest, self.text, end)
                    .map_err(|kind| Halt::Bad(kind, start))?;
                Ok((end + 1, Expect::After))
            }
            TextStop::More(at) => Err(Halt::More(at, Expect::InString)),
            TextStop::Bad(kind, at) => Err(Halt::Bad(kind, at)),
        }
    }

    fn number(&mut self, body: &[u8], pos: usize, visit: &mut impl Visit) -> Next {
        match number::scan(body, pos, &mut self.number) {
            NumberStop::End(end) => {
                let start = self.number_start;
                visit
                    .scalar(body, self.nest.depth, Span { start, end })
                    .map_err(|kind| Halt::Bad(kind, start))?;
                Ok((end, Expect::After))
            }
            NumberStop::More(at) => Err(Halt::More(at, Expect::InNumber)),
            NumberStop::Bad(at) => Err(Halt::Bad(Kind::BadNumber, at)),
        }
    }

    fn literal(
        &mut self,
        body: &[u8],
        pos: usize,
        word: &[u8],
        expect: Expect,
        visit: &mut impl Visit,
    ) -> Next {
        let rest = body.get(pos..).unwrap_or_default();
        for (index, expected) in word.iter().enumerate() {
            match rest.get(index) {
                None => return Err(Halt::More(pos, expect)),
                Some(byte) if byte == expected => {}
                Some(_) => return Err(Halt::Bad(Kind::BadLiteral, pos + index)),
            }
        }
        let span = Span { start: pos, end: pos + word.len() };
        visit.scalar(body, self.nest.depth, span).map_err(|kind| Halt::Bad(kind, pos))?;
        Ok((span.end, Expect::After))
    }

    #[inline(always)]
    fn open(&mut self, pos: usize, object: bool, visit: &mut impl Visit) -> Next {
        visit.open(self.nest.depth, object, pos).map_err(|kind| Halt::Bad(kind, pos))?;
        if !self.nest.push(object) {
            return Err(Halt::Bad(Kind::TooDeep, pos));
        }
        Ok((pos + 1, if object { Expect::KeyOrEnd } else { Expect::ValueOrEnd }))
    }

    #[inline(always)]
    fn close(&mut self, pos: usize, visit: &mut impl Visit) -> (usize, Expect) {
        self.nest.pop();
        visit.close(self.nest.depth, pos + 1);
        (pos + 1, if self.nest.depth == 0 { Expect::Done } else { Expect::After })
    }

    #[inline(always)]
    fn after_comma(&self) -> Expect {
        if self.nest.in_object { Expect::Key } else { Expect::Value }
    }
}

impl Nest {
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn in_object(&self) -> bool {
        self.in_object
    }

    /// False if this would be one level too many.
    #[inline(always)]
    fn push(&mut self, object: bool) -> bool {
        let depth = self.depth;
        let Some(word) = self.kinds.get_mut(depth / 64) else { return false };
        let bit = 1u64 << (depth % 64);
        *word = if object { *word | bit } else { *word & !bit };
        self.depth = depth + 1;
        self.in_object = object;
        true
    }

    #[inline(always)]
    fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        let parent = self.depth.wrapping_sub(1);
        let word = self.kinds.get(parent / 64).copied().unwrap_or_default();
        self.in_object = word >> (parent % 64) & 1 == 1;
    }
}
