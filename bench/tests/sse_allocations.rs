//! A stream is scanned without asking anything of the allocator, whatever the size of its events.

use bench::alloc::{Counting, Counts, count};
use bench::stream_chunks::{CHAT, GEMINI, MESSAGES, RESPONSES};
use codec::sse::{Dialect, StreamScan};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What one receive brings.
const RECEIVE_BYTES: usize = 16 * 1024;

/// Scans a stream in receives; the bytes that went by.
fn scan(dialect: Dialect, stream: &[u8]) -> usize {
    let mut scan = StreamScan::new(dialect);
    let mut seen = 0;
    for piece in stream.chunks(RECEIVE_BYTES) {
        let mut rest = piece;
        while let Some(part) = scan.next(rest) {
            rest = &rest[part.len..];
            seen += part.len;
        }
    }
    assert!(scan.end().is_none() && !scan.is_empty());
    seen
}

#[test]
fn a_stream_of_small_and_giant_events_allocates_nothing() {
    for (dialect, chunk) in [
        (Dialect::Chat, CHAT),
        (Dialect::Messages, MESSAGES),
        (Dialect::Responses, RESPONSES),
        (Dialect::Gemini, GEMINI),
    ] {
        let small = chunk.repeat(1_000);
        let giant = chunk.replace("the road", &"the road ".repeat(3 * 1024 * 1024 / 9));
        for stream in [small, giant] {
            let (counts, seen) = count(|| scan(dialect, stream.as_bytes()));
            assert_eq!((counts, seen), (Counts::default(), stream.len()), "{dialect:?}");
        }
    }
}
