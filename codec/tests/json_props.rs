//! The request scan beside `serde_json` on generated and damaged bodies: the same are JSON, the
//! same model is found, no split matters, and an edit keeps every other byte.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use codec::json::split_proof::{reply_split, request_split, request_whole};
use codec::json::{
    Edits, JsonErrorKind as Kind, MODEL_BYTES_MAX, RequestSpans, unescape_into, write_string,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Bytes that mean something to a JSON reader, or to a UTF-8 one.
const SHARP: &[u8] =
    b"\"\\{}[]:,.-+eE0019tfnu \t\n\r\x00\x1f\x7f\x80\xbf\xc2\xe0\xed\xa0\xf0\xf4\x90";

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z\"\\\\é雨\u{1f600}]{0,90}".prop_map(Value::from),
        Just(json!("data:image/png;base64,AAAA")),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z_]{1,9}",
        1 => any::<String>(),
        1 => prop::sample::select(vec![
            "messages", "system", "tools", "input", "metadata", "user_id", "url", "content",
            "include_usage", "cache_control",
        ]).prop_map(str::to_owned),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A body with a model somewhere among other members, compact or laid out.
fn body() -> impl Strategy<Value = (String, String)> {
    let others = prop::collection::btree_map(key(), value(), 0..6);
    (others, "[a-zA-Z0-9/.:é\"-]{1,60}", 0..7_usize, any::<bool>()).prop_map(
        |(others, model, place, pretty)| {
            let mut members: Vec<String> = others
                .iter()
                .filter(|(key, _)| !["model", "n"].iter().any(|own| key.eq_ignore_ascii_case(own)))
                .map(|(key, value)| {
                    let text = if pretty { format!("{value:#}") } else { value.to_string() };
                    format!("{}:{text}", json!(key))
                })
                .collect();
            let place = place.min(members.len());
            members.insert(place, format!("\"model\":{}", json!(model)));
            let (comma, space) = if pretty { (" ,\r\n\t", " ") } else { (",", "") };
            (format!("{space}{{{space}{}{space}}}{space}", members.join(comma)), model)
        },
    )
}

/// Where, which byte, and whether it is put in, cuts the rest off or replaces.
fn wound() -> impl Strategy<Value = (prop::sample::Index, u8, u8)> {
    (any::<prop::sample::Index>(), prop::sample::select(SHARP), 0..3_u8)
}

fn model(body: &[u8], spans: &RequestSpans) -> String {
    let mut buffer = [0; MODEL_BYTES_MAX];
    unescape_into(spans.model.text.of(body), &mut buffer).expect("model").to_owned()
}

/// JSON by `serde_json`'s skipping reader, UTF-8 by the standard library.
fn is_json(body: &[u8]) -> bool {
    std::str::from_utf8(body).is_ok()
        && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}

fn agrees(body: &[u8]) {
    match request_whole(body) {
        Ok(spans) => {
            assert!(is_json(body), "passed: {}", String::from_utf8_lossy(body));
            // A lone surrogate has no place in a `Value`; the model is compared where there is one.
            if let Ok(value) = serde_json::from_slice::<Value>(body) {
                assert_eq!(value["model"], Value::from(model(body, &spans)));
            }
        }
        Err(error) => match error.kind {
            Kind::UnexpectedEnd
            | Kind::UnexpectedByte
            | Kind::TrailingBytes
            | Kind::ControlInString
            | Kind::BadEscape
            | Kind::BadUtf8
            | Kind::BadNumber
            | Kind::BadLiteral => {
                assert!(!is_json(body), "{error}: {}", String::from_utf8_lossy(body));
            }
            Kind::NotAnObject
            | Kind::TooDeep
            | Kind::DuplicateKey(_)
            | Kind::EscapedKey(_)
            | Kind::MiscasedKey(_)
            | Kind::StreamNotBoolean
            | Kind::StreamOptionsNotObject
            | Kind::IncludeUsageNotBoolean
            | Kind::ModelMissing
            | Kind::ModelNotString
            | Kind::ModelEmpty
            | Kind::ModelTooLong
            | Kind::ModelUnreadable => {}
        },
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn generated_bodies_pass((body, name) in body(), head in 0..400_usize, step in 1..90_usize) {
        let bytes = body.as_bytes();
        let spans = request_whole(bytes);
        prop_assert!(spans.is_ok(), "{spans:?} {body}");
        prop_assert_eq!(model(bytes, &spans.unwrap()), name);
        prop_assert_eq!(request_split(bytes, head, step), spans);
        prop_assert_eq!(reply_split(bytes, head, step), reply_split(bytes, bytes.len(), 1));
        prop_assert!(reply_split(bytes, head, step).complete);
        agrees(bytes);
    }

    #[test]
    fn damaged_bodies_agree(
        (body, _) in body(),
        damage in prop::collection::vec(wound(), 1..4),
        head in 0..400_usize,
        step in 1..90_usize,
    ) {
        let mut bytes = body.into_bytes();
        for (place, byte, how) in damage {
            let at = place.index(bytes.len() + 1);
            match how {
                0 => bytes.insert(at, byte),
                1 => bytes.truncate(at),
                _ => if let Some(old) = bytes.get_mut(at) { *old = byte },
            }
        }
        agrees(&bytes);
        prop_assert_eq!(request_split(&bytes, head, step), request_whole(&bytes));
        prop_assert_eq!(reply_split(&bytes, head, step), reply_split(&bytes, bytes.len(), 1));
    }

    #[test]
    fn edits_keep_every_other_byte((body, _) in body(), name in any::<String>()) {
        let spans = request_whole(body.as_bytes()).unwrap();
        let mut replacement = Vec::new();
        write_string(&name, &mut replacement);
        prop_assert_eq!(serde_json::from_slice::<String>(&replacement).unwrap(), name.clone());
        let mut edits = Edits::new(body.as_bytes());
        edits.replace_model(&spans, &replacement).unwrap();
        let mut out = Vec::new();
        edits.segments().write_into(&mut out);
        let quoted = spans.model.quoted();
        let head = body.get(..quoted.start).unwrap();
        let tail = body.get(quoted.end..).unwrap();
        let expected = [head.as_bytes(), replacement.as_slice(), tail.as_bytes()].concat();
        prop_assert_eq!(&out, &expected);

        edits.force_usage(&spans).unwrap();
        let mut forced = Vec::new();
        edits.segments().write_into(&mut forced);
        let mut value: Value = serde_json::from_slice(&forced).unwrap();
        prop_assert_eq!(&value["stream_options"]["include_usage"], &Value::Bool(true));
        prop_assert!(value["model"] == name);
        let before: Value = serde_json::from_str(&body).unwrap();
        value["model"] = before["model"].clone();
        value.as_object_mut().unwrap().remove("stream_options");
        prop_assert_eq!(value, before);
    }
}
