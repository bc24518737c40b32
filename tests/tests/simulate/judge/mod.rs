//! Judges a run by what must hold whatever happened. Each check says in words what it found; a
//! run without words is a good one.
//!
//! The judge knows the plan, what clients and upstreams saw, and the records. It knows the price
//! list and does its own sums; of the gateway's code it uses names of codes and the words of
//! limits, which it only reads.

mod calls;
mod money;
mod records;

use crate::call::Call;
use crate::ledger::Left;
use crate::notes::{Asked, Got, Life, Notes, Words};
use crate::plan::Plan;
use crate::reply::Kind;
use crate::run::Played;
use std::collections::BTreeMap;
use store::ending::Ending;
use store::record::Settled;
use store::slab::SlabId;
use tollgate::exchange::ids::RequestId;
use tollgate::exchange::keys::KeyTable;
use tollgate::exchange::time::UnixMs;

/// A run as the judge sees it.
pub(crate) struct Case<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) got: &'p [Got],
    pub(crate) asked: &'p [Asked],
    pub(crate) lives: &'p [Life],
    pub(crate) standing: &'p [Vec<u64>],
    pub(crate) records: &'p [Settled],
    pub(crate) left: &'p [Left],
    pub(crate) words: &'p Words,
}

/// Everything that is wrong with a run.
pub(crate) fn judge(played: &Played) -> Vec<String> {
    let notes = &played.notes;
    let (got, asked) = (notes.got.borrow(), notes.asked.borrow());
    let (lives, standing) = (notes.lives.borrow(), notes.standing.borrow());
    let words = notes.words.borrow();
    let case = Case {
        plan: &played.plan,
        got: &got,
        asked: &asked,
        lives: &lives,
        standing: &standing,
        records: &played.records,
        left: &played.left,
        words: &words,
    };
    let mut faults = notes.faults.borrow().clone();
    faults.extend(weigh(&case));
    faults
}

/// What is wrong by what was seen.
pub(crate) fn weigh(case: &Case<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    let by_id = records::check(case, &mut faults);
    let index = Index::of(case, &by_id);
    records::check_attempts(case, &index, &mut faults);
    records::check_charges(case, &index, &mut faults);
    calls::check(case, &index, &mut faults);
    calls::check_refusals(case, &index, &mut faults);
    money::check(case, &index, &mut faults);
    faults
}

/// Who belongs to whom.
pub(crate) struct Index<'c> {
    /// Records by the id that clients and upstreams know.
    by_id: &'c BTreeMap<String, &'c Settled>,
    /// Attempts of each call, in their order.
    attempts: Vec<Vec<&'c Asked>>,
    /// The id of each call, as far as anybody outside has seen it.
    ids: Vec<Option<String>>,
    /// The call of each record.
    calls: BTreeMap<String, usize>,
}

impl<'c> Index<'c> {
    fn of(case: &'c Case<'_>, by_id: &'c BTreeMap<String, &'c Settled>) -> Index<'c> {
        let mut attempts: Vec<Vec<&Asked>> = vec![Vec::new(); case.plan.calls.len()];
        for asked in case.asked {
            attempts[asked.call].push(asked);
        }
        let ids: Vec<Option<String>> = case
            .got
            .iter()
            .zip(&attempts)
            .map(|(got, attempts)| {
                let answer = got.answer.as_ref().or(got.partial.as_ref());
                let told = answer.and_then(|answer| answer.field("x-tollgate-request-id"));
                told.or_else(|| attempts.first().map(|asked| asked.id.clone()))
            })
            .collect();
        let known = ids.iter().enumerate();
        let calls = known.filter_map(|(call, id)| Some((id.clone()?, call))).collect();
        Index { by_id, attempts, ids, calls }
    }

    /// The record of a call, if it has one.
    fn record(&self, call: usize) -> Option<&'c Settled> {
        self.by_id.get(self.ids[call].as_ref()?).copied()
    }
}

