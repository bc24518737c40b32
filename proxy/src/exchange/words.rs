//! The words of the bank: one cache line each, shared by all shards.
//!
//! A word knows how it is changed in one step and nothing of why: which amounts, which limits
//! and what a shortage means is `govern::bank`. Every change is a single read-modify-write of one
//! word, and no word orders another, so relaxed ordering is enough. Nothing here blocks: a loop
//! repeats only because another shard got ahead.
//!
//! Bounds: a window counts up to [`MONEY_LIMIT_MAX`]; beyond its range it saturates, it never
//! wraps.

use super::money::{PICO_PER_USD, PicoUsd};
use super::time::UnixMs;
use super::window::{Window, WindowId};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// The highest money limit of a window: what fits an `i64` of pico-dollars, rounded down.
pub const MONEY_LIMIT_MAX: PicoUsd = PicoUsd(9_000_000 * PICO_PER_USD);

/// A change below a thousand dollars, made while a word is a million dollars from its end, is one
/// add: no number of shards can bring that word to wrap in between.
const SMALL: u64 = 1_000 * PICO_PER_USD;
const FAR_FROM_END: i64 = i64::MAX - 1_000_000 * PICO_PER_USD as i64;

/// A money limit that fits a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoneyLimit(u64);

/// A money limit above [`MONEY_LIMIT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitTooHigh;

impl MoneyLimit {
    /// A limit of at most [`MONEY_LIMIT_MAX`]. 0 is a limit: nothing passes.
    pub fn new(limit: PicoUsd) -> Result<MoneyLimit, LimitTooHigh> {
        if limit > MONEY_LIMIT_MAX { Err(LimitTooHigh) } else { Ok(MoneyLimit(limit.0)) }
    }

    /// The limit.
    pub fn pico(self) -> PicoUsd {
        PicoUsd(self.0)
    }
}

/// The money of one budget in one window of time.
#[derive(Debug)]
#[repr(align(64))]
pub struct MoneyWindow {
    /// Limit less what is spent and what is held.
    remaining: AtomicI64,
    /// What was settled here.
    spent: AtomicU64,
    /// Read at a refusal and written by the control thread alone.
    limit: AtomicU64,
    /// The first instant that is no longer in it.
    end: UnixMs,
    /// The window behind it, once the control thread has prepared it.
    next: OnceLock<Arc<MoneyWindow>>,
    id: WindowId,
}

impl MoneyWindow {
    /// A window in which `spent` was settled before, as the ledger tells after a restart.
    pub fn new(window: Window, limit: MoneyLimit, spent: PicoUsd) -> MoneyWindow {
        let remaining = i128::from(limit.0) - i128::from(spent.0);
        MoneyWindow {
            remaining: AtomicI64::new(i64::try_from(remaining).unwrap_or(i64::MIN)),
            spent: AtomicU64::new(spent.0),
            limit: AtomicU64::new(limit.0),
            end: window.end,
            next: OnceLock::new(),
            id: window.id,
        }
    }

    /// Its number.
    pub fn id(&self) -> WindowId {
        self.id
    }

    /// The first instant that is no longer in it.
    pub fn end(&self) -> UnixMs {
        self.end
    }

    /// Limit less what is spent and what is held; below zero after overruns.
    pub fn remaining(&self) -> i64 {
        self.remaining.load(Relaxed)
    }

    /// What was settled.
    pub fn spent(&self) -> PicoUsd {
        PicoUsd(self.spent.load(Relaxed))
    }

    /// The limit in force.
    pub fn limit(&self) -> MoneyLimit {
        MoneyLimit(self.limit.load(Relaxed))
    }

    /// Takes an amount from what remains, if that much is there.
    pub fn take(&self, amount: i64) -> bool {
        let taken = |remaining: i64| (remaining >= amount).then(|| remaining - amount);
        self.remaining.fetch_update(Relaxed, Relaxed, taken).is_ok()
    }

    /// Changes what remains, whether or not it is there.
    pub fn add(&self, change: i64) {
        let far = self.remaining().unsigned_abs() < FAR_FROM_END.unsigned_abs();
        if far && change.unsigned_abs() < SMALL {
            self.remaining.fetch_add(change, Relaxed);
        } else {
            let sum = |remaining: i64| Some(remaining.saturating_add(change));
            let _ = self.remaining.fetch_update(Relaxed, Relaxed, sum);
        }
    }

    /// Adds to what is spent.
    pub fn book(&self, cost: PicoUsd) {
        if cost.0 < SMALL && self.spent.load(Relaxed) < u64::MAX / 2 {
            self.spent.fetch_add(cost.0, Relaxed);
        } else {
            let _ = self.spent.fetch_update(Relaxed, Relaxed, |n| Some(n.saturating_add(cost.0)));
        }
    }

    /// Sets another limit: what remains changes by the difference, in one add.
    pub fn set_limit(&self, limit: MoneyLimit) {
        let before = self.limit.swap(limit.0, Relaxed);
        // Both are at most [`MONEY_LIMIT_MAX`], so the difference fits.
        self.add(limit.0 as i64 - before as i64);
    }

