//! The command line of `loadtest`.

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::floor::Floor;
use crate::loopback;
use crate::tls::Papers;

/// Load from outside, and the floor it is measured against. Loopback only.
#[derive(Debug, Parser)]
#[command(name = "loadtest")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Send traffic, good or mixed with faults, and state every outcome
    Mix(crate::mix::MixArgs),
    /// Saturate a gateway: play its clients and its upstream with as little work as possible
    Rig(crate::rig::RigArgs),
    /// The same for streams: their events, their first one, and streams that are held
    Streams(crate::streams::StreamsArgs),
    /// Write certificates for loopback: ca.pem, chain.pem and key.pem
    Papers(PapersArgs),
    /// Relay bytes with as little work as possible
    Floor(FloorArgs),
}

#[derive(Debug, Args)]
struct FloorArgs {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
    /// Address to relay to
    #[arg(long)]
    upstream: String,
}

#[derive(Debug, Args)]
struct PapersArgs {
    /// The folder they are written into
    folder: std::path::PathBuf,
}

/// Runs the command of the process's arguments.
pub fn main_from_args() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Mix(args) => crate::mix::main(&args),
        Command::Rig(args) => crate::rig::main(&args),
        Command::Streams(args) => crate::streams::main(&args),
        Command::Papers(args) => papers(&args).map(|()| ExitCode::SUCCESS),
        Command::Floor(args) => floor(&args).map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        let _unwritable = writeln!(std::io::stderr(), "loadtest: {error}").is_err();
        ExitCode::from(2)
    })
}

fn papers(args: &PapersArgs) -> Result<(), Box<dyn std::error::Error>> {
    Ok(Papers::made()?.write(&args.folder)?)
}

fn floor(args: &FloorArgs) -> Result<(), Box<dyn std::error::Error>> {
    let floor = Floor::start(loopback::address(&args.listen)?, loopback::address(&args.upstream)?)?;
    let mut out = std::io::stdout();
    writeln!(out, "floor listening on {}", floor.addr())?;
    out.flush()?;
    Ok(floor.wait()?)
}
