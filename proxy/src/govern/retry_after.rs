//! How long an upstream says to wait: `retry-after`, in seconds or as a date in any of HTTP's three
//! forms, and `retry-after-ms`, which some send beside it and which is finer.
//!
//! What is neither is as if it were not there; a number that no word holds is a very long time.
//! Nothing is bounded here: whoever waits, or lets others wait, has bounds of their own. What the
//! client is sent is the field as it came.

use crate::exchange::time::UnixMs;
use std::time::SystemTime;

/// The wait in milliseconds; `None` if nothing readable was said.
pub fn wait_ms(seconds: Option<&[u8]>, millis: Option<&[u8]>, wall: UnixMs) -> Option<u64> {
    let millis = text(millis).and_then(|text| scaled(text.trim(), 1));
    millis.or_else(|| {
        let seconds = text(seconds)?.trim();
        scaled(seconds, 1_000).or_else(|| until(seconds, wall))
    })
}

fn text(value: Option<&[u8]>) -> Option<&str> {
    std::str::from_utf8(value?).ok()
}

/// A decimal number without sign or exponent, in units of so many: three digits behind the point
/// count, and what they are short of a unit counts as one.
fn scaled(text: &str, unit: u64) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) {
        return None;
    }
    // Digits only: what does not parse is too large.
    let whole = whole.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(unit);
    let part = part.get(..part.len().min(3)).unwrap_or_default();
    let thousandths = thousandths(part);
    Some(whole.saturating_add((thousandths * unit).div_ceil(1_000)))
}

/// Up to three digits behind the point as thousandths.
fn thousandths(part: &str) -> u64 {
    let places = [100, 10, 1].into_iter();
    part.bytes().zip(places).map(|(digit, place)| u64::from(digit - b'0') * place).sum()
}

/// From now to a date; nothing for one that is over.
fn until(text: &str, wall: UnixMs) -> Option<u64> {
    let date = httpdate::parse_http_date(text).ok()?;
    let since = date.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let at = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    Some(at.saturating_sub(wall.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-10-21T07:27:30Z.
    const NOW: UnixMs = UnixMs(1_792_567_650_000);

    fn wait(seconds: &str) -> Option<u64> {
        wait_ms(Some(seconds.as_bytes()), None, NOW)
    }

    #[test]
    fn seconds_and_dates_in_three_forms() {
        for (text, wanted) in [
            ("0", Some(0)),
            ("5", Some(5_000)),
            (" 7 ", Some(7_000)),
            ("1.5", Some(1_500)),
            ("0.0001", Some(0)),
            ("2.0005", Some(2_000)),
            ("86400", Some(86_400_000)),
            ("999999999999999999999", Some(u64::MAX)),
            ("Wed, 21 Oct 2026 07:28:00 GMT", Some(30_000)),
            ("Wed, 21 Oct 2015 07:28:00 GMT", Some(0)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(0)),
            ("Sun Nov  6 08:49:37 1994", Some(0)),
            ("9e99", None),
            ("-5", None),
            ("+5", None),
            ("NaN", None),
            ("", None),
            (".", None),
            (".5", None),
            ("1.2.3", None),
            ("٣", None),
            ("tomorrow", None),
        ] {
            assert_eq!(wait(text), wanted, "{text:?}");
        }
        assert_eq!(wait_ms(Some(b"\xff"), None, NOW), None);
        assert_eq!(wait_ms(None, None, NOW), None);
    }

    /// The field cases: what was sent, by the clock that stands there.
    #[test]
    fn the_fields_of_the_case_file() {
        let cases = include_str!("../../../tests/corpus/cases/field_cases.jsonl");
        let row = |id: &str| {
            let rows = cases.lines().map(serde_json::from_str::<serde_json::Value>);
            rows.map(Result::unwrap).find(|row| row["id"] == id).unwrap()
        };
        let texts = |row: &serde_json::Value| {
            let texts = row["variants_text"].as_array().unwrap();
            texts.iter().map(|text| text.as_str().unwrap().to_owned()).collect::<Vec<String>>()
        };
        let dates = row("retry-after-date");
        assert_eq!(dates["expect"]["clock"], "2026-10-21T07:27:30Z");
        let waits: Vec<Option<u64>> = texts(&dates).iter().map(|text| wait(text)).collect();
        let wanted = dates["expect"]["wait_s"].as_array().unwrap();
        let wanted = wanted.iter().map(|s| s.as_u64().map(|s| s * 1_000));
        assert_eq!(waits, wanted.collect::<Vec<_>>());
        let huge: Vec<Option<u64>> =
            texts(&row("retry-after-huge")).iter().map(|text| wait(text)).collect();
        assert_eq!(huge, [Some(u64::MAX), Some(86_400_000), None, None, None, None]);
    }

    #[test]
    fn milliseconds_count_before_seconds_if_they_can_be_read() {
        for (millis, wanted) in [("250", 250), ("250.2", 251), ("soon", 3_000), ("", 3_000)] {
            assert_eq!(wait_ms(Some(b"3"), Some(millis.as_bytes()), NOW), Some(wanted), "{millis}");
        }
    }
}
