//! What governance costs a call: all layers from admission to settlement, with every limit on, with
//! none, and with a second core on the same key; the estimate and the bill apart.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use codec::usage::UsageEnvelope;
use criterion::{Criterion, criterion_main};
use tollgate::exchange::price::{Mode, MoneyTerms};
use tollgate::govern::{estimate, price};

mod governed_call;
use governed_call::{demand, govern, limited, unlimited};

fn layers(criterion: &mut Criterion) {
    let listed = governed_call::price();
    let demand = demand();
    let mut group = criterion.benchmark_group("admit");
    let bundle = unlimited();
    group.bench_function("no_limits", |bencher| {
        bencher.iter(|| assert!(govern(black_box(&bundle), &listed, black_box(demand))));
    });
    let bundle = limited();
    group.bench_function("all_limits", |bencher| {
        bencher.iter(|| assert!(govern(black_box(&bundle), &listed, black_box(demand))));
    });
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                govern(&bundle, &listed, demand);
            }
        });
        group.bench_function("all_limits_two_cores_one_key", |bencher| {
            bencher.iter(|| assert!(govern(black_box(&bundle), &listed, black_box(demand))));
        });
        done.store(true, Relaxed);
    });
    group.finish();
}

fn money(criterion: &mut Criterion) {
    let listed = governed_call::price();
    let terms = MoneyTerms::default();
    let usage = UsageEnvelope { input_fresh: 380, output: 210, ..UsageEnvelope::default() };
    let mut group = criterion.benchmark_group("money");
    group.bench_function("estimate", |bencher| {
        bencher.iter(|| estimate::hold(black_box(&demand()), black_box(&listed), false, &terms));
    });
    group.bench_function("bill", |bencher| {
        let mode = Mode::default();
        bencher
            .iter(|| price::bill(black_box(&usage), Some(black_box(&listed)), None, mode, &terms));
    });
    group.finish();
}

/// The macro makes a public function without documentation: out of sight in a module of its own.
mod group {
    criterion::criterion_group!(benches, super::layers, super::money);
}

criterion_main!(group::benches);
