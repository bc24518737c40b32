//! What a run came to, for people and for scripts. Names shared with the report of `mix` mean the
//! same there.

use std::fmt;

use serde::Serialize;

use crate::latency::Latency;

/// What happened at the upstream's end.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Upstream {
    /// Whole requests that arrived.
    pub(crate) requests: u64,
    /// Connections accepted.
    pub(crate) connections: u64,
    /// Connections closed because what came on them is no request.
    pub(crate) faults: u64,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) target: String,
    pub(crate) connections: usize,
    /// Bytes of a whole request and of a whole answer of the upstream.
    pub(crate) request_bytes: usize,
    pub(crate) answer_bytes: usize,
    /// From the first request to the last answer.
    pub(crate) seconds: f64,
    /// Processor time of the rig itself in them; near `seconds`, it is the rig that was measured.
    pub(crate) cpu_us: u64,
    pub(crate) requests: u64,
    /// Whole answers of any status.
    pub(crate) answered: u64,
    pub(crate) answered_per_second: f64,
    /// Answers of another status than 200, and runs of bytes no answer was due for.
    pub(crate) unexpected: u64,
    /// The first such status; 0 without one.
    pub(crate) unexpected_status: u16,
    /// Requests without a whole answer.
    pub(crate) lost: u64,
    /// Connections made in place of ended ones.
    pub(crate) reconnects: u64,
    pub(crate) upstream: Upstream,
    /// Zeros unless it was asked for.
    pub(crate) latency_us: Latency,
}

impl Report {
    /// Whether every request got its answer.
    pub(crate) fn good(&self) -> bool {
        self.answered > 0 && self.unexpected == 0 && self.lost == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { target, connections, requests, seconds, answered, .. } = self;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let each = seconds * 1e6 / (*answered).max(1) as f64;
        writeln!(
            out,
            "{target}: {requests} requests in {seconds:.1} s, {answered} answers ({:.0}/s, \
             {each:.2} us each), {connections} connections ({} remade)",
            self.answered_per_second, self.reconnects,
        )?;
        let Upstream { requests, connections, faults } = self.upstream;
        writeln!(
            out,
            "upstream: {requests} requests, {connections} connections since it listens, \
             {faults} faults"
        )?;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let busy = self.cpu_us as f64 / 1e6 / self.seconds.max(1e-9);
        writeln!(out, "the rig was busy for {busy:.2} of the time")?;
        if self.latency_us.count > 0 {
            let Latency { p50, p90, p99, p999, max, .. } = self.latency_us;
            writeln!(out, "us: p50 {p50} p90 {p90} p99 {p99} p99.9 {p999} max {max}")?;
        }
        if self.unexpected > 0 {
            writeln!(out, "first unexpected status: {}", self.unexpected_status)?;
        }
        writeln!(out, "unexpected: {}, lost: {}", self.unexpected, self.lost)
    }
}
