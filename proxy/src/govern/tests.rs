//! The layers as one stack, and the rows of the field cases that a judgement can answer.

use super::*;
use crate::exchange::bundle::Bundle;
use crate::exchange::limits::KeyLimits;
use crate::exchange::money::{PICO_PER_USD, PicoUsd};
use crate::exchange::plan::{Offer, Plan};
use crate::exchange::price::{Mode, ModelPrice, MoneyTerms, PriceIx, PriceList, Rates, Tier};
use crate::exchange::refusal::Refusal;
use crate::exchange::time::{MonoNs, Now, UnixMs};
use codec::usage::{self, ReportedUsage, UsageField};
use layers::world::{at_wall, bundle, call, flat};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Runs a call as the pipeline does, up to the point where it would be sent.
fn begin(
    bundle: &Bundle,
    price: Option<&ModelPrice>,
    held: &mut Held,
    now: Now,
) -> Result<(), Refusal> {
    let layers = Governance::default();
    let offers = [Offer { provider: "p", model: "m", price, mode: Mode::default() }];
    let terms = MoneyTerms::default();
    let call = call(bundle);
    layers.admit(&call, held, now)?;
    layers.reserve(&call, &mut Plan::new("m", &offers, &terms), held, now)
}

fn settle(bundle: &Bundle, held: Held, cost: u64) {
    Governance::default().settle(bundle, held, PicoUsd(cost));
}

/// A model whose every call is held at this price: 1,000 tokens of output and no input.
fn model_at(hold: u64) -> ModelPrice {
    assert!(hold.is_multiple_of(1_000));
    flat(0, hold / 1_000)
}

fn in_flight(bundle: &Bundle) -> u32 {
    bundle.limits.concurrent.as_ref().unwrap().inside.inside()
}

#[test]
fn the_outermost_reason_is_told() {
    use crate::exchange::models::AllowList;
    let none = || KeyLimits {
        expires: Some(UnixMs(0)),
        concurrent: Some(0),
        requests_per_minute: Some(0),
        models: AllowList::new([]).ok(),
        budget_total: layers::world::money(0),
        ..KeyLimits::default()
    };
    let mut limits = none();
    let mut told = Vec::new();
    let price = flat(1, 1);
    for lift in [
        |limits: &mut KeyLimits| limits.expires = None,
        |limits: &mut KeyLimits| limits.concurrent = None,
        |limits: &mut KeyLimits| limits.requests_per_minute = None,
        |limits: &mut KeyLimits| limits.models = None,
        |limits: &mut KeyLimits| limits.budget_total = None,
    ] {
        let bundle = bundle(limits.clone());
        let mut held = Held::default();
        told.push(begin(&bundle, Some(&price), &mut held, Now::default()).unwrap_err().face().code);
        settle(&bundle, held, 0);
        lift(&mut limits);
    }
    let wanted = [
        "key_expired",
        "concurrency_limited",
        "rate_limited",
        "model_not_allowed",
        "budget_exceeded",
    ];
    assert_eq!(told, wanted);
    assert_eq!(begin(&bundle(limits), None, &mut Held::default(), Now::default()), Ok(()));
}

/// Whatever refuses, and whatever the call came to, nothing is kept.
#[test]
fn every_path_gives_everything_back() {
    let bundle = bundle(KeyLimits {
        concurrent: Some(1),
        budget_total: layers::world::money(5_000),
        ..KeyLimits::default()
    });
    let total = || bundle.limits.budgets[0].current(UnixMs(0)).remaining();
    let (price, dear) = (model_at(4_000), model_at(6_000));
    for (price, cost, judged, left) in [
        (Some(&dear), 0, Err(402), 5_000),
        (None, 0, Err(400), 5_000),
        (Some(&price), 0, Ok(()), 5_000),
        (Some(&price), 1_500, Ok(()), 3_500),
        (Some(&price), 0, Err(402), 3_500),
    ] {
        let mut held = Held::default();
        let found = begin(&bundle, price, &mut held, Now::default());
        assert_eq!(found.map_err(|refusal| refusal.face().status), judged);
        assert_eq!(in_flight(&bundle), 1);
        settle(&bundle, held, cost);
        assert_eq!((in_flight(&bundle), total()), (0, left));
    }
}

