//! How a key stands after a call, as fields of its answer: what is left of the minute, and a
//! warning when a budget is nearly spent. A key without limits costs two branches.

use super::answer::push;
use crate::exchange::call::Dialect;
use crate::exchange::limits::{Limits, RequestRate};
use crate::exchange::rfc3339::Shown;
use crate::exchange::time::{Now, UnixMs};
use crate::exchange::window::Period;
use crate::govern::bank;
use codec::http1;
use std::io::Write as _;

/// Nanoseconds of a millisecond.
const MS_NS: u64 = 1_000_000;

/// Milliseconds of a second.
const SECOND_MS: u64 = 1_000;

/// Appends the fields, by the names that clients of the dialect know.
pub(super) fn write(out: &mut Vec<u8>, dialect: Dialect, limits: &Limits, now: Now) {
    if let Some(rate) = &limits.requests {
        match dialect {
            Dialect::Messages => write_anthropic(out, rate, now),
            Dialect::Chat | Dialect::Responses | Dialect::Gemini => write_openai(out, rate, now),
        }
    }
    for budget in &limits.budgets {
        if bank::is_nearly_spent(budget.current(now.wall)) {
            let warning: &[u8] = match budget.period {
                Period::Total => b"key total, at least 80 percent spent or held",
                Period::Month => b"key monthly, at least 80 percent spent or held",
            };
            return push(out, b"x-tollgate-budget-warning", warning);
        }
    }
}

fn write_openai(out: &mut Vec<u8>, rate: &RequestRate, now: Now) {
    line(out, b"x-ratelimit-limit-requests: ", u64::from(rate.per_minute), b"\r\n");
    line(out, b"x-ratelimit-remaining-requests: ", u64::from(rate.left(now.mono)), b"\r\n");
    line(out, b"x-ratelimit-reset-requests: ", full_in_ms(rate, now), b"ms\r\n");
}

fn write_anthropic(out: &mut Vec<u8>, rate: &RequestRate, now: Now) {
    let (limit, left) = (u64::from(rate.per_minute), u64::from(rate.left(now.mono)));
    line(out, b"anthropic-ratelimit-requests-limit: ", limit, b"\r\n");
    line(out, b"anthropic-ratelimit-requests-remaining: ", left, b"\r\n");
    // In whole seconds, and never too early.
    let full_at = now.wall.0.saturating_add(full_in_ms(rate, now));
    let full_at = Shown(UnixMs(full_at.div_ceil(SECOND_MS).saturating_mul(SECOND_MS)));
    // Into memory: it does not fail.
    let _ = write!(out, "anthropic-ratelimit-requests-reset: {full_at}\r\n");
}

/// Until the bucket is full again: both dialects mean that by a reset.
fn full_in_ms(rate: &RequestRate, now: Now) -> u64 {
    rate.word.read().saturating_sub(now.mono.0).div_ceil(MS_NS)
}

fn line(out: &mut Vec<u8>, name: &[u8], value: u64, unit: &[u8]) {
    out.extend_from_slice(name);
    http1::decimal(out, value);
    out.extend_from_slice(unit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::limits::{Books, KeyLimits};
    use crate::exchange::money::PicoUsd;
    use crate::exchange::time::MonoNs;
    use crate::exchange::words::MoneyLimit;

    fn fields_in(dialect: Dialect, limits: &Limits, mono: u64) -> String {
        let mut out = Vec::new();
        let now = Now { mono: MonoNs(mono), wall: UnixMs(1_767_225_599_001) };
        write(&mut out, dialect, limits, now);
        String::from_utf8(out).unwrap()
    }

    fn fields(limits: &Limits, mono: u64) -> String {
        fields_in(Dialect::Chat, limits, mono)
    }

    #[test]
    fn a_key_hears_what_is_left_and_when_a_budget_is_nearly_spent() {
        assert_eq!(fields(&Limits::default(), 5), "");
        let values = KeyLimits {
            requests_per_minute: Some(60),
            budget_total: MoneyLimit::new(PicoUsd(100)).ok(),
            budget_month: MoneyLimit::new(PicoUsd(1_000)).ok(),
            ..KeyLimits::default()
        };
        let limits = Limits::new(values, Books::default(), UnixMs(0));
        bank::admit_at_rate(&limits.requests.as_ref().unwrap().word, 60, MonoNs(5)).unwrap();
        let rate = "x-ratelimit-limit-requests: 60\r\nx-ratelimit-remaining-requests: 59\r\n\
                    x-ratelimit-reset-requests: 1000ms\r\n";
        assert_eq!(fields(&limits, 5), rate);
        // A second after one ms past a full second, so in the second after the next.
        let rate_in_messages = "anthropic-ratelimit-requests-limit: 60\r\n\
                                anthropic-ratelimit-requests-remaining: 59\r\n\
                                anthropic-ratelimit-requests-reset: 2026-01-01T00:00:01Z\r\n";
        assert_eq!(fields_in(Dialect::Messages, &limits, 5), rate_in_messages);
        assert_eq!(fields_in(Dialect::Messages, &Limits::default(), 5), "");
        assert!(limits.budgets[0].current(UnixMs(0)).take(80));
        let warned = fields(&limits, 5);
        let warning = "x-tollgate-budget-warning: key total, at least 80 percent spent or held\r\n";
        assert_eq!(warned, format!("{rate}{warning}"));
    }
}
