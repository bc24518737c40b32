//! The inside of a string: finds its end and checks controls, escapes and UTF-8 on the way.
//!
//! Plain bytes are skipped by [`Window`]; a byte that needs judgement is looked at alone. Can
//! stop at any byte: an unfinished escape or character is taken up again from its first byte
//! (at most six bytes).

use super::error::JsonErrorKind as Kind;
use super::simd::Special;
use super::window::Window;

/// A string in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    /// The byte after the opening quote.
    pub(super) start: usize,
    /// Bytes from 0x80 so far.
    pub(super) non_ascii: usize,
    /// A backslash was seen.
    pub(super) escaped: bool,
}

impl Text {
    pub(super) fn at(start: usize) -> Self {
        Self { start, non_ascii: 0, escaped: false }
    }
}

/// Why the scan of a string stopped.
pub(super) enum TextStop {
    /// At the closing quote.
    Quote(usize),
    /// At the first byte that cannot be judged yet.
    More(usize),
    /// At a byte that must not be there.
    Bad(Kind, usize),
}

/// Goes on from `pos`, which is inside the string and not inside an escape or character.
#[inline(never)]
pub(super) fn scan(
    body: &[u8],
    pos: usize,
    text: &mut Text,
    window: &mut Window<Special>,
) -> TextStop {
    // In registers until the string ends.
    let mut near = *window;
    let stop = judge(body, pos, text, &mut near);
    *window = near;
    stop
}

#[inline(always)]
fn judge(body: &[u8], pos: usize, text: &mut Text, window: &mut Window<Special>) -> TextStop {
    let mut pos = window.next(body, pos);
    loop {
        let judged = match body.get(pos) {
            Some(b'"') => return TextStop::Quote(pos),
            Some(b'\\') => {
                text.escaped = true;
                match body.get(pos + 1) {
                    // What nearly all escapes of real bodies are.
                    Some(b'"' | b'\\' | b'n') => Step::Past(pos + 2),
                    _ => escape(body, pos),
                }
            }
            Some(0x80..) => characters(body, pos, text),
            Some(_) => return TextStop::Bad(Kind::ControlInString, pos),
            None => return TextStop::More(pos),
        };
        match judged {
            Step::Past(next) => pos = window.next(body, next),
            Step::More(at) => return TextStop::More(at),
            Step::Bad(kind, at) => return TextStop::Bad(kind, at),
        }
    }
}

enum Step {
    Past(usize),
    More(usize),
    Bad(Kind, usize),
}

/// The escape whose backslash is at `pos`.
#[inline(never)]
fn escape(body: &[u8], pos: usize) -> Step {
    match body.get(pos + 1) {
        None => Step::More(pos),
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Step::Past(pos + 2),
        Some(b'u') => {
            for at in pos + 2..pos + 6 {
                match body.get(at) {
                    None => return Step::More(pos),
                    Some(byte) if byte.is_ascii_hexdigit() => {}
                    Some(_) => return Step::Bad(Kind::BadEscape, at),
                }
            }
            Step::Past(pos + 6)
        }
        Some(_) => Step::Bad(Kind::BadEscape, pos + 1),
    }
}

/// A run of characters from 0x80, the first at `pos`.
#[inline(never)]
fn characters(body: &[u8], mut pos: usize, text: &mut Text) -> Step {
    loop {
        let length = match body.get(pos) {
            Some(&lead) if lead >= 0x80 => match character(body, pos, lead) {
                Ok(Some(length)) => length,
                Ok(None) => return Step::More(pos),
                Err(()) => return Step::Bad(Kind::BadUtf8, pos),
            },
            _ => return Step::Past(pos),
        };
        text.non_ascii += length;
        pos += length;
    }
}

/// Length of the character with this lead byte; `None` if it is not whole yet.
#[inline(always)]
fn character(body: &[u8], pos: usize, lead: u8) -> Result<Option<usize>, ()> {
    // The range of the second byte is what keeps out overlong forms, surrogates and values
    // beyond U+10FFFF (RFC 3629 §4).
    let (length, second) = match lead {
        0xc2..=0xdf => (2, 0x80..=0xbf),
        0xe0 => (3, 0xa0..=0xbf),
        0xed => (3, 0x80..=0x9f),
        0xe1..=0xef => (3, 0x80..=0xbf),
        0xf0 => (4, 0x90..=0xbf),
        0xf1..=0xf3 => (4, 0x80..=0xbf),
        0xf4 => (4, 0x80..=0x8f),
        _ => return Err(()),
    };
    match body.get(pos + 1) {
        None => return Ok(None),
        Some(byte) if second.contains(byte) => {}
        Some(_) => return Err(()),
    }
    for at in pos + 2..pos + length {
        match body.get(at) {
            None => return Ok(None),
            Some(0x80..=0xbf) => {}
            Some(_) => return Err(()),
        }
    }
    Ok(Some(length))
}
