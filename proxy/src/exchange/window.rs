//! Windows of time in which money is counted: which one an instant falls into, and its end.
//!
//! Calendar arithmetic on the wall clock, in UTC and in whole milliseconds; no clock of its own,
//! no other zone. It lives among the nouns because the control thread, which prepares windows
//! ahead, knows nothing of the judgement. Bound: ids are a `u32`, months since January 1970.

use super::time::UnixMs;

/// Milliseconds of a day; UTC has no other length here.
pub(super) const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Days from the first of March of the year 0 to the first of January 1970.
const DAYS_BEFORE_1970: u64 = 719_468;

/// Days in 400 years of the Gregorian calendar, after which it repeats.
const DAYS_IN_400_YEARS: u64 = 146_097;

/// How often a budget begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Never.
    Total,
    /// At midnight UTC on the first of a month.
    Month,
}

/// A window's number. Within a period later windows have higher numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WindowId(pub u32);

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its number.
    pub id: WindowId,
    /// The first instant that is no longer in it.
    pub end: UnixMs,
}

/// The end of a window that has none.
pub const NEVER: UnixMs = UnixMs(u64::MAX);

impl Period {
    /// The window an instant falls into.
    pub fn window(self, at: UnixMs) -> Window {
        match self {
            Period::Total => Window { id: WindowId(0), end: NEVER },
            Period::Month => {
                let (year, month) = year_and_month(at);
                let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
                let id = (year.saturating_sub(1970)) * 12 + (month - 1);
                let id = WindowId(u32::try_from(id).unwrap_or(u32::MAX));
                let end = days_before(next_year, next).saturating_mul(DAY_MS);
                Window { id, end: UnixMs(end) }
            }
        }
    }

    /// Its name in texts and records.
    pub fn name(self) -> &'static str {
        match self {
            Period::Total => "total",
            Period::Month => "monthly",
        }
    }
}

/// The day of an instant, counted from the first of January 1970, UTC.
pub fn day(at: UnixMs) -> u32 {
    u32::try_from(at.0 / DAY_MS).unwrap_or(u32::MAX)
}

/// The first instant behind a day.
pub fn day_end(day: u32) -> UnixMs {
    UnixMs((u64::from(day) + 1) * DAY_MS)
}

/// The month of an instant, 1 to 12, UTC.
pub fn month(at: UnixMs) -> u64 {
    year_and_month(at).1
}

/// Year and month (1 to 12). Years are counted from March here, so that the leap day is the last
/// of its year and the lengths of the months repeat every five.
pub(super) fn year_and_month(at: UnixMs) -> (u64, u64) {
    let days = at.0 / DAY_MS + DAYS_BEFORE_1970;
    let (cycle, day) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let year = cycle * 400 + year;
    if from_march < 10 { (year, from_march + 3) } else { (year + 1, from_march - 9) }
}

/// Days from 1970 to the first of a month, for years from 1970.
pub(super) fn days_before(year: u64, month: u64) -> u64 {
    let (year, from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (cycle, year) = (year / 400, year % 400);
    let day_of_year = (153 * from_march + 2) / 5;
    let day = year * 365 + year / 4 - year / 100 + day_of_year;
    (cycle * DAYS_IN_400_YEARS + day).saturating_sub(DAYS_BEFORE_1970)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_ends_at_midnight_on_the_first_of_the_next() {
        // Instants and ends as `date -u +%s` gives them, in seconds.
        for (at, id, end) in [
            (0, 0, 2_678_400),
            (2_678_399, 0, 2_678_400),
            (2_678_400, 1, 5_097_600),
            (951_782_400, 361, 951_868_800),       // 2000-02-29
            (1_709_251_199, 649, 1_709_251_200),   // 2024-02-29T23:59:59
            (1_709_251_200, 650, 1_711_929_600),   // 2024-03-01
            (1_798_761_599, 683, 1_798_761_600),   // 2026-12-31T23:59:59
            (1_798_761_600, 684, 1_801_440_000),   // 2027-01-01
            (4_107_542_399, 1_561, 4_107_542_400), // 2100-02-28T23:59:59, no leap year
        ] {
            let window = Period::Month.window(UnixMs(at * 1_000));
            let wanted = Window { id: WindowId(id), end: UnixMs(end * 1_000) };
            assert_eq!(window, wanted, "{at}");
        }
    }

    #[test]
    fn the_months_of_six_centuries_follow_each_other_without_a_gap() {
        let mut at = UnixMs(0);
        for n in 0..600 * 12 {
            let window = Period::Month.window(at);
            assert_eq!(window.id, WindowId(n));
            assert_eq!(month(at), u64::from(n) % 12 + 1);
            assert_eq!(Period::Month.window(UnixMs(window.end.0 - 1)), window);
            let days = (window.end.0 - at.0) / DAY_MS;
            assert!((28..=31).contains(&days) && window.end.0.is_multiple_of(DAY_MS), "{n}");
            at = window.end;
        }
        assert_eq!(day(at), 219_146, "600 years have 146 leap days");
    }

    #[test]
    fn no_instant_is_too_late() {
        let last = UnixMs(u64::MAX);
        assert_eq!(Period::Month.window(last).id, WindowId(u32::MAX));
        assert_eq!(Period::Total.window(last), Window { id: WindowId(0), end: NEVER });
        assert_eq!(day(last), u32::MAX);
    }
}
