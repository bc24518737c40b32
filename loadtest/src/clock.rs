//! The one place of this package that reads the clock: it measures from outside, so no clock is
//! injected into it.

use std::time::Instant;

/// The present instant.
#[expect(clippy::disallowed_methods, reason = "load and stand-in live outside the gateway's clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
