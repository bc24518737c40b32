//! Plays seeds, and says what is wrong with one.

use crate::judge;
use crate::plan::Plan;
use crate::run;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Seeds unless the environment says otherwise.
const SEEDS: u64 = 40;

/// Lines of a failed run that are printed.
const LINES_SHOWN: usize = 400;

/// Seeds that are shown in full when many fail.
const FAILURES_SHOWN: usize = 3;

/// What a seed came to.
pub(crate) struct Verdict {
    pub(crate) seed: u64,
    /// What is wrong; empty if nothing is.
    pub(crate) faults: Vec<String>,
    pub(crate) trace: Vec<String>,
    pub(crate) sums: Sums,
}

/// How much was played: a run that does nothing proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    calls: u64,
    answers: u64,
    attempts: u64,
    records: u64,
    kills: u64,
    left: u64,
    operations: u64,
}

/// Plays one seed.
pub(crate) fn play(seed: u64) -> Verdict {
    let played = catch_unwind(AssertUnwindSafe(|| {
        let played = run::play(Plan::draw(seed));
        let mut faults = judge::judge(&played);
        faults.dedup();
        let lives = played.notes.lives.borrow();
        let got = played.notes.got.borrow();
        let sums = Sums {
            calls: got.iter().filter(|got| got.connection.is_some()).count() as u64,
            answers: got.iter().filter(|got| got.answer.is_some()).count() as u64,
            attempts: played.notes.asked.borrow().len() as u64,
            records: played.records.len() as u64,
            kills: lives.iter().filter(|life| life.killed.is_some()).count() as u64,
            left: played.left.len() as u64,
            operations: lives.iter().map(|life| life.operations).sum(),
        };
        Verdict { seed, faults, trace: played.notes.take_trace(), sums }
    }));
    played.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let fault = format!("a panic outside any connection: {}", text.unwrap_or_default());
        Verdict { seed, faults: vec![fault], trace: Vec::new(), sums: Sums::default() }
    })
}

/// Plays one seed and fails if anything is wrong with it.
pub(crate) fn must_hold(seed: u64) {
    let verdict = play(seed);
    assert!(verdict.faults.is_empty(), "{}", verdict.shown(false));
}

impl Verdict {
    /// What a person needs: the seed, what is wrong, and what led to it.
    fn shown(&self, whole: bool) -> String {
        let mut text = format!("seed {} (TOLLGATE_SEED={0}):\n", self.seed);
        for fault in &self.faults {
            text.push_str(&format!("  ✗ {fault}\n"));
        }
        let about: Vec<String> = self.faults.iter().filter_map(|fault| call_in(fault)).collect();
        let lines = self.trace.iter().filter(|line| {
            let of_call = |call: &String| line.contains(call.as_str());
            let of_node = ["KILLED", "start", "drain", "FAULT"].iter().any(|w| line.contains(w));
            whole || about.is_empty() || of_node || about.iter().any(of_call)
        });
        let lines: Vec<&String> = lines.collect();
        let from = if whole { 0 } else { lines.len().saturating_sub(LINES_SHOWN) };
        lines[from..].iter().for_each(|line| text.push_str(&format!("    {line}\n")));
        text
    }
}

/// `call 17` out of a sentence that begins with it.
fn call_in(fault: &str) -> Option<String> {
    let rest = fault.strip_prefix("call ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some(format!("call {digits}"))
}

#[expect(clippy::disallowed_methods, reason = "which seeds a test plays is not configuration")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Plays seeds on as many threads as there are cores, and says which fail.
fn play_all(seeds: &[u64]) -> (Vec<Verdict>, Sums) {
    let next = AtomicU64::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let verdicts = std::thread::scope(|scope| {
        let work = || {
            let mut verdicts = Vec::new();
            while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                let mut verdict = play(*seed);
                if verdict.faults.is_empty() {
                    verdict.trace.clear();
                }
                verdicts.push(verdict);
            }
            verdicts
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("a worker ends"))
            .collect::<Vec<Verdict>>()
    });
    let mut sums = Sums::default();
    for Verdict { sums: one, .. } in &verdicts {
        sums.calls += one.calls;
        sums.answers += one.answers;
        sums.attempts += one.attempts;
        sums.records += one.records;
        sums.kills += one.kills;
        sums.left += one.left;
        sums.operations += one.operations;
    }
    let mut failed: Vec<Verdict> =
        verdicts.into_iter().filter(|verdict| !verdict.faults.is_empty()).collect();
    failed.sort_by_key(|verdict| verdict.seed);
    (failed, sums)
}

#[test]
fn whatever_happens_every_call_is_answered_recorded_and_charged_as_promised() {
    if let Some(seed) = number("TOLLGATE_SEED") {
        let verdict = play(seed);
        println!("{}{:?}", verdict.shown(true), verdict.sums);
        assert!(verdict.faults.is_empty(), "seed {seed} fails");
        return;
    }
    let count = number("TOLLGATE_SEEDS").unwrap_or(SEEDS);
    let first = number("TOLLGATE_SEEDS_FROM").unwrap_or(1);
    let seeds: Vec<u64> = (first..first + count).collect();
    let (failed, sums) = play_all(&seeds);
    println!("{count} seeds from {first}: {sums:?}");
    for verdict in failed.iter().take(FAILURES_SHOWN) {
        println!("{}", verdict.shown(false));
    }
    let all: Vec<u64> = failed.iter().map(|verdict| verdict.seed).collect();
    assert!(all.is_empty(), "{} of {count} seeds fail: {all:?}", all.len());
    assert!(sums.answers > 10 * count && sums.records > 10 * count, "next to nothing was played");
    assert!(count < 20 || sums.kills > 0 && sums.left > 0, "nothing was killed in flight");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [3, 11] {
        let (one, other) = (play(seed), play(seed));
        assert_eq!(one.sums, other.sums);
        let differs = one.trace.iter().zip(&other.trace).find(|(one, other)| one != other);
        assert_eq!(differs, None);
    }
}
