//! JSON numbers: a small machine that can stop at any byte, and the reading of counts.
//!
//! No number is converted to floating point and none is re-written; a count we judge is read as
//! an unsigned whole number or named for what it is instead.

use super::span::Count;

/// How far into a number the scan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberState {
    /// Nothing read yet.
    Start,
    /// `-`.
    Minus,
    /// A leading zero: no digit may follow.
    Zero,
    /// Digits before the point.
    Whole,
    /// The point itself: a digit must follow.
    Point,
    /// Digits after the point.
    Fraction,
    /// `e`: a sign or digit must follow.
    Exponent,
    /// The exponent's sign: a digit must follow.
    ExponentSign,
    /// Digits of the exponent.
    ExponentDigits,
}

/// Why the scan of a number stopped.
pub(super) enum NumberStop {
    /// At the first byte after a whole number.
    End(usize),
    /// At the end of what has arrived.
    More(usize),
    /// At a byte that makes it no number.
    Bad(usize),
}

pub(super) fn scan(body: &[u8], mut pos: usize, state: &mut NumberState) -> NumberStop {
    loop {
        let Some(&byte) = body.get(pos) else { return NumberStop::More(pos) };
        match state.next(byte) {
            Some(next) => *state = next,
            None if state.is_complete() => return NumberStop::End(pos),
            None => return NumberStop::Bad(pos),
        }
        pos += 1;
    }
}

impl NumberState {
    fn next(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Start, b'-') => Some(Self::Minus),
            (Self::Start | Self::Minus, b'0') => Some(Self::Zero),
            (Self::Start | Self::Minus, b'1'..=b'9') | (Self::Whole, b'0'..=b'9') => {
                Some(Self::Whole)
            }
            (Self::Zero | Self::Whole, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Whole | Self::Fraction, b'e' | b'E') => Some(Self::Exponent),
            (Self::Exponent, b'+' | b'-') => Some(Self::ExponentSign),
            (Self::Exponent | Self::ExponentSign | Self::ExponentDigits, b'0'..=b'9') => {
                Some(Self::ExponentDigits)
            }
            _ => None,
        }
    }

    fn is_complete(self) -> bool {
        matches!(self, Self::Zero | Self::Whole | Self::Fraction | Self::ExponentDigits)
    }
}

/// Reads a scalar that has already passed the scan.
pub(super) fn count(scalar: &[u8]) -> Count {
    match scalar.first() {
        Some(b'n') => Count::Null,
        Some(b'-') => Count::Negative,
        Some(b'0'..=b'9') => whole(scalar),
        _ => Count::NotNumber,
    }
}

fn whole(digits: &[u8]) -> Count {
    let mut value: u64 = 0;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return Count::NotWhole;
        }
    }
    for &byte in digits {
        let digit = u64::from(byte - b'0');
        match value.checked_mul(10).and_then(|tens| tens.checked_add(digit)) {
            Some(next) => value = next,
            None => return Count::TooLarge,
        }
    }
    Count::Value(value)
}