#[test]
fn a_client_that_leaves_frees_its_place_and_keeps_its_money_held() {
    let bundle = bundle(KeyLimits {
        concurrent: Some(1),
        budget_total: layers::world::money(5_000),
        ..KeyLimits::default()
    });
    let mut held = Held::default();
    begin(&bundle, Some(&model_at(4_000)), &mut held, Now::default()).unwrap();
    Governance::default().leave(&bundle, &mut held);
    assert_eq!(in_flight(&bundle), 0);
    assert_eq!(bundle.limits.budgets[0].current(UnixMs(0)).remaining(), 1_000);
    assert_eq!(money(&held).amount(), PicoUsd(4_000));
    settle(&bundle, held, 100);
    assert_eq!(in_flight(&bundle), 0);
    assert_eq!(bundle.limits.budgets[0].current(UnixMs(0)).remaining(), 4_900);
}

// === field cases ===

/// Areas of the cases that are about limits and money.
const AREAS: [&str; 5] = ["limits", "budget", "price", "cost", "time"];

/// Rows that need more than a judgement, and the landing that brings it.
const SINCE: [(&str, &str); 2] = [
    // Windows in other zones than UTC, and days.
    ("bud-reset-tz", "budgets of days and zones"),
    // The paths are the pipeline's; that each gives back is `every_path_gives_everything_back`.
    ("lim-timeout-leak", "the pipeline's settle"),
];

type Judge = fn(&Value);

const JUDGES: [(&str, Judge); 11] = [
    ("use-cache-5m-1h", cache_writes_with_two_lifetimes),
    ("bud-race", many_at_once),
    ("bud-settle-higher", a_cost_above_its_hold),
    ("bud-zero-null", zero_and_null_budgets),
    ("bud-zero-limits", zero_rates),
    ("lim-cancel-leak", cancelled_streams),
    ("lim-off-by-one", a_limit_of_one),
    ("price-prefix", neighbours_by_prefix),
    ("price-unknown", models_without_a_price),
    ("time-backwards", a_clock_that_goes_back),
    ("bud-async-books", books_that_are_late),
];

#[test]
fn every_case_of_limits_and_money_is_judged_or_says_since_when() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/corpus/cases/field_cases.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let rows: Vec<Value> =
        rows.filter(|row| AREAS.contains(&row["area"].as_str().unwrap())).collect();
    let mut open: BTreeSet<&str> = JUDGES.iter().map(|(id, _)| *id).collect();
    open.extend(SINCE.iter().map(|(id, _)| *id));
    for row in &rows {
        let id = row["id"].as_str().unwrap();
        assert!(open.remove(id), "{id} is neither judged nor listed");
        if let Some((_, judge)) = JUDGES.iter().find(|(judged, _)| *judged == id) {
            judge(row);
        }
    }
    assert!(open.is_empty(), "no such case: {open:?}");
}

/// A decimal of dollars as the cases write it.
fn dollars(text: &Value) -> u64 {
    let (whole, parts) = text.as_str().unwrap().split_once('.').unwrap();
    let parts = format!("{parts:0<12}");
    whole.parse::<u64>().unwrap() * PICO_PER_USD + parts.parse::<u64>().unwrap()
}

fn with_total(limit: u64) -> Bundle {
    bundle(KeyLimits { budget_total: layers::world::money(limit), ..KeyLimits::default() })
}

fn cache_writes_with_two_lifetimes(row: &Value) {
    let body: Value = serde_json::from_str(row["text"].as_str().unwrap()).unwrap();
    let mut reported = ReportedUsage::default();
    for (field, place) in [
        (UsageField::Input, "/usage/input_tokens"),
        (UsageField::Output, "/usage/output_tokens"),
        (UsageField::CacheRead, "/usage/cache_read_input_tokens"),
        (UsageField::CacheWrite, "/usage/cache_creation_input_tokens"),
        (UsageField::CacheWrite5m, "/usage/cache_creation/ephemeral_5m_input_tokens"),
        (UsageField::CacheWrite1h, "/usage/cache_creation/ephemeral_1h_input_tokens"),
    ] {
        reported.set(field, body.pointer(place).and_then(Value::as_u64).unwrap());
    }
    let rates = Rates { cache_write_5m: 3_750_000, cache_write_1h: 6_000_000, ..Rates::default() };
    let price = ModelPrice { tiers: vec![Tier { above_input: 0, rates }], ..ModelPrice::default() };
    let usage = usage::envelope(&reported);
    let bill = price::bill(&usage, Some(&price), None, Mode::default(), &MoneyTerms::default());
    let wanted: u64 = row["expect"]["cost_microusd"].as_str().unwrap().parse().unwrap();
    assert_eq!(bill.cost, PicoUsd(wanted * 1_000_000));
}

