//! Where the next sought byte stands, for sixty-four bytes at once.
//!
//! The bytes of a window are compared together ([`Sought`]), so that finding the end of a short
//! string is a shift and a count, not a walk. It keeps one mask; it moves where it is asked to.

use super::simd::{BLOCK, Sought};
use std::marker::PhantomData;

/// The sought bytes in `base..base + 64`, one bit each. It describes one text at one length: a
/// scan makes a new one each time more has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window<S> {
    base: usize,
    mask: u64,
    sought: PhantomData<S>,
}

impl<S: Sought> Window<S> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        // No position is less than a window's length away from here, wrapping included.
        Self { base: usize::MAX - BLOCK, mask: 0, sought: PhantomData }
    }

    /// The first position from `pos` on that holds a sought byte; the length of the text if
    /// there is none.
    #[inline(always)]
    pub(super) fn next(&mut self, text: &[u8], pos: usize) -> usize {
        let offset = pos.wrapping_sub(self.base);
        if offset < BLOCK {
            let rest = self.mask >> offset;
            if rest != 0 {
                return pos + rest.trailing_zeros() as usize;
            }
            return self.refill(text, self.base + BLOCK);
        }
        self.refill(text, pos)
    }

    #[inline(always)]
    fn refill(&mut self, text: &[u8], pos: usize) -> usize {
        (self.base, self.mask) = fill::<S>(text, pos);
        if self.mask == 0 {
            return text.len();
        }
        self.base + self.mask.trailing_zeros() as usize
    }
}

/// The first window from `pos` on that has a sought byte in it; the last one if none has.
#[inline(never)]
fn fill<S: Sought>(text: &[u8], mut pos: usize) -> (usize, u64) {
    while let Some(block) = text.get(pos..).and_then(|rest| rest.first_chunk::<BLOCK>()) {
        let mask = S::mask(block);
        if mask != 0 {
            return (pos, mask);
        }
        pos += BLOCK;
    }
    (pos, last::<S>(text, pos))
}

/// The mask of the last bytes of the text, fewer than a window.
fn last<S: Sought>(text: &[u8], pos: usize) -> u64 {
    let tail = text.get(pos..).unwrap_or_default();
    match text.last_chunk::<BLOCK>() {
        _ if tail.is_empty() => 0,
        // The bits of bytes before `pos` are shifted out, and no bit stands past the end.
        Some(block) => S::mask(block) >> (BLOCK - tail.len()),
        None => {
            let mut block = [b' '; BLOCK];
            if let Some(place) = block.get_mut(..tail.len()) {
                place.copy_from_slice(tail);
            }
            S::mask(&block)
        }
    }
}
