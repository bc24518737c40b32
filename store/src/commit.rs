//! When a batch is committed: a pure function of time and of what is pending.
//!
//! Below 20 ms each halving costs about one percent of a core, above it little is gained
//! (lab, 50,000 records/s).

use crate::frame::{RECORD_BYTES_DUE, RECORDS_MAX};

/// How long the first pending record waits.
pub const WAIT_NS: u64 = 20_000_000;

/// When the ledger thread looks at the slabs again after a commit: they are the queue, so a look is
/// cheap to put off, and each one costs a wake-up.
pub const POLL_NS: u64 = 5_000_000;

/// When the next commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing is pending.
    Never,
    /// At this instant of the monotonic clock.
    At(u64),
    /// Now.
    Now,
}

/// `first_pending_ns` is when the oldest record of the batch came in.
pub fn due(first_pending_ns: Option<u64>, records: usize, bytes: usize, now_ns: u64) -> Due {
    let Some(first) = first_pending_ns else { return Due::Never };
    let at = first.saturating_add(WAIT_NS);
    if records >= RECORDS_MAX || bytes >= RECORD_BYTES_DUE || now_ns >= at {
        return Due::Now;
    }
    // A clock that went back must not put the commit off beyond the wait.
    Due::At(at.min(now_ns.saturating_add(WAIT_NS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whichever_comes_first() {
        let ms = 1_000_000;
        for (first, records, bytes, now, expected) in [
            (None, 0, 0, 5, Due::Never),
            (Some(0), 1, 300, 0, Due::At(20 * ms)),
            (Some(0), 1, 300, 20 * ms - 1, Due::At(20 * ms)),
            (Some(0), 1, 300, 20 * ms, Due::Now),
            (Some(5), 4096, 300, 5, Due::Now),
            (Some(5), 4095, 300, 5, Due::At(5 + 20 * ms)),
            (Some(5), 50, 1 << 20, 5, Due::Now),
            // The case `time-backwards`: no wait beyond the wait.
            (Some(3_600_000 * ms), 1, 300, 0, Due::At(20 * ms)),
            (Some(u64::MAX), 1, 300, u64::MAX, Due::Now),
        ] {
            assert_eq!(due(first, records, bytes, now), expected, "{first:?} {records} {now}");
        }
    }
}
