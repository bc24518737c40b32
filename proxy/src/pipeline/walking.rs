//! A walk under way: the machine of `govern::walk`, the breakers' words it is told by and tells,
//! and the answer that is kept in case nothing better comes.
//!
//! It decides nothing: what an end means is the machine's, what a client sees of an answer is the
//! relay's.

use super::held::Held;
use super::open::Call;
use super::relay::Kept;
use crate::exchange::time::MonoNs;
use crate::govern::breaker::{self, Breakers};
use crate::govern::fault::Kind;
use crate::govern::walk::{At, AttemptEnd, Fault, Report, Step, Walk};
use crate::io::Io;
use crate::shard::Shard;
use store::ending::StatusClass;

/// The walk of one exchange.
pub(super) struct Walking {
    walk: Walk,
    /// On the heap, since few walks ever keep one.
    kept: Option<Box<Kept>>,
}

/// An attempt that brought nothing to pass on.
pub(super) struct Failed {
    /// How it ended.
    pub end: AttemptEnd,
    /// The whole of its answer, if it can be told later.
    pub kept: Option<Box<Kept>>,
}

impl Walking {
    /// Of an opened call.
    pub(super) fn new<I: Io>(shard: &Shard<I>, call: &Call<'_>) -> Walking {
        Walking { walk: Walk::new(call.left, shard.draws.next(call.group)), kept: None }
    }

    /// What to do next, and the time it is.
    pub(super) fn next<I: Io>(&mut self, shard: &Shard<I>, call: &Call<'_>) -> (Step, MonoNs) {
        let at = at(shard);
        let mut gate = Breakers::new(call.candidates, &call.snapshot.breaker, at);
        let step = self.walk.next(at, &call.snapshot.retry, call.candidates, &mut gate);
        (step, at.mono)
    }

    /// The attempt under way has ended, and nothing of it was passed on.
    pub(super) fn failed<I: Io>(
        &mut self,
        shard: &Shard<I>,
        call: &Call<'_>,
        held: &mut Held,
        failed: Failed,
    ) {
        let Failed { end, kept } = failed;
        let (class, possibly_billed) = recorded(end);
        held.record.attempt_ended(class, possibly_billed);
        let ended = self.walk.end(end, at(shard), &call.snapshot.retry);
        if ended.keep {
            self.kept = kept;
        }
        if let Some(report) = ended.report {
            tell(shard, call, report);
        }
    }

    /// Whether the attempt under way would be the last one if it ended like this, and its answer
    /// told as it came.
    pub(super) fn is_last<I: Io>(
        &self,
        shard: &Shard<I>,
        call: &Call<'_>,
        end: AttemptEnd,
    ) -> bool {
        let at = at(shard);
        let gate = Breakers::new(call.candidates, &call.snapshot.breaker, at);
        self.walk.is_last(end, at, &call.snapshot.retry, &gate)
    }

    /// The attempt under way has given an answer, which begins to go to the client.
    pub(super) fn answered<I: Io>(&mut self, shard: &Shard<I>, call: &Call<'_>) {
        let report = self.walk.answered();
        tell(shard, call, report);
    }

    /// Nobody waits for the attempt under way any more.
    pub(super) fn abandoned<I: Io>(&mut self, shard: &Shard<I>, call: &Call<'_>) {
        if let Some(report) = self.walk.abandoned() {
            tell(shard, call, report);
        }
    }

    /// The answer that was being passed on has broken off.
    pub(super) fn broke_off<I: Io>(&self, shard: &Shard<I>, call: &Call<'_>, end: AttemptEnd) {
        tell(shard, call, self.walk.broke_off(end));
    }

    /// The answer came to its end as it should.
    pub(super) fn went_well<I: Io>(&self, shard: &Shard<I>, call: &Call<'_>) {
        // The clock is read only where something is counted.
        if !breaker::is_untroubled(call.candidates, self.walk.place()) {
            let breakers = Breakers::new(call.candidates, &call.snapshot.breaker, at(shard));
            breakers.went_well(self.walk.place());
        }
    }

    /// The answer that is told since nothing better came.
    pub(super) fn kept(&mut self) -> Option<Box<Kept>> {
        self.kept.take()
    }
}

fn at<I: Io>(shard: &Shard<I>) -> At {
    At { mono: shard.mono(), chance: shard.chance.next() }
}

fn tell<I: Io>(shard: &Shard<I>, call: &Call<'_>, report: Report) {
    Breakers::new(call.candidates, &call.snapshot.breaker, at(shard)).tell(report);
}

/// What came of an attempt without an answer, and whether the upstream may bill it all the same.
fn recorded(end: AttemptEnd) -> (StatusClass, bool) {
    match end {
        AttemptEnd::Unreachable => (StatusClass::Unreachable, false),
        // A reused connection that was dead from the start has carried the request nowhere.
        AttemptEnd::Stale => (StatusClass::Cut, false),
        // Nobody serves a request of which a part is missing.
        AttemptEnd::Cut { sent } => (StatusClass::Cut, sent),
        AttemptEnd::Timeout { sent } => (StatusClass::Timeout, sent),
        AttemptEnd::Fault(fault) => faulty(fault),
    }
}

/// The same of an answer that is none.
fn faulty(fault: Fault) -> (StatusClass, bool) {
    match fault.kind {
        Kind::Billed if fault.status < 500 => (StatusClass::Client, true),
        Kind::Billed | Kind::Doubtful => (StatusClass::Server, true),
        Kind::Busy if fault.status == 429 => (StatusClass::Limited, false),
        Kind::Busy => (StatusClass::Server, false),
        Kind::Exhausted | Kind::Forbidden | Kind::Unauthorized | Kind::OwnKey => {
            (StatusClass::Account, false)
        }
        Kind::Mismatch => (StatusClass::Capability, false),
        Kind::Rejected => (StatusClass::Client, false),
        Kind::Redirected => (StatusClass::Invalid, false),
        Kind::Invalid | Kind::Empty => (StatusClass::Invalid, true),
    }
}
