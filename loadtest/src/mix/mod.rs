//! A client that sends traffic and states what became of each request. Plain, it is the measuring
//! client: one class, keep-alive, closed loop or at a rate. With faults it mixes good calls with
//! refused, malformed, slow, leaving and pipelining ones, and calls for upstream faults; each class
//! names the outcomes it expects, and any other makes the run fail.
//!
//! Streams are read to their end and told apart by it; with `--check` every answer of 200 must have
//! the content that the stand-in sends for its model.
//!
//! Deliberately not: targets other than loopback. Bounds: a run ends by time or
//! count, an exchange by `--timeout`, and a run against nothing after `UNREACHABLE_MAX` failures.

mod answer;
mod book;
mod class;
mod client;
mod content;
mod drive;
mod report;
mod request;
mod schedule;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::loopback;
use crate::tls::Trust;

use drive::{Settings, run};
pub(crate) use request::chat_body;

/// How the report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people.
    Text,
    /// One JSON object.
    Json,
}

/// Options of `loadtest mix`.
#[derive(Debug, Args)]
pub(crate) struct MixArgs {
    /// Where the gateway listens; loopback only
    #[arg(long)]
    target: String,
    /// Speak TLS, and believe whom a certificate of this PEM file has signed
    #[arg(long)]
    ca: Option<std::path::PathBuf>,
    /// The caller's key
    #[arg(long, default_value = "none")]
    key: String,
    /// Connections at once
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Seconds in which requests begin
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Requests after which it ends earlier
    #[arg(long)]
    requests: Option<u64>,
    /// Part of the traffic that is faulty: percent, or `class=percent,…`
    #[arg(long, default_value = "0")]
    faults: String,
    /// Model of the good calls
    #[arg(long, default_value = "ok")]
    model: String,
    /// Put before the model names of the classes, to be routed by it
    #[arg(long, default_value = "")]
    model_prefix: String,
    /// The same for the classes that speak messages
    #[arg(long, default_value = "")]
    messages_prefix: String,
    /// Compare the content of every answer of 200 with what the stand-in sends for its model
    #[arg(long)]
    check: bool,
    /// Bytes of the body of a good call
    #[arg(long, default_value_t = 2048, value_parser = body_bytes())]
    body_bytes: u32,
    /// Requests a second, begun whether or not answers come; without it the loop is closed
    #[arg(long)]
    rate: Option<f64>,
    /// Seconds after which an exchange is given up
    #[arg(long, default_value_t = 30.0)]
    timeout: f64,
    /// Seed of the order of classes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// File of classes instead of the built-in ones; may be given several times
    #[arg(long)]
    classes: Vec<std::path::PathBuf>,
    /// How the report is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    report: Format,
}

/// Bodies are built in memory: up to 8 MiB, a quarter of what the gateway takes.
pub(crate) fn body_bytes() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(..=8 << 20)
}

/// Runs the mix; the exit code says whether all outcomes were expected.
pub(crate) fn main(args: &MixArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let seconds = |name: &str, value: f64| {
        Duration::try_from_secs_f64(value).map_err(|error| format!("--{name} {value}: {error}"))
    };
    let mut classes = Vec::new();
    for path in &args.classes {
        classes.extend(class::load(&std::fs::read_to_string(path)?)?);
    }
    if classes.is_empty() {
        classes = class::built_in()?;
    }
    let settings = Settings {
        target: loopback::address(&args.target)?,
        trust: args.ca.as_deref().map(Trust::of_file).transpose()?,
        key: args.key.clone(),
        connections: args.connections as usize,
        time: seconds("seconds", args.seconds)?,
        requests_max: args.requests.unwrap_or(u64::MAX),
        weights: schedule::Faults::parse(&args.faults)?.weights(&classes)?,
        classes,
        model: args.model.clone(),
        model_prefix: args.model_prefix.clone(),
        messages_prefix: args.messages_prefix.clone(),
        check: args.check,
        body_bytes: args.body_bytes as usize,
        rate: args.rate.filter(|rate| *rate > 0.0),
        timeout: seconds("timeout", args.timeout)?,
        seed: args.seed,
    };
    let report = run(&settings)?;
    let mut out = std::io::stdout().lock();
    match args.report {
        Format::Json => writeln!(out, "{}", serde_json::to_string(&report)?)?,
        Format::Text => write!(out, "{report}")?,
    }
    Ok(if report.unexpected == 0 && report.answered > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