fn many_at_once(row: &Value) {
    let bundle = with_total(dollars(&row["remaining"]));
    let each = dollars(&row["estimate"]);
    let price = model_at(each);
    let calls = row["concurrent"].as_u64().unwrap();
    let asked = AtomicU64::new(0);
    let worker = || {
        let mut inside = Vec::new();
        while asked.fetch_add(1, SeqCst) < calls {
            let mut held = Held::default();
            match begin(&bundle, Some(&price), &mut held, Now::default()) {
                Ok(()) => inside.push(held),
                Err(refusal) => {
                    assert_eq!(refusal.face().code, "budget_reserved");
                    settle(&bundle, held, 0);
                }
            }
        }
        inside
    };
    let inside: Vec<Held> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(inside.len() as u64, row["expect"]["admitted"].as_u64().unwrap());
    for held in inside {
        settle(&bundle, held, each);
    }
    let spent = bundle.limits.budgets[0].current(UnixMs(0)).spent();
    assert!(spent.0 <= dollars(&row["expect"]["final_spend_max"]), "{spent}");
}

fn a_cost_above_its_hold(row: &Value) {
    let (rest, actual) = (dollars(&row["remaining"]), dollars(&row["actual"]));
    let bundle = with_total(rest);
    let mut held = Held::default();
    begin(&bundle, Some(&model_at(rest)), &mut held, Now::default()).unwrap();
    assert_eq!(money(&held).overrun(PicoUsd(actual)), PicoUsd(actual - rest));
    settle(&bundle, held, actual);
    let total = bundle.limits.budgets[0].current(UnixMs(0));
    assert_eq!((total.spent(), total.remaining()), (PicoUsd(actual), rest as i64 - actual as i64));
    let next = begin(&bundle, Some(&model_at(1_000)), &mut Held::default(), Now::default());
    assert_eq!(next.unwrap_err().face().status, 402);
}

fn zero_and_null_budgets(row: &Value) {
    let passes = |limits| {
        let bundle = bundle(limits);
        [0, 1_000].map(|hold| {
            let mut held = Held::default();
            begin(&bundle, Some(&model_at(hold)), &mut held, Now::default()).is_ok()
        })
    };
    // A text in place of a number is refused where values are read, before there is a limit.
    let variants = row["variants_text"].as_array().unwrap().iter().take(3);
    let passed = variants.map(|text| {
        let written: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
        let budget_total = written["max_budget"].as_u64().and_then(layers::world::money);
        passes(KeyLimits { budget_total, ..KeyLimits::default() })
    });
    assert!(passed.eq([[false, false], [true, true], [true, true]]));
}

fn zero_rates(row: &Value) {
    let written: Value = serde_json::from_str(row["variants_text"][0].as_str().unwrap()).unwrap();
    // A negative rate and a half one do not fit the type of the value.
    let requests_per_minute = Some(written["rpm"].as_u64().unwrap() as u32);
    let bundle = bundle(KeyLimits { requests_per_minute, ..KeyLimits::default() });
    for minute in 0..3 {
        let now = Now { mono: MonoNs(minute * 60_000_000_000), ..Now::default() };
        let judged = begin(&bundle, None, &mut Held::default(), now);
        assert_eq!(judged.unwrap_err().face().code, "rate_limited");
    }
}

fn cancelled_streams(_: &Value) {
    let bundle = bundle(KeyLimits { concurrent: Some(1), ..KeyLimits::default() });
    for _ in 0..100 {
        let mut held = Held::default();
        begin(&bundle, None, &mut held, Now::default()).unwrap();
        Governance::default().leave(&bundle, &mut held);
        settle(&bundle, held, 0);
    }
    assert_eq!(in_flight(&bundle), 0);
    assert_eq!(begin(&bundle, None, &mut Held::default(), Now::default()), Ok(()));
}

