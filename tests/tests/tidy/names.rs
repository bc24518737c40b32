//! Headers, names and left-overs: what a reader meets first.
//!
//! The forbidden texts are put together from parts, or this file would break its own rules.

use crate::code;
use crate::source::{Finding, Source};

/// Unit tests are introduced by the module they test; those in `tests/` stand alone.
pub(crate) fn check_header(source: &Source) -> Vec<Finding> {
    if source.is_test() && !source.path.starts_with("tests/") {
        return Vec::new();
    }
    let first = source.text.lines().find(|line| !line.trim().is_empty());
    match first {
        Some(line) if line.starts_with("//!") => Vec::new(),
        _ => vec![source.finding(0, "no `//!` header: what it does, what it does not, its bounds")],
    }
}

/// Words that name no noun of the glossary.
const EMPTY_WORDS: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"];

pub(crate) fn check_names(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for part in source.path.trim_end_matches(".rs").split('/') {
        if is_empty_word(part) {
            findings.push(source.finding(0, format!("a path named `{part}`")));
        }
    }
    for keyword in ["mod", "struct", "enum", "trait", "type"] {
        for at in code::find_word(&source.code, keyword) {
            let name: String = code::rest(&source.code, at + keyword.len())
                .chars()
                .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                .collect();
            if is_empty_word(&name) {
                findings.push(source.finding(at, format!("{keyword} `{name}`")));
            }
        }
    }
    findings
}

fn is_empty_word(name: &str) -> bool {
    snake(name).split(['_', '-']).any(|part| EMPTY_WORDS.contains(&part))
}

/// `PoolManager` → `pool_manager`.
pub(crate) fn snake(name: &str) -> String {
    let mut out = String::new();
    for (index, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && index > 0 && !out.ends_with('_') {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

/// Marks of unfinished work in what we write: code, scripts, settings.
pub(crate) fn check_leftovers(source: &Source) -> Vec<Finding> {
    let ours = ["rs", "sh", "py", "toml", "js", "run"];
    let written = source.path.rsplit(['.', '/']).next().is_some_and(|tail| ours.contains(&tail));
    if !written || source.path.starts_with("tests/corpus/") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for mark in [concat!("FIX", "ME"), concat!("X", "XX"), concat!("TO", "DO")] {
        for at in code::find_word(&source.text, mark) {
            findings.push(raw(source, at, format!("`{mark}`: do it, or open an issue")));
        }
    }
    for mark in ["todo", "unimplemented"] {
        let macros = code::find_word(&source.code, mark)
            .filter(|at| code::rest(&source.code, at + mark.len()).starts_with('!'));
        findings.extend(macros.map(|at| source.finding(at, format!("`{mark}!`"))));
    }
    findings
}

/// Paths that exist on one machine only, in any file.
pub(crate) fn check_machine_paths(source: &Source) -> Vec<Finding> {
    let marks = [
        concat!("/wo", "rk/"),
        concat!("/tmp/", "wt"),
        concat!("/ro", "ot/"),
        concat!("../", "shared"),
    ];
    let mut findings = Vec::new();
    for mark in marks {
        for (at, _) in source.text.match_indices(mark) {
            // `network/` and `framework/` are words; the path begins with its slash.
            let before = at.checked_sub(1).map(|index| source.text.as_bytes()[index]);
            if !before.is_some_and(|byte| code::is_word(byte) || byte == b'.') {
                findings.push(raw(source, at, format!("`{mark}` is a path of one machine")));
            }
        }
    }
    findings
}

/// A finding in the text itself; files other than Rust have no code to count lines in.
fn raw(source: &Source, at: usize, message: String) -> Finding {
    Finding { path: source.path.clone(), line: code::line_of(&source.text, at), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_first() {
        let at = |path: &str, text: &str| check_header(&Source::new(path, text)).len();
        let count = |text: &str| at("codec/src/a.rs", text);
        assert_eq!(count("//! What it does.\nfn f() {}"), 0);
        assert_eq!(count("\n//! What it does."), 0);
        assert_eq!(count("fn f() {}\n//! Late."), 1);
        assert_eq!(count("// Not a header."), 1);
        assert_eq!(count(""), 1);
        assert_eq!(at("codec/src/a/tests.rs", "use super::A;"), 0);
        assert_eq!(at("tests/tests/a.rs", "use codec::A;"), 1);
    }

    #[test]
    fn empty_words_fail_in_paths_and_declarations() {
        let count = |path: &str, text: &str| check_names(&Source::new(path, text)).len();
        assert_eq!(count("proxy/src/io/utils.rs", ""), 1);
        assert_eq!(count("proxy/src/common/mod.rs", ""), 1);
        assert_eq!(count("proxy/src/io/tcp.rs", "struct PoolManager;\nmod test_helpers {}"), 2);
        assert_eq!(count("proxy/src/io/tcp.rs", "fn common_prefix() {} struct Pool;"), 0);
        assert_eq!(count("proxy/src/io/tcp.rs", "// struct Manager"), 0);
    }

    #[test]
    fn unfinished_work_fails() {
        let count = |path: &str, text: &str| check_leftovers(&Source::new(path, text)).len();
        let note = concat!("// FIX", "ME later");
        assert_eq!(count("a/src/a.rs", note), 1);
        assert_eq!(count(".ci/run", concat!("# X", "XX")), 1);
        assert_eq!(count("a/src/a.rs", "fn f() { todo!() }"), 1);
        assert_eq!(count("a/src/a.rs", "// todo! is refused\nlet todo = 1;"), 0);
        assert_eq!(count(".ci/run", concat!("mktemp -d run.X", "XXXXX")), 0);
        assert_eq!(count("tests/corpus/a.toml", note), 0);
    }

    #[test]
    fn paths_of_one_machine_fail_everywhere() {
        let count = |text: &str| check_machine_paths(&Source::new("README.md", text)).len();
        assert_eq!(count(concat!("see ../", "shared/DESIGN.md")), 1);
        assert_eq!(count(concat!("cd /ro", "ot/x; ls /wo", "rk/main")), 2);
        assert_eq!(count("the network/transport, a framework/, src/work/shop"), 0);
    }
}
