//! `tollgate check [FILE] [--json]`: how a configuration is understood, or every fault it has.
//! Nothing is bound, resolved or written.

use super::{FILE, output};
use crate::config::{self, ProcessEnv, check};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The configuration
    #[arg(default_value = FILE)]
    file: PathBuf,
    /// One JSON object on the standard output, faults included
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    match (config::load(&arguments.file, &ProcessEnv), arguments.json) {
        (Ok(config), false) => {
            output::say(check::report(&config).trim_end());
            check::EXIT_USABLE
        }
        (Ok(config), true) => {
            output::say(&check::report_json(&config));
            check::EXIT_USABLE
        }
        (Err(errors), false) => {
            output::tell(&errors.to_string());
            check::EXIT_REFUSED
        }
        (Err(errors), true) => {
            output::say(&check::errors_json(&errors));
            check::EXIT_REFUSED
        }
    }
}
