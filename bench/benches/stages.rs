//! A governed whole chat call, stage by stage: each row runs the code that ships, and
//! `bench/tests/stage_allocations.rs` counts what the same row asks of the allocator. What needs a
//! connection (the relay, the fields' fates, names and heads written out) is measured from outside,
//! by `loadtest/compare.sh`.
//!
//! The log's row is CPU of its thread, syncs included; every other row is time on a core.

#![expect(clippy::expect_used, reason = "a benchmark without its files has nothing to say")]
#![expect(clippy::unwrap_used, reason = "likewise")]

use bench::reply_body::CHAT_ANSWER;
use bench::request_body::CHAT_2K;
use codec::json::{ReplyScan, RequestScan};
use codec::usage::UsageEnvelope;
use criterion::{Criterion, criterion_main};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use store::slab::{Collector, Slab};
use tollgate::exchange::price::{Mode, MoneyTerms};
use tollgate::govern::{estimate, price};

mod governed_call;
#[path = "stage/head.rs"]
mod head;
#[path = "stage/keys.rs"]
mod keys;
#[path = "stage/log.rs"]
mod log;
#[path = "stage/slot.rs"]
mod slot;

use log::Log;
use slot::{Home, MANY_KEYS, exchange};

/// Exchanges timed together: a quarter of the small slots, so that none waits for a free one.
const TOGETHER: u64 = 8192;

/// Records of a commit: 20,000 a second for the 20 ms that the first of them waits.
const COMMITTED: u64 = 400;

fn heads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("stage");
    group.bench_function("request_head", |bencher| {
        bencher.iter(|| assert!(head::parse_request()));
    });
    group.bench_function("answer_head", |bencher| {
        bencher.iter(|| assert!(head::parse_answer()));
    });
    group.finish();
}

fn who(criterion: &mut Criterion) {
    let mut keys = keys::Keys::new().expect("random bytes");
    let mut group = criterion.benchmark_group("stage");
    group.bench_function("key_looked_up", |bencher| bencher.iter(|| assert!(keys.look_up())));
    group.bench_function("key_remembered", |bencher| bencher.iter(|| assert!(keys.remembered())));
    group.finish();
}

fn scans(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("stage");
    group.bench_function("request_scan", |bencher| {
        let body = CHAT_2K.as_bytes();
        bencher.iter(|| RequestScan::new().finish(black_box(body)).expect("valid"));
    });
    group.bench_function("reply_scan", |bencher| {
        bencher.iter(|| {
            let mut scan = ReplyScan::new();
            scan.feed(black_box(CHAT_ANSWER.as_bytes()));
            scan.finish().usage
        });
    });
    group.finish();
}

fn judgement(criterion: &mut Criterion) {
    let (listed, terms) = (governed_call::price(), MoneyTerms::default());
    let demand = governed_call::demand();
    let mut group = criterion.benchmark_group("stage");
    let bundle = governed_call::limited();
    group.bench_function("layers_all_limits", |bencher| {
        let govern = governed_call::govern;
        bencher.iter(|| assert!(govern(black_box(&bundle), &listed, black_box(demand))));
    });
    let bundle = governed_call::unlimited();
    group.bench_function("layers_no_limit", |bencher| {
        let govern = governed_call::govern;
        bencher.iter(|| assert!(govern(black_box(&bundle), &listed, black_box(demand))));
    });
    group.bench_function("estimate", |bencher| {
        bencher.iter(|| estimate::hold(black_box(&demand), black_box(&listed), false, &terms));
    });
    group.bench_function("bill", |bencher| {
        let usage = UsageEnvelope { input_fresh: 380, output: 210, ..UsageEnvelope::default() };
        let (found, mode) = (Some(&listed), Mode::default());
        bencher.iter(|| price::bill(black_box(&usage), black_box(found), None, mode, &terms));
    });
    group.finish();
}

fn slots(criterion: &mut Criterion) {
    let home = Home::new();
    let mut group = criterion.benchmark_group("stage");
    let (mut slab, mut collector) = log::slab(&home, 1).expect("a slab on tmpfs");
    group.bench_function("slot", |bencher| {
        bencher
            .iter_custom(|count| timed(count, &mut slab, |_| assert!(collect(&mut collector) > 0)));
    });
    let (mut slab, mut collector) = log::slab(&home, 2).expect("a slab on tmpfs");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                collect(&mut collector);
            }
        });
        group.bench_function("slot_beside_a_collector", |bencher| {
            bencher.iter_custom(|count| {
                timed(count, &mut slab, |slab| {
                    while (slab.free()[0] as u64) < TOGETHER {
                        std::thread::yield_now();
                    }
                })
            });
        });
        done.store(true, Relaxed);
    });
    group.finish();
}

/// So many exchanges, `TOGETHER` at a time; the time that `between` takes is not in it.
#[expect(clippy::disallowed_methods, reason = "a bench measures")]
fn timed(count: u64, slab: &mut Slab, mut between: impl FnMut(&mut Slab)) -> Duration {
    let (mut spent, mut at) = (Duration::ZERO, 0);
    while at < count {
        let until = count.min(at + TOGETHER);
        let from = Instant::now();
        for n in at..until {
            assert!(black_box(exchange(slab, black_box(n), MANY_KEYS)), "a slot is free");
        }
        spent += from.elapsed();
        at = until;
        between(slab);
    }
    spent
}

fn collect(collector: &mut Collector) -> u64 {
    let taken = collector.take(|record| {
        black_box(record.len());
        Ok(true)
    });
    collector.free().unwrap();
    taken.unwrap()
}

fn records(criterion: &mut Criterion) {
    let home = Home::new();
    let mut log = Log::new(&home, 3, MANY_KEYS).expect("a log on the disk");
    let mut group = criterion.benchmark_group("stage");
    // A sync takes far longer than its CPU, and criterion plans by the CPU.
    group.sample_size(20).measurement_time(Duration::from_millis(400));
    group.warm_up_time(Duration::from_millis(400));
    group.bench_function("record_in_a_commit_of_400", |bencher| {
        bencher.iter_custom(|count| {
            let (mut spent, commits) = (Duration::ZERO, count.div_ceil(COMMITTED));
            for _ in 0..commits {
                log.settle(COMMITTED);
                let from = cpu();
                assert_eq!(log.commit().unwrap(), COMMITTED);
                spent += cpu() - from;
            }
            spent.mul_f64(count as f64 / (commits * COMMITTED) as f64)
        });
    });
    group.finish();
}

/// CPU time of this thread.
fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// The macro makes a public function without documentation: out of sight in a module of its own.
mod group {
    use super::{heads, judgement, records, scans, slots, who};
    criterion::criterion_group!(benches, heads, who, scans, judgement, slots, records);
}

criterion_main!(group::benches);
