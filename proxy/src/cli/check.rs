//! `tollgate check [FILE] [--json]`: how a configuration is understood, or every fault it has.
//! Nothing is bound, resolved or written.

use super::{NOTHING_TO_SERVE, configuration, output};
use crate::config::{ConfigErrors, ENVIRONMENT, check};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The configuration [default: ./tollgate.toml, else the providers of the environment]
    file: Option<PathBuf>,
    /// One JSON object on the standard output, faults included
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let Some(config) = configuration(arguments.file.as_deref()) else {
        return nothing(arguments.json);
    };
    match (config, arguments.json) {
        (Ok(config), false) => {
            output::say(check::report(&config).trim_end());
            if let Some(ledger) = config.ledger.as_ref().filter(|l| !l.state_dir.exists()) {
                let state = ledger.state_dir.display();
                output::say(&format!(
                    "  state_dir  {state} is not there: the first start makes it"
                ));
            }
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

/// There is neither a file nor a provider, as `serve` would say.
fn nothing(json: bool) -> u8 {
    if json {
        let why = "nothing to serve: no ./tollgate.toml, and no provider in the environment";
        let errors = ConfigErrors::whole(ENVIRONMENT, why.to_owned());
        output::say(&check::errors_json(&errors));
    } else {
        output::tell(NOTHING_TO_SERVE);
    }
    check::EXIT_REFUSED
}
