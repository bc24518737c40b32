//! How many calls of a key are in flight.
//!
//! The place is taken at admission and given back once: when the client is seen gone, else when
//! the exchange settles. Refusals of later layers settle too, so no path keeps a place.

use crate::exchange::bundle::Bundle;
use crate::exchange::call::Call;
use crate::exchange::money::PicoUsd;
use crate::exchange::refusal::Refusal;
use crate::exchange::time::Now;
use crate::govern::layer::Layer;

/// Limits calls in flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct InFlight;

/// A place among the calls in flight, or none.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Place {
    taken: bool,
}

impl Layer for InFlight {
    type Hold = Place;

    const NAME: &'static str = "concurrency";

    fn admit(&self, call: &Call<'_>, hold: &mut Place, _now: Now) -> Result<(), Refusal> {
        let Some(limit) = &call.bundle.limits.concurrent else { return Ok(()) };
        debug_assert!(!hold.taken, "a call is admitted once");
        hold.taken = limit.inside.enter(limit.max);
        if hold.taken { Ok(()) } else { Err(Refusal::ConcurrencyLimited) }
    }

    fn leave(&self, bundle: &Bundle, hold: &mut Place) {
        if let Some(limit) = &bundle.limits.concurrent
            && std::mem::take(&mut hold.taken)
        {
            limit.inside.leave();
        }
    }

    fn settle(&self, bundle: &Bundle, mut hold: Place, _cost: PicoUsd) {
        self.leave(bundle, &mut hold);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::limits::KeyLimits;
    use crate::govern::layers::world::{bundle, call};

    fn limited(concurrent: Option<u32>) -> Bundle {
        bundle(KeyLimits { concurrent, ..KeyLimits::default() })
    }

    fn inside(bundle: &Bundle) -> u32 {
        bundle.limits.concurrent.as_ref().unwrap().inside.inside()
    }

    #[test]
    fn as_many_pass_at_once_as_the_limit_says() {
        for (limit, passes) in [(Some(0), 0), (Some(1), 1), (Some(3), 3), (None, 5)] {
            let bundle = limited(limit);
            let mut holds: [Place; 5] = Default::default();
            let admit = |hold| InFlight.admit(&call(&bundle), hold, Now::default());
            let judged: Vec<_> = holds.iter_mut().map(admit).collect();
            let (passed, refused) = judged.split_at(passes);
            assert!(passed.iter().all(Result::is_ok), "{limit:?}");
            assert!(refused.iter().all(|r| *r == Err(Refusal::ConcurrencyLimited)), "{limit:?}");
            for hold in holds {
                InFlight.settle(&bundle, hold, PicoUsd(0));
            }
            if limit.is_some() {
                assert_eq!(inside(&bundle), 0);
            }
        }
    }

    /// Case `lim-cancel-leak`: the client is gone a hundred times, and the exchange ends later.
    #[test]
    fn a_place_is_given_back_once_when_the_client_leaves() {
        let bundle = limited(Some(1));
        for _ in 0..100 {
            let mut hold = Place::default();
            assert_eq!(InFlight.admit(&call(&bundle), &mut hold, Now::default()), Ok(()));
            InFlight.leave(&bundle, &mut hold);
            assert_eq!(inside(&bundle), 0);
            InFlight.leave(&bundle, &mut hold);
            InFlight.settle(&bundle, hold, PicoUsd(1));
        }
        assert_eq!(inside(&bundle), 0);
        assert_eq!(InFlight.admit(&call(&bundle), &mut Place::default(), Now::default()), Ok(()));
    }
}
