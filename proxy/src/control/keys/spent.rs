//! What was spent in the windows that are in force, taken out of all totals in one walk.
//!
//! Looked up one by one in a table of a node's whole history, each would miss every cache: 40 % of
//! a start with a hundred thousand keys. Sorted, they are met in the order of the rows.

use crate::exchange::money::PicoUsd;
use crate::exchange::time::UnixMs;
use crate::exchange::window::Period;
use store::balance::{Account, Balances};

/// Spent by budget, and the highest numbers that were met.
#[derive(Debug, Default)]
pub(super) struct Spent {
    total: Vec<(u64, u64)>,
    month: Vec<(u64, u64)>,
    /// The highest number of a key.
    pub(super) key_max: u64,
    /// The highest number of a budget.
    pub(super) budget_max: u64,
}

/// Where somebody who asks in the order of the numbers has come to.
#[derive(Debug, Default)]
pub(super) struct Place {
    total: usize,
    month: usize,
}

// === impl Spent ===

impl Spent {
    /// Out of all totals.
    pub(super) fn of(balances: &Balances, now: UnixMs) -> Spent {
        let in_force = |period: Period| period.window(now).id.0;
        let (total, month) = (in_force(Period::Total), in_force(Period::Month));
        let mut spent = Spent::default();
        for (account, sum) in balances.iter() {
            if account.kind != Account::WINDOW {
                spent.key_max = spent.key_max.max(account.id);
                continue;
            }
            spent.budget_max = spent.budget_max.max(account.id);
            let pico = u64::try_from(sum.cost_picousd).unwrap_or(u64::MAX);
            // A budget has windows of one period: where numbers of windows meet, budgets do not.
            if account.window_id == total {
                spent.total.push((account.id, pico));
            }
            if account.window_id == month {
                spent.month.push((account.id, pico));
            }
        }
        spent.total.sort_unstable();
        spent.month.sort_unstable();
        spent
    }

    /// In the window in force of a budget.
    pub(super) fn in_force(&self, budget_id: u32, period: Period, place: &mut Place) -> PicoUsd {
        let (sorted, at) = match period {
            Period::Total => (&self.total, &mut place.total),
            Period::Month => (&self.month, &mut place.month),
        };
        let id = u64::from(budget_id);
        if sorted.get(*at).is_none_or(|(next, _)| *next != id) {
            *at = sorted.partition_point(|(other, _)| *other < id);
        }
        let found = sorted.get(*at).filter(|(found, _)| *found == id);
        *at += usize::from(found.is_some());
        PicoUsd(found.map_or(0, |(_, pico)| *pico))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::balance::Total;

    #[test]
    fn every_budget_finds_its_own_in_any_order() {
        let now = UnixMs(1_796_040_000_000);
        let month = Period::Month.window(now).id.0;
        let mut balances = Balances::default();
        for id in [3, 900, 7, 8, 9] {
            let total = Total { cost_picousd: u128::from(id) * 10, ..Total::default() };
            balances.set(Account::window(id, if id == 8 { month } else { 0 }), total);
            balances.set(Account::window(id, month - 1), Total::default());
        }
        balances.set(Account::key(4), Total::default());
        let spent = Spent::of(&balances, now);
        assert_eq!((spent.key_max, spent.budget_max), (4, 900));
        let mut place = Place::default();
        for id in [3, 7, 8, 9, 10, 900, 901, 3, 1, 9, 7] {
            let wanted = if [3, 7, 9, 900].contains(&id) { u64::from(id) * 10 } else { 0 };
            assert_eq!(spent.in_force(id, Period::Total, &mut place), PicoUsd(wanted), "{id}");
        }
        assert_eq!(spent.in_force(8, Period::Month, &mut place), PicoUsd(80));
        assert_eq!(spent.in_force(9, Period::Month, &mut place), PicoUsd(0));
    }
}
