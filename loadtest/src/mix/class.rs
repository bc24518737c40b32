//! Classes of traffic as written (`loadtest/mixes`): what a request is like and which outcomes it
//! may have. A new class is a new table, not new code.

use std::fmt;

use serde::Deserialize;

use crate::standin::Dialect;

const BUILT_IN: &str = include_str!("../../mixes/faults.toml");

/// A file of classes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    class: Vec<Class>,
}

/// One class.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Class {
    pub(super) name: String,
    /// `good` is the traffic of a run without faults; the other groups are its faults.
    pub(super) group: Group,
    /// Share within its group's part of the traffic.
    pub(super) weight: u32,
    #[serde(flatten)]
    pub(super) request: Request,
    /// Names of outcomes: a status, or a name of `book::Outcome`.
    pub(super) expect: Vec<String>,
}

/// What a class is about.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Group {
    Good,
    /// Good calls of unusual size, framing or manner.
    Unusual,
    Refused,
    Malformed,
    Upstream,
    Leaving,
    Slow,
}

impl Group {
    /// Its name in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Group::Good => "good",
            Group::Unusual => "unusual",
            Group::Refused => "refused",
            Group::Malformed => "malformed",
            Group::Upstream => "upstream",
            Group::Leaving => "leaving",
            Group::Slow => "slow",
        }
    }
}

/// The request of a class.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Request {
    /// Model in the body; `None` takes the run's.
    pub(super) model: Option<String>,
    /// The path, and the body that goes with it.
    pub(super) dialect: Spoken,
    /// Asks for a stream …
    pub(super) stream: bool,
    /// … and in chat for its usage.
    pub(super) include_usage: bool,
    pub(super) body_bytes: Option<usize>,
    pub(super) key: Key,
    pub(super) chunked: bool,
    /// Further field lines, line ends included; `{length}` is the body's, `{key}` the run's.
    pub(super) fields: Option<String>,
    /// Instead of the request line.
    pub(super) line: Option<String>,
    /// Instead of the chat body.
    pub(super) body: Option<String>,
    /// Leaves out the content-length.
    pub(super) no_length: bool,
    /// A field of so many bytes.
    pub(super) pad_field: usize,
    /// The request this many times in one write.
    pub(super) copies: Option<u32>,
    /// Sends pieces of this many bytes …
    pub(super) piece: Option<usize>,
    /// … with so many ms between them.
    pub(super) every_ms: u64,
    /// Leaves.
    pub(super) leave: Option<Leave>,
    /// Milliseconds between the last byte sent and leaving; with `in-answer` between the first
    /// byte received and leaving.
    pub(super) leave_after_ms: u64,
    /// Leaves by a reset.
    pub(super) reset: bool,
}

/// What is spoken.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Spoken {
    #[default]
    Chat,
    Messages,
    CountTokens,
}

impl Spoken {
    /// The stand-in's name for it.
    pub(super) fn dialect(self) -> Dialect {
        match self {
            Spoken::Chat => Dialect::Chat,
            Spoken::Messages => Dialect::Messages,
            Spoken::CountTokens => Dialect::CountTokens,
        }
    }
}

/// The caller's credential.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Key {
    /// The run's.
    #[default]
    Given,
    /// A well-formed one nobody has.
    Wrong,
    None,
}

/// When a client leaves.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Leave {
    InHead,
    InBody,
    BeforeAnswer,
    InAnswer,
}

/// Why classes could not be loaded.
#[derive(Debug)]
pub(crate) enum ClassError {
    Shape(toml::de::Error),
    NoGood,
    NoOutcome(String),
}

impl fmt::Display for ClassError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClassError::Shape(error) => write!(out, "classes: {error}"),
            ClassError::NoGood => write!(out, "classes: none of group good"),
            ClassError::NoOutcome(name) => write!(out, "class {name} expects nothing"),
        }
    }
}

impl std::error::Error for ClassError {}

/// The classes that come with the package.
pub(crate) fn built_in() -> Result<Vec<Class>, ClassError> {
    load(BUILT_IN)
}

/// Classes of a text.
pub(crate) fn load(text: &str) -> Result<Vec<Class>, ClassError> {
    let classes = toml::from_str::<File>(text).map_err(ClassError::Shape)?.class;
    if !classes.iter().any(|class| class.group == Group::Good) {
        return Err(ClassError::NoGood);
    }
    match classes.iter().find(|class| class.expect.is_empty()) {
        Some(class) => Err(ClassError::NoOutcome(class.name.clone())),
        None => Ok(classes),
    }
}
