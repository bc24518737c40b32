//! How a key stands after a call, as fields of its answer: what is left of the minute, and a
//! warning when a budget is nearly spent. A key without limits costs two branches.

use super::answer::push;
use crate::exchange::limits::Limits;
use crate::exchange::time::Now;
use crate::exchange::window::Period;
use crate::govern::bank;
use codec::http1;

/// Nanoseconds of a millisecond.
const MS_NS: u64 = 1_000_000;

/// Appends the fields.
pub(super) fn write(out: &mut Vec<u8>, limits: &Limits, now: Now) {
    if let Some(rate) = &limits.requests {
        line(out, b"x-ratelimit-limit-requests: ", u64::from(rate.per_minute), b"\r\n");
        line(out, b"x-ratelimit-remaining-requests: ", u64::from(rate.left(now.mono)), b"\r\n");
        // Until the bucket is full again, as OpenAI's field of this name says it.
        let full_in = rate.word.read().saturating_sub(now.mono.0).div_ceil(MS_NS);
        line(out, b"x-ratelimit-reset-requests: ", full_in, b"ms\r\n");
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
    use crate::exchange::time::{MonoNs, UnixMs};
    use crate::exchange::words::MoneyLimit;

    fn fields(limits: &Limits, mono: u64) -> String {
        let mut out = Vec::new();
        write(&mut out, limits, Now { mono: MonoNs(mono), wall: UnixMs(0) });
        String::from_utf8(out).unwrap()
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
        assert!(limits.budgets[0].current(UnixMs(0)).take(80));
        let warned = fields(&limits, 5);
        let warning = "x-tollgate-budget-warning: key total, at least 80 percent spent or held\r\n";
        assert_eq!(warned, format!("{rate}{warning}"));
    }
}
