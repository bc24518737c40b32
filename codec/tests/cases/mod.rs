//! The field cases, as rows; shared by the tests that judge them.

use serde_json::Value;

/// The rows of these areas, in the order of the file.
pub(crate) fn rows(areas: &[&str]) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/corpus/cases/field_cases.jsonl");
    let text = std::fs::read_to_string(path).expect("cases");
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("row"))
        .filter(|row| areas.contains(&row["area"].as_str().expect("area")))
        .collect()
}

/// The inputs of a row that are texts or a recipe.
pub(crate) fn inputs(row: &Value) -> Vec<Vec<u8>> {
    if let Some(text) = row["text"].as_str() {
        return vec![text.as_bytes().to_vec()];
    }
    if let Some(texts) = row["variants_text"].as_array() {
        return texts.iter().map(|text| text.as_str().expect("text").as_bytes().to_vec()).collect();
    }
    let recipe = row["gen"].as_array().expect("a text, variants or a recipe");
    let part = |part: &Value| match part.as_str() {
        Some(text) => text.to_owned(),
        None => {
            let times = usize::try_from(part["times"].as_u64().expect("times")).expect("times");
            part["repeat"].as_str().expect("repeat").repeat(times)
        }
    };
    vec![recipe.iter().map(part).collect::<String>().into_bytes()]
}
