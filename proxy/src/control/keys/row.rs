//! Between a row of the store and what shards judge by: limits in both directions.
//!
//! A budget that is no longer wanted stays in its row without a limit, so that its number and what
//! was spent are there when it comes back: a change neither forgets nor forgives.

use super::KeyFault;
use crate::exchange::bundle::Bundle;
use crate::exchange::ids::{BudgetId, KeyId};
use crate::exchange::limits::{Book, Books, KeyLimits, Limits};
use crate::exchange::models::AllowList;
use crate::exchange::money::PicoUsd;
use crate::exchange::time::UnixMs;
use crate::exchange::window::Period;
use crate::exchange::words::MoneyLimit;
use store::balance::{Account, Balances};
use store::state::{self, Budget, KeyRow, KeyState};

/// The bundle of a row, with what `balances` says was spent.
pub(super) fn bundle(row: &KeyRow, balances: &Balances, now: UnixMs) -> Result<Bundle, KeyFault> {
    let values = limits(row)?;
    let book = |period| {
        let budget = budget_of(row, period);
        let id = budget.map_or(0, |budget| budget.budget_id);
        let spent = || {
            let account = Account::window(id, period.window(now).id.0);
            u64::try_from(balances.total(account).cost_picousd).unwrap_or(u64::MAX)
        };
        let spent = if id == 0 { 0 } else { spent() };
        Book { id: BudgetId(id), spent: PicoUsd(spent) }
    };
    let books = Books { total: book(Period::Total), month: book(Period::Month) };
    let bundle = Bundle::with_limits(KeyId(row.id), &row.name, Limits::new(values, books, now));
    match row.state {
        KeyState::Active => {}
        KeyState::Disabled => bundle.disable(),
        KeyState::Revoked => bundle.revoke(),
    }
    Ok(bundle)
}

/// The limits a row holds.
pub(super) fn limits(row: &KeyRow) -> Result<KeyLimits, KeyFault> {
    let broken = || KeyFault::Row(row.id);
    let budget = |period| match budget_of(row, period).map(|budget| budget.limit_picousd) {
        None | Some(Budget::NONE) => Ok(None),
        Some(pico) => MoneyLimit::new(PicoUsd(pico)).map(Some).map_err(|_| broken()),
    };
    let models = row.models.as_ref();
    let models = models.map(|models| AllowList::new(models.iter().map(String::as_str)));
    Ok(KeyLimits {
        requests_per_minute: row.limits.requests_per_minute,
        concurrent: row.limits.concurrent,
        budget_total: budget(Period::Total)?,
        budget_month: budget(Period::Month)?,
        strict: row.strict,
        expires: row.expires_unix_ms.map(UnixMs),
        models: models.transpose().map_err(|_| broken())?,
    })
}

/// Puts limits into a row; its budgets keep their numbers.
pub(super) fn set_limits(row: &mut KeyRow, limits: &KeyLimits) {
    row.limits.requests_per_minute = limits.requests_per_minute;
    row.limits.concurrent = limits.concurrent;
    set_budget(row, Period::Total, limits.budget_total);
    set_budget(row, Period::Month, limits.budget_month);
    row.strict = limits.strict;
    row.expires_unix_ms = limits.expires.map(|at| at.0);
    row.models = limits.models.as_ref().map(|models| models.patterns().collect());
}

fn set_budget(row: &mut KeyRow, period: Period, limit: Option<MoneyLimit>) {
    let limit_picousd = limit.map_or(Budget::NONE, |limit| limit.pico().0);
    let known = row.budgets.iter_mut().find(|budget| budget.period == stored(period));
    match known {
        Some(budget) => budget.limit_picousd = limit_picousd,
        None if limit.is_some() => {
            row.budgets.push(Budget { budget_id: 0, period: stored(period), limit_picousd });
        }
        None => {}
    }
}

fn budget_of(row: &KeyRow, period: Period) -> Option<&Budget> {
    row.budgets.iter().find(|budget| budget.period == stored(period))
}

fn stored(period: Period) -> state::Period {
    match period {
        Period::Total => state::Period::Total,
        Period::Month => state::Period::Month,
    }
}
