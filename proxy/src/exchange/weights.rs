//! Shares of calls as whole numbers.

use std::ops::Rem;

/// The largest weight of a candidate: with it, sums and products over a plan fit their words.
pub const WEIGHT_MAX: u32 = 1 << 24;

/// The greatest number that divides both; of 0 and a number, the number.
pub fn common_divisor<N: Copy + PartialEq + From<u8> + Rem<Output = N>>(mut a: N, mut b: N) -> N {
    while b != N::from(0) {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_common_divisor() {
        for (a, b, wanted) in [(0, 0, 0), (0, 7, 7), (7, 0, 7), (12, 18, 6), (17, 5, 1), (9, 9, 9)]
        {
            assert_eq!(common_divisor::<u64>(a, b), wanted, "{a} {b}");
        }
    }
}
