//! The stream scan: what one event of about 200 bytes costs, whole in one receive, cut in two,
//! and ten in one receive.

use std::hint::black_box;

use bench::stream_chunks::{CHAT, GEMINI, MESSAGES, RESPONSES};
use codec::sse::{Dialect, StreamScan};
use criterion::{Criterion, Throughput, criterion_main};

/// Takes all parts of a receive; how many.
fn receive(scan: &mut StreamScan, bytes: &[u8]) -> usize {
    let (mut rest, mut parts) = (bytes, 0);
    while let Some(part) = scan.next(rest) {
        rest = rest.get(part.len..).unwrap_or_default();
        parts += 1;
    }
    parts
}

fn sse_stream(criterion: &mut Criterion) {
    for (name, dialect, chunk) in [
        ("chat", Dialect::Chat, CHAT),
        ("messages", Dialect::Messages, MESSAGES),
        ("responses", Dialect::Responses, RESPONSES),
        ("gemini", Dialect::Gemini, GEMINI),
    ] {
        let ten = chunk.repeat(10);
        let (head, tail) = chunk.split_at(chunk.len() / 2);
        let mut scan = StreamScan::new(dialect);
        let mut group = criterion.benchmark_group(format!("sse/{name}"));
        group.throughput(Throughput::Bytes(chunk.len() as u64));
        group.bench_function("one", |bencher| {
            bencher.iter(|| receive(&mut scan, black_box(chunk.as_bytes())));
        });
        group.bench_function("cut_in_two", |bencher| {
            bencher.iter(|| {
                receive(&mut scan, black_box(head.as_bytes()))
                    + receive(&mut scan, black_box(tail.as_bytes()))
            });
        });
        group.throughput(Throughput::Bytes(ten.len() as u64));
        group.bench_function("ten", |bencher| {
            bencher.iter(|| receive(&mut scan, black_box(ten.as_bytes())));
        });
        group.finish();
    }
}

/// The macro makes a public function without documentation: out of sight in a module of its own.
mod group {
    criterion::criterion_group!(benches, super::sse_stream);
}

criterion_main!(group::benches);
