//! The command line of the stand-in. Prints one line when it is ready and runs until it is killed
//! or, if asked, until its standard input ends.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use super::{Config, ENTRIES_MAX, Standin};
use crate::tls::{Identity, Papers};

/// A provider that answers by script; the model name selects the scenario.
#[derive(Debug, Parser)]
#[command(name = "standin")]
struct Args {
    /// Address to listen on, loopback only; may be given several times
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: Vec<SocketAddr>,
    /// Speak TLS: writes ca.pem, chain.pem and key.pem for loopback into this folder and shows them
    #[arg(long)]
    tls_dir: Option<PathBuf>,
    /// Folder of scenario files beside the built-in ones
    #[arg(long)]
    scenarios: Option<PathBuf>,
    /// Entries the tally keeps; 0 turns it off
    #[arg(long, default_value_t = ENTRIES_MAX)]
    tally: usize,
    /// End when standard input ends, so that it cannot outlive its starter
    #[arg(long)]
    until_stdin_closes: bool,
}

/// Runs the stand-in of the process's arguments.
pub fn main_from_args() -> ExitCode {
    let args = Args::parse();
    let until_stdin_closes = args.until_stdin_closes;
    match configured(args).and_then(|config| serve(config, until_stdin_closes)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _unwritable = writeln!(std::io::stderr(), "standin: {error}").is_err();
            ExitCode::FAILURE
        }
    }
}

fn configured(args: Args) -> Result<Config, Box<dyn std::error::Error>> {
    let identity = |folder: PathBuf| {
        Papers::made()?.write(&folder)?;
        Identity::of_folder(&folder)
    };
    Ok(Config {
        listen: args.listen,
        identity: args.tls_dir.map(identity).transpose()?,
        folder: args.scenarios,
        entries_max: args.tally,
        ..Config::default()
    })
}

fn serve(config: Config, until_stdin_closes: bool) -> Result<(), Box<dyn std::error::Error>> {
    let mut standin = Standin::start(config)?;
    let shown: Vec<String> = standin.addrs().iter().map(SocketAddr::to_string).collect();
    let mut out = std::io::stdout();
    writeln!(out, "standin listening on {}", shown.join(" "))?;
    out.flush()?;
    if until_stdin_closes {
        let mut bytes = [0; 256];
        while std::io::stdin().read(&mut bytes)? > 0 {}
        return Ok(standin.stop()?);
    }
    match standin.thread.take() {
        Some(thread) => Ok(thread.join().map_err(|_| "the stand-in panicked")??),
        None => Ok(()),
    }
}
