//! Retry and failover of one exchange: a machine without a clock, a socket or an allocation.
//!
//! The driver's loop: [`Walk::next`] says what to do; after an attempt that gave no good answer
//! [`Walk::end`] is told how it ended, and says what the breaker's words are to be told, before
//! `next` is asked again. What the table of DESIGN §6 says of each end is [`AttemptEnd::row`].
//! An attempt that gave an answer ends with [`Walk::answered`] (at the commit point), one that
//! nobody waits for any more with [`Walk::abandoned`]: whoever probes must say how it went.
//!
//! Nothing here knows the two points of an answer. Up to the commit point an attempt can end like
//! any other and the walk goes on; between the status point and the commit point only the driver
//! has lost something, the choice of a status. After the commit point the driver asks no more,
//! and tells [`Walk::broke_off`] if the answer breaks off: nothing is replayed, health hears of it.
//!
//! Attempts at one candidate are one outcome for its health: it hears of them when the walk leaves
//! it. Bounds: `attempts` a candidate, and as many replays; `budget_ms` in which attempts begin.

use super::balance;
pub use super::fault::{AttemptEnd, Fault};
use super::fault::{Health, Kind, May, Row, Seen};
pub use super::gate::{At, Gate, Pass, Report, Standing};
use crate::exchange::places::Places;
use crate::exchange::plan::Candidate;
use crate::exchange::refusal::Refusal;
use crate::exchange::retry::RetryRules;
use crate::exchange::time::MonoNs;

const NS_PER_MS: u64 = 1_000_000;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send the request.
    Try {
        /// To this candidate.
        place: u8,
        /// On a connection nobody used before.
        fresh: bool,
    },
    /// Ask again then.
    Wait {
        /// The instant.
        until: MonoNs,
    },
    /// Tell the client.
    Over(Over),
}

/// How a walk ends that found no good answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// An upstream's answer is told: the last of which [`Ended::keep`] was said.
    Answer(Answer),
    /// Our own words.
    Refuse(Refusal),
}

/// An upstream's answer that the client may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whose.
    pub place: u8,
    /// With this status: its own, or what an error within a 200 stands for.
    pub status: u16,
    /// With our words in `error.message`, and all else as it is.
    pub reworded: bool,
}

/// What follows from the end of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// What the words are told, before the next step.
    pub report: Option<Report>,
    /// This answer may be the one that is told at the end: it takes the place of one kept before.
    pub keep: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// A candidate is to be chosen.
    #[default]
    Choosing,
    /// An attempt is under way.
    Trying { fresh: bool },
    /// The same is sent again on a fresh connection, at once.
    Replaying,
    /// The same candidate is tried again then.
    Waiting { until: MonoNs },
    /// Nothing is tried any more.
    Over,
}

/// The walk of one exchange.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    left: Places,
    /// The last instant at which an attempt may begin; set by the first.
    begin_until: Option<MonoNs>,
    draw: u64,
    stage: Stage,
    answer: Option<Answer>,
    /// What the last attempt is told as, if it gave no answer to tell.
    last: Option<Refusal>,
    place: u8,
    pass: Pass,
    /// Attempts at this candidate, without replays.
    tries: u8,
    attempts: u16,
    fallbacks: u16,
}

// === impl Walk ===

impl Walk {
    /// A walk over what is left of a plan. `draw` is its number among the draws of the plan: it
    /// decides among equals.
    pub fn new(left: Places, draw: u64) -> Walk {
        Walk { left, draw, ..Walk::default() }
    }

    /// The candidate of the attempt under way, or of the last one.
    pub fn place(&self) -> u8 {
        self.place
    }

    /// Attempts begun, replays among them.
    pub fn attempts(&self) -> u16 {
        self.attempts
    }

    /// How often another candidate was gone to.
    pub fn fallbacks(&self) -> u16 {
        self.fallbacks
    }

    /// What to do next. `candidates` is the whole plan, best priority first.
    pub fn next(
        &mut self,
        at: At,
        rules: &RetryRules,
        candidates: &[Candidate],
        gate: &mut impl Gate,
    ) -> Step {
        match self.stage {
            Stage::Replaying => self.begin(self.place, self.pass, true),
            Stage::Waiting { until } if at.mono < until => Step::Wait { until },
            Stage::Waiting { .. } if self.may_begin(at) => match gate.enter(self.place) {
                Some(pass) => {
                    self.tries += 1;
                    self.begin(self.place, pass, false)
                }
                // Others have failed with it meanwhile: its breaker knows.
                None => {
                    self.left.remove(self.place);
                    self.choose(at, rules, candidates, gate)
                }
            },
            Stage::Choosing if self.may_begin(at) => self.choose(at, rules, candidates, gate),
            Stage::Choosing | Stage::Waiting { .. } | Stage::Over => self.over(),
            Stage::Trying { .. } => {
                debug_assert!(false, "an attempt is under way");
                self.over()
            }
        }
    }

