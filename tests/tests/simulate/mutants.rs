//! The judge judged: what a run left is changed as a defect of the gateway would change it, and
//! the judge has to say so. A check that cannot fail proves nothing.

use crate::judge::{Case, weigh};
use crate::ledger::Left;
use crate::notes::{Asked, Got, Life, Words};
use crate::plan::Plan;
use crate::run::{self, Played};
use std::rc::Rc;
use store::ending::{Ending, Provenance, Release};
use store::record::{Settled, flag};
use store::slab::State;

/// Seeds that defects are looked for in; each is to be found in the first that has a place for it.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=12;

/// What a run left, to be changed.
#[derive(Clone)]
struct Evidence {
    plan: Rc<Plan>,
    got: Vec<Got>,
    asked: Vec<Asked>,
    lives: Vec<Life>,
    standing: Vec<Vec<u64>>,
    records: Vec<Settled>,
    left: Vec<Left>,
    words: Words,
}

impl Evidence {
    fn of(played: Played) -> Evidence {
        let notes = &played.notes;
        Evidence {
            plan: played.plan.clone(),
            got: notes.got.borrow().clone(),
            asked: notes.asked.borrow().clone(),
            lives: notes.lives.borrow().clone(),
            standing: notes.standing.borrow().clone(),
            words: notes.words.borrow().clone(),
            records: played.records,
            left: played.left,
        }
    }

    fn faults(&self) -> Vec<String> {
        weigh(&Case {
            plan: &self.plan,
            got: &self.got,
            asked: &self.asked,
            lives: &self.lives,
            standing: &self.standing,
            records: &self.records,
            left: &self.left,
            words: &self.words,
        })
    }

    /// A record of a life that was drained, of a call that upstreams saw.
    fn served(&mut self, wanted: impl Fn(&Settled) -> bool) -> Option<&mut Settled> {
        let asked = &self.asked;
        self.records.iter_mut().find(|record| {
            let id = crate::judge::text(record.request_id);
            wanted(record) && asked.iter().any(|asked| asked.id == id)
        })
    }

    /// A call that got an upstream's whole answer.
    fn answered(&mut self) -> Option<usize> {
        self.got.iter().position(|got| {
            let answer = got.answer.as_ref();
            answer.is_some_and(|a| a.field("x-of-provider").is_some() && a.body.len() > 2)
        })
    }

    fn change(&mut self, wanted: impl Fn(&Settled) -> bool, change: impl Fn(&mut Settled)) -> bool {
        self.served(wanted).map(change).is_some()
    }
}

