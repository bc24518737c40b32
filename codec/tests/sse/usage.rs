//! The streams among the `usage`, `cost` and `failover` cases, read as streams.

use codec::sse::split_proof::{StreamRead, stream_split};
use codec::sse::{Dialect, Kind};
use codec::usage::{Provenance, UsageFlags};
use serde_json::Value;

use crate::cases;
use crate::corpus::cuts;

/// The dialect a stored stream is in.
pub(crate) fn dialect_of(text: &str) -> Dialect {
    let says = |word| text.contains(word);
    if says("event: message_") || says("event: error") || says("content_block") {
        Dialect::Messages
    } else if says("\"response.") {
        Dialect::Responses
    } else if says("usageMetadata") || says("candidates") {
        Dialect::Gemini
    } else {
        Dialect::Chat
    }
}

/// Reads a stream at every cut; all of them find the same.
pub(crate) fn read(id: &str, bytes: &[u8]) -> StreamRead {
    let dialect = dialect_of(&String::from_utf8_lossy(bytes));
    let whole = stream_split(dialect, bytes, bytes.len(), 1);
    assert_eq!(stream_split(dialect, bytes, 0, 1), whole, "{id} byte by byte");
    for cut in cuts(bytes.len()) {
        assert_eq!(stream_split(dialect, bytes, cut, bytes.len()), whole, "{id} at {cut}");
    }
    whole
}

/// Compares the buckets a row names; how many those were.
pub(crate) fn compare(id: &str, expected: &Value, read: &StreamRead) -> usize {
    let usage = &read.usage;
    let writes = u64::from(usage.input_cache_write_5m) + u64::from(usage.input_cache_write_1h);
    let fields = expected.as_object().expect("an object of counts");
    for (name, count) in fields {
        let found = match name.as_str() {
            "input" => usage.input_total(),
            "input_uncached" => usage.input_fresh.into(),
            "cache_read" => usage.input_cache_read.into(),
            "cache_write" => writes,
            "output" => usage.output.into(),
            "reasoning" => usage.reasoning_of_output.into(),
            other => panic!("{id}: {other}"),
        };
        match count.as_u64() {
            Some(count) => assert_eq!(found, count, "{id} {name}"),
            None => {
                // "0 reported, flagged as doubtful because content was seen"
                assert_eq!((id, found), ("use-first-chunk", 0));
                assert!(usage.flags.contains(UsageFlags::ZERO_WITH_CONTENT));
            }
        }
    }
    assert!(read.reported, "{id}");
    assert_eq!(usage.provenance, Provenance::Reported, "{id}");
    fields.len()
}

#[test]
fn every_stream_of_the_usage_cases_is_reported_as_it_says() {
    let mut streams = 0;
    for row in cases::rows(&["usage", "cost"]) {
        let id = row["id"].as_str().expect("id");
        let expect = &row["expect"];
        let usage = if expect["each"].is_null() { &expect["usage"] } else { &expect["each"] };
        let inputs = match row["upstream_text"].as_str() {
            Some(text) => vec![text.as_bytes().to_vec()],
            None => cases::inputs(&row),
        };
        for input in inputs.iter().filter(|input| !input.starts_with(b"{")) {
            streams += 1;
            let read = read(id, input);
            match id {
                "use-missing" => {
                    assert!(read.succeeded && read.terminated && !read.reported);
                    assert_eq!(read.usage.provenance, Provenance::Missing);
                    assert_eq!(read.said.ascii, 10, "what an estimate is made of");
                }
                "use-error-text-billed" => {
                    assert!(!read.succeeded && read.error.is_some() && read.empty);
                    assert_eq!((read.said.ascii, read.said.non_ascii), (0, 0));
                }
                _ => assert!(compare(id, usage, &read) > 0),
            }
            if expect["end"] == "complete without [DONE]" {
                assert!(read.terminated && read.succeeded, "{id}");
            }
        }
    }
    assert_eq!(streams, 16);
}

#[test]
fn an_error_is_told_as_such_first_or_later() {
    let rows = cases::rows(&["failover"]);
    let text = |id: &str| {
        let row = rows.iter().find(|row| row["id"] == id).expect("the row");
        row["text"].as_str().expect("text").to_owned()
    };
    let first = read("life-first-error", text("life-first-error").as_bytes());
    assert_eq!(first.events[0].kind, Kind::Error, "nothing before it: another may be asked");
    let kind = first.error.expect("an error").kind.expect("its type");
    assert!(kind.is("overloaded_error") && first.empty && !first.succeeded);

    let later = read("life-mid-error", text("life-mid-error").as_bytes());
    let kinds: Vec<Kind> = later.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [Kind::Preamble, Kind::Content, Kind::Error]);
    assert!(!later.succeeded && !later.terminated && !later.reported);
    assert_eq!((later.usage.input_fresh, later.said.ascii), (50, 2));
}
