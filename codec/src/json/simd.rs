//! The sought bytes among sixty-four, as one bit each: what both scans jump by.
//!
//! On x86-64 the comparisons are SSE2 instructions, which every such processor has; elsewhere
//! the same is said in plain loops ([`portable`]). Tests compare both with a third that looks at
//! each byte alone. The only `unsafe` of this crate is the call that claims SSE2.

#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable;
#[cfg(target_arch = "x86_64")]
mod sse2;
#[cfg(test)]
mod tests;

#[cfg(not(target_arch = "x86_64"))]
use portable::mask;
#[cfg(target_arch = "x86_64")]
use sse2::mask;

/// Bytes in a block: as many as there are bits in its mask.
pub(super) const BLOCK: usize = 64;

/// What to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What a string of a request cannot simply skip: quote, backslash, controls, not ASCII.
    Special,
    /// What a string of an answer stops at: quote, backslash.
    Ends,
    /// What matters in a container nobody asks for: quotes and brackets.
    Brackets,
}

/// A [`Kind`] as a type, so that each has code of its own.
pub(super) trait Sought {
    const KIND: Kind;

    /// Bit n says whether byte n is one of them.
    #[inline(always)]
    fn mask(block: &[u8; BLOCK]) -> u64 {
        mask(block, Self::KIND)
    }
}

/// [`Kind::Special`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Special;

/// [`Kind::Ends`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends;

/// [`Kind::Brackets`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Brackets;

impl Sought for Special {
    const KIND: Kind = Kind::Special;
}

impl Sought for Ends {
    const KIND: Kind = Kind::Ends;
}

impl Sought for Brackets {
    const KIND: Kind = Kind::Brackets;
}
