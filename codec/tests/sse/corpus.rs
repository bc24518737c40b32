//! The rows of `tests/corpus/sse`: what a client would be given, at every cut, in every dialect.

use base64::Engine as _;
use codec::sse::split_proof::{lines_naive, lines_split, stream_split};
use codec::sse::{Dialect, Kind};
use serde_json::Value;

use crate::reader::Reader;

pub(crate) const DIALECTS: [Dialect; 4] =
    [Dialect::Chat, Dialect::Messages, Dialect::Responses, Dialect::Gemini];

/// Streams up to this long are cut at every place; longer ones near their ends and at places a
/// prime number apart, because the work grows with the square.
const EVERY_CUT_BYTES_MAX: usize = 8 * 1024;

fn rows(file: &str) -> Vec<Value> {
    let path = format!("{}/../tests/corpus/sse/{file}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("corpus");
    text.lines().map(|line| serde_json::from_str(line).expect("row")).collect()
}

/// The reads of a row.
fn reads(row: &Value) -> Vec<Vec<u8>> {
    if let Some(chunks) = row["chunks_b64"].as_array() {
        let decode = |chunk: &Value| {
            let text = chunk.as_str().expect("text");
            base64::engine::general_purpose::STANDARD.decode(text).expect("base64")
        };
        return chunks.iter().map(decode).collect();
    }
    let mut reads = Vec::new();
    for part in row["gen"]["reads"].as_array().expect("reads or a recipe") {
        match part.as_str() {
            Some(text) => reads.push(text.as_bytes().to_vec()),
            None => {
                let text = part["repeat_read"].as_str().expect("text").as_bytes();
                let times = usize::try_from(part["times"].as_u64().expect("times")).expect("times");
                reads.extend(std::iter::repeat_n(text.to_vec(), times));
            }
        }
    }
    reads
}

/// The places to cut a stream in two.
pub(crate) fn cuts(len: usize) -> Vec<usize> {
    let near_an_end = |cut: &usize| *cut < 100 || len - *cut < 100 || cut.is_multiple_of(4099);
    (0..=len).filter(|cut| len <= EVERY_CUT_BYTES_MAX || near_an_end(cut)).collect()
}

fn data(expected: &Value) -> String {
    if let Some(data) = expected["data"].as_str() {
        return data.to_owned();
    }
    let recipe = &expected["data_gen"];
    let line = recipe["join_lf"].as_str().expect("line");
    let times = usize::try_from(recipe["times"].as_u64().expect("times")).expect("times");
    vec![line; times].join("\n")
}

/// Compares what a client is given with what the row says; how many events that were.
fn check_events(row: &Value, bytes: &[u8]) -> usize {
    let id = row["id"].as_str().expect("id");
    let mut reader = Reader::of(&lines_split(bytes, bytes.len(), 1));
    let expected = row["expect_events"].as_array().expect("events");
    assert_eq!(reader.events.len(), expected.len(), "{id}");
    for (found, expected) in reader.events.iter().zip(expected) {
        assert_eq!(found.event, expected["event"].as_str().expect("event"), "{id}");
        assert_eq!(found.data, data(expected), "{id}");
        if let Some(last) = expected["id"].as_str() {
            assert_eq!(found.id, last, "{id}");
        }
    }
    if let Some(expected) = row["expect_retry"].as_array() {
        let expected: Vec<u64> = expected.iter().filter_map(Value::as_u64).collect();
        assert_eq!(reader.retries, expected, "{id}");
    }
    let extra = &row["expect_extra_event_if_flushed_at_eof"];
    reader.blank();
    assert_eq!(reader.events.len(), expected.len() + usize::from(!extra.is_null()), "{id}");
    if !extra.is_null() {
        let flushed = reader.events.last().expect("one more");
        assert_eq!(flushed.data, data(extra), "{id}");
    }
    expected.len()
}

/// The stream as reads in this order is the stream as a whole; same for every way to cut it.
fn check_cuts(id: &str, bytes: &[u8], reads: &[Vec<u8>]) {
    let lines = lines_naive(bytes);
    assert_eq!(lines_split(bytes, 0, 1), lines, "{id} byte by byte");
    for cut in cuts(bytes.len()) {
        assert_eq!(lines_split(bytes, cut, bytes.len()), lines, "{id} at {cut}");
    }
    for dialect in DIALECTS {
        let whole = stream_split(dialect, bytes, bytes.len(), 1);
        assert_eq!(stream_split(dialect, bytes, 0, 1), whole, "{id} byte by byte");
        let step = reads.first().map_or(1, Vec::len);
        assert_eq!(stream_split(dialect, bytes, step, step), whole, "{id} in reads");
        for cut in cuts(bytes.len()) {
            assert_eq!(stream_split(dialect, bytes, cut, bytes.len()), whole, "{id} at {cut}");
        }
    }
}

#[test]
fn every_row_is_what_its_author_says_at_every_cut() {
    for (file, count) in [("eventsource_parser", 39), ("wpt_eventsource", 15), ("own", 25)] {
        let rows = rows(file);
        assert_eq!(rows.len(), count, "{file}");
        for row in rows {
            let id = row["id"].as_str().expect("id");
            let reads = reads(&row);
            let bytes = reads.concat();
            let events = check_events(&row, &bytes);
            check_cuts(id, &bytes, &reads);
            for dialect in DIALECTS {
                let read = stream_split(dialect, &bytes, bytes.len(), 1);
                let seen = read.events.iter().filter(|event| event.whole);
                let seen = seen.filter(|event| !matches!(event.kind, Kind::Silent | Kind::Mark));
                assert_eq!(seen.count(), events, "{id}: what is no event is silent");
            }
        }
    }
}

#[test]
fn the_seeds_and_findings_of_the_fuzz_target_hold() {
    let folder = format!("{}/fuzz/corpus/sse_stream", env!("CARGO_MANIFEST_DIR"));
    let files: Vec<_> = std::fs::read_dir(folder).expect("corpus").collect();
    assert!(files.len() > 50, "{}", files.len());
    for file in files {
        let seed = std::fs::read(file.expect("entry").path()).expect("seed");
        codec::sse::split_proof::fuzz_stream(&seed);
    }
}
