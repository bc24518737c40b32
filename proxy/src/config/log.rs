//! `[log]`: where lines of settled records go, and whether trouble is told.

use super::env::Env;
use super::file;
use super::findings::{Findings, Text};
use super::ledger;
use std::path::{Path, PathBuf};

/// What is logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Where a line a settled record goes.
    pub access: Access,
    /// Whether trouble is told on the standard error.
    pub errors: bool,
}

/// Where lines of records go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Nowhere.
    #[default]
    Off,
    /// To the standard output.
    Output,
    /// To a file.
    File(PathBuf),
}

/// Compiles the table.
pub(super) fn settings(
    written: &file::Log,
    (folder, env): (&Path, &dyn Env),
    findings: &mut Findings<'_>,
) -> LogSettings {
    let access = written.access.as_ref().and_then(|text| access(text, (folder, env), findings));
    let errors = written.errors.as_ref().is_none_or(|text| match &*text.value {
        "stderr" => true,
        "off" => false,
        _ => {
            findings.error(text.at, "\"errors\" in [log] must be stderr or off");
            true
        }
    });
    LogSettings { access: access.unwrap_or_default(), errors }
}

fn access(
    text: &Text,
    (folder, env): (&Path, &dyn Env),
    findings: &mut Findings<'_>,
) -> Option<Access> {
    match &*text.value {
        "off" => Some(Access::Off),
        "stdout" => Some(Access::Output),
        value => {
            let what = "\"access\" in [log]";
            let Some(path) = value.strip_prefix("file:") else {
                findings.error(text.at, format!("{what} must be off, stdout or \"file:PATH\""));
                return None;
            };
            let path = Text { value: path.into(), at: text.at };
            let path = ledger::path(Some(&path), what, folder, findings)?;
            if let Err(why) = env.takes_lines(&path) {
                let why = format!("no line can be added to {}: {why}", path.display());
                findings.error(text.at, format!("{what}: {why}"));
            }
            Some(Access::File(path))
        }
    }
}
