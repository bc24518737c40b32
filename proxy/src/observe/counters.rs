//! One shard's counters. Written by the shard alone with plain loads and stores, summed by whoever
//! scrapes: no shared cache line, no locked instruction.

use crate::exchange::call::Route;
pub use crate::exchange::codes::CODES;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number only its shard writes.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// One more.
    pub fn increment(&self) {
        self.add(1);
    }

    /// One less; for gauges.
    pub fn decrement(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Relaxed);
    }

    /// Sets it; for gauges.
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    /// Reads it.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A counter for each of [`CODES`]: more than the standard library has defaults for.
#[derive(Debug)]
pub struct PerCode([Counter; CODES.len()]);

impl Default for PerCode {
    fn default() -> PerCode {
        PerCode(std::array::from_fn(|_| Counter::default()))
    }
}

impl std::ops::Deref for PerCode {
    type Target = [Counter];

    fn deref(&self) -> &[Counter] {
        &self.0
    }
}

/// Routes, in the order of their counters.
pub const ROUTES: [&str; 8] = [
    "chat_completions",
    "messages",
    "count_tokens",
    "models",
    "health",
    "unserved",
    "responses",
    "unknown",
];

/// Classes of an answer's status, in the order of their counters.
pub const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// Drivers, by the value of [`Counters::driver`].
pub const DRIVERS: [&str; 4] = ["starting", "io_uring+coop", "io_uring", "epoll"];

/// What one shard counts.
#[derive(Debug, Default)]
pub struct Counters {
    /// The driver in force, a place in [`DRIVERS`].
    pub driver: Counter,
    /// The configuration version in force.
    pub snapshot_version: Counter,
    /// Client connections open now.
    pub connections_open: Counter,
    /// Client connections taken.
    pub connections: Counter,
    /// Client connections that came to no handshake.
    pub client_tls_failures: Counter,
    /// `accept` failures, by descriptor limits mostly.
    pub accept_errors: Counter,
    /// Answers by route and class of status.
    pub requests: [[Counter; CLASSES.len()]; ROUTES.len()],
    /// Refusals by code.
    pub refusals: PerCode,
    /// Attempts begun.
    pub attempts: Counter,
    /// Those of them that went to another candidate than the one before.
    pub fallbacks: Counter,
    /// Replays on a fresh connection.
    pub replays: Counter,
    /// Upstream connections made.
    pub upstream_connections: Counter,
    /// Upstream connections that came to no handshake.
    pub upstream_tls_failures: Counter,
    /// Upstream connections used again.
    pub upstream_reused: Counter,
    /// Idle upstream connections now.
    pub upstream_idle: Counter,
    /// Heartbeats sent.
    pub heartbeats: Counter,
    /// Answers read on after their client had left.
    pub drains: Counter,
    /// Answers without usage.
    pub usage_missing: Counter,
    /// Connection tasks that panicked.
    pub panics: Counter,
    /// Body bytes held now beyond the first buffers.
    pub held_bytes: Counter,
    /// Buffers in use now.
    pub buffers_lent: Counter,
    /// Exchanges settled.
    pub records: Counter,
    /// Exchanges served without a record, as configured.
    pub unrecorded: Counter,
    /// Refusals with a record, their own or a counted one.
    pub refusal_records: Counter,
    /// Refusals of known keys that no record could be had for.
    pub refusals_unrecorded: Counter,
    /// Successes that had no price.
    pub price_missing: Counter,
    /// Pico-dollars held, all in all.
    pub held_picousd: Counter,
    /// Pico-dollars booked above holds.
    pub overrun_picousd: Counter,
    /// Records nobody could be told of, for lack of room.
    pub records_lost: Counter,
}

impl Counters {
    /// Counts an answer.
    pub fn answered(&self, route: Option<Route>, status: u16) {
        let name = route.map_or("unknown", Route::name);
        let route = ROUTES.iter().position(|known| *known == name).unwrap_or(ROUTES.len() - 1);
        let class = usize::from(status / 100).min(5);
        self.requests[route][class].increment();
    }

    /// Counts a refusal.
    pub fn refused(&self, code: &str) {
        if let Some(at) = CODES.iter().position(|known| *known == code) {
            self.refusals[at].increment();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_counts_and_a_gauge_goes_both_ways() {
        let counters = Counters::default();
        counters.answered(Some(Route::ChatCompletions), 200);
        counters.answered(None, 400);
        assert_eq!(counters.requests[0][2].get(), 1);
        assert_eq!(counters.requests[ROUTES.len() - 1][4].get(), 1);
        counters.connections_open.increment();
        counters.connections_open.decrement();
        assert_eq!(counters.connections_open.get(), 0);
    }
}
