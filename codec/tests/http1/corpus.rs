//! Reading the rows of the corpora.

use base64::Engine as _;
use serde_json::Value;

pub(crate) const LLHTTP: &str = include_str!("../../../tests/corpus/http1/llhttp.jsonl");
pub(crate) const OWN: &str = include_str!("../../../tests/corpus/http1/own.jsonl");
pub(crate) const CASES: &str = include_str!("../../../tests/corpus/cases/field_cases.jsonl");

pub(crate) fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn text<'v>(row: &'v Value, key: &str) -> &'v str {
    row[key].as_str().unwrap_or_else(|| panic!("{key} in {row}"))
}

pub(crate) fn bytes(row: &Value) -> Vec<u8> {
    row.get("b64").map_or_else(|| generated(&row["gen"]), |_| unbase64(text(row, "b64")))
}

pub(crate) fn unbase64(text: &str) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

/// `{head, then: [..]}` or the bare list: strings and repeats.
pub(crate) fn generated(recipe: &Value) -> Vec<u8> {
    let head = recipe.get("head").and_then(Value::as_str).unwrap_or_default();
    let parts = recipe.get("then").unwrap_or(recipe).as_array().unwrap();
    let mut out = head.as_bytes().to_vec();
    for part in parts {
        match part.as_str() {
            Some(text) => out.extend_from_slice(text.as_bytes()),
            None => {
                let times =
                    part.get("times").or_else(|| part.get("bytes")).unwrap().as_u64().unwrap();
                let text = self::text(part, "repeat");
                out.extend_from_slice(text.repeat(usize::try_from(times).unwrap()).as_bytes());
            }
        }
    }
    out
}
