//! The shortest way through compact JSON: no whitespace, strings with nothing to judge in them.
//!
//! It refuses nothing by itself. At the first thing it does not know, or that has not wholly
//! arrived, it stops where `step` can go on: before a token, or inside a string.

use super::super::simd::Special;
use super::super::span::Span;
use super::super::text::Text;
use super::super::window::Window;
use super::{Expect, Halt, Next, Tokens, Visit};

impl Tokens {
    /// Members, elements and brackets without whitespace, strings without anything to judge.
    #[inline(always)]
    pub(super) fn run_compact(
        &mut self,
        body: &[u8],
        mut pos: usize,
        mut expect: Expect,
        window: &mut Window<Special>,
        visit: &mut impl Visit,
    ) -> Next {
        loop {
            if matches!(expect, Expect::Key | Expect::KeyOrEnd) {
                (pos, expect) = self.run_members(body, pos, expect, window, visit)?;
                if matches!(expect, Expect::Key | Expect::KeyOrEnd) {
                    return Ok((pos, expect));
                }
            }
            if matches!(expect, Expect::Value | Expect::ValueOrEnd) {
                (pos, expect) = match body.get(pos) {
                    Some(b'"') => self.run_string(body, pos + 1, window, visit)?,
                    Some(b'{') => self.open(pos, true, visit)?,
                    Some(b'[') => self.open(pos, false, visit)?,
                    _ => return Ok((pos, expect)),
                };
            }
            if expect == Expect::After {
                (pos, expect) = self.run_after(body, pos, visit);
            }
            if !matches!(
                expect,
                Expect::Key | Expect::KeyOrEnd | Expect::Value | Expect::ValueOrEnd
            ) {
                return Ok((pos, expect));
            }
        }
    }

    /// Closing brackets behind a value, and the comma behind them.
    #[inline(always)]
    fn run_after(
        &mut self,
        body: &[u8],
        mut pos: usize,
        visit: &mut impl Visit,
    ) -> (usize, Expect) {
        loop {
            let in_object = self.nest.in_object();
            match body.get(pos) {
                Some(b',') => return self.comma(pos),
                Some(b'}') if in_object => {}
                Some(b']') if !in_object => {}
                _ => return (pos, Expect::After),
            }
            pos += 1;
            self.nest.pop();
            visit.close(self.nest.depth(), pos);
            if self.nest.depth() == 0 {
                return (pos, Expect::Done);
            }
        }
    }

    /// Members of objects one after the other, into objects that are values of members.
    #[inline(always)]
    fn run_members(
        &mut self,
        body: &[u8],
        mut pos: usize,
        mut expect: Expect,
        window: &mut Window<Special>,
        visit: &mut impl Visit,
    ) -> Next {
        while is_at(body, pos, b'"') {
            let start = pos + 1;
            let end = window.next(body, start);
            if !is_at(body, end, b'"') {
                self.text = Text::at(start);
                return Ok((end, Expect::InKey));
            }
            visit
                .key(body, self.nest.depth(), Text::at(start), end)
                .map_err(|kind| Halt::Bad(kind, start))?;
            if !is_at(body, end + 1, b':') {
                return Ok((end + 1, Expect::Colon));
            }
            pos = end + 2;
            (pos, expect) = match body.get(pos) {
                Some(b'"') => self.run_string(body, pos + 1, window, visit)?,
                Some(b'{') => self.open(pos, true, visit)?,
                Some(b'[') => return self.open(pos, false, visit),
                Some(b't') => self.run_word(body, pos, b"true", visit)?,
                Some(b'f') => self.run_word(body, pos, b"false", visit)?,
                Some(b'n') => self.run_word(body, pos, b"null", visit)?,
                Some(b'1'..=b'9') => self.run_digits(body, pos, visit)?,
                _ => return Ok((pos, Expect::Value)),
            };
            if expect == Expect::After {
                if !is_at(body, pos, b',') {
                    return Ok((pos, expect));
                }
                (pos, expect) = (pos + 1, Expect::Key);
            } else if expect != Expect::KeyOrEnd {
                return Ok((pos, expect));
            }
        }
        Ok((pos, expect))
    }

    /// A string value from behind its opening quote.
    #[inline(always)]
    fn run_string(
        &mut self,
        body: &[u8],
        start: usize,
        window: &mut Window<Special>,
        visit: &mut impl Visit,
    ) -> Next {
        let text = Text::at(start);
        let end = window.next(body, start);
        if !is_at(body, end, b'"') {
            self.text = text;
            return Ok((end, Expect::InString));
        }
        visit.string(body, &self.nest, text, end).map_err(|kind| Halt::Bad(kind, start))?;
        Ok((end + 1, Expect::After))
    }

    /// A literal that is all here.
    #[inline(always)]
    fn run_word(&self, body: &[u8], pos: usize, word: &[u8], visit: &mut impl Visit) -> Next {
        let end = pos + word.len();
        if body.get(pos..end) != Some(word) {
            return Ok((pos, Expect::Value));
        }
        self.end_scalar(body, Span { start: pos, end }, visit)?;
        Ok((end, Expect::After))
    }

    /// A whole number of which the end is here.
    #[inline(always)]
    fn run_digits(&self, body: &[u8], pos: usize, visit: &mut impl Visit) -> Next {
        let mut end = pos + 1;
        while body.get(end).is_some_and(u8::is_ascii_digit) {
            end += 1;
        }
        match body.get(end) {
            Some(b',' | b'}') => {
                self.end_scalar(body, Span { start: pos, end }, visit)?;
                Ok((end, Expect::After))
            }
            _ => Ok((pos, Expect::Value)),
        }
    }

    #[inline(always)]
    fn end_scalar(&self, body: &[u8], span: Span, visit: &mut impl Visit) -> Result<(), Halt> {
        visit.scalar(body, self.nest.depth(), span).map_err(|kind| Halt::Bad(kind, span.start))
    }
}

#[inline(always)]
fn is_at(body: &[u8], pos: usize, byte: u8) -> bool {
    body.get(pos) == Some(&byte)
}
