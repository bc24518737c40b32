//! The `json` and `model` field cases as far as the codec can judge them. What only a pipeline
//! shows (statuses, headers, what is forwarded) stands in a table with its reason.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod cases;

use base64::Engine as _;
use codec::json::split_proof::{request_split, request_whole};
use codec::json::{
    Edits, JsonError, JsonErrorKind as Kind, MODEL_BYTES_MAX, RequestKey, RequestSpans,
    TextEstimate, unescape_into, write_string,
};
use serde_json::Value;

/// Rows whose promise is not the codec's, or not only.
const LEFT_TO_OTHERS: [(&str, &str); 3] = [
    ("json-empty", "pipeline: keep-alive after the 400; here: an empty body is refused"),
    ("json-length", "pipeline: length and digest headers; here: the new length"),
    ("json-response-model", "overridden by DESIGN §16.16: the answer's model is not rewritten"),
];

fn judge(body: &[u8]) -> Result<RequestSpans, JsonError> {
    let whole = request_whole(body);
    for step in [1, 7, 64, 65_536] {
        if body.len() < 10_000 || step > 1000 {
            assert_eq!(request_split(body, 0, step), whole);
        }
    }
    whole
}

fn kind(body: &[u8]) -> Kind {
    judge(body).expect_err("must be refused").kind
}

fn model(body: &[u8], spans: &RequestSpans) -> String {
    let mut buffer = [0; MODEL_BYTES_MAX];
    unescape_into(spans.model.text.of(body), &mut buffer).expect("model").to_owned()
}

fn renamed(body: &[u8], name: &str) -> Vec<u8> {
    let spans = judge(body).expect("passes");
    let mut replacement = Vec::new();
    write_string(name, &mut replacement);
    let mut edits = Edits::new(body);
    edits.replace_model(&spans, &replacement).expect("one edit");
    let segments = edits.segments();
    assert!(segments.pieces().len() <= 3);
    let mut out = Vec::new();
    segments.write_into(&mut out);
    assert_eq!(out.len(), segments.total_len());
    out
}

/// Routes by the row's alias and compares with the row's body, or with the plain replacement.
fn routed(row: &Value) {
    for body in cases::inputs(row) {
        let name = model(&body, &judge(&body).expect("passes"));
        let target = row["expect"]["alias"][&name].as_str().expect("alias");
        let text = String::from_utf8(body.clone()).expect("text");
        let expected = match row["expect"]["upstream_body"].as_str() {
            Some(exact) if exact.starts_with(['{', '\r']) => exact.to_owned(),
            _ => text.replacen(&format!("\"{name}\""), &format!("\"{target}\""), 1),
        };
        assert_eq!(String::from_utf8(renamed(&body, target)).expect("text"), expected);
    }
}

fn slash(row: &Value) {
    let expected = row["expect"]["upstream_body"].as_str().expect("body").as_bytes();
    for body in cases::inputs(row) {
        let spans = judge(&body).expect("passes");
        assert_eq!(model(&body, &spans), row["expect"]["route"].as_str().expect("route"));
        assert_eq!(renamed(&body, "gpt-x-2"), expected);
    }
}

fn model_last(row: &Value) {
    let body = cases::inputs(row).remove(0);
    assert!(body.len() > 1_500_000);
    let spans = judge(&body).expect("passes");
    assert!(spans.is_stream());
    // 100,000 times 12 bytes of ASCII and a character of three, and the role's "user".
    let estimate = TextEstimate { ascii: 1_200_004, non_ascii: 300_000, items: 0 };
    assert_eq!(spans.estimate, estimate);
    let head = spans.model.quoted().start;
    let out = renamed(&body, "real-a");
    assert_eq!(out.get(..head), body.get(..head));
    assert_eq!(out.get(head..), Some(b"\"real-a\"}".as_slice()));
}

fn stream_type(row: &Value) {
    for body in cases::inputs(row) {
        if body == br#"{"model":"m","stream":null}"# {
            assert!(!judge(&body).expect("null is absent").is_stream());
        } else {
            assert_eq!(kind(&body), Kind::StreamNotBoolean);
        }
    }
}

fn model_type(row: &Value) {
    for body in cases::inputs(row) {
        let refused = judge(&body).expect_err("no model name");
        assert!(matches!(refused.kind, Kind::ModelNotString | Kind::ModelEmpty));
        assert_eq!(refused.param(), Some("model"));
    }
    let long = format!(r#"{{"model":"{}"}}"#, "m".repeat(300_000));
    assert_eq!(kind(long.as_bytes()), Kind::ModelTooLong);
}

fn top_level(row: &Value) {
    for body in cases::inputs(row) {
        let expected = match body.first() {
            Some(b'{') => Kind::TrailingBytes,
            Some(b' ') => Kind::UnexpectedEnd,
            _ => Kind::NotAnObject,
        };
        assert_eq!(kind(&body), expected);
    }
}

fn length(row: &Value) {
    let request = cases::inputs(row).remove(0);
    let text = String::from_utf8(request).expect("text");
    let (_, body) = text.split_once("\r\n\r\n").expect("a head");
    let target = "a-very-long-upstream-model-name-2026-01-01";
    let out = renamed(body.as_bytes(), target);
    assert_eq!(out.len(), body.len() - 1 + target.len());
    assert_eq!(renamed(&out, "a"), body.as_bytes());
}

fn not_utf8(row: &Value) {
    let b64 = row["b64"].as_str().expect("b64");
    let body = base64::engine::general_purpose::STANDARD.decode(b64).expect("b64");
    assert_eq!(kind(&body), Kind::BadUtf8);
    assert!(Kind::BadUtf8.message().contains("UTF-8"));
}

#[test]
fn every_row_is_judged_or_left_with_a_reason() {
    let mut judged = 0;
    let mut left = Vec::new();
    for row in cases::rows(&["json", "model"]) {
        let id = row["id"].as_str().expect("id");
        match id {
            "json-slash" => slash(&row),
            "json-dup-model" => {
                let refused = judge(&cases::inputs(&row).remove(0)).expect_err("two models");
                assert_eq!(refused.kind, Kind::DuplicateKey(RequestKey::Model));
                assert!(refused.message().contains("model"));
            }
            "json-nested-model" | "json-ws" | "json-numbers" | "json-surrogate" => routed(&row),
            "json-model-last" => model_last(&row),
            "json-deep" => assert_eq!(kind(&cases::inputs(&row).remove(0)), Kind::TooDeep),
            "json-stream-string" => stream_type(&row),
            "json-model-missing" => {
                assert_eq!(kind(&cases::inputs(&row).remove(0)), Kind::ModelMissing);
            }
            "json-model-type" => model_type(&row),
            "json-toplevel" => top_level(&row),
            "json-non-utf8" => not_utf8(&row),
            "json-empty" => assert_eq!(kind(b""), Kind::UnexpectedEnd),
            "json-length" => length(&row),
            "json-response-model" => {}
            other => panic!("{other} is judged by nobody"),
        }
        if LEFT_TO_OTHERS.iter().any(|(name, _)| *name == id) {
            left.push(id.to_owned());
        } else {
            judged += 1;
        }
    }
    assert_eq!(left, LEFT_TO_OTHERS.map(|(name, _)| name));
    assert_eq!(judged, 13);
}