impl Case<'_> {
    fn call(&self, number: usize) -> &Call {
        &self.plan.calls[number]
    }

    /// Whether an attempt came on a connection that had carried another one.
    fn was_used(&self, asked: &Asked) -> bool {
        let before = self.asked.iter().take_while(|other| !std::ptr::eq(*other, asked));
        let place = (asked.provider, asked.connection);
        before.into_iter().any(|other| (other.provider, other.connection) == place)
    }

    /// Whether an attempt came on a connection whose answer before had bytes behind its end. Those
    /// that come once the request is on its way are taken for the beginning of its answer.
    fn is_behind_surplus(&self, asked: &Asked) -> bool {
        let place = (asked.provider, asked.connection);
        let before = self.asked.iter().take_while(|other| !std::ptr::eq(*other, asked));
        let same = before.filter(|other| (other.provider, other.connection) == place);
        same.map(|other| &self.call(other.call).replies[other.reply])
            .any(|reply| reply.kind == Kind::Surplus)
    }

    /// The life that a record was opened in.
    fn life_of(&self, record: &Settled) -> Option<&Life> {
        let start = SlabId::from_number(record.slab)?.start;
        self.lives.iter().find(|life| life.start == start)
    }

    /// Whether a kill fell between two instants.
    fn killed_between(&self, from_ns: u64, to_ns: u64) -> bool {
        let mut killed = self.lives.iter().filter(|life| life.killed.is_some());
        killed.any(|life| from_ns <= life.to_ns && life.to_ns <= to_ns + KILL_SEEN_NS)
    }

    /// Whether a drain was under way at some time between two instants.
    fn drained_between(&self, from_ns: u64, to_ns: u64) -> bool {
        self.lives.iter().any(|life| {
            life.drained_ns.is_some_and(|at| at <= to_ns + KILL_SEEN_NS && from_ns <= life.to_ns)
        })
    }
}

/// How long after a kill the run notices it.
const KILL_SEEN_NS: u64 = 10_000_000;

/// An id as clients and upstreams see it.
pub(crate) fn text(id: [u8; 16]) -> String {
    RequestId(id).to_string()
}

/// What matters of a record, in a line.
pub(crate) fn brief(record: &Settled) -> String {
    let listed = record.listed.iter().take(record.attempts.into());
    let listed: Vec<_> =
        listed.map(|one| (one.provider_id, one.class, one.possibly_billed)).collect();
    format!(
        "{:?}/{:?} {} code {:?}, key {}, {:?} tokens {:?}, upstream {} cost {} hold {} overrun {}, \
         relayed {}, attempts {listed:?}",
        record.ending,
        record.release,
        record.status,
        tollgate::exchange::codes::name(record.error_code),
        record.key_id,
        record.provenance,
        record.tokens,
        record.upstream_cost_picousd,
        record.cost_picousd,
        record.hold_picousd,
        record.overrun_picousd,
        record.relayed_bytes,
    )
}

/// A refusal never became an exchange.
pub(crate) fn is_exchange(record: &Settled) -> bool {
    record.ending != Ending::Refused
}

/// What must hold of the words at any moment.
pub(crate) fn in_flight(notes: &Notes, keys: &KeyTable) {
    keys.each(|bundle| {
        let limits = &bundle.limits;
        if let Some(limit) = &limits.concurrent
            && limit.inside.inside() > limit.max
        {
            notes.fault(format!(
                "{}: {} inside of {}",
                bundle.name,
                limit.inside.inside(),
                limit.max
            ));
        }
    });
}

/// What must hold of them once nothing is in flight.
pub(crate) fn at_rest(plan: &Plan, notes: &Notes, keys: &KeyTable, now: UnixMs) {
    for key in &plan.world.keys {
        let Some(bundle) = keys.find(&key.digest()) else { continue };
        let limits = &bundle.limits;
        if let Some(limit) = &limits.concurrent
            && limit.inside.inside() != 0
        {
            notes.fault(format!("{}: {} inside at rest", bundle.name, limit.inside.inside()));
        }
        for budget in &limits.budgets {
            let window = budget.current(now);
            let (limit, spent) = (window.limit().pico().0, window.spent().0);
            let held = i128::from(limit) - i128::from(spent) - i128::from(window.remaining());
            if held != 0 {
                notes.fault(format!("{}: {held} held at rest in {:?}", bundle.name, budget.period));
            }
            let start = notes.lives.borrow().last().map_or(0, |life| life.start);
            notes.words.borrow_mut().insert((budget.id.0, window.id().0), (start, spent));
        }
    }
}
