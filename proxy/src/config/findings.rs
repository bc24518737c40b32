//! What is wrong with a configuration, and where: errors and warnings with line and column.
//!
//! All of a file's errors are collected and told at once, sorted by place. A text from the file
//! is only repeated through [`quoted`], and a value that may be a secret never is.
//! Bound: [`FINDINGS_MAX`] of each.

use std::fmt;

/// Errors that are told, and warnings; nobody reads more of them at once.
const FINDINGS_MAX: usize = 100;

/// Characters of the file's own text that an error repeats: enough to find it again.
const QUOTED_CHARS_MAX: usize = 80;

/// One thing that is wrong, or worth a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Line, from 1; 0 when the file as a whole is meant.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What, for people.
    pub text: String,
}

/// Why a configuration was refused: at least one error, sorted by place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    /// The file's name, as it was given.
    pub file: Box<str>,
    /// The errors.
    pub errors: Vec<Finding>,
}

impl ConfigErrors {
    /// One error about the file as a whole.
    pub fn whole(file: &str, text: String) -> ConfigErrors {
        ConfigErrors { file: file.into(), errors: vec![Finding { line: 0, column: 0, text }] }
    }
}

impl fmt::Display for ConfigErrors {
    /// One error a line: `tollgate.toml:12:3: unknown key …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.errors.iter().enumerate() {
            let gap = if n == 0 { "" } else { "\n" };
            write!(f, "{gap}{}", error.located(&self.file))?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

impl Finding {
    /// The finding with the file's name and its place in front.
    pub fn located(&self, file: &str) -> String {
        match self.line {
            0 => format!("{file}: {}", self.text),
            line => format!("{file}:{line}:{}: {}", self.column, self.text),
        }
    }
}

/// A value and the byte of the file at which it begins.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) at: usize,
}

/// A text of the file.
pub(super) type Text = At<Box<str>>;

/// Collects findings while a file is read and compiled.
pub(super) struct Findings<'t> {
    text: &'t str,
    errors: Vec<(usize, String)>,
    warnings: Vec<(usize, String)>,
}

impl<'t> Findings<'t> {
    pub(super) fn new(text: &'t str) -> Findings<'t> {
        Findings { text, errors: Vec::new(), warnings: Vec::new() }
    }

    pub(super) fn error(&mut self, at: usize, text: impl Into<String>) {
        self.errors.push((at, text.into()));
    }

    pub(super) fn warn(&mut self, at: usize, text: impl Into<String>) {
        self.warnings.push((at, text.into()));
    }

    /// Whether another finding would still be told: what takes long to say is only then worth it.
    pub(super) fn has_room(&self) -> bool {
        self.errors.len().max(self.warnings.len()) < FINDINGS_MAX
    }

    pub(super) fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    /// The warnings of a configuration that is used.
    pub(super) fn warnings(self) -> Vec<Finding> {
        placed(self.text, self.warnings)
    }

    /// The errors of one that is not.
    pub(super) fn refusal(self, file: &str) -> ConfigErrors {
        ConfigErrors { file: file.into(), errors: placed(self.text, self.errors) }
    }
}

/// Sorted by place and cut to the bound, before each costs a walk through the text.
fn placed(text: &str, mut findings: Vec<(usize, String)>) -> Vec<Finding> {
    findings.sort();
    findings.dedup();
    let rest = findings.len().saturating_sub(FINDINGS_MAX);
    findings.truncate(FINDINGS_MAX);
    let mut placed: Vec<Finding> = findings
        .into_iter()
        .map(|(at, what)| {
            let (line, column) = place(text, at);
            Finding { line, column, text: what }
        })
        .collect();
    if rest > 0 {
        placed.push(Finding { line: 0, column: 0, text: format!("and {rest} more") });
    }
    placed
}

/// Line and column of a byte, both from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[start..].chars().count() + 1)
}

/// A text of the file for an error: in quotes, control characters escaped, cut when long.
pub(super) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("\"{}\"", shown.escape_debug())
}
