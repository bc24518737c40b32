//! The rig for streams: one thread that plays the clients of a gateway and the upstream behind it.
//! Every stream is compared with what the upstream sent, byte for byte; heartbeats between events
//! are counted. What it measures, by mode: events that each wait for the one before to be read,
//! events at an even rate, bursts, streams that are held open, and the first content event.
//!
//! Deliberately not: faults, targets other than loopback, what lies inside the gateway: the
//! script beside it reads processor time and memory. Bounds: a phase ends by time, streams still
//! due then by `DRAIN`.

mod client;
mod drive;
mod first;
mod pace;
mod provider;
mod report;
#[cfg(test)]
mod tests;
mod text;

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::latency::Latency;
use crate::loopback;
use crate::mix::{Format, body_bytes};
use crate::standin::Dialect;
use crate::tls::Secured;

use drive::Drive;
use first::Openings;
use pace::Pace;
use report::Report;
use text::{Request, Text};

/// How long the ends of streams are waited for.
const DRAIN: Duration = Duration::from_secs(20);

/// How long streams may take to open.
const OPEN: Duration = Duration::from_secs(120);

/// Streams that come and go before memory is looked at.
const FIRST: usize = 16;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// The next event of a stream once its client has read the one before
    PingPong,
    /// Events at an even rate over all streams
    Rate,
    /// The same, several events in one write
    Burst,
    /// Streams held open with nothing on them
    Held,
    /// Streams opened at a rate: how long the first content event takes
    First,
}

/// The dialect of the streams.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Spoken {
    Chat,
    Messages,
}

/// Options of `loadtest streams`.
#[derive(Debug, Args)]
pub(crate) struct StreamsArgs {
    /// What is measured
    #[arg(long, value_enum)]
    mode: Mode,
    /// Where the gateway listens; loopback only
    #[arg(long, required_unless_present = "direct")]
    target: Option<String>,
    /// Where the upstream listens that the gateway is configured with; bound before anything else
    #[arg(long, default_value = "127.0.0.1:0")]
    upstream: String,
    /// Without a gateway: the clients speak to the upstream, which shows what the rig costs itself
    #[arg(long, conflicts_with = "target")]
    direct: bool,
    /// Streams at once
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    streams: u32,
    /// Events a second over all streams (`rate`, `burst`), or openings a second (`first`)
    #[arg(long, default_value_t = 1000.0)]
    rate: f64,
    /// Events of one write in `burst`
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    burst: u32,
    /// Milliseconds from the preamble to the first content event in `first`
    #[arg(long, default_value_t = 20)]
    gap_ms: u64,
    /// Seconds before the measured ones
    #[arg(long, default_value_t = 1.0)]
    warmup: f64,
    /// Measured seconds; in `held` none: they last until the line that ends them
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Seconds to wait until the target accepts connections
    #[arg(long, default_value_t = 10.0)]
    wait: f64,
    /// Say `warm` before the measured time and wait for a line of standard input; in `held` also
    /// `base` before they are opened and after a few have come and gone
    #[arg(long)]
    hold: bool,
    /// The caller's key
    #[arg(long, default_value = "none")]
    key: String,
    /// Model of the requests
    #[arg(long, default_value = "ok")]
    model: String,
    /// Bytes of a request's body
    #[arg(long, default_value_t = 1024, value_parser = body_bytes())]
    body_bytes: u32,
    /// Dialect of the streams
    #[arg(long, value_enum, default_value_t = Spoken::Chat)]
    dialect: Spoken,
    /// Measure the delay of events too
    #[arg(long)]
    latency: bool,
    /// Never sleep: keeps the core beside other work, and keeps to the pace
    #[arg(long)]
    spin: bool,
    #[command(flatten)]
    secured: Secured,
    /// How the report is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    report: Format,
}

