//! The circuit breaker: what the bits of its word mean, and how a failure, a probe and time change
//! them. Arithmetic only; the words are `exchange::breaker`.
//!
//! So many failures within the window open it, if no more calls went well to their end since the
//! first of them; open, nothing passes; after that one call passes as its *probe*, and if it goes
//! well the breaker closes by a *slow start*: a share of the calls that grows from a tenth to all,
//! of which the first failure opens it again. A call that has no other candidate is not counted
//! among the share: refusing it would help nobody.
//!
//! How they are counted is [`counted`]. A probe of which nothing is heard for as long as a breaker
//! stays open is taken for lost, and another one may go.
//!
//! Time is in milliseconds of the monotonic clock that all shards share.

mod counted;

pub use counted::FAILURES_MAX;

use super::fault::Health;
use super::gate::{At, Gate, Pass, Report, Standing};
use crate::exchange::breaker::{BreakerRules, BreakerWord};
use crate::exchange::plan::Candidate;
use counted::Counted;

const NS_PER_MS: u64 = 1_000_000;

/// The kind of state is in the two highest bits; below them a time, or slices.
const KIND_AT: u32 = 62;
const TIME: u64 = (1 << KIND_AT) - 1;

/// The share of a slow start at its beginning.
const FIRST_SHARE: u64 = 10;

/// A word taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Calls pass; failures are counted: the number of the newest slice, the counts, newest
    /// lowest, and the good ends since the first.
    Closed(Counted),
    /// Nothing passes, since then.
    Open { since: u64 },
    /// One call is out to see, since then.
    Probing { since: u64 },
    /// The probe went well then.
    Warming { since: u64 },
}

/// What a breaker lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lets {
    /// Everything.
    All,
    /// This share of the calls, in parts of 2³².
    Share(u32),
    /// One call, as its probe.
    One,
    /// Nothing.
    Nothing,
}

/// What a breaker is at a moment, for those who watch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Calls pass.
    Closed,
    /// Nothing passes, or one call may go as its probe and none has.
    Open,
    /// The probe is out.
    Probing,
    /// A growing share of the calls passes.
    SlowStart,
}

/// What a breaker is now.
pub fn phase(word: u64, now_ms: u64, rules: &BreakerRules) -> Phase {
    match State::of(word) {
        State::Closed(_) => Phase::Closed,
        State::Open { .. } => Phase::Open,
        State::Probing { .. } => Phase::Probing,
        State::Warming { .. } if lets(word, now_ms, rules) == Lets::All => Phase::Closed,
        State::Warming { .. } => Phase::SlowStart,
    }
}

/// What a breaker lets through now.
pub fn lets(word: u64, now_ms: u64, rules: &BreakerRules) -> Lets {
    let waited = |since: u64| now_ms.saturating_sub(since) >= u64::from(rules.open_ms);
    match State::of(word) {
        State::Closed(_) => Lets::All,
        State::Open { since } | State::Probing { since } if waited(since) => Lets::One,
        State::Open { .. } | State::Probing { .. } => Lets::Nothing,
        State::Warming { since } => {
            let (age, whole) = (now_ms.saturating_sub(since), u64::from(rules.slow_start_ms));
            if age >= whole {
                return Lets::All;
            }
            // At least a tenth: so small a share that nobody called would never end.
            let part = (age << 32) / whole;
            Lets::Share(part.max((1 << 32) / FIRST_SHARE) as u32)
        }
    }
}

/// The word after a failure; `None` if it says nothing new. `probe`: the one that was out.
pub fn failed(word: u64, probe: bool, now_ms: u64, rules: &BreakerRules) -> Option<u64> {
    let open = State::Open { since: now_ms };
    let next = match State::of(word) {
        State::Probing { .. } if probe => open,
        // Begun before it opened.
        State::Open { .. } | State::Probing { .. } => return None,
        State::Warming { since }
            if now_ms.saturating_sub(since) < u64::from(rules.slow_start_ms) =>
        {
            open
        }
        State::Warming { .. } => fell(Counted::default(), now_ms, rules),
        State::Closed(counted) => fell(counted, now_ms, rules),
    };
    Some(next.word())
}

