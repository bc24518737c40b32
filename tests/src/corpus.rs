//! Rows of the corpora, as the pipeline's tests read them.

use base64::Engine as _;
use serde_json::Value;

/// Rows written for this project: bytes of clients and of upstreams.
pub const OWN: &str = include_str!("../corpus/http1/own.jsonl");

/// Cases from the field.
pub const CASES: &str = include_str!("../corpus/cases/field_cases.jsonl");

/// The rows of a file.
#[must_use]
pub fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a row is JSON")).collect()
}

/// The row of this id.
#[must_use]
pub fn row(text: &str, id: &str) -> Value {
    let row = rows(text).into_iter().find(|row| row["id"] == id);
    row.unwrap_or_else(|| panic!("no row {id}"))
}

/// A text of a row.
#[must_use]
pub fn text<'v>(row: &'v Value, key: &str) -> &'v str {
    row[key].as_str().unwrap_or_else(|| panic!("{key} in {row}"))
}

/// The only input of a row.
#[must_use]
pub fn bytes(row: &Value) -> Vec<u8> {
    if let Some(text) = row["text"].as_str() {
        return text.as_bytes().to_vec();
    }
    match row["b64"].as_str() {
        Some(text) => base64::engine::general_purpose::STANDARD.decode(text).expect("base64"),
        None => generated(&row["gen"]),
    }
}

/// All inputs of a row.
#[must_use]
pub fn variants(row: &Value) -> Vec<Vec<u8>> {
    match row["variants_text"].as_array() {
        Some(all) => {
            let text = |one: &Value| one.as_str().expect("a text").as_bytes().to_vec();
            all.iter().map(text).collect()
        }
        None => vec![bytes(row)],
    }
}

/// `{head, then: [..]}` or the bare list: strings and repeats.
fn generated(recipe: &Value) -> Vec<u8> {
    let head = recipe.get("head").and_then(Value::as_str).unwrap_or_default();
    let parts = recipe.get("then").unwrap_or(recipe).as_array().expect("a list");
    let mut out = head.as_bytes().to_vec();
    for part in parts {
        if let Some(text) = part.as_str() {
            out.extend_from_slice(text.as_bytes());
            continue;
        }
        let times = part.get("times").or_else(|| part.get("bytes")).and_then(Value::as_u64);
        let times = usize::try_from(times.expect("a count")).expect("a small count");
        out.extend_from_slice(text(part, "repeat").repeat(times).as_bytes());
    }
    out
}
