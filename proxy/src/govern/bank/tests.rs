//! Properties of the bank: against a naive model one step at a time, and with workers that run
//! into each other.

use super::*;
use crate::exchange::ids::BudgetId;
use crate::exchange::limits::RequestRate;
use crate::exchange::words::{MONEY_LIMIT_MAX, MoneyLimit};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

const WORKERS: u64 = 16;

fn limit(pico: u64) -> MoneyLimit {
    MoneyLimit::new(PicoUsd(pico)).unwrap()
}

fn budget(period: Period, pico: u64, now: UnixMs) -> Arc<Budget> {
    Arc::new(Budget::new(BudgetId(1), Scope::Key, period, limit(pico), PicoUsd(0), now))
}

fn pair(total: u64, month: u64, now: UnixMs) -> [Arc<Budget>; 2] {
    [budget(Period::Total, total, now), budget(Period::Month, month, now)]
}

fn cause(held: Result<MoneyHold, Short>) -> Result<PicoUsd, (Period, Shortage)> {
    held.map(|hold| hold.amount()).map_err(|short| (short.period, short.cause))
}

#[test]
fn one_row_per_judgement() {
    use Shortage::{Reserved, Spent};
    let now = UnixMs(0);
    for (limit, spent, held, wanted, judged) in [
        (100, 0, 0, 100, Ok(())),
        (100, 0, 0, 101, Err(Spent)),
        (100, 60, 0, 40, Ok(())),
        (100, 60, 0, 41, Err(Spent)),
        (100, 0, 60, 40, Ok(())),
        (100, 0, 60, 41, Err(Reserved)),
        (100, 50, 50, 50, Err(Reserved)),
        (100, 51, 49, 50, Err(Spent)),
        (100, 100, 0, 0, Ok(())),
        (100, 101, 0, 0, Err(Spent)),
        (0, 0, 0, 0, Err(Spent)),
        (MONEY_LIMIT_MAX.0, 0, 0, MONEY_LIMIT_MAX.0, Ok(())),
        (MONEY_LIMIT_MAX.0, 0, 0, u64::MAX, Err(Spent)),
    ] {
        let budgets = [Arc::new(Budget::new(
            BudgetId(1),
            Scope::Key,
            Period::Total,
            super::tests::limit(limit),
            PicoUsd(spent),
            now,
        ))];
        let first = (held > 0).then(|| hold(&budgets, PicoUsd(held), now).unwrap());
        let found = cause(hold(&budgets, PicoUsd(wanted), now)).map(drop).map_err(|e| e.1);
        assert_eq!(found, judged, "{wanted} of {limit}, {spent} spent, {held} held");
        if let Some(first) = first {
            release(&budgets, first);
        }
    }
}

#[test]
fn the_first_budget_that_refuses_is_named_and_the_others_are_given_back() {
    let budgets = pair(100, 10, UnixMs(0));
    assert_eq!(
        cause(hold(&budgets, PicoUsd(11), UnixMs(0))),
        Err((Period::Month, Shortage::Spent))
    );
    assert_eq!(budgets[0].current(UnixMs(0)).remaining(), 100);
    let held = hold(&budgets, PicoUsd(10), UnixMs(0)).unwrap();
    let second = hold(&budgets, PicoUsd(10), UnixMs(0));
    assert_eq!(second.unwrap_err().resets, Period::Month.window(UnixMs(0)).end);
    assert_eq!(budgets[0].current(UnixMs(0)).remaining(), 90);
    release(&budgets, held);
    assert_eq!(budgets.each_ref().map(|b| b.current(UnixMs(0)).remaining()), [100, 10]);
}

/// Case `bud-settle-higher`.
#[test]
fn a_cost_above_its_hold_is_booked_in_full() {
    let budgets = pair(100, 100, UnixMs(0));
    let held = hold(&budgets, PicoUsd(100), UnixMs(0)).unwrap();
    assert_eq!(held.overrun(PicoUsd(250)), PicoUsd(150));
    assert_eq!(MoneyHold::default().overrun(PicoUsd(250)), PicoUsd(0), "nothing was held");
    settle(&budgets, held, PicoUsd(250));
    for budget in &budgets {
        let window = budget.current(UnixMs(0));
        assert_eq!((window.remaining(), window.spent()), (-150, PicoUsd(250)));
    }
    assert_eq!(cause(hold(&budgets, PicoUsd(1), UnixMs(0))), Err((Period::Total, Shortage::Spent)));
}

