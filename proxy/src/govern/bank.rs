//! The arithmetic of limits and budgets, over the words of `exchange::words`. It has no state and
//! no clock; instants are arguments.
//!
//! **Money.** A hold is granted only if spent + held + hold ≤ limit, decided and taken in one step
//! of one word. Settling books the cost in full into the window that admitted it, also when that
//! window is over or the cost is above the hold; what is above is the overrun. Over several
//! budgets holds are taken in their order, and given back at the first that refuses: in between
//! another call can meet a hold that will not last, and is told `Reserved`, never `Spent`.
//!
//! **Rates.** GCRA: the word is the instant at which the bucket is full again. The burst is the
//! limit, so within T at most burst + rate × T pass. Only the monotonic clock counts, so a wall
//! clock that jumps neither gives nor takes.
//!
//! Bound: [`BUDGETS_MAX`] budgets a hold.

use crate::exchange::budget::{BUDGETS_MAX, Budget, Scope};
use crate::exchange::money::PicoUsd;
use crate::exchange::time::{MonoNs, UnixMs};
use crate::exchange::window::{self, Period, WindowId};
use crate::exchange::words::{DayCount, DayWord, GcraWord, MoneyWindow};
use std::sync::Arc;

/// Nanoseconds of the minute a rate is given for.
const MINUTE_NS: u64 = 60_000_000_000;

/// How much of a limit must be spent or held for a warning, in percent.
const WARN_PERCENT: u128 = 80;

/// What an exchange holds of its budgets: the amount, and the window of each that admitted it.
/// Whoever has one settles it exactly once; a default one holds nothing.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use = "a hold that is not settled is never given back"]
pub struct MoneyHold {
    amount: PicoUsd,
    windows: [WindowId; BUDGETS_MAX],
    budgets: u8,
}

/// A refused hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// Whose budget.
    pub scope: Scope,
    /// Of what period.
    pub period: Period,
    /// When the window ends.
    pub resets: UnixMs,
    /// What the room is lacking for.
    pub cause: Shortage,
}

/// Why a budget has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// What is spent leaves no room: waiting does not help.
    Spent,
    /// It would fit but for what others hold.
    Reserved,
}

/// The requests of a day are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayUsed {
    /// When the next day begins.
    pub until: UnixMs,
}

// === impl MoneyHold ===

impl MoneyHold {
    /// What was asked for and not granted: it holds nothing, and settles nothing.
    pub fn refused(amount: PicoUsd) -> MoneyHold {
        MoneyHold { amount, ..MoneyHold::default() }
    }

    /// What is held.
    pub fn amount(&self) -> PicoUsd {
        self.amount
    }

    /// What would have been held, if it was refused.
    pub fn wanted(&self) -> PicoUsd {
        if self.budgets == 0 { self.amount } else { PicoUsd(0) }
    }

    /// The windows it was taken in, in the order of the budgets.
    pub fn windows(&self) -> &[WindowId] {
        self.windows.get(..usize::from(self.budgets)).unwrap_or_default()
    }

    /// What a cost is above the hold. Without a budget nothing was held, and nothing overruns.
    pub fn overrun(&self, cost: PicoUsd) -> PicoUsd {
        if self.budgets == 0 { PicoUsd(0) } else { PicoUsd(cost.0.saturating_sub(self.amount.0)) }
    }
}

/// Holds an amount in every budget, or in none.
pub fn hold(budgets: &[Arc<Budget>], amount: PicoUsd, now: UnixMs) -> Result<MoneyHold, Short> {
    debug_assert!(budgets.len() <= BUDGETS_MAX, "a bundle has more budgets than a hold has room");
    let mut held = MoneyHold { amount, ..MoneyHold::default() };
    for (budget, place) in budgets.iter().zip(&mut held.windows) {
        let window = budget.current(now);
        if let Err(cause) = take(window, amount) {
            release(budgets, held);
            let resets = window.end();
            return Err(Short { scope: budget.scope, period: budget.period, resets, cause });
        }
        *place = window.id();
        held.budgets += 1;
    }
    Ok(held)
}

