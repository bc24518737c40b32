//! The containers around a position, one bit each: depth costs no stack and no allocation.

use super::DEPTH_MAX;

/// Bits in a word of the stack.
const WORD: usize = u64::BITS as usize;

/// The containers around the current position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nest {
    depth: usize,
    in_object: bool,
    /// Bit d: the container at depth d is an object.
    kinds: [u64; DEPTH_MAX / WORD],
}

impl Nest {
    pub(super) fn new() -> Self {
        Self { depth: 0, in_object: false, kinds: [0; DEPTH_MAX / WORD] }
    }

    /// How many containers there are around the position.
    #[inline(always)]
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether the innermost one is an object.
    #[inline(always)]
    pub(super) fn in_object(&self) -> bool {
        self.in_object
    }

    /// False if this would be one level too many.
    #[inline(always)]
    pub(super) fn push(&mut self, object: bool) -> bool {
        let depth = self.depth;
        let Some(word) = self.kinds.get_mut(depth / WORD) else { return false };
        let bit = 1u64 << (depth % WORD);
        *word = if object { *word | bit } else { *word & !bit };
        self.depth = depth + 1;
        self.in_object = object;
        true
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        // At depth 0 the index wraps to one that has no word: nothing is an object there.
        let parent = self.depth.wrapping_sub(1);
        let word = self.kinds.get(parent / WORD).copied().unwrap_or_default();
        self.in_object = word >> (parent % WORD) & 1 == 1;
    }
}