#[test]
fn what_a_predecessor_holds_is_taken_up_and_settled_here() {
    let budgets = pair(100, 100, UnixMs(0));
    let theirs = hold(&pair(500, 500, UnixMs(0)), PicoUsd(130), UnixMs(0)).unwrap();
    let held = inherit(&budgets, theirs.amount(), theirs.windows());
    assert_eq!(budgets[1].current(UnixMs(0)).remaining(), -30);
    settle(&budgets, held, PicoUsd(60));
    assert_eq!(budgets[1].current(UnixMs(0)).remaining(), 40);
    let elsewhere = inherit(&budgets, PicoUsd(10), &[WindowId(0), WindowId(99)]);
    settle(&budgets, elsewhere, PicoUsd(10));
    assert_eq!(budgets.each_ref().map(|b| b.current(UnixMs(0)).remaining()), [30, 40]);
}

#[test]
fn a_budget_warns_from_four_fifths_spent_or_held() {
    for (spent, nearly) in [(0, false), (799, false), (800, true), (2_000, true)] {
        let total = Period::Total.window(UnixMs(0));
        let window = MoneyWindow::new(total, limit(1_000), PicoUsd(spent));
        assert_eq!(is_nearly_spent(&window), nearly, "{spent}");
    }
}

// === one step at a time, against a model ===

#[derive(Clone, Debug)]
enum Step {
    Hold(u64),
    Settle(usize, u64),
    Limit(usize, u64),
    /// A month on.
    Forward,
    /// So many days back.
    Back(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let amount = prop_oneof![0..40_u64, 0..2_000_u64];
    let step = prop_oneof![
        6 => amount.clone().prop_map(Step::Hold),
        5 => (any::<usize>(), amount.clone()).prop_map(|(at, cost)| Step::Settle(at, cost)),
        1 => (0..2_usize, 0..1_500_u64).prop_map(|(at, limit)| Step::Limit(at, limit)),
        1 => Just(Step::Forward),
        1 => (1..50_u64).prop_map(Step::Back),
    ];
    prop::collection::vec(step, 1..120)
}

/// One budget by the book: what is spent and held in each window.
struct Model {
    period: Period,
    limit: u64,
    reached: u32,
    windows: BTreeMap<u32, (u64, u64)>,
}

impl Model {
    fn new(period: Period, limit: u64) -> Model {
        Model { period, limit, reached: 0, windows: BTreeMap::new() }
    }

    fn take(&mut self, amount: u64, now: UnixMs) -> Result<u32, Shortage> {
        self.reached = self.reached.max(self.period.window(now).id.0);
        let (spent, held) = self.windows.entry(self.reached).or_default();
        if self.limit == 0 || *spent + amount > self.limit {
            return Err(Shortage::Spent);
        }
        if *spent + *held + amount > self.limit {
            return Err(Shortage::Reserved);
        }
        *held += amount;
        Ok(self.reached)
    }

