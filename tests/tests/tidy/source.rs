//! The tree as the rules see it: committed and new files, generated ones left out.
//!
//! Reads the disk once per test; everything after that is a function over text.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::code;

/// One broken rule at one place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// One file: its path from the root of the tree, its text, and the same text as code alone.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) code: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let code = if path.ends_with(".rs") { code::blank(text) } else { String::new() };
        Self { path: path.to_owned(), text: text.to_owned(), code }
    }

    /// A whole file of tests: it may be long, glob and read files.
    pub(crate) fn is_test(&self) -> bool {
        self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            || self.path.ends_with("/tests.rs")
    }

    /// Whether the byte at `at` belongs to a test.
    pub(crate) fn in_test(&self, at: usize) -> bool {
        self.is_test()
            || code::test_items(&self.code).iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    pub(crate) fn finding(&self, at: usize, message: impl Into<String>) -> Finding {
        Finding {
            path: self.path.clone(),
            line: code::line_of(&self.code, at),
            message: message.into(),
        }
    }
}

pub(crate) struct Tree {
    files: Vec<Source>,
}

impl Tree {
    pub(crate) fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut paths = listed_by_git(&root).unwrap_or_else(|| walked(&root));
        paths.sort();
        let files = paths
            .iter()
            .filter_map(|path| Some(Source::new(path, &fs::read_to_string(root.join(path)).ok()?)))
            .collect();
        Self { files }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Source> {
        self.files.iter()
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|source| source.path.ends_with(".rs"))
    }

    pub(crate) fn source(&self, path: &str) -> Option<&Source> {
        self.files.iter().find(|source| source.path == path)
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.source(path).map(|source| source.text.as_str())
    }
}

/// Tracked files and new ones that are not ignored, so that a rule speaks before the commit.
fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let names = String::from_utf8_lossy(&output.stdout);
    Some(names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

/// Without git (an unpacked archive): everything but build products.
fn walked(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(root.join(&folder)) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let skipped = ["target", ".git", "artifacts", "node_modules", "book"];
            if skipped.iter().any(|skip| name == *skip) {
                continue;
            }
            let path = folder.join(&name);
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(path),
                Ok(kind) if kind.is_file() => found.push(path.to_string_lossy().into_owned()),
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_a_place_one_can_click() {
        let source = Source::new("a/b.rs", "one\ntwo\nthree");
        assert_eq!(source.finding(5, "why").to_string(), "a/b.rs:2: why");
    }

    #[test]
    fn tests_are_known_by_their_place() {
        for path in ["tests/tests/x.rs", "codec/src/http1/tests.rs", "store/tests/kill.rs"] {
            assert!(Source::new(path, "").is_test(), "{path}");
        }
        for path in ["codec/src/http1/head.rs", "proxy/src/latests.rs", "bench/src/lib.rs"] {
            assert!(!Source::new(path, "").is_test(), "{path}");
        }
        let source = Source::new("codec/src/x.rs", "a\n#[cfg(test)]\nmod tests { b }\nc");
        let inside = source.text.find('b').unwrap();
        assert!(!source.in_test(0) && source.in_test(inside));
        assert!(!source.in_test(source.text.len() - 1));
    }

    #[test]
    fn the_walk_finds_what_git_lists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let walked = walked(&root);
        for path in ["Cargo.toml", "tests/tests/tidy/main.rs", ".clippy.toml"] {
            assert!(walked.iter().any(|found| found == path), "{path} not walked");
        }
        assert!(!walked.iter().any(|found| found.starts_with("target/")));
    }
}
