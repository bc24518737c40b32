//! The command line: arguments in, exit code out. One file a command; what a command does lives
//! in the modules it calls.

pub mod output;

mod check;
mod counted;
mod demo;
mod descriptors;
mod keys;
mod ledger;
mod place;
mod serve;
mod socket;
mod table;

use crate::config::{self, Config, ConfigErrors, ProcessEnv};
use clap::{Parser, Subcommand};
use std::path::Path;
use std::process::ExitCode;

/// Exit code: what was asked for is done.
pub const EXIT_OK: u8 = 0;

/// Exit code: it was tried and failed; the reason is on the standard error.
pub const EXIT_FAILED: u8 = 1;

/// Exit code: the arguments or the configuration cannot be used; nothing was started.
pub const EXIT_UNUSABLE: u8 = crate::config::check::EXIT_REFUSED;

/// Exit code of `serve`: stopped with exchanges under way, which were cut.
pub const EXIT_CUT: u8 = 3;

/// The toll station between AI agents and model providers.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve until SIGINT or SIGTERM, then let exchanges under way end
    Serve(serve::Arguments),
    /// Say how a configuration is understood, or every fault it has
    Check(check::Arguments),
    /// Make, list, show and revoke keys
    Keys(keys::Arguments),
    /// Read and prove the ledger
    Ledger(ledger::Arguments),
    /// Show governed calls against a stand-in provider, and their ledger; leaves nothing behind
    Demo,
}

/// Runs the command of the process's arguments.
pub fn main_from_args() -> ExitCode {
    let code = match Arguments::try_parse() {
        Ok(arguments) => run(&arguments.command),
        Err(refused) => {
            // Help and version come this way too, with exit code 0.
            let _ = refused.print();
            u8::try_from(refused.exit_code()).unwrap_or(EXIT_UNUSABLE)
        }
    };
    output::last();
    ExitCode::from(code)
}

fn run(command: &Command) -> u8 {
    match command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Keys(arguments) => keys::run(arguments),
        Command::Ledger(arguments) => ledger::run(arguments),
        Command::Demo => demo::run(),
    }
}

/// The configuration of a directory that nobody named.
const FILE: &str = "tollgate.toml";

/// Said when there is neither a file nor a provider in the environment.
const NOTHING_TO_SERVE: &str = "\
tollgate: nothing to serve: there is no ./tollgate.toml and no provider in the environment
  see it work      tollgate demo
  name a provider  OPENAI_API_KEY or ANTHROPIC_API_KEY, with a key of it; then: tollgate serve
  write a file     docs/reference/config.md, README.md; then: tollgate serve FILE";

/// The configuration that `serve` takes and `check` judges: of a file that was named, else of the
/// directory, else of the environment; `None` if there is none of these.
fn configuration(file: Option<&Path>) -> Option<Result<Config, ConfigErrors>> {
    match file {
        Some(file) => Some(config::load(file, &ProcessEnv)),
        None if Path::new(FILE).exists() => Some(config::load(Path::new(FILE), &ProcessEnv)),
        None => config::from_environment(&ProcessEnv),
    }
}
