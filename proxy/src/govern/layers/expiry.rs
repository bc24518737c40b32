//! Whether the key is still good.
//!
//! The instant in `expires` is the first at which it is not: a key that expires at noon is refused
//! at noon sharp. The wall clock decides, since the instant was given by people.

use crate::exchange::call::Call;
use crate::exchange::refusal::Refusal;
use crate::exchange::time::Now;
use crate::govern::layer::Layer;

/// Refuses expired keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expiry;

impl Layer for Expiry {
    type Hold = ();

    const NAME: &'static str = "expiry";

    fn admit(&self, call: &Call<'_>, (): &mut (), now: Now) -> Result<(), Refusal> {
        match call.bundle.limits.expires {
            Some(expires) if now.wall >= expires => Err(Refusal::KeyExpired),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::limits::KeyLimits;
    use crate::exchange::time::UnixMs;
    use crate::govern::layers::world::{at_wall, bundle, call};

    #[test]
    fn at_its_last_instant_a_key_is_over() {
        for (expires, wall, good) in [
            (None, u64::MAX, true),
            (Some(1_000), 999, true),
            (Some(1_000), 1_000, false),
            (Some(1_000), 1_001, false),
            (Some(0), 0, false),
        ] {
            let expires = expires.map(UnixMs);
            let bundle = bundle(KeyLimits { expires, ..KeyLimits::default() });
            let judged = Expiry.admit(&call(&bundle), &mut (), at_wall(wall));
            let wanted = if good { Ok(()) } else { Err(Refusal::KeyExpired) };
            assert_eq!(judged, wanted, "{expires:?} at {wall}");
        }
    }
}