    /// How the attempt under way ended, if not with a good answer.
    pub fn end(&mut self, end: AttemptEnd, at: At, rules: &RetryRules) -> Ended {
        debug_assert!(matches!(self.stage, Stage::Trying { .. }), "no attempt is under way");
        if end == AttemptEnd::Stale && self.stage == (Stage::Trying { fresh: false }) {
            self.stage = Stage::Replaying;
            return Ended::default();
        }
        let row = end.row();
        let keep = self.note(end, &row);
        if let Some(until) = self.again(end, &row, at, rules) {
            self.stage = Stage::Waiting { until };
            return Ended { report: None, keep };
        }
        self.left.remove(self.place);
        self.stage = if allowed(row.next, rules) { Stage::Choosing } else { Stage::Over };
        Ended { report: Some(self.report(end, &row)), keep }
    }

    /// The attempt under way has given an answer, which has begun to go to the client.
    pub fn answered(&mut self) -> Report {
        self.stage = Stage::Over;
        let Walk { place, pass, .. } = *self;
        Report { place, pass, host: Health::Well, credential: Health::Well, cool_ms: 0 }
    }

    /// Nobody waits any more: what the words are told if an attempt was under way.
    pub fn abandoned(&mut self) -> Option<Report> {
        let under_way = matches!(self.stage, Stage::Trying { .. } | Stage::Replaying);
        self.stage = Stage::Over;
        let Walk { place, pass, .. } = *self;
        let (host, credential) = (Health::Unknown, Health::Unknown);
        under_way.then_some(Report { place, pass, host, credential, cool_ms: 0 })
    }

    /// An answer has broken off after its commit point. Nothing is replayed; health hears of it.
    pub fn broke_off(&self, end: AttemptEnd) -> Report {
        // Whoever probed has said already that it went well.
        Report { pass: Pass::default(), ..self.report(end, &end.row()) }
    }

    /// Whether the attempt under way would be the last one if it ended like this, so that its
    /// answer is told as it came.
    pub fn is_last(&self, end: AttemptEnd, at: At, rules: &RetryRules, gate: &impl Gate) -> bool {
        let row = end.row();
        if row.seen != Seen::Verbatim || self.again(end, &row, at, rules).is_some() {
            return false;
        }
        let mut others = self.left;
        others.remove(self.place);
        let rests = |place| gate.standing(place) == Standing::Resting;
        !allowed(row.next, rules) || !self.may_begin(at) || others.iter().all(rests)
    }

    fn may_begin(&self, at: At) -> bool {
        self.begin_until.is_none_or(|until| at.mono <= until)
    }

    fn begin(&mut self, place: u8, pass: Pass, fresh: bool) -> Step {
        if self.attempts > 0 && place != self.place {
            self.fallbacks += 1;
        }
        self.attempts = self.attempts.saturating_add(1);
        (self.place, self.pass, self.stage) = (place, pass, Stage::Trying { fresh });
        Step::Try { place, fresh }
    }

    fn choose(
        &mut self,
        at: At,
        rules: &RetryRules,
        candidates: &[Candidate],
        gate: &mut impl Gate,
    ) -> Step {
        if self.left.is_empty() && self.attempts == 0 {
            self.stage = Stage::Over;
            return Step::Over(Over::Refuse(Refusal::ModelUnavailable));
        }
        // Whoever loses a race for a probe is passed over, this time only.
        let mut open = self.left;
        while let Some(place) = pick(open, self.draw, candidates, gate) {
            if let Some(pass) = gate.enter(place) {
                let until = || later(at.mono, u64::from(rules.budget_ms));
                self.begin_until.get_or_insert_with(until);
                self.tries = 1;
                return self.begin(place, pass, false);
            }
            open.remove(place);
        }
        if self.attempts == 0 {
            self.last =
                Some(Refusal::UpstreamUnavailable { retry_after_s: soonest_s(self.left, gate) });
        }
        self.over()
    }

    fn over(&mut self) -> Step {
        self.stage = Stage::Over;
        let refusal =
            self.last.unwrap_or(Refusal::UpstreamUnavailable { retry_after_s: REST_MIN_S });
        Step::Over(self.answer.map_or(Over::Refuse(refusal), Over::Answer))
    }

