//! What may be a name: of a provider, a model, a key; and whether it was given before.
//!
//! All names are printable ASCII and bounded: they end up in logs, metrics and headers.

use super::findings::{Findings, Text, quoted};
use super::reader::nearest;
use std::collections::HashSet;

/// Longest name of a provider, node, key or credential: a label's worth.
const NAME_BYTES_MAX: usize = 64;

/// Longest name of a model: as much as a client may ask for.
const MODEL_BYTES_MAX: usize = 256;

/// Letters, digits, `-`, `_` and `.`: no slash, so that `provider/model` has one reading.
pub(super) fn token(name: &Text, what: &str, findings: &mut Findings<'_>) {
    let fits = (1..=NAME_BYTES_MAX).contains(&name.value.len());
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    if !fits || !name.value.bytes().all(plain) {
        let rule = "must have 1 to 64 letters, digits, \"-\", \"_\" or \".\"";
        findings.error(name.at, format!("{what} {rule}"));
    }
}

/// What a name for people is, as the end of a sentence about one that is not.
pub const PRINTABLE_RULE: &str =
    "must have 1 to 64 printable ASCII characters, no space at either end";

/// A name for people.
pub(super) fn printable(name: &Text, what: &str, findings: &mut Findings<'_>) {
    if !is_key_name(&name.value) {
        findings.error(name.at, format!("{what} {PRINTABLE_RULE}"));
    }
}

/// Whether a text is a name for people, such as a key's.
pub fn is_key_name(name: &str) -> bool {
    is_printable(name, NAME_BYTES_MAX)
}

/// Whether a text is a model's name, or its beginning and one `*`.
pub fn is_model_pattern(pattern: &str) -> bool {
    let stem = pattern.strip_suffix('*').unwrap_or(pattern);
    is_printable(pattern, MODEL_BYTES_MAX) && !stem.contains('*')
}

/// A model's name, ours or a provider's.
pub(super) fn model_name(name: &Text, what: &str, findings: &mut Findings<'_>) {
    if !is_printable(&name.value, MODEL_BYTES_MAX) {
        let rule = "must have 1 to 256 printable ASCII characters, no space at either end";
        findings.error(name.at, format!("{what} {rule}"));
    }
}

/// A model's name, or its beginning and one `*`.
pub(super) fn pattern(name: &Text, findings: &mut Findings<'_>) {
    model_name(name, "a pattern of models", findings);
    let stem = name.value.strip_suffix('*').unwrap_or(&name.value);
    if stem.contains('*') {
        findings.error(name.at, "a pattern of models has one \"*\", at its end");
    }
}

/// One of a closed list of names; `what` begins the sentence of another one.
pub(super) fn choice<T: Copy>(
    text: &Text,
    what: &str,
    names: &[(&'static str, T)],
    findings: &mut Findings<'_>,
) -> Option<T> {
    if let Some((_, chosen)) = names.iter().find(|(name, _)| *name == &*text.value) {
        return Some(*chosen);
    }
    let known = names.iter().map(|(name, _)| *name);
    let hint = did_you_mean(nearest(&text.value, known.clone()));
    let listed: Vec<&str> = known.collect();
    let listed = match listed.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => listed.concat(),
    };
    findings.error(text.at, format!("{what} must be {listed}{hint}"));
    None
}

/// What follows a sentence about a name that is not known.
pub(super) fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean {}?", quoted(near))).unwrap_or_default()
}

fn is_printable(name: &str, bytes_max: usize) -> bool {
    (1..=bytes_max).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
        && name.trim() == name
}

/// The names given so far.
pub(super) struct Seen<'f> {
    what: &'static str,
    names: HashSet<&'f str>,
}

impl<'f> Seen<'f> {
    pub(super) fn new(what: &'static str) -> Seen<'f> {
        Seen { what, names: HashSet::new() }
    }

    /// Notes a name; the second of its kind is an error.
    pub(super) fn note(&mut self, name: &'f Text, findings: &mut Findings<'_>) {
        if !self.names.insert(&name.value) {
            let (what, name, at) = (self.what, quoted(&name.value), name.at);
            findings.error(at, format!("there is a {what} {name} already"));
        }
    }
}