    fn settle(&mut self, id: u32, amount: u64, cost: u64) {
        let (spent, held) = self.windows.get_mut(&id).unwrap();
        *held -= amount;
        *spent += cost;
    }
}

/// What both sides say of the same hold.
fn model_hold(
    models: &mut [Model; 2],
    amount: u64,
    now: UnixMs,
) -> Result<[u32; 2], (Period, Shortage)> {
    let total = models[0].take(amount, now).map_err(|cause| (Period::Total, cause))?;
    match models[1].take(amount, now) {
        Ok(month) => Ok([total, month]),
        Err(cause) => {
            models[0].settle(total, amount, 0);
            Err((Period::Month, cause))
        }
    }
}

proptest! {
    /// Exactly what fits is admitted, what is refused is refused for the right reason, and no
    /// pico-dollar is lost over rollovers, changed limits and clocks that go back.
    #[test]
    fn the_bank_and_the_book_agree(steps in steps(), limits in (0..1_500_u64, 0..1_500_u64)) {
        let mut now = UnixMs(1_700_000_000_000);
        let budgets = pair(limits.0, limits.1, now);
        let mut models = [Model::new(Period::Total, limits.0), Model::new(Period::Month, limits.1)];
        models[1].reached = Period::Month.window(now).id.0;
        let mut open: Vec<(MoneyHold, [u32; 2])> = Vec::new();
        let (mut overruns, mut limit_max) = (0, limits.0);
        for step in steps {
            match step {
                Step::Hold(amount) => {
                    let wanted = model_hold(&mut models, amount, now);
                    let found = hold(&budgets, PicoUsd(amount), now);
                    match (found, wanted) {
                        (Ok(held), Ok(ids)) => {
                            prop_assert_eq!(held.windows(), ids.map(WindowId));
                            open.push((held, ids));
                        }
                        (found, wanted) => {
                            prop_assert_eq!(cause(found).map(drop), wanted.map(drop));
                        }
                    }
                }
                Step::Settle(at, cost) if !open.is_empty() => {
                    let (held, ids) = open.swap_remove(at % open.len());
                    overruns += held.overrun(PicoUsd(cost)).0;
                    for (model, id) in models.iter_mut().zip(ids) {
                        model.settle(id, held.amount().0, cost);
                    }
                    settle(&budgets, held, PicoUsd(cost));
                }
                Step::Settle(..) => {}
                Step::Limit(at, pico) => {
                    models[at].limit = pico;
                    limit_max = limit_max.max(models[0].limit);
                    budgets[at].set_limit(limit(pico));
                }
                Step::Forward => {
                    now = Period::Month.window(now).end;
                    budgets.iter().for_each(|budget| budget.prepare(now));
                }
                Step::Back(days) => now = UnixMs(now.0 - days * 86_400_000),
            }
        }
        for (held, ids) in open {
            for (model, id) in models.iter_mut().zip(ids) {
                model.settle(id, held.amount().0, held.amount().0);
            }
            let cost = held.amount();
            settle(&budgets, held, cost);
        }
        for (model, budget) in models.iter().zip(&budgets) {
            for (id, (spent, held)) in &model.windows {
                let window = budget.window(WindowId(*id)).unwrap();
                prop_assert_eq!((window.spent().0, *held), (*spent, 0));
            }
            let current = budget.window(WindowId(model.reached)).unwrap();
            let (spent, limit) = (current.spent().0, current.limit().pico().0);
            prop_assert_eq!(current.remaining(), limit as i64 - spent as i64);
        }
        let (spent, _) = models[0].windows.get(&0).copied().unwrap_or_default();
        prop_assert!(spent <= limit_max + overruns, "an excess is recorded overruns");
    }
}

// === workers that run into each other ===

/// A small generator: the same numbers in every run, other ones for every worker.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn workers<T: Send>(work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..WORKERS).map(|n| scope.spawn(move || work(n))).collect();
        running.into_iter().map(|worker| worker.join().unwrap()).collect()
    })
}

/// Case `bud-race`, with more workers than it asks for.
#[test]
fn fifty_at_once_against_room_for_three_are_three() {
    for _ in 0..50 {
        let budgets = pair(1_000_000, 1_000_000, UnixMs(0));
        let admitted = AtomicU64::new(0);
        let asked = AtomicU64::new(0);
        let holds = workers(|_| {
            let mut holds = Vec::new();
            while asked.fetch_add(1, SeqCst) < 50 {
                match hold(&budgets[..1], PicoUsd(300_000), UnixMs(0)) {
                    Ok(held) => {
                        admitted.fetch_add(1, SeqCst);
                        holds.push(held);
                    }
                    Err(short) => assert_eq!(short.cause, Shortage::Reserved),
                }
            }
            holds
        });
        assert_eq!(admitted.load(SeqCst), 3);
        for held in holds.into_iter().flatten() {
            settle(&budgets[..1], held, PicoUsd(300_000));
        }
        let total = budgets[0].current(UnixMs(0));
        assert_eq!((total.spent(), total.remaining()), (PicoUsd(900_000), 100_000));
        assert_eq!(
            hold(&budgets[..1], PicoUsd(300_000), UnixMs(0)).unwrap_err().cause,
            Shortage::Spent
        );
    }
}

/// Each worker's share fits whatever the others do, so a single refusal would be a false one.
#[test]
fn nobody_is_refused_while_there_is_room() {
    const ROUNDS: u64 = 4_000;
    let share = 1_000;
    let spend = WORKERS * ROUNDS * 7;
    let budgets = pair(WORKERS * share + spend, WORKERS * share + spend, UnixMs(0));
    workers(|_| {
        for _ in 0..ROUNDS {
            let held = hold(&budgets, PicoUsd(share), UnixMs(0)).unwrap();
            settle(&budgets, held, PicoUsd(7));
        }
    });
    for budget in &budgets {
        let window = budget.current(UnixMs(0));
        assert_eq!((window.spent().0, window.remaining() as u64), (spend, WORKERS * share));
    }
}

