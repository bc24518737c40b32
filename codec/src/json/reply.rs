//! The reply scan: an answer in pieces, whose earlier bytes are already with the client.
//!
//! It never refuses: an answer is relayed as it is, and on JSON it cannot follow it says
//! `malformed` and looks no further. It reads by structure along the paths of [`paths`], a table
//! with a row for each shape of answer; everything else is skipped by its brackets and quotes
//! alone. Memory is fixed: one path of [`PATH_MAX`] levels and one token of [`TOKEN_MAX`] bytes.
//! Keys are compared as written; a provider that escapes its own keys is not understood.

mod facts;
mod paths;
#[cfg(test)]
mod tests;

use self::facts::Token;
pub use self::facts::{ErrorFacts, ReplyFacts, ShortText, TOKEN_MAX};
use self::paths::Node;

/// Levels of a path that are followed: one more than the deepest row of the table.
const PATH_MAX: usize = 8;

/// A resumable scan of one whole answer, or of the data of one event.
#[derive(Clone, Copy, Debug)]
pub struct ReplyScan {
    state: State,
    /// The containers followed, outermost first.
    path: [Level; PATH_MAX],
    depth: usize,
    /// Where the value to come stands, if the table knows the place.
    here: Option<&'static Node>,
    token: Token,
    facts: ReplyFacts,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    node: &'static Node,
    object: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Value,
    KeyOrEnd,
    Key,
    KeyEscape,
    Colon,
    Text,
    TextEscape,
    Scalar,
    After,
    /// Inside a value nobody asks for, this many containers deep; strings at any depth.
    Skip(usize),
    SkipText(usize),
    SkipEscape(usize),
    Done,
    /// Not JSON we can follow.
    Lost,
}

impl Default for ReplyScan {
    fn default() -> Self {
        Self::new()
    }
}

impl ReplyScan {
    /// A scan that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::Value,
            path: [Level { node: &paths::ROOT, object: true }; PATH_MAX],
            depth: 0,
            here: Some(&paths::ROOT),
            token: Token::new(),
            facts: ReplyFacts::default(),
        }
    }

    /// Looks at the next bytes.
    pub fn feed(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while let Some((&byte, tail)) = rest.split_first() {
            rest = match self.state {
                State::Key | State::Text | State::SkipText(_) => self.in_text(rest),
                State::Scalar => self.in_scalar(byte, rest, tail),
                State::Skip(depth) => self.skip(depth, rest),
                State::Lost => return,
                _ => {
                    self.single(byte);
                    tail
                }
            };
        }
    }

    /// What was found. Pieces may go on after it; the answer is then that of a longer prefix.
    #[must_use]
    pub fn finish(&self) -> ReplyFacts {
        ReplyFacts {
            complete: self.state == State::Done,
            malformed: self.state == State::Lost,
            ..self.facts
        }
    }

    /// States that a byte alone decides.
    fn single(&mut self, byte: u8) {
        let blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.state = match (self.state, byte) {
            (State::KeyEscape, _) => State::Key,
            (State::TextEscape, _) => State::Text,
            (State::SkipEscape(depth), _) => State::SkipText(depth),
            (state, _) if blank => state,
            (State::Value, _) => self.begin_value(byte),
            (State::KeyOrEnd, b'"') => {
                self.token = Token::new();
                State::Key
            }
            (State::Colon, b':') => State::Value,
            (State::After, b',') => self.next_member(),
            (State::KeyOrEnd | State::After, b'}') if self.in_object() => self.close(),
            (State::After, b']') if !self.in_object() => self.close(),
            _ => State::Lost,
        };
    }

    fn in_object(&self) -> bool {
        self.level().is_some_and(|level| level.object)
    }

    fn level(&self) -> Option<Level> {
        self.path.get(self.depth.checked_sub(1)?).copied()
    }

    fn next_member(&mut self) -> State {
        match self.level() {
            Some(level) if level.object => State::KeyOrEnd,
            Some(level) => {
                self.here = level.node.each;
                State::Value
            }
            None => State::Lost,
        }
    }

    fn begin_value(&mut self, byte: u8) -> State {
        match byte {
            b'{' | b'[' => self.open(byte == b'{'),
            b'"' => {
                self.token = Token::new();
                if self.here.is_some() { State::Text } else { State::SkipText(0) }
            }
            // An empty array; a bracket after a comma is let through as well.
            b']' if self.level().is_some_and(|level| !level.object) => self.close(),
            // Capitals too: `NaN` is no JSON, but no reason to lose the usage behind it.
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                self.token = Token::new();
                self.token.push(&[byte]);
                State::Scalar
            }
            _ => State::Lost,
        }
    }

    fn open(&mut self, object: bool) -> State {
        let Some(node) = self.here else { return State::Skip(1) };
        self.facts.open(node.leaf, object);
        let followed = if object { !node.keys.is_empty() } else { node.each.is_some() };
        match self.path.get_mut(self.depth) {
            Some(level) if followed => {
                *level = Level { node, object };
                self.depth += 1;
                self.here = node.each;
                if object { State::KeyOrEnd } else { State::Value }
            }
            _ => State::Skip(1),
        }
    }

    fn close(&mut self) -> State {
        self.depth = self.depth.saturating_sub(1);
        self.after_value()
    }

    fn after_value(&self) -> State {
        if self.depth == 0 { State::Done } else { State::After }
    }

    /// Inside a string: up to its quote, the next backslash or the end of the piece.
    fn in_text<'p>(&mut self, rest: &'p [u8]) -> &'p [u8] {
        let end = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        let (text, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        if !matches!(self.state, State::SkipText(_)) {
            self.token.push(text);
        }
        let Some((&byte, tail)) = after.split_first() else { return after };
        self.state = match (self.state, byte) {
            (State::Key, b'"') => {
                let token = &self.token;
                self.here = self.level().and_then(|level| level.node.key(token.whole()));
                State::Colon
            }
            (State::Text, b'"') => {
                if let Some(node) = self.here {
                    self.facts.text(node.leaf, &self.token);
                }
                self.after_value()
            }
            (State::SkipText(0), b'"') => self.after_value(),
            (State::SkipText(depth), b'"') => State::Skip(depth),
            (State::Key, _) => {
                // No key of the table has a backslash: one byte of it makes the key unknown.
                self.token.push(&[byte]);
                State::KeyEscape
            }
            (State::Text, _) => {
                self.token.push(&[byte]);
                State::TextEscape
            }
            (State::SkipText(depth), _) => State::SkipEscape(depth),
            (state, _) => state,
        };
        tail
    }

    /// Inside a number or literal: up to the byte that ends it.
    fn in_scalar<'p>(&mut self, byte: u8, rest: &'p [u8], tail: &'p [u8]) -> &'p [u8] {
        if matches!(byte, b'+' | b'-' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') {
            self.token.push(&[byte]);
            return tail;
        }
        if let Some(node) = self.here {
            self.facts.scalar(node.leaf, &self.token);
        }
        self.state = self.after_value();
        rest
    }

    /// Inside a container nobody asks for: only brackets and quotes matter.
    fn skip<'p>(&mut self, mut depth: usize, rest: &'p [u8]) -> &'p [u8] {
        for (index, &byte) in rest.iter().enumerate() {
            match byte {
                b'"' => {
                    self.state = State::SkipText(depth);
                    return rest.get(index + 1..).unwrap_or_default();
                }
                b'{' | b'[' => depth = depth.saturating_add(1),
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        self.state = self.after_value();
                        return rest.get(index + 1..).unwrap_or_default();
                    }
                }
                _ => {}
            }
        }
        self.state = State::Skip(depth);
        &[]
    }
}
