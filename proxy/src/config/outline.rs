//! What the command line needs of a configuration beside a running server: where state is kept,
//! and the providers' names. The file must be well-formed and its keys known; secrets, prices and
//! routes are not looked at, since whoever asks about a ledger need not have the secrets.

use super::env::Env;
use super::environment;
use super::file::File;
use super::findings::{ConfigErrors, Findings};
use super::ledger;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// The part of a configuration that readers of its state need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Where state is kept; `None` if neither file nor environment says so.
    pub state_dir: Option<PathBuf>,
    /// The providers' names, in the order of the file.
    pub providers: Vec<Box<str>>,
}

impl Outline {
    /// What holds without a file.
    pub fn without_file(env: &dyn Env) -> Outline {
        Outline {
            state_dir: ledger::default_state_dir(env),
            providers: environment::providers(env),
        }
    }

    /// Reads the file at `path`.
    pub fn load(path: &Path, env: &dyn Env) -> Result<Outline, ConfigErrors> {
        let name = path.display().to_string();
        let text = env.read_file(path);
        let text =
            text.map_err(|error| ConfigErrors::whole(&name, format!("cannot be read: {error}")))?;
        let mut findings = Findings::new(&text);
        let (document, faults) = DeTable::parse_recoverable(&text);
        for fault in &faults {
            findings.error(fault.span().map_or(0, |span| span.start), fault.message());
        }
        let file = File::read(&document, &mut findings);
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        let state_dir =
            ledger::path(file.state_dir.as_ref(), "\"state_dir\"", folder, &mut findings);
        if !findings.is_clean() {
            return Err(findings.refusal(&name));
        }
        let names = file.providers.iter().filter_map(|provider| provider.name.as_ref());
        Ok(Outline {
            state_dir: state_dir.or_else(|| ledger::default_state_dir(env)),
            providers: names.map(|name| name.value.clone()).collect(),
        })
    }
}
