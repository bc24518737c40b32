//! `[[key]]`: keys that the file declares by their digest, with their limits.

use super::file;
use super::findings::{At, Findings, Text};
use super::names::{Seen, pattern, printable};
use crate::exchange::keys::Digest;
use crate::exchange::limits::KeyLimits;
use crate::exchange::models::{AllowList, MODELS_MAX};
use crate::exchange::money::PicoUsd;
use crate::exchange::rfc3339;
use crate::exchange::time::UnixMs;
use crate::exchange::words::MoneyLimit;
use std::collections::HashSet;

/// SHA-256 of no bytes, and of one line feed: what hashing an unset variable gives.
const DIGESTS_OF_NOTHING: [&str; 2] = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b",
];

/// A key that the configuration declares.
#[derive(Clone, Debug)]
pub struct DeclaredKey {
    /// Its name, for people.
    pub name: Box<str>,
    /// SHA-256 of its text.
    pub digest: Digest,
    /// What it may do.
    pub limits: KeyLimits,
}

/// Compiles the keys. The result counts only while `findings` is clean.
pub(super) fn keys(written: &[file::Key], findings: &mut Findings<'_>) -> Vec<DeclaredKey> {
    let mut keys: Vec<DeclaredKey> = Vec::new();
    let (mut names, mut digests) = (Seen::new("key"), HashSet::new());
    for key in written {
        if let Some(name) = &key.name {
            printable(name, "the name of a key", findings);
            names.note(name, findings);
        }
        let limits = limits(key, findings);
        let Some(sha256) = &key.sha256 else { continue };
        let Some(digest) = digest(&sha256.value) else {
            let what = "sha256 must be the 64 hexadecimal digits of a key's SHA-256";
            findings.error(sha256.at, what);
            continue;
        };
        if DIGESTS_OF_NOTHING.iter().any(|nothing| nothing.eq_ignore_ascii_case(&sha256.value)) {
            findings.error(sha256.at, "sha256 is the digest of an empty key");
        }
        if !digests.insert(digest) {
            findings.error(sha256.at, "another [[key]] has the same sha256");
        }
        let name = key.name.as_ref().map_or("", |name| &name.value);
        keys.push(DeclaredKey { name: name.into(), digest, limits });
    }
    keys
}

fn limits(key: &file::Key, findings: &mut Findings<'_>) -> KeyLimits {
    KeyLimits {
        requests_per_minute: key.requests_per_minute.as_ref().map(|limit| limit.value),
        concurrent: key.concurrent.as_ref().map(|limit| limit.value),
        budget_total: budget("budget_total", key.budget_total.as_ref(), findings),
        budget_month: budget("budget_month", key.budget_month.as_ref(), findings),
        strict: key.strict.as_ref().is_some_and(|strict| strict.value),
        expires: key.expires.as_ref().and_then(|text| expires(text, findings)),
        models: key.models.as_ref().and_then(|list| models(list, key.models_at, findings)),
    }
}

fn budget(
    name: &str,
    written: Option<&At<PicoUsd>>,
    findings: &mut Findings<'_>,
) -> Option<MoneyLimit> {
    let amount = written?;
    let limit = MoneyLimit::new(amount.value).ok();
    if limit.is_none() {
        let what = "is above 9 million dollars, the most a window can count";
        findings.error(amount.at, format!("\"{name}\" in [[key]] {what}"));
    }
    limit
}

fn expires(text: &Text, findings: &mut Findings<'_>) -> Option<UnixMs> {
    let at = rfc3339::parse(&text.value);
    if at.is_none() {
        let what = "must be an instant with its zone, such as \"2027-01-31T12:00:00Z\"";
        findings.error(text.at, format!("\"expires\" in [[key]] {what}"));
    }
    at
}

fn models(list: &[Text], at: usize, findings: &mut Findings<'_>) -> Option<AllowList> {
    list.iter().for_each(|model| pattern(model, findings));
    let allowed = AllowList::new(list.iter().map(|model| &*model.value)).ok();
    if allowed.is_none() {
        findings.error(at, format!("\"models\" in [[key]] has more than {MODELS_MAX} patterns"));
    }
    allowed
}

fn digest(hex: &str) -> Option<[u8; 32]> {
    if hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut digest = [0; 32];
    for (n, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * n..2 * n + 2)?, 16).ok()?;
    }
    Some(digest)
}
