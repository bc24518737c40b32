//! The only reader of the system clock in this package.

use crate::exchange::time::{MonoNs, Now, UnixMs};
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Both clocks, read now.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn now() -> Now {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64);
    Now { mono: mono(), wall: UnixMs(wall) }
}

/// The monotonic clock, read now; it counts from the first call in the process.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn mono() -> MonoNs {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = *START.get_or_init(Instant::now);
    MonoNs(start.elapsed().as_nanos() as u64)
}
