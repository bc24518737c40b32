//! What the walk costs a call: one candidate, several equals, a large plan that half rests, and a
//! fallback with what leads to it.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_main};
use tollgate::exchange::breaker::BreakerRules;
use tollgate::exchange::ids::{CredentialIx, ProviderId};
use tollgate::exchange::places::Places;
use tollgate::exchange::plan::Candidate;
use tollgate::exchange::retry::RetryRules;
use tollgate::exchange::time::MonoNs;
use tollgate::govern::breaker::Breakers;
use tollgate::govern::fault::{Answered, AttemptEnd, Fault};
use tollgate::govern::walk::{At, Step, Walk};

fn plan(count: u16, weight: impl Fn(u16) -> u32) -> Vec<Candidate> {
    let candidate = |n: u16| Candidate {
        provider: ProviderId(0),
        credential: CredentialIx(n),
        model: None,
        price: None,
        priority: 1,
        weight: weight(n),
        host: Arc::default(),
        health: Arc::default(),
    };
    (0..count).map(candidate).collect()
}

fn moment(turn: u64) -> At {
    At { mono: MonoNs(1 << 40), chance: turn as u32 }
}

/// An attempt that gives an answer.
fn answered(candidates: &[Candidate], turn: u64) -> Step {
    let (retry, rules, at) = (RetryRules::default(), BreakerRules::default(), moment(turn));
    let mut walk = Walk::new(Places::first(candidates.len()), turn);
    let mut gate = Breakers::new(candidates, &rules, at);
    let step = walk.next(at, &retry, candidates, &mut gate);
    gate.tell(walk.answered());
    step
}

/// A 404 at the first, then an answer.
fn fell_back(candidates: &[Candidate], turn: u64) -> Step {
    let (retry, rules, at) = (RetryRules::default(), BreakerRules::default(), moment(turn));
    let mut walk = Walk::new(Places::first(candidates.len()), turn);
    let mut gate = Breakers::new(candidates, &rules, at);
    walk.next(at, &retry, candidates, &mut gate);
    let text = black_box(br#"{"error":{"message":"The model does not exist"}}"#);
    let answer = Answered { status: 404, text, ..Answered::default() };
    let ended = walk.end(AttemptEnd::Fault(Fault::of(&answer)), at, &retry);
    ended.report.into_iter().for_each(|report| gate.tell(report));
    let step = walk.next(at, &retry, candidates, &mut gate);
    gate.tell(walk.answered());
    step
}

fn walks(criterion: &mut Criterion) {
    let one = plan(1, |_| 1);
    let eight = plan(8, |_| 1);
    let weighted = plan(8, |n| u32::from(n) + 1);
    let many = plan(128, |_| 1);
    for candidate in many.iter().step_by(2) {
        candidate.health.cool(u64::MAX);
    }
    let mut group = criterion.benchmark_group("walk");
    let mut turn = 0;
    for (name, candidates) in [
        ("one_candidate", &one),
        ("eight_equals", &eight),
        ("eight_by_weight", &weighted),
        ("half_of_128_rest", &many),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                turn += 1;
                answered(black_box(candidates), turn)
            });
        });
    }
    group.bench_function("a_fallback", |bencher| {
        bencher.iter(|| {
            turn += 1;
            fell_back(black_box(&eight), turn)
        });
    });
    group.finish();
}

/// The macro makes a public function without documentation: out of sight in a module of its own.
mod group {
    criterion::criterion_group!(benches, super::walks);
}

criterion_main!(group::benches);
