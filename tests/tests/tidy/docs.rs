//! What an operator can meet must stand in `docs/reference/`: refusals, endings, keys of the
//! configuration, metrics.
//!
//! Only text between backticks or in fenced blocks counts as a mention, so that a key called
//! `name` is not found in prose.

use std::collections::BTreeSet;

use crate::code;
use crate::names;
use crate::source::{Finding, Source};

pub(crate) struct Subject {
    /// A file or a prefix of files, below the root.
    pub(crate) place: &'static str,
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    /// The variants of the enum of this name.
    Variants(&'static str),
    /// The keys of the configuration, declared as `read("name")` and `later("name", "why")`.
    Keys,
    /// Words that begin with a prefix of [`METRIC_PREFIXES`].
    Metrics,
}

pub(crate) const SUBJECTS: &[Subject] = &[
    Subject { place: "proxy/src/exchange/refusal.rs", kind: Kind::Variants("Refusal") },
    Subject { place: "proxy/src/exchange/outcome.rs", kind: Kind::Variants("Ending") },
    Subject { place: "proxy/src/config/shape.rs", kind: Kind::Keys },
    Subject { place: "proxy/src/observe/", kind: Kind::Metrics },
    Subject { place: "proxy/src/admin/metrics", kind: Kind::Metrics },
];

const METRIC_PREFIXES: &[&str] = &["tollgate_", "gen_ai_"];

impl Subject {
    pub(crate) fn covers(&self, path: &str) -> bool {
        path.starts_with(self.place)
    }
}

/// The words the reference pages mention.
pub(crate) fn words(pages: &[&str]) -> BTreeSet<String> {
    let code = pages.iter().flat_map(|page| page.split('`').skip(1).step_by(2));
    code.flat_map(|part| part.split(|letter: char| !letter.is_alphanumeric() && letter != '_'))
        .map(str::to_owned)
        .collect()
}

pub(crate) fn check(
    subject: &Subject,
    sources: &[&Source],
    words: &BTreeSet<String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = 0;
    for source in sources.iter().filter(|source| !source.is_test()) {
        for (at, name) in named(&subject.kind, source) {
            seen += 1;
            if !words.contains(&name) && !words.contains(&names::snake(&name)) {
                findings.push(source.finding(at, format!("`{name}` is not in docs/reference")));
            }
        }
    }
    // Metric names may live in one of two places; the others have exactly one.
    if seen == 0 && !matches!(subject.kind, Kind::Metrics) {
        let message = format!("nothing was recognised in {}: teach this rule", subject.place);
        findings.extend(sources.first().map(|source| source.finding(0, message)));
    }
    findings
}

fn named(kind: &Kind, source: &Source) -> Vec<(usize, String)> {
    match kind {
        Kind::Variants(name) => variants(&source.code, name),
        Kind::Keys => keys(source),
        Kind::Metrics => metrics(source),
    }
}

fn variants(code: &str, name: &str) -> Vec<(usize, String)> {
    let declared = code::find_word(code, "enum")
        .find(|at| code::find_word(code::rest(code, at + 4), name).next() == Some(0));
    let Some(at) = declared else { return Vec::new() };
    entries(code, at)
}

fn keys(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for declares in ["read", "later"] {
        for at in code::find_word(&source.code, declares) {
            let literal = source.text[at + declares.len()..].strip_prefix("(\"");
            let name = literal.and_then(|literal| literal.split('"').next());
            found.extend(name.map(|name| (at, name.to_owned())));
        }
    }
    found
}

fn metrics(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for prefix in METRIC_PREFIXES {
        for (at, _) in source.text.match_indices(prefix) {
            let before = at.checked_sub(1).map(|index| source.text.as_bytes()[index]);
            let name: String = source.text[at..]
                .chars()
                .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                .collect();
            if name.len() > prefix.len()
                && !before.is_some_and(code::is_word)
                && !source.in_test(at)
            {
                found.push((at, name));
            }
        }
    }
    found
}

/// The entries of the braces that follow the declaration at `at`: where each name stands.
fn entries(code: &str, at: usize) -> Vec<(usize, String)> {
    let end = code::item_end(code, at);
    let Some(open) = code[at..end].find('{').map(|found| at + found) else { return Vec::new() };
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    let mut depth = 0usize;
    let mut start = open + 1;
    for place in open..end {
        match bytes[place] {
            b'{' | b'(' | b'[' | b'<' => depth += 1,
            b'}' | b')' | b']' => depth = depth.saturating_sub(1),
            // `->` closes nothing.
            b'>' if bytes[place - 1] != b'-' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let closed = depth == 0;
        if closed || (depth == 1 && bytes[place] == b',') {
            found.extend(entry(code, start, place));
            start = place + 1;
        }
        if closed {
            break;
        }
    }
    found
}

/// `#[x] Variant { .. }` → where its name stands, and the name.
fn entry(code: &str, start: usize, end: usize) -> Option<(usize, String)> {
    let mut text = code[start..end].trim_start();
    while text.starts_with("#[") {
        text = text[close_of(text)? + 1..].trim_start();
    }
    let name: String =
        text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
    (!name.is_empty()).then_some((end - text.len(), name))
}

/// The bracket that closes the first one of `text`.
fn close_of(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    text.bytes().position(|byte| {
        match byte {
            b'[' => depth += 1,
            b']' => depth -= 1,
            _ => return false,
        }
        depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(kind: Kind, text: &str, page: &str) -> Vec<String> {
        let subject = Subject { place: "a", kind };
        let found = check(&subject, &[&Source::new("a/b.rs", text)], &words(&[page]));
        found.into_iter().map(|finding| finding.message).collect()
    }

    const REFUSAL: &str = "
        /// Closed list.
        pub enum Refusal { UnknownKey, #[doc(alias = \"x\")] RateLimited { retry_after_ms: u32 },
            Denied(Rule, u8), /* Gone, */ Last = 3 }
        enum RefusalKind { Other }";

    #[test]
    fn every_variant_must_be_mentioned() {
        let page = "`UnknownKey`, `rate_limited`\n```text\nDenied\n```\nand `Last`";
        assert_eq!(missing(Kind::Variants("Refusal"), REFUSAL, page), Vec::<String>::new());
        let prose = page.replace("`Last`", "Last");
        assert_eq!(
            missing(Kind::Variants("Refusal"), REFUSAL, &prose),
            ["`Last` is not in docs/reference"]
        );
        assert_eq!(missing(Kind::Variants("Refusal"), REFUSAL, "").len(), 4);
    }

    #[test]
    fn a_file_in_which_nothing_is_recognised_fails() {
        let found = missing(Kind::Variants("Ending"), REFUSAL, "`Last`");
        assert!(found[0].contains("nothing was recognised"));
    }

    #[test]
    fn keys_are_those_the_shapes_declare() {
        let text = "
            const fn read(name: &'static str) -> Key { Key { name } }
            /// Not read(\"prose\").
            pub const ROOT: Shape = Shape { label: \"x\", keys: &[
                read(\"node\"), later(\"ledger\", \"the ledger\")] };";
        assert_eq!(missing(Kind::Keys, text, "`node`, `[ledger]`"), Vec::<String>::new());
        assert_eq!(missing(Kind::Keys, text, "`node`"), ["`ledger` is not in docs/reference"]);
        assert!(missing(Kind::Keys, "struct Root;", "")[0].contains("nothing was recognised"));
    }

    #[test]
    fn metrics_are_words_with_our_prefix() {
        let text = "const A: &str = \"tollgate_requests_total\"; // my_tollgate_x\n\
                    #[cfg(test)]\nmod tests { const B: &str = \"tollgate_b\"; }";
        assert_eq!(missing(Kind::Metrics, text, "`tollgate_requests_total{code}`").len(), 0);
        assert_eq!(missing(Kind::Metrics, text, "").len(), 1);
    }
}
