//! How many requests a key makes in a minute.
//!
//! A request that this layer let pass counts, also if a later layer refuses it: whoever hammers a
//! spent budget is slowed down too.

use crate::exchange::call::Call;
use crate::exchange::refusal::Refusal;
use crate::exchange::time::Now;
use crate::govern::bank;
use crate::govern::layer::Layer;

/// Limits requests a minute.
#[derive(Clone, Copy, Debug, Default)]
pub struct Requests;

impl Layer for Requests {
    type Hold = ();

    const NAME: &'static str = "requests";

    fn admit(&self, call: &Call<'_>, (): &mut (), now: Now) -> Result<(), Refusal> {
        let Some(rate) = &call.bundle.limits.requests else { return Ok(()) };
        bank::admit_at_rate(&rate.word, rate.per_minute, now.mono)
            .map_err(|retry_after_ms| Refusal::RateLimited { retry_after_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::bundle::Bundle;
    use crate::exchange::limits::KeyLimits;
    use crate::exchange::time::{MonoNs, UnixMs};
    use crate::govern::layers::world::{bundle, call};

    fn limited(rpm: u32) -> Bundle {
        bundle(KeyLimits { requests_per_minute: Some(rpm), ..KeyLimits::default() })
    }

    fn admit(bundle: &Bundle, mono_ms: u64, wall_s: u64) -> Result<(), Refusal> {
        let now = Now { mono: MonoNs(mono_ms * 1_000_000), wall: UnixMs(wall_s * 1_000) };
        Requests.admit(&call(bundle), &mut (), now)
    }

    fn wait(retry_after_ms: u32) -> Result<(), Refusal> {
        Err(Refusal::RateLimited { retry_after_ms })
    }

    #[test]
    fn one_row_per_request() {
        for (rpm, steps) in [
            // Case `lim-off-by-one`: the first passes, and what the second is told is true.
            (1, vec![(0, Ok(())), (0, wait(60_000)), (59_999, wait(1)), (60_000, Ok(()))]),
            (2, vec![(5, Ok(())), (5, Ok(())), (6, wait(29_999)), (30_005, Ok(()))]),
            (60, vec![(0, Ok(())), (0, Ok(())), (100, Ok(()))]),
            // Case `bud-zero-limits`: 0 is none, not no limit.
            (0, vec![(0, wait(60_000)), (3_600_000, wait(60_000))]),
        ] {
            let bundle = limited(rpm);
            for (at, wanted) in steps {
                assert_eq!(admit(&bundle, at, 0), wanted, "{rpm} a minute at {at} ms");
            }
        }
    }

    #[test]
    fn without_a_limit_everything_passes() {
        let bundle = bundle(KeyLimits::default());
        assert!((0..1_000).all(|_| admit(&bundle, 0, 0).is_ok()));
    }

    /// Case `time-backwards`: 10 requests, the wall clock an hour back, 10 more, forward again.
    #[test]
    fn the_wall_clock_has_no_part_in_it() {
        let bundle = limited(15);
        let mut passed = 0;
        for (mono_ms, wall_s) in [(0, 7_200), (1, 3_600), (2, 7_200)] {
            passed += (0..10).filter(|_| admit(&bundle, mono_ms, wall_s).is_ok()).count();
        }
        assert_eq!(passed, 15, "no extra tokens");
        assert_eq!(admit(&bundle, 4_000, 3_600), Ok(()), "and no lock-out");
    }
}
