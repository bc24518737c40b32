//! Text to snapshot, off the cores: everything that can be refused is refused here.
//!
//! `shape` lists the keys, `file` is the file as written, `compile` checks it against itself and
//! the world ([`Env`]) and builds the [`snapshot::Snapshot`]. All errors of a file are told at
//! once, with line and column; a secret is in none of them.

pub mod check;
pub mod env;
pub mod findings;
pub mod ledger;
pub mod log;
pub mod outline;
pub mod prices;
pub mod shape;
pub mod snapshot;

mod base_url;
mod compile;
mod environment;
mod file;
mod idle;
mod keys;
mod models;
mod names;
mod quantity;
mod reader;
mod resilience;
mod round;
mod routing;
mod secret;
mod terms;
mod tls;
mod validity;
mod writable;

pub use compile::Config;
pub use env::{Env, ProcessEnv};
pub use environment::{ENVIRONMENT, from_environment};
pub use findings::{ConfigErrors, Finding};
pub use keys::DeclaredKey;
pub use ledger::LedgerSettings;
pub use names::{PRINTABLE_RULE, is_key_name, is_model_pattern};
pub use tls::{ListenTls, Papers};
pub use validity::Validity;

use file::File;
use findings::{Findings, quoted};
use std::path::Path;
use toml::de::DeTable;

/// Reads and compiles the file at `path`.
pub fn load(path: &Path, env: &dyn Env) -> Result<Config, ConfigErrors> {
    let name = path.display().to_string();
    match env.read_named(path) {
        Ok(text) => parse(&name, &text, env),
        Err(error) => Err(ConfigErrors::whole(&name, format!("cannot be read: {error}"))),
    }
}

/// What the parser of TOML says of a key that is there twice.
const DUPLICATE: &str = "duplicate key";

/// Compiles `text`, which is what the file `name` holds; files it refers to by a relative path
/// are next to it.
pub fn parse(name: &str, text: &str, env: &dyn Env) -> Result<Config, ConfigErrors> {
    let mut findings = Findings::new(text);
    let (document, faults) = DeTable::parse_recoverable(text);
    if !faults.is_empty() {
        // What was recovered would only give errors that follow from these.
        for fault in faults {
            let span = fault.span().unwrap_or_default();
            // A key that is there twice is told by its name, as one that is unknown is.
            let named = text.get(span.clone()).filter(|_| fault.message() == DUPLICATE);
            let named = named.map_or_else(String::new, |key| format!(" {}", quoted(key)));
            findings.error(span.start, format!("{}{named}", fault.message()));
        }
        return Err(findings.refusal(name));
    }
    let file = File::read(&document, &mut findings);
    let folder = Path::new(name).parent().unwrap_or_else(|| Path::new(""));
    let config = compile::compile(name, &file, folder, env, &mut findings);
    // Of the environment it is told by the variable's name (`environment`).
    if let Some(config) = config.as_ref().filter(|_| name != ENVIRONMENT) {
        round::refuse(&file, config, env, &mut findings);
    }
    match config {
        Some(config) if findings.is_clean() => {
            Ok(Config { warnings: findings.warnings(), ..config })
        }
        _ => Err(findings.refusal(name)),
    }
}

#[cfg(test)]
mod tests;
