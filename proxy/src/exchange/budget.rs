//! A budget: a chain of windows of money, of which one is current.
//!
//! The control thread prepares the next window ahead ([`Budget::prepare`]); a shard picks by
//! comparing now with a window's end. The pick never goes back: when the wall clock does, the
//! budget stays in the latest window it has reached, so no window is entered twice. When no next
//! window is prepared the last one stays in force: a late control thread can be too strict and
//! never gives money away.
//!
//! Bounds: [`BUDGETS_MAX`] budgets a call. A chain grows by one window a period and is walked
//! from its beginning, which is the current window when the bundle was made.

use super::ids::BudgetId;
use super::money::PicoUsd;
use super::time::UnixMs;
use super::window::{Period, WindowId};
use super::words::{MoneyLimit, MoneyWindow};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Budgets a call can come under: two of its key now, two of its project later.
pub const BUDGETS_MAX: usize = 4;

/// How long before its beginning a window is prepared: a machine may sleep for a night.
pub const PREPARE_AHEAD_MS: u64 = 24 * 60 * 60 * 1_000;

/// Whose money it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One key's.
    Key,
}

/// One budget.
#[derive(Debug)]
pub struct Budget {
    /// Its number in the ledger.
    pub id: BudgetId,
    /// Whose money.
    pub scope: Scope,
    /// How often it begins anew.
    pub period: Period,
    first: Arc<MoneyWindow>,
    /// The latest window that was ever current. Written once a period.
    reached: AtomicU32,
}

impl Budget {
    /// A budget whose current window is that of `now`, with what was settled in it before.
    pub fn new(
        id: BudgetId,
        scope: Scope,
        period: Period,
        limit: MoneyLimit,
        spent: PicoUsd,
        now: UnixMs,
    ) -> Budget {
        let window = period.window(now);
        let first = Arc::new(MoneyWindow::new(window, limit, spent));
        let budget = Budget { id, scope, period, first, reached: AtomicU32::new(window.id.0) };
        budget.prepare(now);
        budget
    }

    /// The window in force.
    pub fn current(&self, now: UnixMs) -> &MoneyWindow {
        let reached = self.reached.load(Relaxed);
        let mut at = &*self.first;
        while at.id().0 < reached || at.end() <= now {
            let Some(next) = at.next() else { break };
            at = next;
        }
        if at.id().0 > reached {
            self.reached.fetch_max(at.id().0, Relaxed);
        }
        at
    }

    /// A window by its number: where a hold was taken.
    pub fn window(&self, id: WindowId) -> Option<&MoneyWindow> {
        self.windows().find(|window| window.id() == id)
    }

    /// Makes sure that there is a window for `now` and, in time, the one behind it. For the
    /// control thread alone.
    pub fn prepare(&self, now: UnixMs) {
        let last = self.last();
        if last.end() <= now {
            last.append(MoneyWindow::new(self.period.window(now), last.limit(), PicoUsd(0)));
        }
        let last = self.last();
        if last.end() > now && last.end().0 - now.0 <= PREPARE_AHEAD_MS {
            let behind = self.period.window(last.end());
            last.append(MoneyWindow::new(behind, last.limit(), PicoUsd(0)));
        }
    }

    /// Sets another limit, for the window in force and those behind it. For the control thread
    /// alone.
    pub fn set_limit(&self, limit: MoneyLimit) {
        let reached = WindowId(self.reached.load(Relaxed));
        for window in self.windows().filter(|window| window.id() >= reached) {
            window.set_limit(limit);
        }
    }

    fn last(&self) -> &MoneyWindow {
        self.windows().last().unwrap_or(&self.first)
    }

    fn windows(&self) -> impl Iterator<Item = &MoneyWindow> {
        std::iter::successors(Some(&*self.first), |at| at.next().map(|next| &**next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-30T12:00:00Z, the first of December, and the first of January.
    const NOVEMBER: UnixMs = UnixMs(1_796_040_000_000);
    const DECEMBER: UnixMs = UnixMs(1_796_083_200_000);
    const JANUARY: UnixMs = UnixMs(1_798_761_600_000);

    fn limit(pico: u64) -> MoneyLimit {
        MoneyLimit::new(PicoUsd(pico)).unwrap()
    }

    fn monthly(now: UnixMs) -> Budget {
        Budget::new(BudgetId(1), Scope::Key, Period::Month, limit(100), PicoUsd(40), now)
    }

    #[test]
    fn the_next_window_is_there_before_it_begins_and_begins_at_its_first_instant() {
        let budget = monthly(NOVEMBER);
        let november = budget.current(UnixMs(DECEMBER.0 - 1));
        assert_eq!((november.spent(), november.remaining()), (PicoUsd(40), 60));
        let december = budget.current(DECEMBER);
        assert_eq!((december.spent(), december.remaining()), (PicoUsd(0), 100));
        assert!(december.id() > november.id());
        assert!(std::ptr::eq(budget.window(november.id()).unwrap(), november));
    }

    #[test]
    fn a_window_is_not_entered_twice_when_the_clock_goes_back() {
        let budget = monthly(NOVEMBER);
        let december = budget.current(DECEMBER);
        assert!(december.take(100));
        for back in [1, 3_600_000, 40_000_000] {
            assert!(std::ptr::eq(budget.current(UnixMs(DECEMBER.0 - back)), december));
        }
        budget.prepare(NOVEMBER);
        assert!(std::ptr::eq(budget.current(UnixMs(DECEMBER.0 + 1)), december));
        assert_eq!(december.remaining(), 0, "and nothing was given back");
    }

    #[test]
    fn without_a_prepared_window_the_last_one_stays_in_force() {
        let budget = monthly(UnixMs(NOVEMBER.0 - PREPARE_AHEAD_MS));
        let november = budget.current(NOVEMBER);
        assert!(std::ptr::eq(budget.current(JANUARY), november));
        budget.prepare(JANUARY);
        let january = budget.current(JANUARY);
        assert_eq!((january.spent(), january.remaining()), (PicoUsd(0), 100));
        assert_eq!(january.id().0, november.id().0 + 2, "an unused month has no window");
    }

    #[test]
    fn a_changed_limit_holds_for_the_window_in_force_and_those_behind_it() {
        let budget = monthly(NOVEMBER);
        budget.set_limit(limit(70));
        assert_eq!(budget.current(NOVEMBER).remaining(), 30);
        let december = budget.current(DECEMBER);
        assert_eq!(december.remaining(), 70);
        budget.set_limit(limit(10));
        assert_eq!(december.remaining(), 10);
        let november = WindowId(december.id().0 - 1);
        assert_eq!(budget.window(november).unwrap().remaining(), 30, "it is over");
    }

    #[test]
    fn a_total_has_one_window() {
        let budget =
            Budget::new(BudgetId(1), Scope::Key, Period::Total, limit(5), PicoUsd(0), NOVEMBER);
        budget.prepare(UnixMs(u64::MAX - 1));
        assert!(std::ptr::eq(budget.current(UnixMs(u64::MAX - 1)), budget.current(NOVEMBER)));
    }
}