/// A shadow account that never says more than the bank: raised after an admission, lowered before
/// a settlement. So if it ever exceeded the limit, the bank had.
#[test]
fn spent_and_held_never_exceed_the_limit_but_for_overruns() {
    const LIMIT: u64 = 100_000;
    let budgets = [budget(Period::Total, LIMIT, UnixMs(0))];
    let shadow = AtomicU64::new(0);
    let overruns = AtomicU64::new(0);
    let costs = workers(|n| {
        let mut numbers = Numbers(n);
        let mut costs = 0;
        for _ in 0..3_000 {
            let amount = numbers.below(3_000);
            let Ok(held) = hold(&budgets, PicoUsd(amount), UnixMs(0)) else { continue };
            let seen = shadow.fetch_add(amount, SeqCst) + amount;
            assert!(seen <= LIMIT + overruns.load(SeqCst), "{seen}");
            let cost = if numbers.below(8) == 0 { amount + 11 } else { amount / 97 };
            overruns.fetch_add(held.overrun(PicoUsd(cost)).0, SeqCst);
            if cost > amount {
                settle(&budgets, held, PicoUsd(cost));
                shadow.fetch_add(cost - amount, SeqCst);
            } else {
                shadow.fetch_sub(amount - cost, SeqCst);
                settle(&budgets, held, PicoUsd(cost));
            }
            costs += cost;
        }
        costs
    });
    let window = budgets[0].current(UnixMs(0));
    let spent: u64 = costs.into_iter().sum();
    assert_eq!(window.spent(), PicoUsd(spent));
    assert_eq!(window.remaining(), LIMIT as i64 - spent as i64);
    assert!(spent <= LIMIT + overruns.load(SeqCst));
}

/// Months pass and limits change under the workers' hands; every cost is in the window that
/// admitted it, and every word adds up.
#[test]
fn sums_are_conserved_over_rollovers_and_changed_limits() {
    let start = UnixMs(1_700_000_000_000);
    let budgets = pair(u64::from(u32::MAX), 50_000, start);
    let clock = AtomicU64::new(start.0);
    // The first worker is the control thread too: months pass however the threads are scheduled.
    let control = |numbers: &mut Numbers| {
        let end = budgets[1].current(UnixMs(clock.load(SeqCst))).end();
        budgets[1].prepare(UnixMs(end.0 - 1));
        clock.store(end.0 - numbers.below(2) * 5, SeqCst);
        budgets[1].set_limit(limit(10_000 + numbers.below(90_000)));
    };
    let booked = workers(|n| {
        let mut numbers = Numbers(n);
        let mut booked: BTreeMap<WindowId, u64> = BTreeMap::new();
        let mut open = Vec::new();
        for round in 0..2_000 {
            if n == 0 && round % 40 == 0 {
                control(&mut numbers);
            }
            let now = UnixMs(clock.load(SeqCst));
            if let Ok(held) = hold(&budgets, PicoUsd(numbers.below(4_000)), now) {
                open.push(held);
            }
            if open.len() as u64 > numbers.below(6) {
                let held = open.swap_remove(numbers.below(open.len() as u64) as usize);
                let cost = numbers.below(500);
                *booked.entry(held.windows()[1]).or_default() += cost;
                settle(&budgets, held, PicoUsd(cost));
            }
        }
        for held in open {
            release(&budgets, held);
        }
        booked
    });
    let mut sums: BTreeMap<WindowId, u64> = BTreeMap::new();
    for (id, cost) in booked.into_iter().flatten() {
        *sums.entry(id).or_default() += cost;
    }
    assert!(sums.len() > 3, "the workers saw {} months", sums.len());
    for (id, sum) in &sums {
        let window = budgets[1].window(*id).unwrap();
        assert_eq!(window.spent(), PicoUsd(*sum), "{id:?}");
        assert_eq!(window.remaining(), window.limit().pico().0 as i64 - *sum as i64, "{id:?}");
    }
    let total = budgets[0].current(start);
    assert_eq!(total.spent().0, sums.values().sum::<u64>());
}

// === rates ===

