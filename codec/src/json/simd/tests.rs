//! Every implementation beside one that looks at each byte alone.

use super::*;

fn naive(block: &[u8; BLOCK], sought: impl Fn(u8) -> bool) -> u64 {
    block.iter().rev().fold(0, |mask, &byte| mask << 1 | u64::from(sought(byte)))
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | ..=0x1f | 0x80..)
}

fn is_end(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\')
}

fn is_bracket(byte: u8) -> bool {
    matches!(byte, b'"' | b'{' | b'}' | b'[' | b']')
}

/// Whether a byte is sought.
type Truth = fn(u8) -> bool;

/// Each kind and the truth about it.
const KINDS: [(Kind, Truth); 3] =
    [(Kind::Special, is_special), (Kind::Ends, is_end), (Kind::Brackets, is_bracket)];

/// What runs here and its portable twin both say the truth.
fn compare(block: &[u8; BLOCK]) {
    for (kind, sought) in KINDS {
        let expected = naive(block, sought);
        assert_eq!(mask(block, kind), expected, "{kind:?} {block:?}");
        assert_eq!(portable::mask(block, kind), expected, "portable {kind:?} {block:?}");
    }
}

#[test]
fn every_byte_at_every_place() {
    for byte in 0..=u8::MAX {
        for filler in [b'a', b'"', 0, 0xff] {
            for place in 0..BLOCK {
                let mut block = [filler; BLOCK];
                block[place] = byte;
                compare(&block);
            }
        }
    }
}

#[test]
fn blocks_of_any_bytes() {
    // A multiplicative generator: every run sees the same blocks.
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..10_000 {
        compare(&std::array::from_fn(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        }));
    }
}
