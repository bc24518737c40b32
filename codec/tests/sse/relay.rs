//! A relay in small: holds back what may be the terminator or a usage chunk, forwards the rest,
//! removes usage chunks. What the proxy does with the parts, and the promises it can then keep.

use codec::sse::split_proof::stream_split;
use codec::sse::{Dialect, Kind, Reach, StreamScan};

use crate::cases;
use crate::corpus::{DIALECTS, cuts};

/// What went to the client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Relayed {
    pub(crate) bytes: Vec<u8>,
    /// How much had gone when a terminator was whole and the exchange was priced.
    pub(crate) before_price: Vec<usize>,
    /// The most that was held back at once.
    pub(crate) held_max: usize,
}

/// Relays a stream that comes in pieces; without usage chunks if `hide` says so.
pub(crate) fn relay<'b>(
    dialect: Dialect,
    pieces: impl IntoIterator<Item = &'b [u8]>,
    hide: bool,
) -> Relayed {
    let mut scan = StreamScan::new(dialect);
    let mut out = Relayed::default();
    let mut held = Vec::new();
    for piece in pieces {
        let mut rest = piece;
        while let Some(part) = scan.next(rest) {
            let (bytes, behind) = rest.split_at(part.len);
            rest = behind;
            held.extend_from_slice(bytes);
            out.held_max = out.held_max.max(held.len());
            if part.reach == Reach::Open {
                continue;
            }
            if part.terminator && part.reach == Reach::Whole {
                out.before_price.push(out.bytes.len());
            }
            if hide && part.kind == Kind::Usage {
                held.clear();
            }
            out.bytes.append(&mut held);
        }
    }
    if let Some(part) = scan.end()
        && part.terminator
    {
        out.before_price.push(out.bytes.len());
    }
    out.bytes.append(&mut held);
    out
}

pub(crate) fn in_two(bytes: &[u8], cut: usize) -> [&[u8]; 2] {
    let (head, tail) = bytes.split_at(cut);
    [head, tail]
}

/// The stream without the events of one kind, by where they lie in the whole of it.
fn without_usage(dialect: Dialect, bytes: &[u8]) -> Vec<u8> {
    let read = stream_split(dialect, bytes, bytes.len(), 1);
    let kept = read.events.iter().filter(|event| !(event.whole && event.kind == Kind::Usage));
    kept.flat_map(|event| bytes[event.start..event.end].iter().copied()).collect()
}

/// Checks one stream at one way to cut it.
pub(crate) fn check(dialect: Dialect, bytes: &[u8], pieces: &[&[u8]]) {
    let plain = relay(dialect, pieces.iter().copied(), false);
    assert_eq!(plain.bytes, bytes, "a relay changes nothing");
    let read = stream_split(dialect, bytes, bytes.len(), 1);
    let terminators: Vec<usize> =
        read.events.iter().filter(|event| event.terminator).map(|event| event.start).collect();
    assert_eq!(plain.before_price, terminators, "not a byte of a terminator before its price");
    let hidden = relay(dialect, pieces.iter().copied(), true);
    assert_eq!(hidden.bytes, without_usage(dialect, bytes), "exactly the usage chunks are gone");
}

#[test]
fn an_injected_usage_chunk_leaves_no_trace() {
    let rows = cases::rows(&["usage"]);
    let row = rows.iter().find(|row| row["id"] == "use-injected").expect("the row");
    let stream = row["upstream_text"].as_str().expect("stream");
    let expected = row["expect"]["client_bytes"].as_str().expect("bytes");
    for end in ["\n", "\r\n", "\r"] {
        let (stream, expected) = (stream.replace('\n', end), expected.replace('\n', end));
        let bytes = stream.as_bytes();
        for cut in cuts(bytes.len()) {
            let relayed = relay(Dialect::Chat, in_two(bytes, cut), true);
            assert_eq!(String::from_utf8_lossy(&relayed.bytes), expected, "{end:?} at {cut}");
        }
        let relayed = relay(Dialect::Chat, bytes.chunks(1), true);
        assert_eq!(String::from_utf8_lossy(&relayed.bytes), expected, "{end:?} byte by byte");
    }
}

#[test]
fn no_byte_of_a_terminator_goes_before_the_price() {
    for (dialect, begin, last) in [
        (Dialect::Chat, "data: {\"choices\":[{\"delta\":{}}]}\n\n", "data: [DONE]\n\n"),
        (
            Dialect::Messages,
            ": hi\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n",
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
        (
            Dialect::Responses,
            "data: {\"type\":\"response.created\"}\n\n",
            "data: {\"response\":{\"usage\":{}},\"type\":\"response.failed\"}\r\n\r\n",
        ),
        (
            Dialect::Gemini,
            "data: {\"candidates\":[{}]}\n\n",
            "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\r\r",
        ),
    ] {
        let stream = [begin, last, ": behind\n\n"].concat();
        for cut in cuts(stream.len()) {
            let relayed = relay(dialect, in_two(stream.as_bytes(), cut), false);
            assert_eq!(relayed.before_price, [begin.len()], "{dialect:?} at {cut}");
        }
        for dialect in DIALECTS {
            check(dialect, stream.as_bytes(), &stream.as_bytes().chunks(1).collect::<Vec<_>>());
        }
    }
}