fn a_limit_of_one(row: &Value) {
    let wanted = &row["expect"];
    for limits in [
        KeyLimits { requests_per_minute: Some(1), ..KeyLimits::default() },
        KeyLimits { concurrent: Some(1), ..KeyLimits::default() },
    ] {
        let bundle = bundle(limits);
        let mut first = Held::default();
        assert_eq!(wanted["first"], 200);
        assert_eq!(begin(&bundle, None, &mut first, Now::default()), Ok(()));
        let second = begin(&bundle, None, &mut Held::default(), Now::default()).unwrap_err().face();
        assert_eq!(wanted["second"], second.status);
        assert!(second.retry_after_s.is_some());
        settle(&bundle, first, 0);
        let then = MonoNs(u64::from(second.retry_after_s.unwrap()) * 1_000_000_000);
        let then = Now { mono: then, ..Now::default() };
        assert_eq!(begin(&bundle, None, &mut Held::default(), then), Ok(()), "it was true");
    }
}

/// The price of the candidate, found as the snapshot does when it is compiled.
fn looked_up(table: &[&str], row: &Value) -> Vec<Option<PriceIx>> {
    let mut list = PriceList::new(1);
    for model in table {
        list.insert("openai", &[model], flat(1, 1));
    }
    let asked = row["lookups"].as_array().unwrap().iter();
    asked.map(|model| list.lookup("openai", model.as_str().unwrap())).collect()
}

fn neighbours_by_prefix(row: &Value) {
    let table: Vec<&str> =
        row["table"].as_array().unwrap().iter().map(|model| model.as_str().unwrap()).collect();
    // The dated-snapshot rule leads to `gpt-4o-mini`; no other is a neighbour's.
    let wanted = [Some(PriceIx(1)), None, None, Some(PriceIx(0))];
    assert_eq!(looked_up(&table, row), wanted);
}

fn models_without_a_price(row: &Value) {
    let found = looked_up(&["gpt-4o", "gemini-x", "claude-x"], row);
    assert_eq!(found, [None, None, Some(PriceIx(0))]);
    let refused = begin(&with_total(1_000), None, &mut Held::default(), Now::default());
    assert_eq!(refused, Err(Refusal::PriceUnknown));
    let unpriced = price::bill(
        &codec::usage::UsageEnvelope::default(),
        None,
        None,
        Mode::default(),
        &MoneyTerms::default(),
    );
    assert_eq!(unpriced.source, price::PriceSource::Unpriced, "never 0 in silence");
}

fn a_clock_that_goes_back(_: &Value) {
    const HOUR_MS: u64 = 3_600_000;
    // Half an hour into December 2026, so that the way back leads into November.
    let december = 1_796_083_200_000 + HOUR_MS / 2;
    let limits = KeyLimits {
        requests_per_minute: Some(25),
        budget_month: layers::world::money(20_000),
        ..KeyLimits::default()
    };
    let limits = crate::exchange::limits::Limits::new(
        limits,
        crate::exchange::limits::Books::default(),
        UnixMs(december - HOUR_MS),
    );
    let bundle = Bundle::with_limits(crate::exchange::ids::KeyId(1), "test", limits);
    let price = model_at(1_000);
    let mut served = 0;
    for wall in [december, december - HOUR_MS, december] {
        for _ in 0..10 {
            let mut held = Held::default();
            let judged = begin(&bundle, Some(&price), &mut held, at_wall(wall));
            served += u64::from(judged.is_ok());
            settle(&bundle, held, if judged.is_ok() { 1_000 } else { 0 });
        }
    }
    assert_eq!(served, 20, "the budget of one window, and no more");
    let window = bundle.limits.budgets[0].current(UnixMs(december));
    assert_eq!((window.spent(), window.remaining()), (PicoUsd(20_000), 0));
}

fn books_that_are_late(row: &Value) {
    // The words are the books: nothing outside of them is asked.
    let bundle = with_total(PICO_PER_USD / 10_000);
    let price = model_at(3 * PICO_PER_USD / 1_000_000);
    let mut admitted = 0;
    for _ in 0..200 {
        let mut held = Held::default();
        let judged = begin(&bundle, Some(&price), &mut held, Now::default());
        admitted += u64::from(judged.is_ok());
        let cost = money(&held).amount().0;
        settle(&bundle, held, cost);
    }
    assert_eq!(admitted, row["expect"]["admitted"].as_u64().unwrap());
}
