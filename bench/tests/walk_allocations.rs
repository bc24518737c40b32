//! A walk asks nothing of the allocator: not for a plan of 128 candidates of which every one fails.

use std::sync::Arc;

use bench::alloc::{Counting, Counts, count};
use tollgate::exchange::breaker::BreakerRules;
use tollgate::exchange::ids::{CredentialIx, ProviderId};
use tollgate::exchange::places::Places;
use tollgate::exchange::plan::Candidate;
use tollgate::exchange::retry::RetryRules;
use tollgate::exchange::time::MonoNs;
use tollgate::govern::breaker::Breakers;
use tollgate::govern::fault::{Answered, AttemptEnd, Fault};
use tollgate::govern::walk::{At, Step, Walk};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_walk_over_everything_allocates_nothing() {
    let candidate = |n: u16| Candidate {
        provider: ProviderId(0),
        credential: CredentialIx(n),
        model: None,
        price: None,
        priority: n / 32,
        weight: 1 + u32::from(n % 3),
        host: Arc::default(),
        health: Arc::default(),
    };
    let candidates: Vec<Candidate> = (0..128).map(candidate).collect();
    let (retry, rules) = (RetryRules::default(), BreakerRules::default());
    let (counts, attempts) = count(|| {
        let mut walk = Walk::new(Places::first(candidates.len()), 5);
        let mut at = At { mono: MonoNs(1 << 40), chance: 9 };
        loop {
            let mut gate = Breakers::new(&candidates, &rules, at);
            match walk.next(at, &retry, &candidates, &mut gate) {
                Step::Try { .. } => {
                    let answer =
                        Answered { status: 503, text: b"not supported", ..Answered::default() };
                    let end = AttemptEnd::Fault(Fault::of(&answer));
                    let ended = walk.end(end, at, &retry);
                    ended.report.into_iter().for_each(|report| gate.tell(report));
                }
                Step::Wait { until } => at.mono = until,
                Step::Over(_) => return walk.attempts(),
            }
        }
    });
    assert_eq!((counts, attempts), (Counts::default(), 3 * 128));
}
