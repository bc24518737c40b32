//! Plain loops over arrays of fixed size, for processors whose instructions are not spelled out:
//! the compiler turns them into vector code where it can.

use super::{BLOCK, Kind};

/// Sums the eight bytes of a word into its highest byte.
const SUM_BYTES: u64 = 0x0101_0101_0101_0101;

#[inline(always)]
pub(super) fn mask(block: &[u8; BLOCK], kind: Kind) -> u64 {
    match kind {
        // As a signed byte everything from 0x80 is negative: one comparison finds it and the
        // controls.
        Kind::Special => pack(block, |byte| is_end(byte) | (byte.cast_signed() < 0x20)),
        Kind::Ends => pack(block, is_end),
        // Square and curly brackets differ in one bit.
        Kind::Brackets => {
            pack(block, |byte| (byte == b'"') | (byte | 0x20 == b'{') | (byte | 0x20 == b'}'))
        }
    }
}

#[inline(always)]
fn is_end(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\')
}

/// For each hit the bit of its place in its word of eight, then the words summed up.
#[inline(always)]
fn pack(block: &[u8; BLOCK], hit: impl Fn(u8) -> bool) -> u64 {
    let mut hits = [0_u8; BLOCK];
    for (index, (place, &byte)) in hits.iter_mut().zip(block).enumerate() {
        *place = if hit(byte) { 1 << (index % 8) } else { 0 };
    }
    let mut mask = 0;
    for (index, word) in hits.as_chunks::<8>().0.iter().enumerate() {
        mask |= (u64::from_le_bytes(*word).wrapping_mul(SUM_BYTES) >> 56) << (8 * index);
    }
    mask
}
