//! The words in which a node keeps how its upstreams do: one a host, one a credential, and when a
//! credential may be asked again. All shards share them.
//!
//! A word knows how it is changed in one step and nothing of why: what its bits mean is
//! `govern::breaker`. They are written when something failed, and by the one that probes;
//! otherwise they are read, and a line that is only read is in every core's cache. No word
//! orders another, so relaxed ordering is enough, and nothing blocks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The circuit breaker of one host, or of one credential. 0 is closed, with nothing counted.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Breaker(AtomicU64);

/// How one credential does.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct CredentialHealth {
    /// Its breaker.
    breaker: AtomicU64,
    /// Until when it cools down, in milliseconds of the monotonic clock.
    cool_until: AtomicU64,
}

/// The numbers of all breakers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerRules {
    /// Failures within the window that open it; with 0 it never opens.
    pub failures: u8,
    /// The window.
    pub window_ms: u32,
    /// How long it stays open.
    pub open_ms: u32,
    /// How long its share of the calls grows after a probe has passed.
    pub slow_start_ms: u32,
    /// The longest a credential cools down.
    pub cool_max_ms: u32,
}

impl Default for BreakerRules {
    fn default() -> BreakerRules {
        BreakerRules {
            failures: 5,
            window_ms: 60_000,
            open_ms: 30_000,
            slow_start_ms: 10_000,
            cool_max_ms: 60_000,
        }
    }
}

/// A word of a breaker, wherever it stands.
pub trait BreakerWord {
    /// The word.
    fn word(&self) -> &AtomicU64;

    /// Its bits.
    fn read(&self) -> u64 {
        self.word().load(Relaxed)
    }

    /// Changes it in one step; whether it was changed. A step that wants nothing writes nothing.
    fn update(&self, step: impl Fn(u64) -> Option<u64>) -> bool {
        self.word().fetch_update(Relaxed, Relaxed, step).is_ok()
    }
}

impl BreakerWord for Breaker {
    fn word(&self) -> &AtomicU64 {
        &self.0
    }
}

impl BreakerWord for CredentialHealth {
    fn word(&self) -> &AtomicU64 {
        &self.breaker
    }
}

impl CredentialHealth {
    /// Until when it cools down.
    pub fn cool_until_ms(&self) -> u64 {
        self.cool_until.load(Relaxed)
    }

    /// Lets it cool until an instant, unless it cools longer already.
    pub fn cool(&self, until_ms: u64) {
        self.cool_until.fetch_max(until_ms, Relaxed);
    }
}
