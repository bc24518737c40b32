//! What a run of streams came to, for people and for scripts.

use std::fmt;

use serde::Serialize;

use crate::latency::Latency;

/// One run.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) target: String,
    pub(crate) mode: &'static str,
    /// Streams at once.
    pub(crate) streams: usize,
    /// Bytes of one content event with its framing.
    pub(crate) event_bytes: usize,
    /// Measured time.
    pub(crate) seconds: f64,
    /// Processor time of the rig itself in it; near `seconds`, it is the rig that was measured.
    pub(crate) cpu_us: u64,
    /// Content events the upstream wrote in the measured time …
    pub(crate) sent: u64,
    /// … and those that came whole to a client in it.
    pub(crate) delivered: u64,
    pub(crate) per_second: f64,
    /// Streams opened since the rig began.
    pub(crate) opened: u64,
    /// Streams that came whole, from the first byte to the end.
    pub(crate) whole: u64,
    /// Streams that broke, or in which another byte came than was sent.
    pub(crate) failed: u64,
    /// Heartbeats of the server between events.
    pub(crate) beats: u64,
    /// From the upstream's write of a content event to the client's read of it; of the first one
    /// of each stream in mode `first`. Zeros unless asked for.
    pub(crate) delay_us: Latency,
}

impl Report {
    /// Whether every stream came whole.
    pub(crate) fn good(&self) -> bool {
        self.opened > 0 && self.whole == self.opened && self.failed == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { target, mode, streams, seconds, sent, delivered, per_second, .. } = self;
        writeln!(
            out,
            "{target}: {mode}, {streams} streams, {sent} events of {} bytes in {seconds:.1} s, \
             {delivered} delivered ({per_second:.0}/s)",
            self.event_bytes
        )?;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let busy = self.cpu_us as f64 / 1e6 / self.seconds.max(1e-9);
        writeln!(out, "the rig was busy for {busy:.2} of the time")?;
        if self.delay_us.count > 0 {
            let Latency { p50, p90, p99, p999, max, .. } = self.delay_us;
            writeln!(out, "delay, us: p50 {p50} p90 {p90} p99 {p99} p99.9 {p999} max {max}")?;
        }
        writeln!(
            out,
            "streams: {} opened, {} whole, {} failed; {} heartbeats",
            self.opened, self.whole, self.failed, self.beats
        )
    }
}
