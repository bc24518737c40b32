//! The `sse` and `stream-life` field cases, as far as the bytes of a stream decide them.

use base64::Engine as _;
use codec::sse::split_proof::{StreamRead, stream_split};
use codec::sse::{Dialect, Kind, StreamScan};
use serde_json::Value;

use crate::cases;
use crate::relay::check;
use crate::usage::{compare, dialect_of, read};

/// Rows with a promise that only the relay can keep, and the issue that builds it. What the scan
/// can prove of them is proved here all the same.
const SINCE: [(&str, &str); 7] = [
    ("sse-heartbeat-boundary", "streams"),
    ("sse-heartbeat-commit", "streams"),
    ("sse-late-rst", "streams"),
    ("sse-headers", "streams"),
    ("life-client-gone", "streams"),
    ("life-halfclose", "streams"),
    ("life-slow-reader", "streams"),
];

/// The reads of a row, in order; several rows are several streams.
fn streams(row: &Value) -> Vec<Vec<Vec<u8>>> {
    let text = |value: &Value| value.as_str().expect("text").as_bytes().to_vec();
    let decode = |value: &Value| {
        let text = value.as_str().expect("text");
        base64::engine::general_purpose::STANDARD.decode(text).expect("base64")
    };
    if let Some(reads) = row["reads_text"].as_array() {
        return vec![reads.iter().map(text).collect()];
    }
    if let Some(reads) = row["reads_b64"].as_array() {
        return vec![reads.iter().map(decode).collect()];
    }
    if row["b64"].is_string() {
        return vec![vec![decode(&row["b64"])]];
    }
    if let Some(size) = row["reads_of"].as_u64() {
        let bytes = text(&row["text"]);
        let size = usize::try_from(size).expect("size");
        return vec![bytes.chunks(size).map(<[u8]>::to_vec).collect()];
    }
    cases::inputs(row).into_iter().map(|input| vec![input]).collect()
}

/// Events that a client is given.
fn events(read: &StreamRead) -> usize {
    let silent = |kind| matches!(kind, Kind::Silent | Kind::Mark);
    read.events.iter().filter(|event| !silent(event.kind)).count()
}

/// What most rows expect: counts, events, how it ended, and the bytes as they came.
fn judge(id: &str, row: &Value, reads: &[Vec<u8>]) -> usize {
    let (expect, bytes) = (&row["expect"], reads.concat());
    let pieces: Vec<&[u8]> = reads.iter().map(Vec::as_slice).collect();
    let read = read(id, &bytes);
    check(dialect_of(&String::from_utf8_lossy(&bytes)), &bytes, &pieces);
    let mut judged = usize::from(expect["relay"].is_string());
    if expect["usage"].is_object() {
        judged += compare(id, &expect["usage"], &read);
    }
    if let Some(count) = expect["events"].as_u64() {
        assert_eq!(events(&read) as u64, count, "{id}");
        judged += 1;
    }
    let end = if expect["each"].is_string() { &expect["each"] } else { &expect["end"] };
    match end.as_str() {
        Some("complete") => assert!(read.succeeded, "{id}"),
        Some(end) => {
            assert!(end.starts_with("incomplete unless"), "{id}: {end}");
            assert!(!read.succeeded && !read.terminated, "{id}");
        }
        None => return judged,
    }
    judged + 1
}

fn truncated(row: &Value) {
    let read = read("life-trunc", row["text"].as_str().expect("text").as_bytes());
    assert!(!read.terminated && !read.succeeded && !read.empty && read.error.is_none());
    assert_eq!((read.events.len(), read.said.ascii), (2, 5));
}

/// The other half, that a beat goes out where the scan says so, is the relay's.
fn heartbeat_boundary(row: &Value) {
    let mut scan = StreamScan::new(Dialect::Messages);
    assert!(scan.at_boundary(), "before the first byte");
    let steps = row["steps"].as_array().expect("steps");
    let mut boundaries = Vec::new();
    for step in steps.iter().filter_map(Value::as_str) {
        let Some(quoted) = step.strip_prefix("upstream -> ") else { continue };
        let bytes: String = serde_json::from_str(quoted).expect("a JSON text");
        assert_eq!(scan.next(bytes.as_bytes()).expect("bytes").len, bytes.len());
        boundaries.push(scan.at_boundary());
    }
    assert_eq!(boundaries, [false, true]);
}

/// What came before the reset is a whole answer.
fn late_reset() {
    let stream = "event: message_delta\n\
        data: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":7}}\n\n\
        event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    let read = read("sse-late-rst", stream.as_bytes());
    assert!(read.terminated && read.succeeded && read.reported && read.at_boundary);
}

#[test]
fn every_row_is_judged_or_left_with_a_reason() {
    let (mut judged, mut left) = (0, Vec::new());
    for row in cases::rows(&["sse", "stream-life"]) {
        let id = row["id"].as_str().expect("id");
        match id {
            "sse-heartbeat-boundary" => heartbeat_boundary(&row),
            "sse-late-rst" => late_reset(),
            "life-trunc" => truncated(&row),
            // Four megabytes: cut in pieces, not at every place (`giant`).
            "sse-giant-line" => {
                let bytes = cases::inputs(&row).remove(0);
                let read = stream_split(Dialect::Responses, &bytes, 1000, 16 * 1024);
                assert_eq!(compare(id, &row["expect"]["usage"], &read), 2);
            }
            _ if SINCE.iter().any(|(name, _)| *name == id) => {}
            _ => {
                for reads in streams(&row) {
                    assert!(judge(id, &row, &reads) > 0, "{id} expects nothing");
                }
            }
        }
        if SINCE.iter().any(|(name, _)| *name == id) {
            left.push(id.to_owned());
        } else {
            judged += 1;
        }
    }
    left.sort_unstable();
    let mut expected = SINCE.map(|(name, _)| name);
    expected.sort_unstable();
    assert_eq!(left, expected);
    assert_eq!(judged, 15);
}