/// The word while a probe is out; `None` if none may go.
pub fn probing(word: u64, now_ms: u64, rules: &BreakerRules) -> Option<u64> {
    let due = lets(word, now_ms, rules) == Lets::One;
    due.then(|| State::Probing { since: now_ms }.word())
}

/// The word after the probe went well; `None` if it is not out any more.
pub fn passed(word: u64, now_ms: u64) -> Option<u64> {
    match State::of(word) {
        State::Probing { .. } => Some(State::Warming { since: now_ms }.word()),
        State::Open { .. } | State::Warming { .. } | State::Closed(_) => None,
    }
}

/// The word after the probe came to nothing: another one may go at once.
pub fn released(word: u64, now_ms: u64, rules: &BreakerRules) -> Option<u64> {
    match State::of(word) {
        State::Probing { .. } => {
            let since = now_ms.saturating_sub(u64::from(rules.open_ms));
            Some(State::Open { since }.word())
        }
        State::Open { .. } | State::Warming { .. } | State::Closed(_) => None,
    }
}

/// The word after a call that went well to its end; `None` if no failure is counted.
pub fn ended_well(word: u64, now_ms: u64, rules: &BreakerRules) -> Option<u64> {
    match State::of(word) {
        State::Closed(counted) if !counted.is_empty() => {
            Some(State::Closed(counted.ended_well(now_ms, rules)).word())
        }
        _ => None,
    }
}

/// One more failure while calls pass.
fn fell(counted: Counted, now_ms: u64, rules: &BreakerRules) -> State {
    let counted = counted.failed(now_ms, rules);
    if counted.opens(rules) { State::Open { since: now_ms } } else { State::Closed(counted) }
}

// === impl State ===

impl State {
    fn of(word: u64) -> State {
        let since = word & TIME;
        match word >> KIND_AT {
            0 => State::Closed(Counted::of(since)),
            1 => State::Open { since },
            2 => State::Probing { since },
            _ => State::Warming { since },
        }
    }

    fn word(self) -> u64 {
        match self {
            State::Closed(counted) => counted.bits() & TIME,
            State::Open { since } => 1 << KIND_AT | since & TIME,
            State::Probing { since } => 2 << KIND_AT | since & TIME,
            State::Warming { since } => 3 << KIND_AT | since & TIME,
        }
    }
}

/// The breakers of a plan's candidates at one moment, as the walk's [`Gate`].
#[derive(Clone, Copy, Debug)]
pub struct Breakers<'s> {
    candidates: &'s [Candidate],
    rules: &'s BreakerRules,
    now_ms: u64,
    /// Who is spared by a slow start is drawn from it.
    chance: u32,
}

/// How long until one call may go; 0 if it may now. A probe that is out may be back at any time.
pub fn rests_ms(word: u64, now_ms: u64, rules: &BreakerRules) -> u64 {
    match State::of(word) {
        State::Open { since } => {
            u64::from(rules.open_ms).saturating_sub(now_ms.saturating_sub(since))
        }
        State::Probing { .. } | State::Warming { .. } | State::Closed(_) => 0,
    }
}

/// Whether nothing is counted of a candidate: what goes well there changes nothing.
pub fn is_untroubled(candidates: &[Candidate], place: u8) -> bool {
    let candidate = candidates.get(usize::from(place));
    candidate.is_none_or(|candidate| candidate.host.read() | candidate.health.read() == 0)
}

