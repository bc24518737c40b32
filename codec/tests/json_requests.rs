//! Captured bodies of real clients: what the scan finds beside what a tree says.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use codec::json::split_proof::{request_split, request_whole};
use codec::json::{Count, Edits, JsonErrorKind, RequestSpans, StringSpan, TextEstimate};
use serde_json::Value;

struct Capture {
    file: String,
    body: String,
    /// Byte offset of the key `model`, as measured at capture.
    model_at: Option<u64>,
}

fn captures() -> Vec<Capture> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/corpus/requests");
    let mut captures = Vec::new();
    for entry in std::fs::read_dir(folder).expect("corpus") {
        let path = entry.expect("entry").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let capture: Value =
            serde_json::from_slice(&std::fs::read(&path).expect("file")).expect("capture");
        captures.push(Capture {
            file: path.display().to_string(),
            body: capture["body_raw"].as_str().expect("a body").to_owned(),
            model_at: capture["facts"]["offset_model"].as_u64(),
        });
    }
    captures
}

/// The estimate by a tree; what is written with escapes is longer there, so it is counted only
/// for bodies without backslashes.
fn estimate(value: &Value, item: bool, total: &mut TextEstimate) {
    match value {
        Value::String(text) if item || text.starts_with("data:") => total.items += 1,
        Value::String(text) => {
            let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
            total.ascii += ascii;
            total.non_ascii += text.len() as u64 - ascii;
        }
        Value::Array(items) => items.iter().for_each(|value| estimate(value, false, total)),
        Value::Object(members) => {
            for (key, value) in members {
                estimate(value, matches!(key.as_str(), "data" | "url" | "image_url"), total);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn tree_estimate(tree: &Value) -> TextEstimate {
    let mut total = TextEstimate::default();
    for key in ["messages", "system", "tools", "input"] {
        estimate(&tree[key], false, &mut total);
    }
    total
}

fn text(body: &[u8], span: Option<StringSpan>) -> Option<&str> {
    span.map(|span| std::str::from_utf8(span.text.of(body)).expect("text"))
}

fn compare(file: &str, body: &[u8], tree: &Value, spans: &RequestSpans) {
    assert_eq!(text(body, Some(spans.model)), tree["model"].as_str(), "{file}");
    assert_eq!(spans.stream, tree["stream"].as_bool(), "{file}");
    assert_eq!(text(body, spans.user), tree["user"].as_str(), "{file}");
    assert_eq!(text(body, spans.prompt_cache_key), tree["prompt_cache_key"].as_str(), "{file}");
    assert_eq!(spans.has_tools, !tree["tools"].is_null(), "{file}");
    assert_eq!(spans.metadata.is_some(), tree["metadata"].is_object(), "{file}");
    assert_eq!(spans.metadata_user_id.is_some(), tree["metadata"]["user_id"].is_string(), "{file}");
    let asked = tree["stream_options"]["include_usage"].as_bool().unwrap_or_default();
    assert_eq!(spans.asks_for_usage(), asked, "{file}");
    for (key, field) in [
        ("max_tokens", spans.max_tokens),
        ("max_completion_tokens", spans.max_completion_tokens),
        ("max_output_tokens", spans.max_output_tokens),
        ("n", spans.n),
    ] {
        let count = field.map(|field| field.count);
        assert_eq!(count, tree[key].as_u64().map(Count::Value), "{file} {key}");
    }
    if !body.contains(&b'\\') {
        assert_eq!(spans.estimate, tree_estimate(tree), "{file}");
    }
    assert_eq!(spans.estimate.items, tree_estimate(tree).items, "{file}");
}

#[test]
fn the_scan_finds_what_a_tree_says() {
    let (mut compared, mut estimated) = (0, 0);
    for capture in captures() {
        let body = capture.body.as_bytes();
        let found = request_whole(body);
        for step in [1, 1000, 65_536] {
            if step > 1 || body.len() < 100_000 {
                assert_eq!(request_split(body, 0, step), found, "{}", capture.file);
            }
        }
        let Some(model_at) = capture.model_at else {
            // A gemini call has its model in the path.
            assert_eq!(
                found.expect_err("no model").kind,
                JsonErrorKind::ModelMissing,
                "{}",
                capture.file
            );
            continue;
        };
        let spans = found.expect(&capture.file);
        let tree: Value = serde_json::from_slice(body).expect("JSON");
        compare(&capture.file, body, &tree, &spans);
        let key =
            body.get(usize::try_from(model_at).expect("within the body")..spans.model.text.start);
        assert_eq!(key.expect("within the body").iter().filter(|byte| **byte == b'"').count(), 3);
        renamed_keeps_the_rest(body, &spans);
        compared += 1;
        estimated += usize::from(!body.contains(&b'\\'));
    }
    assert_eq!(compared, 15);
    assert!(estimated >= 5);
}

fn renamed_keeps_the_rest(body: &[u8], spans: &RequestSpans) {
    let mut edits = Edits::new(body);
    edits.replace_model(spans, b"\"other\"").expect("within the body");
    let segments = edits.segments();
    let mut out = Vec::new();
    segments.write_into(&mut out);
    let quoted = spans.model.quoted();
    let kept = [
        body.get(..quoted.start).expect("within the body"),
        body.get(quoted.end..).expect("within the body"),
    ]
    .concat();
    let tail = out.get(quoted.start + 7..).expect("within the body");
    assert_eq!([out.get(..quoted.start).expect("within the body"), tail].concat(), kept);
}
