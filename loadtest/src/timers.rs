//! Instants at which a token wants to be looked at. A timer cannot be taken back: its owner checks
//! on waking whether it still waits for that instant. Bound: one timer per token at a time, kept
//! by the callers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// Pending instants, the earliest first.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, u64)>>,
}

impl Timers {
    /// Asks for `token` to be looked at once `at` has come.
    pub(crate) fn set(&mut self, at: Instant, token: u64) {
        self.heap.push(Reverse((at, token)));
    }

    /// How long the loop may sleep; `None` without timers, so that no clock is read in vain.
    pub(crate) fn sleep(&self, now: impl FnOnce() -> Instant) -> Option<Duration> {
        self.heap.peek().map(|Reverse((at, _))| at.saturating_duration_since(now()))
    }

    /// Whether any timer is pending.
    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The next timer whose instant has come.
    pub(crate) fn due(&mut self, now: Instant) -> Option<(Instant, u64)> {
        let Reverse((at, token)) = *self.heap.peek()?;
        if at > now {
            return None;
        }
        self.heap.pop();
        Some((at, token))
    }
}
