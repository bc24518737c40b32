//! The same scenario on the scripted transport, on io_uring and on epoll; and over TLS on the first
//! two.

use crate::outcome::Outcome;
use crate::scenario::Scenario;
use crate::{script, sockets};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use tollgate::io::runtime::Choice;

/// Real scenarios played at once: they mostly wait for a tick.
const PLAYERS: usize = 6;

/// Plays one scenario everywhere and judges each outcome.
pub fn each(scenario: &Scenario, judge: impl Fn(&Outcome) + Sync) {
    each_of(std::slice::from_ref(&("", scenario.clone())), |_, outcome| judge(outcome));
}

/// Plays named scenarios everywhere and judges each outcome.
pub fn each_of<N>(scenarios: &[(N, Scenario)], judge: impl Fn(&N, &Outcome) + Sync)
where
    N: std::fmt::Debug + Sync,
{
    on_script(scenarios, &judge);
    on_sockets(scenarios, &judge);
    over_tls(scenarios, &judge);
}

/// With TLS on both sides, on the scripted transport and on io_uring.
pub fn over_tls<N>(scenarios: &[(N, Scenario)], judge: impl Fn(&N, &Outcome) + Sync)
where
    N: std::fmt::Debug + Sync,
{
    let secured = |(name, scenario)| (name, Scenario::secured(scenario));
    let secured: Vec<(&N, Scenario)> =
        scenarios.iter().map(|(name, scenario)| secured((name, scenario.clone()))).collect();
    for (name, scenario) in &secured {
        named("the scripted transport over TLS", name, || judge(name, &script::run(scenario)));
    }
    played(&[Choice::Uring], &secured, &|name: &&N, outcome: &Outcome| judge(name, outcome));
}

/// On the scripted transport only.
pub fn on_script<N: std::fmt::Debug>(scenarios: &[(N, Scenario)], judge: impl Fn(&N, &Outcome)) {
    for (name, scenario) in scenarios {
        named("the scripted transport", name, || judge(name, &script::run(scenario)));
    }
}

/// On both real drivers, several at once.
pub fn on_sockets<N>(scenarios: &[(N, Scenario)], judge: impl Fn(&N, &Outcome) + Sync)
where
    N: std::fmt::Debug + Sync,
{
    played(&[Choice::Uring, Choice::Epoll], scenarios, &judge);
}

fn played<N>(
    choices: &[Choice],
    scenarios: &[(N, Scenario)],
    judge: &(impl Fn(&N, &Outcome) + Sync),
) where
    N: std::fmt::Debug + Sync,
{
    let jobs: Vec<(Choice, &(N, Scenario))> = choices
        .iter()
        .flat_map(|choice| scenarios.iter().map(move |named| (*choice, named)))
        .collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let work = || {
            while let Some((choice, (name, scenario))) =
                jobs.get(next.fetch_add(1, Ordering::Relaxed))
            {
                let over = if scenario.tls { " over TLS" } else { "" };
                named(&format!("{choice:?}{over}"), name, || {
                    if let Some(outcome) = sockets::run(*choice, scenario) {
                        judge(name, &outcome);
                    }
                });
            }
        };
        let players: Vec<_> = (0..PLAYERS.min(jobs.len())).map(|_| scope.spawn(work)).collect();
        for player in players {
            if let Err(panic) = player.join() {
                resume_unwind(panic);
            }
        }
    });
}

/// Says where it happened before a failure goes on.
fn named<N: std::fmt::Debug>(transport: &str, name: &N, play: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(play)) {
        eprintln!("failed on {transport}: {name:?}");
        resume_unwind(panic);
    }
}
