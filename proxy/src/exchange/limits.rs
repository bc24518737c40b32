//! The limits of a key: as values, and with the words they are counted in.
//!
//! An absent limit (`None`) is no limit; a limit of 0 lets nothing pass; the two never turn into
//! each other. Changed values make a new bundle that goes on counting in the same words, so a
//! change neither forgets nor forgives.

use super::budget::{Budget, Scope};
use super::ids::BudgetId;
use super::models::AllowList;
use super::money::PicoUsd;
use super::time::{MonoNs, UnixMs};
use super::window::Period;
use super::words::{Counter, GcraWord, MoneyLimit};
use std::sync::Arc;

/// What may be set for a key.
#[derive(Clone, Debug, Default)]
pub struct KeyLimits {
    /// Requests a minute.
    pub requests_per_minute: Option<u32>,
    /// Calls in flight.
    pub concurrent: Option<u32>,
    /// Money, ever.
    pub budget_total: Option<MoneyLimit>,
    /// Money a calendar month, UTC.
    pub budget_month: Option<MoneyLimit>,
    /// Holds cover the whole cap of a call instead of its likely cost.
    pub strict: bool,
    /// The first instant at which the key is no longer good.
    pub expires: Option<UnixMs>,
    /// The models it may use.
    pub models: Option<AllowList>,
}

/// Where the ledger keeps the budgets of a key, and what stands there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Of the total budget.
    pub total: Book,
    /// Of the monthly one, in the window in force.
    pub month: Book,
}

/// One budget's account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Book {
    /// The budget's number in the ledger.
    pub id: BudgetId,
    /// What was settled in the window in force, as the ledger tells after a restart.
    pub spent: PicoUsd,
}

/// Limits and their words.
#[derive(Debug, Default)]
pub struct Limits {
    /// Requests a minute.
    pub requests: Option<RequestRate>,
    /// Calls in flight.
    pub concurrent: Option<Concurrency>,
    /// Budgets, in the order in which holds are taken; at most [`super::budget::BUDGETS_MAX`].
    pub budgets: Box<[Arc<Budget>]>,
    /// Holds cover the whole cap.
    pub strict: bool,
    /// The first instant at which the key is no longer good.
    pub expires: Option<UnixMs>,
    /// The models it may use.
    pub models: Option<AllowList>,
}

/// A limit of requests a minute.
#[derive(Clone, Debug)]
pub struct RequestRate {
    /// The limit, which is also the largest burst.
    pub per_minute: u32,
    /// Its word.
    pub word: Arc<GcraWord>,
}

/// A limit of calls in flight.
#[derive(Clone, Debug)]
pub struct Concurrency {
    /// The limit.
    pub max: u32,
    /// Its word.
    pub inside: Arc<Counter>,
    /// Bodies on their way that take room: no more of them than calls may be in flight.
    pub coming: Arc<Counter>,
}

/// Nanoseconds of the minute a rate is given for.
const MINUTE_NS: u64 = 60_000_000_000;

impl RequestRate {
    /// How many requests would pass at this instant, one after the other.
    pub fn left(&self, now: MonoNs) -> u32 {
        if self.per_minute == 0 {
            return 0;
        }
        let interval = MINUTE_NS.div_ceil(self.per_minute.into());
        let used = self.word.read().saturating_sub(now.0).div_ceil(interval);
        self.per_minute.saturating_sub(u32::try_from(used).unwrap_or(u32::MAX))
    }
}

impl Limits {
    /// The limits of a key that has not been seen since the node started.
    pub fn new(values: KeyLimits, books: Books, now: UnixMs) -> Limits {
        Limits::following(&Limits::default(), values, books, now)
    }

    /// Changed limits of a key: words that exist go on counting. `books` is for budgets that were
    /// not there before. For the control thread alone.
    pub fn following(before: &Limits, values: KeyLimits, books: Books, now: UnixMs) -> Limits {
        let requests = values.requests_per_minute.map(|per_minute| {
            let word = before.requests.as_ref().map(|rate| rate.word.clone());
            RequestRate { per_minute, word: word.unwrap_or_default() }
        });
        let concurrent = values.concurrent.map(|max| {
            let known = before.concurrent.as_ref();
            let words = known.map(|limit| (limit.inside.clone(), limit.coming.clone()));
            let (inside, coming) = words.unwrap_or_default();
            Concurrency { max, inside, coming }
        });
        let budgets = [
            (Period::Total, values.budget_total, books.total),
            (Period::Month, values.budget_month, books.month),
        ];
        let budgets = budgets.into_iter().filter_map(|(period, limit, book)| {
            let limit = limit?;
            let known = before.budgets.iter().find(|budget| budget.period == period);
            if let Some(budget) = known {
                budget.set_limit(limit);
                return Some(budget.clone());
            }
            Some(Arc::new(Budget::new(book.id, Scope::Key, period, limit, book.spent, now)))
        });
        Limits {
            requests,
            concurrent,
            budgets: budgets.collect(),
            strict: values.strict,
            expires: values.expires,
            models: values.models,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(pico: u64) -> Option<MoneyLimit> {
        MoneyLimit::new(PicoUsd(pico)).ok()
    }

    #[test]
    fn zero_is_a_limit_and_absent_is_none() {
        let zero = KeyLimits {
            requests_per_minute: Some(0),
            concurrent: Some(0),
            budget_total: money(0),
            ..KeyLimits::default()
        };
        let zero = Limits::new(zero, Books::default(), UnixMs(0));
        assert_eq!(zero.requests.unwrap().per_minute, 0);
        assert_eq!(zero.concurrent.unwrap().max, 0);
        assert_eq!(zero.budgets[0].current(UnixMs(0)).limit().pico(), PicoUsd(0));
        let none = Limits::new(KeyLimits::default(), Books::default(), UnixMs(0));
        assert!(none.requests.is_none() && none.concurrent.is_none() && none.budgets.is_empty());
    }

    #[test]
    fn changed_limits_go_on_counting_in_the_same_words() {
        let values = |rpm, month| KeyLimits {
            requests_per_minute: Some(rpm),
            concurrent: Some(rpm),
            budget_month: money(month),
            ..KeyLimits::default()
        };
        let book = |id, spent| Book { id: BudgetId(id), spent: PicoUsd(spent) };
        let books = Books { total: book(1, 7), month: book(2, 3) };
        let before = Limits::new(values(1, 100), books, UnixMs(0));
        assert!(before.concurrent.as_ref().unwrap().inside.enter(1));
        let mut changed = values(2, 50);
        changed.budget_total = money(20);
        let after = Limits::following(&before, changed, books, UnixMs(0));
        let (old, new) = (before.concurrent.as_ref().unwrap(), after.concurrent.as_ref().unwrap());
        assert_eq!(new.inside.inside(), 1);
        assert!(Arc::ptr_eq(&old.coming, &new.coming));
        assert!(Arc::ptr_eq(&after.requests.unwrap().word, &before.requests.unwrap().word));
        let [total, month] = &after.budgets[..] else { panic!("{:?}", after.budgets) };
        assert_eq!((total.period, total.current(UnixMs(0)).remaining()), (Period::Total, 13));
        assert_eq!((month.period, month.current(UnixMs(0)).remaining()), (Period::Month, 47));
        assert_eq!((total.id, month.id), (BudgetId(1), BudgetId(2)));
    }
}