    /// The window behind it, if it is prepared.
    pub fn next(&self) -> Option<&Arc<MoneyWindow>> {
        self.next.get()
    }

    /// Prepares the window behind it. For the control thread; a second one is dropped.
    pub fn append(&self, next: MoneyWindow) {
        if next.id > self.id && self.next.get().is_none() {
            let _ = self.next.set(Arc::new(next));
        }
    }
}

/// A rate: the instant, in nanoseconds of the monotonic clock, at which its bucket is full again.
/// 0 is full since ever.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct GcraWord(AtomicU64);

impl GcraWord {
    /// Moves the instant in one step. The instant that was refused comes back.
    pub fn update(&self, step: impl Fn(u64) -> Option<u64>) -> Result<(), u64> {
        self.0.fetch_update(Relaxed, Relaxed, step).map(drop)
    }

    /// The instant.
    pub fn read(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// How many are inside. Whoever was let in leaves exactly once: that is the caller's to see to.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Counter(AtomicU32);

impl Counter {
    /// Lets one in if fewer than `max` are inside.
    pub fn enter(&self, max: u32) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |n| (n < max).then(|| n + 1)).is_ok()
    }

    /// Lets one out.
    pub fn leave(&self) {
        let left = self.0.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1));
        debug_assert!(left.is_ok(), "nobody leaves who was not inside");
    }

    /// How many are inside.
    pub fn inside(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

/// A count within a day: the day's number and the count in one word.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct DayWord(AtomicU64);

/// A [`DayWord`] taken apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayCount {
    /// Days since 1970, UTC.
    pub day: u32,
    /// The count in that day.
    pub count: u32,
}

impl DayWord {
    /// Changes day and count in one step.
    pub fn update(&self, step: impl Fn(DayCount) -> Option<DayCount>) -> Result<(), DayCount> {
        let packed = |word| step(DayCount::of(word)).map(DayCount::word);
        self.0.fetch_update(Relaxed, Relaxed, packed).map(drop).map_err(DayCount::of)
    }

    /// Day and count.
    pub fn read(&self) -> DayCount {
        DayCount::of(self.0.load(Relaxed))
    }
}

impl DayCount {
    fn of(word: u64) -> DayCount {
        DayCount { day: (word >> 32) as u32, count: word as u32 }
    }

    fn word(self) -> u64 {
        u64::from(self.day) << 32 | u64::from(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::window::NEVER;

    fn window(limit: u64, spent: u64) -> MoneyWindow {
        let limit = MoneyLimit::new(PicoUsd(limit)).unwrap();
        MoneyWindow::new(Window { id: WindowId(0), end: NEVER }, limit, PicoUsd(spent))
    }

    #[test]
    fn every_word_is_one_cache_line() {
        assert_eq!(size_of::<MoneyWindow>(), 64);
        assert_eq!(size_of::<GcraWord>(), 64);
        assert_eq!(size_of::<Counter>(), 64);
        assert_eq!(size_of::<DayWord>(), 64);
    }

    #[test]
    fn a_limit_above_nine_million_dollars_is_refused() {
        assert!(MoneyLimit::new(MONEY_LIMIT_MAX).is_ok());
        assert_eq!(MoneyLimit::new(PicoUsd(MONEY_LIMIT_MAX.0 + 1)), Err(LimitTooHigh));
    }

    #[test]
    fn a_word_of_money_saturates_and_never_wraps() {
        let money = window(MONEY_LIMIT_MAX.0, 0);
        for _ in 0..3 {
            money.add(i64::MIN + 1);
            money.book(PicoUsd(u64::MAX));
        }
        assert_eq!((money.remaining(), money.spent()), (i64::MIN, PicoUsd(u64::MAX)));
        assert!(!money.take(0));
        for _ in 0..3 {
            money.add(i64::MAX);
        }
        assert_eq!(money.remaining(), i64::MAX);
        money.add(1);
        assert_eq!(money.remaining(), i64::MAX);
        assert_eq!(window(0, u64::MAX).remaining(), i64::MIN);
    }

    #[test]
    fn a_changed_limit_is_the_difference() {
        let money = window(100, 30);
        assert!(money.take(50) && !money.take(21));
        money.set_limit(MoneyLimit::new(PicoUsd(60)).unwrap());
        assert_eq!(money.remaining(), -20);
        money.set_limit(MoneyLimit::new(PicoUsd(101)).unwrap());
        assert_eq!(money.remaining(), 21);
        assert!(money.take(21));
    }

    #[test]
    fn a_counter_lets_in_as_many_as_it_may() {
        let counter = Counter::default();
        assert!(!counter.enter(0));
        assert!(counter.enter(2) && counter.enter(2) && !counter.enter(2));
        counter.leave();
        assert!(counter.enter(2));
        assert_eq!(counter.inside(), 2);
    }

    #[test]
    fn day_and_count_keep_apart() {
        let word = DayWord::default();
        let wanted = DayCount { day: u32::MAX, count: u32::MAX };
        word.update(|_| Some(wanted)).unwrap();
        assert_eq!(word.read(), wanted);
        assert_eq!(word.update(|_| None), Err(wanted));
    }
}