impl Gate for Breakers<'_> {
    fn standing(&self, place: u8) -> Standing {
        let Some(candidate) = self.candidate(place) else { return Standing::Resting };
        if candidate.health.cool_until_ms() > self.now_ms {
            return Standing::Resting;
        }
        let (host, credential) = (candidate.host.read(), candidate.health.read());
        // Both closed, as nearly always.
        if (host | credential) >> KIND_AT == 0 {
            return Standing::Ready;
        }
        let (host, credential) =
            (self.one(host, place), self.one(credential, place.wrapping_add(128)));
        match (host, credential) {
            (Standing::Resting, _) | (_, Standing::Resting) => Standing::Resting,
            (Standing::Spared, _) | (_, Standing::Spared) => Standing::Spared,
            (Standing::Ready, Standing::Ready) => Standing::Ready,
        }
    }

    fn rests_ms(&self, place: u8) -> u64 {
        let Some(candidate) = self.candidate(place) else { return u64::MAX };
        let of = |word| rests_ms(word, self.now_ms, self.rules);
        let cools = candidate.health.cool_until_ms().saturating_sub(self.now_ms);
        of(candidate.host.read()).max(of(candidate.health.read())).max(cools)
    }

    fn enter(&mut self, place: u8) -> Option<Pass> {
        let candidate = self.candidate(place)?;
        if candidate.health.cool_until_ms() > self.now_ms {
            return None;
        }
        if (candidate.host.read() | candidate.health.read()) >> KIND_AT == 0 {
            return Some(Pass::default());
        }
        let host = self.through(&*candidate.host)?;
        let Some(credential) = self.through(&*candidate.health) else {
            if host {
                candidate.host.update(|word| released(word, self.now_ms, self.rules));
            }
            return None;
        };
        Some(Pass { host, credential })
    }
}

impl<'s> Breakers<'s> {
    /// The breakers of a plan, at a moment of its walk.
    pub fn new(candidates: &'s [Candidate], rules: &'s BreakerRules, at: At) -> Breakers<'s> {
        Breakers { candidates, rules, now_ms: at.mono.0 / NS_PER_MS, chance: at.chance }
    }

    /// Writes what an attempt has shown.
    pub fn tell(&self, report: Report) {
        let Report { place, pass, host, credential, cool_ms } = report;
        let Some(candidate) = self.candidate(place) else { return };
        self.tell_one(&*candidate.host, pass.host, host);
        self.tell_one(&*candidate.health, pass.credential, credential);
        let cool_ms = cool_ms.min(u64::from(self.rules.cool_max_ms));
        if cool_ms > 0 {
            candidate.health.cool(self.now_ms.saturating_add(cool_ms));
        }
    }

    /// A call to a candidate went well to its end.
    pub fn went_well(&self, place: u8) {
        let Some(candidate) = self.candidate(place) else { return };
        // Read, and mostly left alone.
        if candidate.host.read() != 0 {
            candidate.host.update(|word| ended_well(word, self.now_ms, self.rules));
        }
        if candidate.health.read() != 0 {
            candidate.health.update(|word| ended_well(word, self.now_ms, self.rules));
        }
    }

    fn candidate(&self, place: u8) -> Option<&Candidate> {
        self.candidates.get(usize::from(place))
    }

    fn one(&self, word: u64, salt: u8) -> Standing {
        match lets(word, self.now_ms, self.rules) {
            Lets::All | Lets::One => Standing::Ready,
            Lets::Share(share) if mixed(self.chance, salt) < share => Standing::Ready,
            Lets::Share(_) => Standing::Spared,
            Lets::Nothing => Standing::Resting,
        }
    }

    /// Whether a call passes, and if so whether as the probe.
    fn through(&self, breaker: &impl BreakerWord) -> Option<bool> {
        match lets(breaker.read(), self.now_ms, self.rules) {
            Lets::All | Lets::Share(_) => Some(false),
            Lets::One => {
                breaker.update(|word| probing(word, self.now_ms, self.rules)).then_some(true)
            }
            Lets::Nothing => None,
        }
    }

    fn tell_one(&self, breaker: &impl BreakerWord, probe: bool, health: Health) {
        match health {
            Health::Ill => {
                breaker.update(|word| failed(word, probe, self.now_ms, self.rules));
            }
            Health::Well if probe => {
                breaker.update(|word| passed(word, self.now_ms));
            }
            Health::Unknown if probe => {
                breaker.update(|word| released(word, self.now_ms, self.rules));
            }
            // Read, and left alone: what goes well writes nothing.
            Health::Well | Health::Unknown => {}
        }
    }
}

/// A number for one candidate, out of that of the step.
fn mixed(chance: u32, salt: u8) -> u32 {
    let mut mixed = chance ^ u32::from(salt).wrapping_mul(0x9e37_79b9);
    mixed = (mixed ^ mixed >> 16).wrapping_mul(0x85eb_ca6b);
    mixed = (mixed ^ mixed >> 13).wrapping_mul(0xc2b2_ae35);
    mixed ^ mixed >> 16
}

#[cfg(test)]
mod tests;
