//! Money: a hold before the call, the true cost after it.
//!
//! The hold is priced at the dearest offer left. Offers without a price are struck: under a
//! budget what cannot be priced cannot be held. Offers that nobody is debited for hold nothing,
//! and do not need a price.

use crate::exchange::bundle::Bundle;
use crate::exchange::call::Call;
use crate::exchange::limits::Limits;
use crate::exchange::money::PicoUsd;
use crate::exchange::plan::{Offer, Plan};
use crate::exchange::price::Mode;
use crate::exchange::refusal::Refusal;
use crate::exchange::time::{MonoNs, Now};
use crate::govern::bank::{self, MoneyHold, Short, Shortage};
use crate::govern::estimate;
use crate::govern::layer::Layer;
use crate::govern::price;

/// Shortest wait for others' holds, in seconds: a short call ends in it.
const RETRY_S_MIN: u32 = 1;

/// How many different waits there are: clients that were refused together come back apart.
const RETRY_SPREAD: u64 = 5;

/// Holds and settles money.
#[derive(Clone, Copy, Debug, Default)]
pub struct Money;

impl Layer for Money {
    type Hold = MoneyHold;

    const NAME: &'static str = "budget";

    fn reserve(
        &self,
        call: &Call<'_>,
        plan: &mut Plan<'_>,
        hold: &mut MoneyHold,
        now: Now,
    ) -> Result<(), Refusal> {
        let limits = &call.bundle.limits;
        if limits.budgets.is_empty() {
            return Ok(());
        }
        let Some(amount) = dearest(call, plan, limits)? else { return Ok(()) };
        debug_assert_eq!(*hold, MoneyHold::default(), "a call holds once");
        let held = bank::hold(&limits.budgets, amount, now.wall);
        let (held, judged) = match held {
            Ok(held) => (held, Ok(())),
            // The record of the refusal tells its owner what the call would have taken.
            Err(short) => (MoneyHold::refused(amount), Err(refusal(short, now.mono))),
        };
        *hold = held;
        judged
    }

    fn settle(&self, bundle: &Bundle, hold: MoneyHold, cost: PicoUsd) {
        bank::settle(&bundle.limits.budgets, hold, cost);
    }
}

/// The hold of the dearest offer left; `None` if no offer left is debited.
fn dearest(
    call: &Call<'_>,
    plan: &mut Plan<'_>,
    limits: &Limits,
) -> Result<Option<PicoUsd>, Refusal> {
    let terms = plan.terms;
    let mut most = None;
    for (at, offer) in plan.left() {
        let Offer { price, mode, .. } = *offer;
        if mode == Mode::None {
            continue;
        }
        let Some(price) = price.or(terms.fallback.as_ref()) else {
            plan.strike(at);
            continue;
        };
        let upstream = estimate::hold(&call.demand, price, limits.strict, terms);
        most = most.max(Some(price::debit(mode, upstream)));
    }
    if plan.is_open() { Ok(most) } else { Err(Refusal::PriceUnknown) }
}

fn refusal(short: Short, mono: MonoNs) -> Refusal {
    let Short { scope, period, resets, cause } = short;
    match cause {
        Shortage::Spent => Refusal::BudgetExceeded { scope, period, resets },
        // The low bits of the clock differ from caller to caller: chance enough, and an argument.
        Shortage::Reserved => Refusal::BudgetReserved {
            retry_after_s: RETRY_S_MIN + (mono.0 / 1_000 % RETRY_SPREAD) as u32,
        },
    }
}

#[cfg(test)]
mod tests;
