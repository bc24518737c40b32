//! Sixteen bytes at a time, with the instructions every x86-64 has.
//!
//! Bytes are loaded by value, never through a pointer: what is left of `unsafe` is the promise
//! that SSE2 is there.

use super::{BLOCK, Kind};
use core::arch::x86_64::{
    __m128i, _mm_cmpeq_epi8, _mm_cmplt_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x,
    _mm_set1_epi8, _mm_xor_si128,
};

/// Bytes in a register.
const LANE: usize = 16;

#[cfg(not(target_feature = "sse2"))]
compile_error!("x86-64 without SSE2: use the portable masks");

#[inline(always)]
#[expect(unsafe_code, reason = "the compiler asks for a promise where the target gives one")]
pub(super) fn mask(block: &[u8; BLOCK], kind: Kind) -> u64 {
    // SAFETY: SSE2 is a feature of the target; without it this file does not compile.
    unsafe { lanes(block, kind) }
}

#[target_feature(enable = "sse2")]
#[inline]
fn lanes(block: &[u8; BLOCK], kind: Kind) -> u64 {
    let mut mask = 0;
    for (index, bytes) in block.as_chunks::<LANE>().0.iter().enumerate() {
        let lane = load(bytes);
        let hits = match kind {
            // As a signed byte everything from 0x80 is negative, and with one bit turned the
            // quote stands right above the controls: one comparison finds all three.
            Kind::Special => {
                let turned = _mm_xor_si128(lane, _mm_set1_epi8(0x02));
                let low = _mm_cmplt_epi8(turned, _mm_set1_epi8(0x21));
                _mm_or_si128(low, equal(lane, b'\\'))
            }
            Kind::Ends => ends(lane),
            Kind::Brackets => {
                // Square and curly brackets differ in one bit.
                let folded = _mm_or_si128(lane, _mm_set1_epi8(0x20));
                let brackets = _mm_or_si128(equal(folded, b'{'), equal(folded, b'}'));
                _mm_or_si128(brackets, equal(lane, b'"'))
            }
        };
        mask |= u64::from(_mm_movemask_epi8(hits).cast_unsigned()) << (LANE * index);
    }
    mask
}

#[target_feature(enable = "sse2")]
#[inline]
fn ends(lane: __m128i) -> __m128i {
    _mm_or_si128(equal(lane, b'"'), equal(lane, b'\\'))
}

#[target_feature(enable = "sse2")]
#[inline]
fn equal(lane: __m128i, byte: u8) -> __m128i {
    _mm_cmpeq_epi8(lane, _mm_set1_epi8(byte.cast_signed()))
}

/// One unaligned load, once compiled.
#[target_feature(enable = "sse2")]
#[inline]
fn load(bytes: &[u8; LANE]) -> __m128i {
    let both = i128::from_le_bytes(*bytes);
    #[expect(clippy::cast_possible_truncation, reason = "each half is what is asked for")]
    let (high, low) = ((both >> 64) as i64, both as i64);
    _mm_set_epi64x(high, low)
}
