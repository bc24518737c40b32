//! The cheapest load: one thread that plays the clients of a gateway and the upstream behind it,
//! so that one core of load saturates one core of gateway. Closed loop over keep-alive
//! connections, one request and one answer built before the run.
//!
//! It checks that every answer is whole and has status 200 and counts what is not; `mix` looks
//! closer. Deliberately not: rates, faults, streams, answers that end with their connection
//! (they count as lost), targets other than loopback. Bounds: a run ends by time, the answers
//! still due then by `DRAIN`.

mod drive;
mod framing;
mod message;
mod report;
mod side;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::latency::Latency;
use crate::loopback;
use crate::mix::{Format, body_bytes};
use crate::tls::Secured;

use drive::{Counts, Drive, Look};
use report::Report;

/// How long answers are waited for once no more requests are sent.
const DRAIN: Duration = Duration::from_secs(5);

/// Options of `loadtest rig`.
#[derive(Debug, Args)]
pub(crate) struct RigArgs {
    /// Where the gateway listens; loopback only
    #[arg(long, required_unless_present = "direct")]
    target: Option<String>,
    /// Where the upstream listens that the gateway is configured with; bound before anything else
    #[arg(long, default_value = "127.0.0.1:0")]
    upstream: String,
    /// Without a gateway: the clients speak to the upstream, which shows what the rig costs itself
    #[arg(long, conflicts_with = "target")]
    direct: bool,
    /// Connections at once
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Seconds before the measured ones
    #[arg(long, default_value_t = 1.0)]
    warmup: f64,
    /// Measured seconds
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Seconds to wait until the target accepts connections
    #[arg(long, default_value_t = 10.0)]
    wait: f64,
    /// After the warm-up, say `warm` and begin to measure with the next line of standard input
    #[arg(long)]
    hold: bool,
    /// The caller's key
    #[arg(long, default_value = "none")]
    key: String,
    /// Model of the request
    #[arg(long, default_value = "ok")]
    model: String,
    /// Bytes of the request's body
    #[arg(long, default_value_t = 2048, value_parser = body_bytes())]
    body_bytes: u32,
    /// Bytes of the answer's body
    #[arg(long, default_value_t = 823, value_parser = body_bytes())]
    answer_bytes: u32,
    /// Measure latencies too, at the price of two looks at the clock a request
    #[arg(long)]
    latency: bool,
    /// Never sleep: keeps the core beside other work, and spares the gateway the waking
    #[arg(long)]
    spin: bool,
    #[command(flatten)]
    secured: Secured,
    /// How the report is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    report: Format,
}

/// Runs the rig. Standard error hears of its state, standard output gets the report; the exit code
/// says whether every request got its answer.
pub(crate) fn main(args: &RigArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let seconds = |name: &str, value: f64| {
        Duration::try_from_secs_f64(value).map_err(|error| format!("--{name} {value}: {error}"))
    };
    let warmup = seconds("warmup", args.warmup)?;
    let time = seconds("seconds", args.seconds)?;
    let answer = message::answer(args.answer_bytes as usize);
    let answer_bytes = answer.len();
    let mut drive = Drive::bind(loopback::address(&args.upstream)?, answer)?;
    drive.secure(args.secured.trust()?, args.secured.identity()?);
    let upstream = drive.upstream()?;
    writeln!(io::stderr(), "rig upstream listening on {upstream}")?;
    let target = args.target.as_deref().map_or(Ok(upstream), loopback::address)?;
    let request = message::request(message::Request {
        host: &target.to_string(),
        key: &args.key,
        model: &args.model,
        body_bytes: args.body_bytes as usize,
    });
    let request_bytes = request.len();
    let connections = args.connections as usize;
    drive.connect(target, connections, request, seconds("wait", args.wait)?)?;
    let look = Look { latency: args.latency, spin: args.spin };
    if !warmup.is_zero() {
        drive.phase(warmup, DRAIN, look)?;
    }
    if args.hold {
        writeln!(io::stderr(), "warm")?;
        io::stdin().lock().read_line(&mut String::new())?;
    }
    let counts = drive.phase(time, DRAIN, look)?;
    let target = target.to_string();
    let report = reported(&counts, Run { target, connections, request_bytes, answer_bytes });
    let mut out = io::stdout().lock();
    match args.report {
        Format::Json => writeln!(out, "{}", serde_json::to_string(&report)?)?,
        Format::Text => write!(out, "{report}")?,
    }
    Ok(if report.good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What was run.
struct Run {
    target: String,
    connections: usize,
    request_bytes: usize,
    answer_bytes: usize,
}

fn reported(counts: &Counts, run: Run) -> Report {
    let seconds = counts.elapsed.as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let answered_per_second = counts.answered as f64 / seconds.max(1e-9);
    Report {
        target: run.target,
        connections: run.connections,
        request_bytes: run.request_bytes,
        answer_bytes: run.answer_bytes,
        seconds,
        cpu_us: u64::try_from(counts.cpu.as_micros()).unwrap_or(u64::MAX),
        requests: counts.requests,
        answered: counts.answered,
        answered_per_second,
        unexpected: counts.unexpected,
        unexpected_status: counts.unexpected_status,
        lost: counts.lost,
        reconnects: counts.reconnects,
        upstream: counts.upstream,
        latency_us: Latency::of(counts.latency.as_ref()),
    }
}