/// A defect: changes what it can, and says whether it could.
type Defect = (&'static str, fn(&mut Evidence) -> bool);

const DEFECTS: &[Defect] = &[
    ("a record is lost", |run| {
        let Some(id) = run.served(|record| record.attempts > 0).map(|record| record.request_id)
        else {
            return false;
        };
        run.records.retain(|record| record.request_id != id);
        true
    }),
    ("an exchange is settled twice", |run| {
        let Some(record) = run.served(|record| record.attempts > 0).copied() else { return false };
        run.records.push(record);
        true
    }),
    ("a cost is one pico-dollar off", |run| {
        run.change(|record| record.cost_picousd > 0, |record| record.cost_picousd += 1)
    }),
    ("cost and upstream cost go together, and against the tokens", |run| {
        run.change(
            |record| record.cost_picousd > 0,
            |record| {
                record.tokens[4] += 1;
            },
        )
    }),
    ("another key pays", |run| run.change(|_| true, |record| record.key_id += 1)),
    ("a hold is not what the call may cost", |run| {
        run.change(|record| record.hold_picousd > 0, |record| record.hold_picousd -= 1)
    }),
    ("an overrun is not told", |run| {
        run.change(|record| record.overrun_picousd > 0, |record| record.overrun_picousd = 0)
    }),
    ("a whole answer is recorded as left", |run| {
        run.change(
            |record| record.ending == Ending::Succeeded,
            |record| record.ending = Ending::ClientLeft,
        )
    }),
    ("a whole answer is given back for nothing", |run| {
        run.change(
            |record| record.ending == Ending::Succeeded && record.cost_picousd > 0,
            |record| {
                record.release = Release::NothingReceived;
                record.provenance = Provenance::Missing;
                (record.cost_picousd, record.upstream_cost_picousd) = (0, 0);
                (record.overrun_picousd, record.tokens) = (0, [0; 8]);
            },
        )
    }),
    ("what was reported is estimated", |run| {
        run.change(
            |record| record.provenance == Provenance::Reported,
            |record| record.provenance = Provenance::Estimated,
        )
    }),
    ("a price is not said to be one", |run| {
        run.change(
            |record| record.has(flag::PRICED) && record.release == Release::None,
            |record| record.flags &= !flag::PRICED,
        )
    }),
    ("bytes relayed are not those that came", |run| {
        run.change(|record| record.ending == Ending::Succeeded, |record| record.relayed_bytes -= 1)
    }),
    ("an attempt too few is recorded", |run| {
        run.change(|record| record.attempts > 0, |record| record.attempts -= 1)
    }),
    ("an attempt too many is recorded", |run| {
        run.change(
            |record| record.attempts == 1 && record.ending == Ending::Succeeded,
            |record| {
                record.attempts = 2;
                record.listed[1] = record.listed[0];
            },
        )
    }),
    ("an attempt that may be billed is not marked", |run| {
        run.change(
            |record| record.ending == Ending::Deadline && record.listed[0].possibly_billed == 1,
            |record| record.listed[0].possibly_billed = 0,
        )
    }),
    ("a byte of an answer is lost", |run| {
        let Some(call) = run.answered() else { return false };
        run.got[call].answer.as_mut().is_some_and(|answer| answer.body.pop().is_some())
    }),
    ("a byte of an answer is changed", |run| {
        let Some(call) = run.answered() else { return false };
        let answer = run.got[call].answer.as_mut();
        answer.map(|answer| answer.body[1] ^= 1).is_some()
    }),
    ("a status is changed", |run| {
        let Some(call) = run.answered() else { return false };
        run.got[call].answer.as_mut().map(|answer| answer.status += 1).is_some()
    }),
    ("a client that stays gets nothing", |run| {
        let Some(call) = run.answered().filter(|call| run.got[*call].sent_ns.is_some()) else {
            return false;
        };
        let whole = run.got[call].answer.take();
        let alone = run.got.iter().filter(|got| got.connection == run.got[call].connection);
        whole.is_some() && alone.count() == 1
    }),
    ("a word has more than the records", |run| {
        run.words.values_mut().next_back().map(|(_, spent)| *spent += 1).is_some()
    }),
    ("a settle sequence is skipped", |run| {
        run.records.iter_mut().next_back().map(|record| record.settle_sequence += 1).is_some()
    }),
    ("what a kill left is not charged as it stood", |run| {
        // What was only opened is charged nothing, whatever stood there.
        let charged = |left: &&Left| left.state != State::Open && left.head.cost_picousd > 0;
        let Some(left) = run.left.iter().find(charged) else { return false };
        let id = left.head.request_id;
        let record = run.records.iter_mut().find(|record| record.request_id == id);
        record.map(|record| (record.cost_picousd, record.release) = (0, Release::Rule)).is_some()
    }),
    ("a refusal is not recorded", |run| {
        let killed = run.lives.iter().any(|life| life.killed.is_some());
        let refusal = run.records.iter().position(|record| record.ending == Ending::Refused);
        let Some(at) = refusal.filter(|_| !killed) else { return false };
        run.records.remove(at);
        true
    }),
    ("a key goes on after it was revoked", |run| {
        let Some(asked) = run.asked.last().filter(|asked| asked.begun_ns > 1) else { return false };
        let key = run.plan.calls[asked.call].key();
        key.map(|key| run.standing[key] = vec![asked.begun_ns - 1]).is_some()
    }),
    ("an upstream is asked by another provider's name", |run| {
        run.asked.iter_mut().find(|asked| asked.whole).map(|asked| asked.provider += 1).is_some()
    }),
];

#[test]
fn the_judge_finds_what_a_defect_would_leave() {
    let runs: Vec<Evidence> = SEEDS.map(|seed| Evidence::of(run::play(Plan::draw(seed)))).collect();
    for run in &runs {
        assert_eq!(run.faults(), Vec::<String>::new(), "seed {}", run.plan.seed);
    }
    for (name, defect) in DEFECTS {
        let changed = runs.iter().find_map(|run| {
            let mut run = run.clone();
            defect(&mut run).then_some(run)
        });
        let run = changed.unwrap_or_else(|| panic!("no run has a place for: {name}"));
        assert!(!run.faults().is_empty(), "not found in seed {}: {name}", run.plan.seed);
    }
}
