//! Tokens that are all in one piece: found by their ends, compared in place, copied nowhere.
//!
//! It decides nothing by itself: a byte or token it does not know, or of which the end has not
//! arrived, is left to the states of the scan, from its first byte.

use super::{ReplyScan, State};
use crate::json::simd::{Brackets, Ends};
use crate::json::window::Window;

/// A piece of an answer and what is known about its bytes.
pub(super) struct Piece<'p> {
    bytes: &'p [u8],
    ends: Window<Ends>,
    brackets: Window<Brackets>,
}

impl<'p> Piece<'p> {
    pub(super) fn new(bytes: &'p [u8]) -> Self {
        Self { bytes, ends: Window::new(), brackets: Window::new() }
    }

    #[inline(always)]
    pub(super) fn at(&self, pos: usize) -> Option<u8> {
        self.bytes.get(pos).copied()
    }

    #[inline(always)]
    pub(super) fn between(&self, start: usize, end: usize) -> &'p [u8] {
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// The next quote or backslash; the end of the piece if there is none.
    #[inline(always)]
    pub(super) fn text_stop(&mut self, pos: usize) -> usize {
        self.ends.next(self.bytes, pos)
    }

    /// The next quote or bracket; the end of the piece if there is none.
    #[inline(always)]
    pub(super) fn skip_stop(&mut self, pos: usize) -> usize {
        self.brackets.next(self.bytes, pos)
    }

    /// The closing quote of a string that goes on at `pos`, if it is in this piece.
    #[inline(always)]
    pub(super) fn text_end(&mut self, pos: usize) -> Option<usize> {
        let mut stop = self.text_stop(pos);
        loop {
            match self.at(stop)? {
                b'"' => return Some(stop),
                _ => stop = self.text_stop(stop + 2),
            }
        }
    }

    /// The byte behind a number or literal, if it is in this piece.
    #[inline(always)]
    fn scalar_end(&self, start: usize) -> Option<usize> {
        let rest = self.bytes.get(start..)?;
        Some(start + rest.iter().position(|&byte| !in_scalar(byte))?)
    }
}

/// Bytes of numbers and literals, and of what some servers write in their place.
#[inline(always)]
pub(super) fn in_scalar(byte: u8) -> bool {
    const TABLE: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0;
        while byte < table.len() {
            let letter = byte as u8;
            table[byte] = letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'-' | b'.');
            byte += 1;
        }
        table
    };
    TABLE.get(usize::from(byte)).copied().unwrap_or_default()
}

impl ReplyScan {
    /// Goes on from `pos`, between two tokens, at least one byte far.
    pub(super) fn whole_tokens(&mut self, piece: &mut Piece<'_>, mut pos: usize) -> usize {
        let mut state = self.state;
        while let Some(byte) = piece.at(pos) {
            (pos, state) = match (state, byte) {
                (State::KeyOrEnd, b'"') => match piece.text_end(pos + 1) {
                    Some(end) => {
                        let key = piece.between(pos + 1, end);
                        self.here = self.level().and_then(|level| level.place.member(key));
                        match piece.at(end + 1) {
                            Some(b':') => (end + 2, State::Value),
                            _ => (end + 1, State::Colon),
                        }
                    }
                    None => break,
                },
                (State::Value, b'"') => match piece.text_end(pos + 1) {
                    Some(end) => {
                        if let Some(place) = self.here {
                            self.facts.text(place, piece.between(pos + 1, end), false);
                        }
                        (end + 1, self.after_value())
                    }
                    None => break,
                },
                (State::Value, b'{' | b'[') => (pos + 1, self.open(byte == b'{')),
                (State::Value, _) if in_scalar(byte) && !matches!(byte, b'+' | b'.') => {
                    match piece.scalar_end(pos) {
                        Some(end) => {
                            if let Some(place) = self.here {
                                self.facts.scalar(place, piece.between(pos, end), false);
                            }
                            (end, self.after_value())
                        }
                        None => break,
                    }
                }
                (State::After, b',') => (pos + 1, self.next_member()),
                (State::After, b'}') if self.in_object() => (pos + 1, self.close()),
                (State::After, b']') if !self.in_object() => (pos + 1, self.close()),
                (State::KeyOrEnd | State::Colon | State::Value | State::After, b' ' | b'\n') => {
                    (pos + 1, state)
                }
                (State::Colon, b':') => (pos + 1, State::Value),
                (State::KeyOrEnd | State::Colon | State::Value | State::After, _) => break,
                _ => {
                    self.state = state;
                    return pos;
                }
            };
        }
        self.state = state;
        if let Some(byte) = piece.at(pos) {
            self.single(byte);
            return pos + 1;
        }
        pos
    }
}
