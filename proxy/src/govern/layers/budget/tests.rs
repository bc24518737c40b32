use super::*;
use crate::exchange::budget::Scope;
use crate::exchange::demand::{Demand, Figure};
use crate::exchange::limits::KeyLimits;
use crate::exchange::price::{Markup, ModelPrice, MoneyTerms};
use crate::exchange::time::UnixMs;
use crate::exchange::window::{NEVER, Period};
use crate::govern::layers::world::{at_wall, bundle, flat, money};

fn offer<'p>(price: Option<&'p ModelPrice>, mode: Mode) -> Offer<'p> {
    Offer { provider: "p", model: "m", price, mode }
}

fn asking(bundle: &Bundle, max_tokens: u64) -> Call<'_> {
    let max_tokens = Figure::Whole(max_tokens);
    Call { bundle, demand: Demand { max_tokens, ..Demand::default() } }
}

fn reserve(call: &Call<'_>, offers: &[Offer<'_>], terms: &MoneyTerms) -> Result<u64, Refusal> {
    let mut hold = MoneyHold::default();
    let mut plan = Plan::new("m", offers, terms);
    Money.reserve(call, &mut plan, &mut hold, Now::default())?;
    Ok(hold.amount().0)
}

#[test]
fn the_hold_is_that_of_the_dearest_offer_that_is_debited() {
    let (cheap, dear) = (flat(0, 1), flat(0, 4));
    let twice = Mode::Managed(Markup::new(2_000_000).unwrap());
    let all = Mode::default();
    let fallback = MoneyTerms { fallback: Some(flat(0, 9)), ..MoneyTerms::default() };
    for (offers, terms, wanted) in [
        (vec![offer(Some(&cheap), all)], MoneyTerms::default(), Ok(100)),
        (vec![offer(Some(&cheap), all), offer(Some(&dear), all)], MoneyTerms::default(), Ok(400)),
        (vec![offer(Some(&dear), all), offer(Some(&cheap), twice)], MoneyTerms::default(), Ok(400)),
        (vec![offer(Some(&dear), twice)], MoneyTerms::default(), Ok(800)),
        (vec![offer(Some(&dear), Mode::PlatformFee)], MoneyTerms::default(), Ok(40)),
        (vec![offer(Some(&dear), Mode::None)], MoneyTerms::default(), Ok(0)),
        // What has no price is struck, and refused if nothing else is left.
        (vec![offer(None, all), offer(Some(&cheap), all)], MoneyTerms::default(), Ok(100)),
        (vec![offer(None, all)], MoneyTerms::default(), Err(Refusal::PriceUnknown)),
        (vec![offer(None, Mode::None)], MoneyTerms::default(), Ok(0)),
        (vec![offer(None, all)], fallback, Ok(900)),
    ] {
        let bundle = bundle(KeyLimits { budget_total: money(1_000), ..KeyLimits::default() });
        assert_eq!(reserve(&asking(&bundle, 100), &offers, &terms), wanted, "{offers:?}");
        let remaining = bundle.limits.budgets[0].current(UnixMs(0)).remaining();
        assert_eq!(remaining, 1_000 - wanted.unwrap_or(0) as i64);
    }
}

#[test]
fn without_a_budget_nothing_is_held_and_no_price_is_needed() {
    let bundle = bundle(KeyLimits::default());
    let offers = [offer(None, Mode::default())];
    assert_eq!(reserve(&asking(&bundle, 100), &offers, &MoneyTerms::default()), Ok(0));
}

#[test]
fn a_refusal_says_whose_what_and_until_when() {
    let price = flat(0, 1);
    let offers = [offer(Some(&price), Mode::default())];
    let terms = MoneyTerms::default();
    let exceeded =
        |period, resets| Err(Refusal::BudgetExceeded { scope: Scope::Key, period, resets });
    let month = Period::Month.window(UnixMs(0)).end;
    for (total, per_month, asked, wanted) in [
        (Some(50), None, 51, exceeded(Period::Total, NEVER)),
        (None, Some(50), 51, exceeded(Period::Month, month)),
        (Some(50), Some(40), 60, exceeded(Period::Total, NEVER)),
        (Some(60), Some(50), 55, exceeded(Period::Month, month)),
        // Case `bud-zero-null`: 0 is no money at all, also for what is free.
        (Some(0), None, 0, exceeded(Period::Total, NEVER)),
        (None, None, 1_000, Ok(0)),
        (Some(50), Some(50), 50, Ok(50)),
    ] {
        let bundle = bundle(KeyLimits {
            budget_total: total.and_then(money),
            budget_month: per_month.and_then(money),
            ..KeyLimits::default()
        });
        let judged = reserve(&asking(&bundle, asked), &offers, &terms);
        assert_eq!(judged, wanted, "{asked} of {total:?} and {per_month:?}");
    }
}

#[test]
fn a_call_that_others_leave_no_room_comes_back_in_one_to_five_seconds() {
    let price = flat(0, 1);
    let offers = [offer(Some(&price), Mode::default())];
    let terms = MoneyTerms::default();
    let bundle = bundle(KeyLimits { budget_total: money(100), ..KeyLimits::default() });
    let call = asking(&bundle, 60);
    let mut hold = MoneyHold::default();
    let mut plan = Plan::new("m", &offers, &terms);
    assert_eq!(Money.reserve(&call, &mut plan, &mut hold, at_wall(0)), Ok(()));
    let waits = (0..5_u64).map(|us| {
        let now = Now { mono: MonoNs(us * 1_000), ..Now::default() };
        Money.reserve(&call, &mut plan, &mut MoneyHold::default(), now)
    });
    let wanted = (1..=5).map(|retry_after_s| Err(Refusal::BudgetReserved { retry_after_s }));
    assert!(waits.eq(wanted));
    Money.settle(&bundle, hold, PicoUsd(10));
    assert_eq!(Money.reserve(&call, &mut plan, &mut MoneyHold::default(), at_wall(0)), Ok(()));
}

#[test]
fn a_strict_key_holds_the_whole_cap() {
    let price = flat(0, 1);
    let offers = [offer(Some(&price), Mode::default())];
    for (strict, held) in [(false, 4_096), (true, 64_000)] {
        let budget_total = money(1_000_000);
        let bundle = bundle(KeyLimits { budget_total, strict, ..KeyLimits::default() });
        let found = reserve(&asking(&bundle, 64_000), &offers, &MoneyTerms::default());
        assert_eq!(found, Ok(held));
    }
}
