//! Money and rates: sums of records are what the words say, no budget is exceeded but by what is
//! recorded as overrun, and no key made more requests than its rate lets through.

use super::{Case, Index, brief, is_exchange, text};
use crate::world::{budget_id, key_id};
use std::collections::BTreeMap;
use store::record::Settled;
use store::slab::SlabId;
use tollgate::exchange::window::Period;

/// Nanoseconds of a minute are given in milliseconds here: records have no finer time.
const MINUTE_MS: u64 = 60_000;

/// Sums of a window.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    cost: u64,
    overrun: u64,
}

pub(super) fn check(case: &Case<'_>, index: &Index<'_>, faults: &mut Vec<String>) {
    let mut sums: BTreeMap<(u32, u32), Sum> = BTreeMap::new();
    for record in case.records.iter().filter(|record| is_exchange(record)) {
        for window in record.windows.iter().filter(|window| window.budget_id != 0) {
            let sum = sums.entry((window.budget_id, window.window_id)).or_default();
            sum.cost += record.cost_picousd;
            sum.overrun += record.overrun_picousd;
        }
    }
    for (nth, key) in case.plan.world.keys.iter().enumerate() {
        for (period, limit) in [(Period::Total, key.total), (Period::Month, key.month)] {
            let Some(limit) = limit else { continue };
            let id = budget_id(nth, period);
            for ((_, window), sum) in sums.range((id, 0)..=(id, u32::MAX)) {
                // A hold is granted only where it fits; what a call costs above it is its overrun.
                if sum.cost > limit + sum.overrun {
                    faults.push(format!(
                        "key {nth}, {period:?} {window}: {} spent of {limit}, {} overrun",
                        sum.cost, sum.overrun
                    ));
                }
            }
        }
        check_strict(case, index, nth, faults);
        check_rate(case, nth, faults);
    }
    let last = case.lives.last().map_or(0, |life| life.start);
    for ((budget, window), (start, spent)) in case.words {
        let sum = sums.get(&(*budget, *window)).copied().unwrap_or_default().cost;
        // Words are read at the end of each life that was drained; later lives only add.
        let right = if *start == last { *spent == sum } else { *spent <= sum };
        if !right {
            let what = format!("{spent} in its word after start {start}, {sum} recorded");
            faults.push(format!("budget {budget}/{window}: {what}"));
        }
    }
}

/// A strict hold covers a call whose input was estimated high enough and whose answer kept to its
/// cap: only an estimation error can be above it.
fn check_strict(case: &Case<'_>, index: &Index<'_>, nth: usize, faults: &mut Vec<String>) {
    let key = &case.plan.world.keys[nth];
    let of_key = |record: &&Settled| record.key_id == key_id(nth) && is_exchange(record);
    for record in case.records.iter().filter(of_key).filter(|record| record.overrun_picousd > 0) {
        let id = text(record.request_id);
        let Some(call) = index.calls.get(&id).map(|call| case.call(*call)) else { continue };
        let [fresh, cached, written, _, output, ..] = record.tokens.map(u64::from);
        let most = call.input * call.answers;
        let cap = call.cap.unwrap_or(u64::MAX).saturating_mul(call.answers);
        if key.strict && fresh + cached + written <= most && output <= cap {
            faults.push(format!("{id}: an overrun under strict: {}", brief(record)));
        }
    }
}

/// Within any span no more calls were let in than burst and rate allow; each life begins anew.
fn check_rate(case: &Case<'_>, nth: usize, faults: &mut Vec<String>) {
    let Some(rpm) = case.plan.world.keys[nth].rpm.map(u64::from) else { return };
    let mut opened: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let of_key = |record: &&Settled| record.key_id == key_id(nth) && is_exchange(record);
    for record in case.records.iter().filter(of_key) {
        let start = SlabId::from_number(record.slab).map_or(0, |id| id.start);
        opened.entry(start).or_default().push(record.opened_unix_ms);
    }
    for (start, mut times) in opened {
        times.sort_unstable();
        for (from, begun) in times.iter().enumerate() {
            for (to, ended) in times.iter().enumerate().skip(from) {
                let span = ended - begun + 1;
                let most = rpm + (rpm * span).div_ceil(MINUTE_MS);
                if (to - from + 1) as u64 > most {
                    let count = to - from + 1;
                    faults.push(format!(
                        "key {nth}, start {start}: {count} in {span} ms at {rpm} rpm"
                    ));
                    return;
                }
            }
        }
    }
}
