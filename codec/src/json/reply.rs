//! The reply scan: an answer in pieces, whose earlier bytes are already with the client.
//!
//! It never refuses: an answer is relayed as it is, and on JSON it cannot follow it says
//! `malformed` and looks no further. It reads by structure along the paths of [`paths`], a table
//! with a row for each shape of answer; everything else is skipped by its brackets and quotes
//! alone. Memory is fixed: one path of [`PATH_MAX`] levels and one token of `TOKEN_MAX` bytes.
//! Keys are compared as written; a provider that escapes its own keys is not understood.
//!
//! Two readers of the same grammar: [`whole`] takes tokens that are all in one piece and copies
//! nothing; what it does not know it leaves to the states here, which take a byte at a time.

mod event;
mod facts;
mod paths;
mod said;
#[cfg(test)]
mod tests;
mod token;
mod whole;

pub use self::event::EventType;
pub use self::facts::{ErrorFacts, ReplyFacts};
use self::paths::Place;
pub use self::said::SaidText;
use self::token::Token;
pub use self::token::{SHORT_TEXT_MAX, ShortText};
use self::whole::Piece;

/// Levels of a path that are followed: as many as the deepest row of the table needs, a call in
/// a gemini answer that came as one array.
const PATH_MAX: usize = 8;

/// A resumable scan of one whole answer, or of the data of one event.
#[derive(Clone, Copy, Debug)]
pub struct ReplyScan {
    state: State,
    /// The containers followed, outermost first.
    path: [Level; PATH_MAX],
    depth: u8,
    /// Where the value to come stands, if the table knows the place.
    here: Option<Place>,
    token: Token,
    facts: ReplyFacts,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    place: Place,
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
    Skip(u32),
    SkipText(u32),
    SkipEscape(u32),
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
            path: [Level { place: Place::Root, object: true }; PATH_MAX],
            depth: 0,
            here: Some(Place::Root),
            token: Token::new(),
            facts: ReplyFacts::default(),
        }
    }

    /// Forgets what was seen, for the next document. Cheaper than a new scan: what no state
    /// refers to is left as it is.
    pub fn restart(&mut self) {
        self.state = State::Value;
        self.depth = 0;
        self.here = Some(Place::Root);
        self.token.clear();
        self.facts = ReplyFacts::default();
    }

    /// Looks at the next bytes.
    pub fn feed(&mut self, piece: &[u8]) {
        let mut piece = Piece::new(piece);
        let mut pos = 0;
        while let Some(byte) = piece.at(pos) {
            let (from, counted) = (pos, self.skips_arguments());
            pos = match self.state {
                State::KeyOrEnd | State::Colon | State::Value | State::After => {
                    self.whole_tokens(&mut piece, pos)
                }
                State::Skip(depth) => self.skip(depth, &mut piece, pos),
                State::Key | State::Text | State::SkipText(_) => self.in_text(&mut piece, pos),
                State::Scalar => self.in_scalar(byte, pos),
                State::Lost => {
                    // Whatever it is, it may be what a model said.
                    self.facts.said.add(piece.between(pos, piece.len()));
                    break;
                }
                State::KeyEscape | State::TextEscape | State::SkipEscape(_) | State::Done => {
                    self.single(byte);
                    pos + 1
                }
            };
            if counted {
                self.facts.say(piece.between(from, pos));
            }
        }
        self.facts.complete = self.state == State::Done;
        self.facts.malformed = self.state == State::Lost;
    }

    /// What was found. Pieces may go on after it; the answer is then that of a longer prefix.
    #[must_use]
    pub fn finish(&self) -> &ReplyFacts {
        &self.facts
    }

    /// States that a byte alone decides.
    fn single(&mut self, byte: u8) {
        let blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.state = match (self.state, byte) {
            (State::KeyEscape, _) => {
                self.token.push(&[byte]);
                State::Key
            }
            (State::TextEscape, _) => {
                self.take_text(&[byte]);
                State::Text
            }
            (State::SkipEscape(depth), _) => State::SkipText(depth),
            (state, _) if blank => state,
            (State::Value, _) => self.begin_value(byte),
            (State::KeyOrEnd, b'"') => {
                self.token.clear();
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

    #[inline(always)]
    fn level(&self) -> Option<Level> {
        self.path.get(usize::from(self.depth.checked_sub(1)?)).copied()
    }

    #[inline(always)]
    fn next_member(&mut self) -> State {
        match self.level() {
            Some(level) if level.object => State::KeyOrEnd,
            Some(level) => {
                self.here = level.place.each();
                State::Value
            }
            None => State::Lost,
        }
    }

    fn begin_value(&mut self, byte: u8) -> State {
        match byte {
            b'{' | b'[' => self.open(byte == b'{'),
            b'"' => {
                self.token.clear();
                if self.here.is_some() { State::Text } else { State::SkipText(0) }
            }
            // An empty array; a bracket after a comma is let through as well.
            b']' if self.level().is_some_and(|level| !level.object) => self.close(),
            _ if whole::begins_scalar(byte) => {
                self.token.clear();
                self.token.push(&[byte]);
                State::Scalar
            }
            _ => State::Lost,
        }
    }

    #[inline(always)]
    fn open(&mut self, object: bool) -> State {
        let Some(place) = self.here else { return State::Skip(1) };
        self.facts.open(place, object);
        let each = place.each();
        let followed = if object { place.has_members() } else { each.is_some() };
        match self.path.get_mut(usize::from(self.depth)) {
            Some(level) if followed => {
                *level = Level { place, object };
                self.depth += 1;
                self.here = each;
                if object { State::KeyOrEnd } else { State::Value }
            }
            _ => State::Skip(1),
        }
    }

    #[inline(always)]
    fn close(&mut self) -> State {
        if let Some(level) = self.level() {
            self.facts.close(level.place);
        }
        self.depth = self.depth.saturating_sub(1);
        self.after_value()
    }

    #[inline(always)]
    fn after_value(&self) -> State {
        if self.depth == 0 { State::Done } else { State::After }
    }

    /// Inside a string: up to its quote, the next backslash or the end of the piece.
    fn in_text(&mut self, piece: &mut Piece<'_>, pos: usize) -> usize {
        let end = piece.text_stop(pos);
        match self.state {
            State::SkipText(_) => {}
            State::Text => self.take_text(piece.between(pos, end)),
            _ => self.token.push(piece.between(pos, end)),
        }
        let Some(byte) = piece.at(end) else { return end };
        self.state = match (self.state, byte) {
            (State::Key, b'"') => {
                self.here = match self.token.kept() {
                    (key, false) => self.level().and_then(|level| level.place.member(key)),
                    (_, true) => None,
                };
                State::Colon
            }
            (State::Text, b'"') => {
                if let Some(place) = self.here {
                    let (text, cut) = self.token.kept();
                    self.facts.text(place, text, cut);
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
                self.take_text(&[byte]);
                State::TextEscape
            }
            (State::SkipText(depth), _) => State::SkipEscape(depth),
            (state, _) => state,
        };
        end + 1
    }

    /// A piece of a text: what the model said is counted as it comes, however long it is.
    fn take_text(&mut self, piece: &[u8]) {
        if self.here.is_some_and(Place::is_said) {
            self.facts.say(piece);
        } else {
            self.token.push(piece);
        }
    }

    /// Whether what is skipped is what the model said.
    #[inline(always)]
    fn skips_arguments(&self) -> bool {
        matches!(self.state, State::Skip(_) | State::SkipText(_) | State::SkipEscape(_))
            && self.here == Some(Place::Arguments)
    }

    /// Inside a number or literal: up to the byte that ends it.
    fn in_scalar(&mut self, byte: u8, pos: usize) -> usize {
        if whole::in_scalar(byte) {
            self.token.push(&[byte]);
            return pos + 1;
        }
        if let Some(place) = self.here {
            let (scalar, cut) = self.token.kept();
            self.facts.scalar(place, scalar, cut);
        }
        self.state = self.after_value();
        pos
    }

    /// Inside a container nobody asks for: only brackets and quotes matter.
    fn skip(&mut self, mut depth: u32, piece: &mut Piece<'_>, mut pos: usize) -> usize {
        loop {
            pos = piece.skip_stop(pos);
            match piece.at(pos) {
                None => {
                    self.state = State::Skip(depth);
                    return pos;
                }
                Some(b'"') => match piece.text_end(pos + 1) {
                    Some(end) => pos = end,
                    None => {
                        self.state = State::SkipText(depth);
                        return pos + 1;
                    }
                },
                Some(b'{' | b'[') => depth = depth.saturating_add(1),
                Some(_) => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        self.state = self.after_value();
                        return pos + 1;
                    }
                }
            }
            pos += 1;
        }
    }
}