/// Settles a hold: the cost is booked in full, whatever was held.
pub fn settle(budgets: &[Arc<Budget>], held: MoneyHold, cost: PicoUsd) {
    // Both are below 2^64, so the difference can lack one bit: it saturates.
    let change = i128::from(held.amount.0) - i128::from(cost.0);
    let change = i64::try_from(change).unwrap_or(i64::MIN);
    for (budget, id) in budgets.iter().zip(held.windows()) {
        // A window that is not there was over before this process started (`inherit`).
        if let Some(window) = budget.window(*id) {
            // Spent first: a refusal in between must not take spent money for held money.
            window.book(cost);
            window.add(change);
        }
    }
}

/// Gives a hold back: nothing was spent.
pub fn release(budgets: &[Arc<Budget>], held: MoneyHold) {
    settle(budgets, held, PicoUsd(0));
}

/// Takes up a hold that another process granted, without asking for room. Windows that are not
/// there any more were over before this one started; their budgets count it no longer.
pub fn inherit(budgets: &[Arc<Budget>], amount: PicoUsd, windows: &[WindowId]) -> MoneyHold {
    let mut held = MoneyHold { amount, ..MoneyHold::default() };
    for ((budget, id), place) in budgets.iter().zip(windows).zip(&mut held.windows) {
        *place = *id;
        held.budgets += 1;
        if let Some(window) = budget.window(*id) {
            window.add(i64::try_from(amount.0).map_or(i64::MIN, |amount| -amount));
        }
    }
    held
}

/// Whether so much of a window is spent or held that its owner should know.
pub fn is_nearly_spent(window: &MoneyWindow) -> bool {
    let limit = i128::from(window.limit().pico().0);
    let used = limit - i128::from(window.remaining());
    u128::try_from(used).is_ok_and(|used| used * 100 >= limit.unsigned_abs() * WARN_PERCENT)
}

fn take(window: &MoneyWindow, amount: PicoUsd) -> Result<(), Shortage> {
    let limit = window.limit().pico();
    // A limit of 0 lets nothing pass, not even what is free.
    let fits = limit.0 > 0 && i64::try_from(amount.0).is_ok_and(|amount| window.take(amount));
    if fits {
        return Ok(());
    }
    let wanted = u128::from(window.spent().0) + u128::from(amount.0);
    let spent = limit.0 == 0 || wanted > u128::from(limit.0);
    Err(if spent { Shortage::Spent } else { Shortage::Reserved })
}

// === rates ===

/// Lets one request in at a rate, or says how many milliseconds until one passes, rounded up.
/// A rate of 0 lets none in; it says a minute, since the limit may change.
pub fn admit_at_rate(word: &GcraWord, per_minute: u32, now: MonoNs) -> Result<(), u32> {
    let Some(interval) = interval(per_minute) else { return Err((MINUTE_NS / 1_000_000) as u32) };
    let burst = interval * u64::from(per_minute);
    let step = |full_at: u64| {
        let next = full_at.max(now.0).saturating_add(interval);
        (next.saturating_sub(now.0) <= burst).then_some(next)
    };
    word.update(step).map_err(|full_at| {
        let next = full_at.max(now.0).saturating_add(interval);
        let wait = next.saturating_sub(now.0).saturating_sub(burst);
        u32::try_from(wait.div_ceil(1_000_000)).unwrap_or(u32::MAX)
    })
}

/// Gives one request back: it counts as never made.
pub fn refund_rate(word: &GcraWord, per_minute: u32) {
    if let Some(interval) = interval(per_minute) {
        // An instant in the past and one further in the past are the same: a full bucket.
        let _ = word.update(|full_at| Some(full_at.saturating_sub(interval)));
    }
}

/// Nanoseconds from one request to the next, rounded up so that the rate is never exceeded.
fn interval(per_minute: u32) -> Option<u64> {
    (per_minute > 0).then(|| MINUTE_NS.div_ceil(u64::from(per_minute)))
}

/// Counts a request of the day, or says that the day's are used. Days never go back: while the
/// wall clock does, requests count for the latest day that was seen.
pub fn admit_today(word: &DayWord, per_day: u32, now: UnixMs) -> Result<(), DayUsed> {
    let today = window::day(now);
    let step = |seen: DayCount| {
        let count = if seen.day < today { 0 } else { seen.count };
        (count < per_day).then(|| DayCount { day: seen.day.max(today), count: count + 1 })
    };
    word.update(step).map_err(|seen| DayUsed { until: window::day_end(seen.day.max(today)) })
}

#[cfg(test)]
mod tests;
