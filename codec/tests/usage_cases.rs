//! The `usage` and `cost` field cases. Whole answers are read as they are; of streams the data
//! lines are read one by one and laid over each other, which is what the usage reader sees. What
//! needs the relay itself carries `since = streams` and is counted.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod cases;

use codec::json::split_proof::reply_split;
use codec::json::{Edits, RequestScan};
use codec::usage::{Provenance, ReportedUsage, UsageEnvelope, UsageFlags, envelope};
use serde_json::Value;

/// Rows with a promise that only the relay can keep, and the issue that builds it.
const SINCE: [(&str, &str); 3] =
    [("use-injected", "streams"), ("use-missing", "streams"), ("use-error-text-billed", "streams")];

/// Prices per million tokens of the rows that state a cost, in micro-dollars a token × 100:
/// fresh, cache read, write for five minutes, for an hour, output.
const PRICES: [(&str, [u64; 5]); 3] = [
    ("use-openai-cached-subset", [250, 125, 0, 0, 1000]),
    ("use-anth-cached-extra", [300, 0, 375, 0, 1500]),
    ("use-cache-5m-1h", [0, 0, 375, 600, 0]),
];

struct Seen {
    usage: UsageEnvelope,
    content: bool,
    error: bool,
}

/// A whole answer, or the data lines of a stream.
fn read(text: &str) -> Seen {
    let mut reported = ReportedUsage::default();
    let (mut content, mut error) = (false, false);
    let payloads: Vec<&str> = if text.starts_with('{') {
        vec![text]
    } else {
        text.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
    };
    for payload in payloads.into_iter().filter(|payload| *payload != "[DONE]") {
        let bytes = payload.as_bytes();
        let facts = reply_split(bytes, bytes.len(), 1);
        assert!(facts.complete, "{payload}");
        assert_eq!(reply_split(bytes, 0, 1), facts, "{payload}");
        for head in 0..bytes.len() {
            assert_eq!(reply_split(bytes, head, bytes.len()), facts, "{payload} at {head}");
        }
        reported.update(&facts.usage);
        content |= facts.content;
        error |= facts.error.is_some();
    }
    let mut usage = envelope(&reported);
    if content {
        usage.note_content();
    }
    Seen { usage, content, error }
}

fn writes(usage: &UsageEnvelope) -> u64 {
    u64::from(usage.input_cache_write_5m) + u64::from(usage.input_cache_write_1h)
}

/// Compares the buckets a row names.
fn compare(id: &str, expected: &Value, usage: &UsageEnvelope) -> usize {
    let fields = expected.as_object().expect("an object of counts");
    for (name, count) in fields {
        let found = match name.as_str() {
            "input" => usage.input_total(),
            "input_uncached" => usage.input_fresh.into(),
            "cache_read" => usage.input_cache_read.into(),
            "cache_write" => writes(usage),
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
    assert_eq!(usage.provenance, Provenance::Reported, "{id}");
    fields.len()
}

fn cost(id: &str, expected: &Value, usage: &UsageEnvelope) {
    let (_, prices) = PRICES.iter().find(|(name, _)| *name == id).expect("prices");
    let tokens = [
        usage.input_fresh,
        usage.input_cache_read,
        usage.input_cache_write_5m,
        usage.input_cache_write_1h,
        usage.output,
    ];
    let hundredths: u64 =
        tokens.iter().zip(prices).map(|(&count, price)| u64::from(count) * price).sum();
    assert_eq!(hundredths % 100, 0);
    assert_eq!((hundredths / 100).to_string(), expected.as_str().expect("cost"), "{id}");
}

fn injected(row: &Value) {
    let body = row["request_text"].as_str().expect("request").as_bytes();
    let spans = RequestScan::new().finish(body).expect("passes");
    assert!(!spans.asks_for_usage());
    let mut edits = Edits::new(body);
    edits.force_usage(&spans).expect("one edit");
    let mut out = Vec::new();
    edits.segments().write_into(&mut out);
    let mut sent: Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(sent["stream_options"]["include_usage"], Value::Bool(true));
    sent.as_object_mut().expect("object").remove("stream_options");
    assert_eq!(sent, serde_json::from_slice::<Value>(body).expect("JSON"));
    let seen = read(row["upstream_text"].as_str().expect("stream"));
    assert_eq!(compare("use-injected", &row["expect"]["usage"], &seen.usage), 2);
}

#[test]
fn every_row_is_read() {
    let (mut read_here, mut later) = (0, Vec::new());
    for row in cases::rows(&["usage", "cost"]) {
        let id = row["id"].as_str().expect("id");
        let expect = &row["expect"];
        match id {
            "use-injected" => injected(&row),
            "use-missing" => {
                let seen = read(row["text"].as_str().expect("text"));
                assert_eq!(seen.usage.provenance, Provenance::Missing);
                assert!(seen.content);
            }
            "use-error-text-billed" => {
                let seen = read(row["text"].as_str().expect("text"));
                assert_eq!(seen.usage.provenance, Provenance::Missing);
                assert!(seen.error && !seen.content);
            }
            _ => {
                for input in cases::inputs(&row) {
                    let seen = read(std::str::from_utf8(&input).expect("text"));
                    let usage =
                        if expect["each"].is_null() { &expect["usage"] } else { &expect["each"] };
                    if !usage.is_null() {
                        assert!(compare(id, usage, &seen.usage) > 0);
                    }
                    if !expect["cost_microusd"].is_null() {
                        cost(id, &expect["cost_microusd"], &seen.usage);
                    }
                    assert!(!usage.is_null() || !expect["cost_microusd"].is_null(), "{id}");
                }
            }
        }
        if SINCE.iter().any(|(name, _)| *name == id) {
            later.push(id.to_owned());
        } else {
            read_here += 1;
        }
    }
    assert_eq!(later, SINCE.map(|(name, _)| name));
    assert_eq!(read_here, 17);
}
