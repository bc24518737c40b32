//! The same scenario on the scripted transport, on io_uring and on epoll.

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
    let jobs: Vec<(Choice, &(N, Scenario))> = [Choice::Uring, Choice::Epoll]
        .into_iter()
        .flat_map(|choice| scenarios.iter().map(move |named| (choice, named)))
        .collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let work = || {
            while let Some((choice, (name, scenario))) =
                jobs.get(next.fetch_add(1, Ordering::Relaxed))
            {
                named(&format!("{choice:?}"), name, || {
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