    /// Notes what the client would be told; whether the answer is to be kept for it.
    fn note(&mut self, end: AttemptEnd, row: &Row) -> bool {
        let reworded = match row.seen {
            Seen::Refusal(refusal) => {
                self.last = Some(refusal);
                return false;
            }
            Seen::Reworded => true,
            Seen::Verbatim => false,
        };
        let AttemptEnd::Fault(Fault { status, .. }) = end else { return false };
        self.answer = Some(Answer { place: self.place, status, reworded });
        true
    }

    /// When the same candidate is tried again, if it is.
    fn again(&self, end: AttemptEnd, row: &Row, at: At, rules: &RetryRules) -> Option<MonoNs> {
        // One probe is one attempt: its end decides.
        let probes = self.pass != Pass::default();
        if probes || !allowed(row.again, rules) || self.tries >= rules.attempts {
            return None;
        }
        let asked = retry_after(end).unwrap_or(0);
        // What is longer than any back-off is not waited for: another candidate is quicker.
        if asked > u64::from(rules.backoff_max_ms) {
            return None;
        }
        let until = later(at.mono, asked.max(backoff_ms(self.tries, at.chance, rules)));
        self.begin_until.is_none_or(|last| until <= last).then_some(until)
    }

    fn report(&self, end: AttemptEnd, row: &Row) -> Report {
        // Whoever was told when to come back does not send others before.
        let busy = matches!(end, AttemptEnd::Fault(Fault { kind: Kind::Busy, .. }));
        let cool_ms = match retry_after(end) {
            Some(asked) if busy || row.cools => asked,
            _ if row.cools => u64::MAX,
            _ => 0,
        };
        let Walk { place, pass, .. } = *self;
        Report { place, pass, host: row.host, credential: row.credential, cool_ms }
    }
}

/// The least that a client is told to wait for candidates that rest: a probe that is out may be
/// back by then.
const REST_MIN_S: u32 = 1;

/// The most: clients obey longer waits to the letter, and some of them without a bound.
const REST_MAX_S: u32 = 60;

/// When the first of these takes calls again, in seconds from now.
fn soonest_s(left: Places, gate: &impl Gate) -> u32 {
    let soonest = left.iter().map(|place| gate.rests_ms(place)).min().unwrap_or(0);
    u32::try_from(soonest.div_ceil(1_000)).unwrap_or(u32::MAX).clamp(REST_MIN_S, REST_MAX_S)
}

fn allowed(may: May, rules: &RetryRules) -> bool {
    match may {
        May::Yes => true,
        May::No => false,
        May::IfBilledTwice => rules.possibly_billed,
    }
}

fn retry_after(end: AttemptEnd) -> Option<u64> {
    match end {
        AttemptEnd::Fault(fault) => fault.retry_after_ms,
        _ => None,
    }
}

/// The wait after so many attempts: doubling up to the most, half of it by chance, so that those
/// who failed together do not come back together.
fn backoff_ms(tries: u8, chance: u32, rules: &RetryRules) -> u64 {
    let doubled = u64::from(rules.backoff_ms) << tries.saturating_sub(1).min(31);
    let whole = doubled.min(u64::from(rules.backoff_max_ms));
    let half = whole / 2;
    whole - half + ((half * u64::from(chance)) >> 32)
}

fn later(from: MonoNs, ms: u64) -> MonoNs {
    MonoNs(from.0.saturating_add(ms.saturating_mul(NS_PER_MS)))
}

/// The candidate that is drawn, of the best priority that has a ready one. Those that are to be
/// spared are taken only if none is ready at all.
fn pick(among: Places, draw: u64, candidates: &[Candidate], gate: &impl Gate) -> Option<u8> {
    let (mut ready, mut spared) = (Places::NONE, Places::NONE);
    // The priority of those found so far; what is behind it does not count.
    let (mut of_ready, mut of_spared) = (u16::MAX, u16::MAX);
    for place in among.iter() {
        let Some(Candidate { priority, .. }) = candidates.get(usize::from(place)) else { break };
        if *priority > of_ready {
            break;
        }
        match gate.standing(place) {
            Standing::Ready => {
                ready.insert(place);
                of_ready = *priority;
            }
            Standing::Spared if *priority <= of_spared => {
                spared.insert(place);
                of_spared = *priority;
            }
            Standing::Spared | Standing::Resting => {}
        }
    }
    let chosen = if ready.is_empty() { spared } else { ready };
    let weight = |place: u8| candidates.get(usize::from(place)).map_or(1, |c| c.weight);
    balance::pick(chosen, weight, draw)
}

#[cfg(test)]
mod tests;