const SECOND: u64 = 1_000_000_000;

fn at(seconds: u64) -> MonoNs {
    MonoNs(seconds * SECOND)
}

proptest! {
    /// Within any T at most burst + rate × T pass, and what a refusal says is exact: a millisecond
    /// before it none passes, at it one does.
    #[test]
    fn a_rate_is_kept_and_its_waits_are_true(
        per_minute in 1..5_000_u32,
        gaps in prop::collection::vec(0..2_000_u64, 1..300),
    ) {
        let word = GcraWord::default();
        let mut now = MonoNs(7 * SECOND);
        let start = now;
        let mut passed = 0;
        for gap in gaps {
            now = MonoNs(now.0 + gap * 1_000_000);
            if admit_at_rate(&word, per_minute, now).is_ok() {
                passed += 1;
            }
        }
        let most = u128::from(per_minute)
            + u128::from(now.since(start)) * u128::from(per_minute) / u128::from(MINUTE_NS);
        prop_assert!(passed <= most, "{passed} of {most}");
        let wait = loop {
            match admit_at_rate(&word, per_minute, now) {
                Ok(()) => {}
                Err(wait) => break wait,
            }
        };
        prop_assert!(wait > 0);
        let early = MonoNs(now.0 + u64::from(wait - 1) * 1_000_000);
        prop_assert!(early == now || admit_at_rate(&word, per_minute, early).is_err());
        let then = MonoNs(now.0 + u64::from(wait) * 1_000_000);
        prop_assert!(admit_at_rate(&word, per_minute, then).is_ok());
    }
}

#[test]
fn the_whole_burst_passes_at_once_and_no_more() {
    for per_minute in [1, 2, 3, 7, 59, 60, 61, 999, 100_000] {
        let word = GcraWord::default();
        let passed =
            (0..per_minute + 5).filter(|_| admit_at_rate(&word, per_minute, at(5)).is_ok());
        assert_eq!(passed.count(), per_minute as usize);
    }
    let word = GcraWord::default();
    let passed = workers(|_| (0..100).filter(|_| admit_at_rate(&word, 333, at(5)).is_ok()).count());
    assert_eq!(passed.into_iter().sum::<usize>(), 333);
}

#[test]
fn what_is_said_to_be_left_is_what_passes() {
    for per_minute in [0, 1, 7, 60, 999] {
        let rate = RequestRate { per_minute, word: Arc::default() };
        for used in [0, 1, 3, 500] {
            (0..used).for_each(|_| assert!(admit_at_rate(&rate.word, per_minute, at(5)).is_ok()));
            let left = rate.left(at(5));
            let passed =
                (0..1_500).filter(|_| admit_at_rate(&rate.word, per_minute, at(5)).is_ok());
            assert_eq!(passed.count(), left as usize, "{per_minute}");
            (0..left).for_each(|_| refund_rate(&rate.word, per_minute));
        }
        assert_eq!(rate.left(at(5_000)), per_minute, "it is full again");
    }
}

#[test]
fn what_is_given_back_counts_as_never_made() {
    let word = GcraWord::default();
    for _ in 0..10 {
        assert_eq!(admit_at_rate(&word, 1, at(100)), Ok(()));
        assert_eq!(admit_at_rate(&word, 1, at(100)), Err(60_000));
        refund_rate(&word, 1);
    }
    refund_rate(&word, 1);
    refund_rate(&word, 0);
    assert_eq!(admit_at_rate(&word, 1, at(100)), Ok(()));
    assert!(admit_at_rate(&word, 1, at(159)).is_err(), "no more than was taken comes back");
}

#[test]
fn days_are_counted_and_never_go_back() {
    const DAY: u64 = 86_400_000;
    let word = DayWord::default();
    let used = |day| Err(DayUsed { until: UnixMs(day * DAY) });
    for (now, wanted) in [
        (10 * DAY, Ok(())),
        (11 * DAY - 1, Ok(())),
        (11 * DAY - 1, used(11)),
        (11 * DAY, Ok(())),
        (10 * DAY, Ok(())),
        (10 * DAY, used(12)),
        (12 * DAY - 1, used(12)),
        (12 * DAY, Ok(())),
    ] {
        assert_eq!(admit_today(&word, 2, UnixMs(now)), wanted, "{now}");
    }
    assert_eq!(admit_today(&DayWord::default(), 0, UnixMs(0)), used(1));
}
