//! The containers around a position, one bit each: depth costs no stack and no allocation.

use super::DEPTH_MAX;

/// Bits in a word of the stack.
const WORD: usize = u64::BITS as usize;

/// The containers around the current position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nest {
    depth: usize,
    /// The innermost containers, up to [`WORD`] of them: bit 0 is the last, 1 is an object.
    inner: u64,
    /// The ones around those, outermost first.
    outer: [u64; DEPTH_MAX / WORD - 1],
}

impl Nest {
    pub(super) fn new() -> Self {
        Self { depth: 0, inner: 0, outer: [0; DEPTH_MAX / WORD - 1] }
    }

    /// How many containers there are around the position.
    #[inline(always)]
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether the innermost one is an object.
    #[inline(always)]
    pub(super) fn in_object(&self) -> bool {
        self.inner & 1 == 1
    }

    /// False if this would be one level too many.
    #[inline(always)]
    pub(super) fn push(&mut self, object: bool) -> bool {
        if self.depth.is_multiple_of(WORD) && !self.put_away() {
            return false;
        }
        self.depth += 1;
        self.inner = self.inner << 1 | u64::from(object);
        true
    }

    /// Leaves the innermost container, if there is one.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.inner >>= 1;
        if self.depth.is_multiple_of(WORD) {
            self.take_out();
        }
    }

    /// Makes room in the inner word, all of which is used.
    #[cold]
    fn put_away(&mut self) -> bool {
        let Some(before) = (self.depth / WORD).checked_sub(1) else { return true };
        let place = self.outer.get_mut(before);
        let is_room = place.is_some();
        if let Some(place) = place {
            *place = self.inner;
        }
        is_room
    }

    /// Fills the inner word, of which nothing is left.
    #[cold]
    fn take_out(&mut self) {
        let before = (self.depth / WORD).checked_sub(1);
        self.inner = before.and_then(|index| self.outer.get(index)).copied().unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_is_kept() {
        let is_object = |level: usize| level.is_multiple_of(3) || level % 64 == 63;
        let mut nest = Nest::new();
        assert!(!nest.in_object());
        for level in 0..DEPTH_MAX {
            assert!(nest.push(is_object(level)), "{level}");
            assert_eq!((nest.depth(), nest.in_object()), (level + 1, is_object(level)));
        }
        assert!(!nest.push(true));
        assert_eq!((nest.depth(), nest.in_object()), (DEPTH_MAX, is_object(DEPTH_MAX - 1)));
        for level in (0..DEPTH_MAX).rev() {
            assert_eq!((nest.depth(), nest.in_object()), (level + 1, is_object(level)));
            nest.pop();
        }
        assert_eq!((nest.depth(), nest.in_object()), (0, false));
        nest.pop();
        assert_eq!((nest.depth(), nest.in_object()), (0, false));
    }
}
