//! What a closed breaker counts: failures within the window, and calls that went well to their end
//! since the first of them.
//!
//! The window is counted in eighths, so a failure is forgotten after seven to eight of them:
//! never too late, at most an eighth too early. Good ends are counted only while there are
//! failures, and [`GOOD_EACH`] of them for each failure empty the word: what an upstream in good
//! health costs is a read.
//!
//! Bounds: [`FAILURES_MAX`]; a count that is full halves all of them, which leaves their relation;
//! slices are numbered by 20 bits, so that a word left alone for days may be taken for one of now:
//! it has a few failures more then.

use crate::exchange::breaker::BreakerRules;

/// The most failures that can be asked for: what a slice of four bits counts.
pub const FAILURES_MAX: u8 = 15;

/// Slices of the window.
const SLICES: u64 = 8;
const SLICE_BITS: u64 = 4;
const COUNTS: u64 = (1 << (SLICES * SLICE_BITS)) - 1;
const SLICE_NUMBER: u64 = (1 << 20) - 1;

/// All counts of failures, halved.
const HALVES: u64 = 0x7777_7777;

/// Good ends are counted above the slices, up to this.
const GOOD_AT: u64 = SLICES * SLICE_BITS;
const GOOD_BITS: u64 = 10;
const GOOD_MAX: u64 = (1 << GOOD_BITS) - 1;

/// Good ends for each failure after which the failures are forgotten: an upstream that fails less
/// often is in no trouble, and its word is not to be written on and on.
const GOOD_EACH: u64 = 64;

/// What is counted while calls pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// The number of the newest slice.
    slice: u64,
    /// Failures, a few bits a slice, the newest lowest.
    failures: u64,
    /// Calls that went well to their end.
    good: u64,
}

// === impl Counted ===

impl Counted {
    /// From the low bits of a word.
    pub(super) fn of(bits: u64) -> Counted {
        Counted {
            slice: bits >> (GOOD_AT + GOOD_BITS),
            failures: bits & COUNTS,
            good: bits >> GOOD_AT & GOOD_MAX,
        }
    }

    /// The low bits of a word.
    pub(super) fn bits(self) -> u64 {
        self.slice << (GOOD_AT + GOOD_BITS) | self.good << GOOD_AT | self.failures
    }

    /// Whether no failure is counted.
    pub(super) fn is_empty(self) -> bool {
        self.failures == 0
    }

    /// What still counts now.
    fn at(self, now_ms: u64, rules: &BreakerRules) -> Counted {
        let slice_ms = (u64::from(rules.window_ms) / SLICES).max(1);
        let now = (now_ms / slice_ms) & SLICE_NUMBER;
        let gone = now.wrapping_sub(self.slice) & SLICE_NUMBER;
        // A shard whose clock was read a moment earlier counts into the newest slice.
        if self.failures != 0 && gone > SLICE_NUMBER - SLICES {
            return self;
        }
        if gone >= SLICES {
            return Counted { slice: now, ..Counted::default() };
        }
        let failures = self.failures << (gone * SLICE_BITS) & COUNTS;
        // As if they had come evenly.
        Counted { slice: now, failures, good: self.good * (SLICES - gone) / SLICES }
    }

    fn sum(self) -> u64 {
        let full = u64::from(FAILURES_MAX);
        (0..SLICES).map(|at| self.failures >> (at * SLICE_BITS) & full).sum()
    }

    fn halved(self) -> Counted {
        Counted { failures: self.failures >> 1 & HALVES, good: self.good / 2, ..self }
    }

    /// With one more failure.
    pub(super) fn failed(self, now_ms: u64, rules: &BreakerRules) -> Counted {
        let mut counted = self.at(now_ms, rules);
        let full = u64::from(FAILURES_MAX);
        if counted.failures & full == full {
            counted = counted.halved();
        }
        counted.failures += 1;
        counted
    }

    /// Whether the breaker opens with the last failure.
    pub(super) fn opens(self, rules: &BreakerRules) -> bool {
        let sum = self.sum();
        let needed = u64::from(rules.failures.min(FAILURES_MAX));
        needed > 0 && sum >= needed && sum >= self.good
    }

    /// With one more good end.
    pub(super) fn ended_well(self, now_ms: u64, rules: &BreakerRules) -> Counted {
        let mut counted = self.at(now_ms, rules);
        if counted.good == GOOD_MAX {
            counted = counted.halved();
        }
        counted.good += 1;
        let forgiven = counted.good >= counted.sum() * GOOD_EACH;
        if forgiven { Counted::default() } else { counted }
    }
}
