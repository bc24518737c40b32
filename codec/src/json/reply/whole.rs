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

    /// How long it is.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
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
        text_end(&mut self.ends, self.bytes, pos)
    }
}

#[inline(always)]
fn text_end(ends: &mut Window<Ends>, bytes: &[u8], pos: usize) -> Option<usize> {
    let mut stop = ends.next(bytes, pos);
    loop {
        match bytes.get(stop)? {
            b'"' => return Some(stop),
            // The byte behind a backslash is never an end.
            _ => stop = ends.next(bytes, stop + 2),
        }
    }
}

/// The byte behind a number or literal, if it is in this piece.
#[inline(always)]
fn scalar_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut end = start + 1;
    while in_scalar(*bytes.get(end)?) {
        end += 1;
    }
    Some(end)
}

/// Capitals too: `NaN` is no JSON, but no reason to lose the usage behind it.
#[inline(always)]
pub(super) fn begins_scalar(byte: u8) -> bool {
    in_scalar(byte) && !matches!(byte, b'+' | b'.')
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
        loop {
            let from = pos;
            pos = match self.state {
                State::KeyOrEnd => self.whole_members(piece, pos),
                State::Value => self.whole_element(piece, pos),
                State::After => self.whole_after(piece, pos),
                State::Colon => pos,
                _ => return pos,
            };
            let Some(byte) = piece.at(pos) else { return pos };
            if pos == from {
                // Nothing to jump over, or not all here.
                self.single(byte);
                return pos + 1;
            }
        }
    }

    /// Members one after the other, and the objects they hold.
    fn whole_members(&mut self, piece: &mut Piece<'_>, mut pos: usize) -> usize {
        let bytes = piece.bytes;
        let mut ends = piece.ends;
        'object: while let Some(level) = self.level() {
            let members = level.place.members();
            loop {
                let Some([b'"', text @ ..]) = bytes.get(pos..) else { break 'object };
                let end = ends.next(bytes, pos + 1);
                let Some((key, [b'"', b':', ..])) = text.split_at_checked(end - pos - 1) else {
                    break 'object;
                };
                let here = members.find(key);
                let value = end + 2;
                let after = match bytes.get(value).copied() {
                    Some(b'"') => text_end(&mut ends, bytes, value + 1).map(|end| {
                        if let (Some(place), Some(text)) = (here, bytes.get(value + 1..end)) {
                            self.facts.text(place, text, false);
                        }
                        end + 1
                    }),
                    Some(byte @ (b'{' | b'[')) => {
                        self.here = here;
                        self.state = self.open(byte == b'{');
                        pos = value + 1;
                        if self.state != State::KeyOrEnd {
                            break 'object;
                        }
                        continue 'object;
                    }
                    Some(byte) if begins_scalar(byte) => scalar_end(bytes, value).inspect(|&end| {
                        if let (Some(place), Some(scalar)) = (here, bytes.get(value..end)) {
                            self.facts.scalar(place, scalar, false);
                        }
                    }),
                    _ => None,
                };
                let Some(after) = after else {
                    self.here = here;
                    self.state = State::Value;
                    pos = value;
                    break 'object;
                };
                if bytes.get(after) != Some(&b',') {
                    self.state = State::After;
                    pos = self.whole_after(piece, after);
                    if self.state != State::KeyOrEnd {
                        break 'object;
                    }
                    continue 'object;
                }
                pos = after + 1;
            }
        }
        piece.ends = ends;
        pos
    }

    /// An element of an array, or the bracket that opens it.
    fn whole_element(&mut self, piece: &mut Piece<'_>, pos: usize) -> usize {
        match piece.at(pos) {
            Some(byte @ (b'{' | b'[')) => {
                self.state = self.open(byte == b'{');
                pos + 1
            }
            Some(b'"') => {
                let Some(end) = piece.text_end(pos + 1) else { return pos };
                if let Some(place) = self.here {
                    self.facts.text(place, piece.between(pos + 1, end), false);
                }
                self.state = self.after_value();
                end + 1
            }
            _ => pos,
        }
    }

    /// Closing brackets behind a value, and the comma behind them.
    fn whole_after(&mut self, piece: &Piece<'_>, mut pos: usize) -> usize {
        while let Some(level) = self.level() {
            match piece.at(pos) {
                Some(b',') => {
                    self.state = self.next_member();
                    return pos + 1;
                }
                Some(b'}') if level.object => self.state = self.close(),
                Some(b']') if !level.object => self.state = self.close(),
                _ => return pos,
            }
            pos += 1;
        }
        pos
    }
}