/// Runs the rig for streams. Standard error hears of its state, standard output gets the report;
/// the exit code says whether every stream came whole.
pub(crate) fn main(args: &StreamsArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let seconds = |name: &str, value: f64| {
        Duration::try_from_secs_f64(value).map_err(|error| format!("--{name} {value}: {error}"))
    };
    let (warmup, time) = (seconds("warmup", args.warmup)?, seconds("seconds", args.seconds)?);
    if !(args.rate > 0.0 && args.rate < 1e9) {
        return Err(format!("--rate {}: not a rate", args.rate).into());
    }
    let mut drive = Drive::bind(loopback::address(&args.upstream)?)?;
    drive.secure(args.secured.trust()?, args.secured.identity()?);
    let upstream = drive.upstream()?;
    writeln!(io::stderr(), "rig upstream listening on {upstream}")?;
    let target = args.target.as_deref().map_or(Ok(upstream), loopback::address)?;
    let dialect = match args.dialect {
        Spoken::Chat => Dialect::Chat,
        Spoken::Messages => Dialect::Messages,
    };
    let text = Text::new(
        dialect,
        Request {
            host: &target.to_string(),
            key: &args.key,
            model: &args.model,
            body_bytes: args.body_bytes as usize,
        },
    );
    let event_bytes = text.event.len();
    let first = args.mode == Mode::First;
    drive.set(target, text, args.latency || first, !first);
    let wait = seconds("wait", args.wait)?;
    let streams = args.streams as usize;
    match args.mode {
        Mode::First => {
            let (per_second, gap) = (args.rate, Duration::from_millis(args.gap_ms));
            let openings = Openings { streams, per_second, gap, spin: args.spin };
            drive.connect(streams, wait)?;
            first::phase(&mut drive, openings, warmup, DRAIN)?;
            held(args, "warm")?;
            first::phase(&mut drive, openings, time, DRAIN)?;
        }
        Mode::Held => {
            // what the first streams of all allocate is no part of what one takes
            drive.connect(streams.min(FIRST), wait)?;
            drive.open(OPEN)?;
            drive.end(DRAIN)?;
            held(args, "base")?;
            drive.connect(streams, wait)?;
            drive.open(OPEN)?;
            held(args, "warm")?;
        }
        Mode::PingPong | Mode::Rate | Mode::Burst => {
            drive.connect(streams, wait)?;
            drive.open(OPEN)?;
            drive.phase(pace(args), warmup, args.spin)?;
            held(args, "warm")?;
            drive.phase(pace(args), time, args.spin)?;
        }
    }
    drive.end(DRAIN)?;
    let report = reported(&drive, args, target.to_string(), event_bytes);
    let mut out = io::stdout().lock();
    match args.report {
        Format::Json => writeln!(out, "{}", serde_json::to_string(&report)?)?,
        Format::Text => write!(out, "{report}")?,
    }
    Ok(if report.good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn pace(args: &StreamsArgs) -> Pace {
    match args.mode {
        Mode::PingPong => Pace::PingPong,
        Mode::Rate => Pace::Even { per_second: args.rate, batch: 1 },
        Mode::Burst => {
            let per_second = args.rate / f64::from(args.burst);
            Pace::Even { per_second, batch: args.burst }
        }
        Mode::Held | Mode::First => Pace::Held,
    }
}

/// Tells the script beside where the run is, and waits for it.
fn held(args: &StreamsArgs, state: &str) -> io::Result<()> {
    if args.hold {
        writeln!(io::stderr(), "{state}")?;
        io::stdin().lock().read_line(&mut String::new())?;
    }
    Ok(())
}

fn reported(drive: &Drive, args: &StreamsArgs, target: String, event_bytes: usize) -> Report {
    let (counts, fates) = (&drive.counts, drive.fates);
    let seconds = counts.elapsed.as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let per_second = if seconds > 0.0 { counts.delivered as f64 / seconds } else { 0.0 };
    Report {
        target,
        mode: match args.mode {
            Mode::PingPong => "ping-pong",
            Mode::Rate => "rate",
            Mode::Burst => "burst",
            Mode::Held => "held",
            Mode::First => "first",
        },
        streams: args.streams as usize,
        event_bytes,
        seconds,
        cpu_us: u64::try_from(counts.cpu.as_micros()).unwrap_or(u64::MAX),
        sent: counts.sent,
        delivered: counts.delivered,
        per_second,
        opened: fates.opened,
        whole: fates.whole,
        failed: fates.failed,
        beats: fates.beats,
        delay_us: Latency::of(counts.delay.as_ref()),
    }
}
