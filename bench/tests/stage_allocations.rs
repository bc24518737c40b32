//! What the stages of `bench/benches/stages.rs` ask of the allocator: on a shard nothing, on the
//! ledger's thread a few for each commit, however many records it has.

#[path = "../benches/governed_call/mod.rs"]
mod governed_call;
#[path = "../benches/stage/head.rs"]
mod head;
#[path = "../benches/stage/keys.rs"]
mod keys;
#[path = "../benches/stage/log.rs"]
mod log;
#[path = "../benches/stage/slot.rs"]
mod slot;

use bench::alloc::{Counting, Counts, count};
use bench::reply_body::CHAT_ANSWER;
use bench::request_body::CHAT_2K;
use codec::json::{ReplyScan, RequestScan};
use codec::usage::UsageEnvelope;
use tollgate::exchange::money::PicoUsd;
use tollgate::exchange::price::{Mode, MoneyTerms};
use tollgate::govern::{estimate, price};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls a stage is counted over, after one that is not.
const CALLS: u64 = 100;

fn nothing_is_allocated(stage: &str, mut run: impl FnMut() -> bool) {
    assert!(run(), "{stage}");
    let (counts, passed) = count(|| (0..CALLS).all(|_| run()));
    assert_eq!((counts, passed), (Counts::default(), true), "{stage}");
}

#[test]
fn the_stages_of_a_shard_allocate_nothing() {
    nothing_is_allocated("request head", head::parse_request);
    nothing_is_allocated("answer head", head::parse_answer);
    let mut keys = keys::Keys::new().unwrap();
    nothing_is_allocated("key looked up", || keys.look_up());
    nothing_is_allocated("key remembered", || keys.remembered());
    nothing_is_allocated("request scan", || {
        RequestScan::new().finish(CHAT_2K.as_bytes()).is_ok_and(|spans| !spans.is_stream())
    });
    nothing_is_allocated("reply scan", || {
        let mut scan = ReplyScan::new();
        scan.feed(CHAT_ANSWER.as_bytes());
        scan.finish().complete
    });
    let (listed, terms) = (governed_call::price(), MoneyTerms::default());
    let demand = governed_call::demand();
    for bundle in [governed_call::limited(), governed_call::unlimited()] {
        nothing_is_allocated("layers", || governed_call::govern(&bundle, &listed, demand));
    }
    nothing_is_allocated("estimate", || {
        estimate::hold(&demand, &listed, false, &terms).0 == 365 * 250_000 + 1_024 * 2_000_000
    });
    nothing_is_allocated("bill", || {
        let usage = UsageEnvelope { input_fresh: 380, output: 210, ..UsageEnvelope::default() };
        let bill = price::bill(&usage, Some(&listed), None, Mode::default(), &terms);
        bill.cost == PicoUsd(380 * 250_000 + 210 * 2_000_000)
    });
    let home = slot::Home::new();
    let (mut slab, _collector) = log::slab(&home, 1).unwrap();
    let mut n = 0;
    nothing_is_allocated("slot", || {
        n += 1;
        slot::exchange(&mut slab, n, slot::MANY_KEYS)
    });
}

#[test]
fn a_commit_allocates_the_same_for_one_record_and_for_four_hundred() {
    let home = slot::Home::new();
    let mut log = log::Log::new(&home, 2, slot::MANY_KEYS).unwrap();
    let mut committed = |records: u64| {
        log.settle(records);
        let (counts, taken) = count(|| log.commit().unwrap());
        assert_eq!(taken, records);
        counts.allocations
    };
    // Tables and buffers grow once.
    for _ in 0..4 {
        committed(400);
    }
    let (one, many) = (committed(1), committed(400));
    println!("allocations of a commit: {one} with one record, {many} with 400");
    assert_eq!(one, many);
}
