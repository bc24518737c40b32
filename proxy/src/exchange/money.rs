//! Money: whole pico-dollars. A float never holds any.

use std::fmt;

/// Pico-dollars in a dollar.
pub const PICO_PER_USD: u64 = 1_000_000_000_000;

/// The cost of one record. 18 million dollars is the most it can say; sums are `u128`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PicoUsd(pub u64);

impl fmt::Display for PicoUsd {
    /// `$0.000123`, all digits that matter and at least two.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, mut frac) = (self.0 / PICO_PER_USD, self.0 % PICO_PER_USD);
        let mut width = 12;
        while width > 2 && frac.is_multiple_of(10) {
            frac /= 10;
            width -= 1;
        }
        write!(f, "${whole}.{frac:0width$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_every_digit_that_matters() {
        for (pico, text) in [
            (0, "$0.00"),
            (1, "$0.000000000001"),
            (1_600_000_000, "$0.0016"),
            (PICO_PER_USD, "$1.00"),
            (12 * PICO_PER_USD + 500_000_000_000, "$12.50"),
        ] {
            assert_eq!(PicoUsd(pico).to_string(), text);
        }
    }
}
