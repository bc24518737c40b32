//! Shares of calls as whole numbers.

/// The largest weight of a candidate: with it, sums and products over a plan fit their words.
pub const WEIGHT_MAX: u32 = 1 << 24;

/// The greatest number that divides both; of 0 and a number, the number.
pub fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
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
            assert_eq!(common_divisor(a, b), wanted, "{a} {b}");
        }
    }
}
