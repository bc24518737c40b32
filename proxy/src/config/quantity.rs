//! Sizes and time spans as people write them. Whole numbers only: `1.5s` is `1500ms`.

use std::time::Duration;

/// Bytes of `"32MiB"`; units are B, KiB, MiB and GiB, so that nobody has to guess what MB means.
pub(super) fn size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let scale: u64 = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(scale)
}

/// The time span of `"500ms"`, `"10s"`, `"2m"` or `"1h"`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let ms_each: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(ms_each).map(Duration::from_millis)
}

/// Digits and what follows them.
fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    // `parse` alone would take a sign; digits were counted, so there is none.
    Some((number.parse().ok()?, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_whole_numbers_with_a_unit_and_nothing_else() {
        for (text, bytes) in [
            ("0B", Some(0)),
            ("32MiB", Some(32 << 20)),
            ("4KiB", Some(4096)),
            ("1GiB", Some(1 << 30)),
            ("32", None),
            ("MiB", None),
            ("", None),
            ("+1MiB", None),
            ("-1MiB", None),
            ("1 MiB", None),
            ("1.5MiB", None),
            ("32MB", None),
            ("1mib", None),
            ("99999999999GiB", None),
            ("99999999999999999999B", None),
        ] {
            assert_eq!(size(text), bytes, "{text}");
        }
        for (text, ms) in [
            ("500ms", Some(500)),
            ("10s", Some(10_000)),
            ("2m", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("0s", Some(0)),
            ("10", None),
            ("s", None),
            ("1.5s", None),
            ("-1s", None),
            ("10 s", None),
            ("1s ", None),
            ("1d", None),
            ("18446744073709551615h", None),
        ] {
            assert_eq!(duration(text), ms.map(Duration::from_millis), "{text}");
        }
    }
}
