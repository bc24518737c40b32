//! JSONTestSuite through the request scan: every row as the value of a key, whole, byte by byte
//! and at every two-way split; what is accepted keeps every byte but the model's.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use base64::Engine as _;
use codec::json::split_proof::{request_split, request_whole};
use codec::json::{Edits, JsonError, JsonErrorKind, RequestSpans};
use serde_json::Value;

struct Row {
    name: String,
    expect: String,
    bytes: Vec<u8>,
}

fn rows() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/corpus/json/jsontestsuite.jsonl");
    let text = std::fs::read_to_string(path).expect("corpus");
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("row");
        let field = |name: &str| row[name].as_str().expect("field").to_owned();
        let bytes = base64::engine::general_purpose::STANDARD.decode(field("b64")).expect("b64");
        Row { name: field("name"), expect: field("expect"), bytes }
    };
    text.lines().map(row).collect()
}

/// The row as the value of a key before the model, and what the same looks like renamed.
fn bodies(row: &Row) -> (Vec<u8>, Vec<u8>) {
    let body = |model: &str| {
        [b"{\"x\":".as_slice(), &row.bytes, b",\"model\":\"", model.as_bytes(), b"\"} "].concat()
    };
    (body("m"), body("renamed"))
}

fn renamed(body: &[u8], spans: &RequestSpans) -> Vec<u8> {
    let mut edits = Edits::new(body);
    edits.replace_model(spans, b"\"renamed\"").expect("one edit");
    let mut out = Vec::new();
    edits.segments().write_into(&mut out);
    out
}

fn same_at_every_split(name: &str, body: &[u8]) -> Result<RequestSpans, JsonError> {
    let whole = request_whole(body);
    assert_eq!(request_split(body, 0, 1), whole, "{name} byte by byte");
    for head in 0..body.len() {
        assert_eq!(request_split(body, head, body.len()), whole, "{name} at {head}");
    }
    whole
}

#[test]
fn every_row_as_a_value() {
    let mut counts = [0; 4];
    for row in rows() {
        let (body, expected) = bodies(&row);
        let found = same_at_every_split(&row.name, &body);
        let (kind, must_pass, must_fail) = match row.expect.as_str() {
            "accept" => (0, true, false),
            "reject" => (1, false, true),
            "either" => (2, false, false),
            "transform" => (3, false, false),
            other => panic!("{}: {other}", row.name),
        };
        counts[kind] += 1;
        assert!(!must_fail || found.is_err(), "{} must be refused", row.name);
        assert!(!must_pass || found.is_ok(), "{} must pass: {found:?}", row.name);
        if let Ok(spans) = found {
            assert_eq!(spans.model.text.of(&body), b"m", "{}", row.name);
            assert_eq!(renamed(&body, &spans), expected, "{}", row.name);
        }
    }
    assert_eq!(counts, [95, 188, 35, 22], "rows of the suite by expectation");
}

/// The only `transform` rows that are refused hold bytes that are no UTF-8.
#[test]
fn transform_rows_pass_but_for_their_encoding() {
    let mut refused = Vec::new();
    for row in rows().into_iter().filter(|row| row.expect == "transform") {
        if let Err(error) = request_whole(&bodies(&row).0) {
            assert_eq!(error.kind, JsonErrorKind::BadUtf8, "{}", row.name);
            assert!(std::str::from_utf8(&row.bytes).is_err());
            refused.push(row.name);
        }
    }
    let expected = ["1_invalid_codepoint", "2_invalid_codepoints", "3_invalid_codepoints"];
    assert_eq!(refused, expected.map(|name| format!("string_{name}.json")));
}

/// The suite's documents as whole bodies: only an object with a model is one.
#[test]
fn every_row_as_a_body() {
    for row in rows() {
        let found = same_at_every_split(&row.name, &row.bytes);
        assert!(found.is_err(), "{} has no model", row.name);
    }
}
