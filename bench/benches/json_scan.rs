//! Both scans beside `serde_json`'s skipping reader, which checks less (neither UTF-8 nor
//! duplicate keys) and finds nothing. Targets for requests: 2 × its speed at 2 KB and at 88 KB.

#![expect(clippy::expect_used, reason = "a benchmark without its input has nothing to say")]

use std::hint::black_box;

use bench::reply_body::CHAT_ANSWER;
use bench::request_body::CHAT_2K;
use codec::json::{ReplyScan, RequestScan};
use criterion::{Criterion, Throughput, criterion_main};
use serde::de::IgnoredAny;

/// The body of a captured Claude Code request, 88 KB.
fn claude_code() -> Vec<u8> {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/corpus/requests/claude-code.simple.1.json");
    let file = std::fs::read(path).expect("corpus file");
    let capture: serde_json::Value = serde_json::from_slice(&file).expect("capture");
    capture.get("body_raw").and_then(|body| body.as_str()).expect("body").as_bytes().to_vec()
}

fn json_scan(criterion: &mut Criterion) {
    for (name, body) in [("2k", CHAT_2K.as_bytes().to_vec()), ("claude_88k", claude_code())] {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function("request_scan", |bencher| {
            bencher.iter(|| RequestScan::new().finish(black_box(&body)).expect("valid"));
        });
        group.bench_function("serde_ignored", |bencher| {
            bencher.iter(|| serde_json::from_slice::<IgnoredAny>(black_box(&body)).expect("valid"));
        });
        group.finish();
    }
}

fn reply_scan(criterion: &mut Criterion) {
    let answer = CHAT_ANSWER.as_bytes();
    let mut group = criterion.benchmark_group("answer");
    group.throughput(Throughput::Bytes(answer.len() as u64));
    group.bench_function("reply_scan", |bencher| {
        bencher.iter(|| {
            let mut scan = ReplyScan::new();
            scan.feed(black_box(answer));
            scan.finish().usage
        });
    });
    group.bench_function("serde_ignored", |bencher| {
        bencher.iter(|| serde_json::from_slice::<IgnoredAny>(black_box(answer)).expect("valid"));
    });
    group.finish();
}

/// The macro makes a public function without documentation: out of sight in a module of its own.
mod group {
    criterion::criterion_group!(benches, super::json_scan, super::reply_scan);
}

criterion_main!(group::benches);
