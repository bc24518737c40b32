//! Instants as people and files write them: RFC 3339, `2027-01-31T12:00:00Z`.
//!
//! Whole milliseconds; finer fractions are cut. An offset is taken, UTC is written. The 60th
//! second of a leap second is refused: the wall clock does not have it. Years 1970 to 9999.

use super::time::UnixMs;
use super::window::{DAY_MS, days_before, year_and_month};
use std::fmt;

/// Milliseconds of a minute and of an hour.
const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// Reads an instant; `None` if it is not one, or not of these years.
pub fn parse(text: &str) -> Option<UnixMs> {
    let (date, rest) = text.split_at_checked(10)?;
    let (time, rest) = rest.split_at_checked(9)?;
    let day_ms = date_ms(date)?;
    let ms = day_ms.checked_add(time_ms(time)?)?;
    let (fraction, offset) = match rest.strip_prefix('.') {
        Some(rest) => {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            rest.split_at_checked(digits).filter(|(fraction, _)| !fraction.is_empty())?
        }
        None => ("0", rest),
    };
    let ms = ms + fraction_ms(fraction);
    let (sign, offset_ms) = offset_ms(offset)?;
    let utc = if sign { ms.checked_sub(offset_ms)? } else { ms.checked_add(offset_ms)? };
    Some(UnixMs(utc))
}

/// Writes an instant; milliseconds only where there are any.
pub fn text(at: UnixMs) -> String {
    Shown(at).to_string()
}

/// An instant as [`text`] writes it, for whoever has room already.
#[derive(Clone, Copy, Debug)]
pub struct Shown(pub UnixMs);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(at) = *self;
        let (year, month) = year_and_month(at);
        let day = (at.0 / DAY_MS).saturating_sub(days_before(year, month)) + 1;
        let in_day = at.0 % DAY_MS;
        let (hour, minute) = (in_day / HOUR_MS, in_day % HOUR_MS / MINUTE_MS);
        let (second, ms) = (in_day % MINUTE_MS / 1_000, in_day % 1_000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if ms == 0 { f.write_str("Z") } else { write!(f, ".{ms:03}Z") }
    }
}

/// `2027-01-31`.
fn date_ms(date: &str) -> Option<u64> {
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if (year.len(), month.len(), day.len()) != (4, 2, 2) || parts.next().is_some() {
        return None;
    }
    let (year, month, day) = (number(year)?, number(month)?, number(day)?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    let first = days_before(year, month);
    let next = if month == 12 { days_before(year + 1, 1) } else { days_before(year, month + 1) };
    let days = first.checked_add(day.checked_sub(1)?)?;
    (days < next).then_some(days * DAY_MS)
}

/// `T12:00:00`.
fn time_ms(time: &str) -> Option<u64> {
    let mut parts = time.strip_prefix(['T', 't'])?.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    if (hour.len(), minute.len(), second.len()) != (2, 2, 2) {
        return None;
    }
    let (hour, minute, second) = (number(hour)?, number(minute)?, number(second)?);
    let within = hour < 24 && minute < 60 && second < 60;
    within.then_some(hour * HOUR_MS + minute * MINUTE_MS + second * 1_000)
}

/// The milliseconds of a fraction's digits.
fn fraction_ms(digits: &str) -> u64 {
    let three = digits.bytes().map(|b| u64::from(b - b'0')).chain([0; 3]).take(3);
    three.fold(0, |ms, digit| ms * 10 + digit)
}

/// `Z`, `+02:00`, `-09:30`: whether the zone is ahead of UTC, and by how much.
fn offset_ms(offset: &str) -> Option<(bool, u64)> {
    if offset.eq_ignore_ascii_case("z") {
        return Some((true, 0));
    }
    let ahead = match offset.bytes().next()? {
        b'+' => true,
        b'-' => false,
        _ => return None,
    };
    let (hour, minute) = offset.get(1..)?.split_once(':')?;
    if (hour.len(), minute.len()) != (2, 2) {
        return None;
    }
    let (hour, minute) = (number(hour)?, number(minute)?);
    (hour < 24 && minute < 60).then_some((ahead, hour * HOUR_MS + minute * MINUTE_MS))
}

/// Digits alone: `parse` would take a sign.
fn number(digits: &str) -> Option<u64> {
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_with_every_offset_and_written_in_utc() {
        // Instants as `date -u +%s` gives them.
        for (written, seconds, ms, utc) in [
            ("1970-01-01T00:00:00Z", 0, 0, "1970-01-01T00:00:00Z"),
            ("2024-02-29T23:59:59Z", 1_709_251_199, 0, "2024-02-29T23:59:59Z"),
            ("2026-12-31t23:59:59.5z", 1_798_761_599, 500, "2026-12-31T23:59:59.500Z"),
            ("2027-01-01T02:00:00+02:00", 1_798_761_600, 0, "2027-01-01T00:00:00Z"),
            ("2026-12-31T14:30:00.0009-09:30", 1_798_761_600, 0, "2027-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59.999Z", 253_402_300_799, 999, "9999-12-31T23:59:59.999Z"),
        ] {
            let at = UnixMs(seconds * 1_000 + ms);
            assert_eq!(parse(written), Some(at), "{written}");
            assert_eq!(text(at), utc);
            assert_eq!(parse(utc), Some(at), "{utc}");
        }
    }

    #[test]
    fn what_is_no_instant_is_none() {
        for written in [
            "",
            "2027-01-01",
            "2027-01-01T00:00:00",
            "2027-01-01 00:00:00Z",
            "2027-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2027-00-01T00:00:00Z",
            "2027-13-01T00:00:00Z",
            "2027-01-00T00:00:00Z",
            "2027-01-32T00:00:00Z",
            "2027-01-01T24:00:00Z",
            "2027-01-01T23:60:00Z",
            "2027-01-01T23:59:60Z",
            "2027-01-01T00:00:00.Z",
            "2027-01-01T00:00:00+0200",
            "2027-01-01T00:00:00+2:00",
            "2027-01-01T00:00:00+24:00",
            "2027-01-01T00:00:00ZZ",
            "+027-01-01T00:00:00Z",
            "2027-+1-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+00:01",
            "2027-01-01T0é:00:00Z",
            "é027-01-01T00:00:00Z",
            "30d",
        ] {
            assert_eq!(parse(written), None, "{written}");
        }
    }

    #[test]
    fn no_instant_is_too_late_to_write() {
        assert!(text(UnixMs(u64::MAX)).ends_with('Z'));
    }
}
