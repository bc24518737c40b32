//! Money: whole pico-dollars. A float never holds any.

use std::fmt;

/// Pico-dollars in a dollar.
pub const PICO_PER_USD: u64 = 1_000_000_000_000;

/// The cost of one record. 18 million dollars is the most it can say; sums are `u128`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PicoUsd(pub u64);

/// Decimals of a dollar that a pico-dollar can say.
const DECIMALS: usize = 12;

/// Why a text is no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMoney {
    /// It is not digits with at most one point between them.
    Form,
    /// It says less than a pico-dollar.
    TooFine,
    /// It says more than [`PicoUsd`] can.
    TooMuch,
}

impl PicoUsd {
    /// The amount of a decimal text in dollars, `"1.00"` or `"0.000123"`: digits, and digits
    /// behind one point; no sign, no unit, no space.
    pub fn from_decimal(text: &str) -> Result<PicoUsd, NotMoney> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(decimals) {
            return Err(NotMoney::Form);
        }
        let kept = decimals.trim_end_matches('0');
        if kept.len() > DECIMALS {
            return Err(NotMoney::TooFine);
        }
        // Both parts are digits, so only their size can be at fault.
        let whole: u64 = whole.parse().map_err(|_| NotMoney::TooMuch)?;
        let below = format!("{kept:0<DECIMALS$}").parse().map_err(|_| NotMoney::TooMuch)?;
        let pico = whole.checked_mul(PICO_PER_USD).and_then(|whole| whole.checked_add(below));
        pico.map(PicoUsd).ok_or(NotMoney::TooMuch)
    }
}

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
            assert_eq!(PicoUsd::from_decimal(&text[1..]), Ok(PicoUsd(pico)));
        }
    }

    #[test]
    fn an_amount_is_a_plain_decimal_and_exact() {
        for (text, amount) in [
            ("1", Ok(PICO_PER_USD)),
            ("0", Ok(0)),
            ("007.50", Ok(7_500_000_000_000)),
            ("0.000000000001000", Ok(1)),
            ("18446744.073709551615", Ok(u64::MAX)),
            ("18446744.073709551616", Err(NotMoney::TooMuch)),
            ("99999999999999999999", Err(NotMoney::TooMuch)),
            ("0.0000000000001", Err(NotMoney::TooFine)),
            ("", Err(NotMoney::Form)),
            (".", Err(NotMoney::Form)),
            ("1.", Err(NotMoney::Form)),
            (".5", Err(NotMoney::Form)),
            ("-1.00", Err(NotMoney::Form)),
            ("+1.00", Err(NotMoney::Form)),
            ("$1.00", Err(NotMoney::Form)),
            ("1,00", Err(NotMoney::Form)),
            ("1.0.0", Err(NotMoney::Form)),
            (" 1", Err(NotMoney::Form)),
            ("1e3", Err(NotMoney::Form)),
            ("١", Err(NotMoney::Form)),
            ("inf", Err(NotMoney::Form)),
        ] {
            assert_eq!(PicoUsd::from_decimal(text), amount.map(PicoUsd), "{text}");
        }
    }
}
