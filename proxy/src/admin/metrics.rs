//! Every series of `/metrics`, as a table: name, type, help, and where its figures come from.
//! Rendered in the Prometheus text format 0.0.4.
//!
//! Labels are bounded by construction: shards, providers as configured, and closed lists.
//! `docs/reference/metrics.md` repeats the table; a test compares the two.

use super::Watched;
use crate::observe::counters::{CLASSES, CODES, Counters, DRIVERS, ROUTES};
use crate::observe::ledger::{HEALTHS, LedgerGauges, SLOT_STATES};
use crate::observe::upstreams::{BREAKER_STATES, UpstreamState};
use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// One series.
pub(super) struct Series {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
    read: Read,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        }
    }
}

/// Where figures come from.
enum Read {
    /// One figure of the node.
    Node(fn(&Watched) -> u64),
    /// One figure, summed over the shards.
    Sum(fn(&Counters) -> u64),
    /// One figure a shard.
    Shard(fn(&Counters) -> u64),
    /// One figure of the ledger; no row where there is none.
    Ledger(fn(&LedgerGauges) -> &AtomicU64),
    /// Rows of labels and a figure.
    Rows(fn(&Watched, &mut Rows<'_>)),
}

use Kind::{Counter, Gauge};
use Read::{Ledger, Node, Rows as Table, Shard, Sum};

const fn series(name: &'static str, kind: Kind, help: &'static str, read: Read) -> Series {
    Series { name, kind, help, read }
}

/// In the order in which they are shown.
#[rustfmt::skip]
pub(super) const SERIES: &[Series] = &[
    series("tollgate_build_info", Gauge,
        "1, with the version of the program.", Table(build_info)),
    series("tollgate_start_time_seconds", Gauge,
        "When the node started, in seconds since 1970.", Node(|w| w.started_unix_ms / 1000)),
    series("tollgate_draining", Gauge,
        "1 while the node waits for its last exchanges.", Node(|w| u64::from(w.is_draining()))),
    series("tollgate_shards", Gauge,
        "Shards of the node.", Node(|w| w.counters.len() as u64)),
    series("tollgate_driver_info", Gauge,
        "1, with what the shard waits with: io_uring and its mode, or epoll.", Table(driver_info)),
    series("tollgate_snapshot_version", Gauge,
        "Version of the configuration that new exchanges get.",
        Shard(|c| c.snapshot_version.get())),
    series("tollgate_snapshot_version_min", Gauge,
        "The oldest of these versions.", Node(oldest_snapshot)),
    series("tollgate_connections_open", Gauge,
        "Client connections open now.", Shard(|c| c.connections_open.get())),
    series("tollgate_connections_total", Counter,
        "Client connections taken.", Shard(|c| c.connections.get())),
    series("tollgate_client_tls_failures_total", Counter,
        "Client connections that came to no handshake.", Sum(|c| c.client_tls_failures.get())),
    series("tollgate_accept_errors_total", Counter,
        "Connections that could not be taken, for want of descriptors mostly.",
        Shard(|c| c.accept_errors.get())),
    series("tollgate_requests_total", Counter,
        "Answers by route and class of status; class none is a client that got none.",
        Table(requests)),
    series("tollgate_refusals_total", Counter,
        "Refusals of ours, by code.", Table(refusals)),
    series("tollgate_attempts_total", Counter,
        "Attempts at upstreams.", Sum(|c| c.attempts.get())),
    series("tollgate_fallbacks_total", Counter,
        "Attempts at another candidate than the one before.", Sum(|c| c.fallbacks.get())),
    series("tollgate_replays_total", Counter,
        "Replays on a fresh connection, since a pooled one was dead.", Sum(|c| c.replays.get())),
    series("tollgate_upstream_connections_total", Counter,
        "Upstream connections made.", Sum(|c| c.upstream_connections.get())),
    series("tollgate_upstream_tls_failures_total", Counter,
        "Upstream connections that came to no handshake.",
        Sum(|c| c.upstream_tls_failures.get())),
    series("tollgate_upstream_reused_total", Counter,
        "Requests sent on a pooled upstream connection.", Sum(|c| c.upstream_reused.get())),
    series("tollgate_upstream_idle", Gauge,
        "Upstream connections in the pool, at its last sweep.", Shard(|c| c.upstream_idle.get())),
    series("tollgate_host_breaker", Gauge,
        "1 for the state that the breaker of a provider's host is in.", Table(host_breakers)),
    series("tollgate_credential_breakers", Gauge,
        "Credentials of a provider by the state of their breakers.", Table(credential_breakers)),
    series("tollgate_credentials_cooling", Gauge,
        "Credentials of a provider that are left alone for a while.", Table(cooling)),
    series("tollgate_heartbeats_total", Counter,
        "Heartbeats sent into silent streams.", Sum(|c| c.heartbeats.get())),
    series("tollgate_drains_total", Counter,
        "Answers read on after their client had left.", Sum(|c| c.drains.get())),
    series("tollgate_usage_missing_total", Counter,
        "Delivered answers that reported no usage.", Sum(|c| c.usage_missing.get())),
    series("tollgate_panics_total", Counter,
        "Connections that ended in a defect of ours.", Sum(|c| c.panics.get())),
    series("tollgate_held_bytes", Gauge,
        "Bytes of request bodies held, at the last sweep.", Shard(|c| c.held_bytes.get())),
    series("tollgate_buffers_lent", Gauge,
        "Buffers in use, at the last sweep.", Shard(|c| c.buffers_lent.get())),
    series("tollgate_records_total", Counter,
        "Exchanges settled.", Sum(|c| c.records.get())),
    series("tollgate_unrecorded_total", Counter,
        "Exchanges served without a record, as when_full says.", Sum(|c| c.unrecorded.get())),
    series("tollgate_refusal_records_total", Counter,
        "Records of refusals, their own and counted ones.", Sum(|c| c.refusal_records.get())),
    series("tollgate_refusals_unrecorded_total", Counter,
        "Refusals of known keys that no slot was free for.",
        Sum(|c| c.refusals_unrecorded.get())),
    series("tollgate_price_missing_total", Counter,
        "Delivered answers whose model had no price.", Sum(|c| c.price_missing.get())),
    series("tollgate_hold_picousd_total", Counter,
        "Pico-dollars held for exchanges, all in all.", Sum(|c| c.held_picousd.get())),
    series("tollgate_overrun_picousd_total", Counter,
        "Pico-dollars booked above holds.", Sum(|c| c.overrun_picousd.get())),
    series("tollgate_records_lost_total", Counter,
        "Records that were to be printed and found no room.", Sum(|c| c.records_lost.get())),
    series("tollgate_log_lines_lost_total", Counter,
        "Lines of the access log and of the standard error that were not written.",
        Node(|w| w.lines_lost.load(Relaxed))),
    series("tollgate_slots", Gauge,
        "Slots of all slabs by state, as of the last second.", Table(slots)),
    series("tollgate_slabs_unlocked", Gauge,
        "Slabs that could not be locked into memory.", Ledger(|l| &l.slabs_unlocked)),
    series("tollgate_slabs_damaged", Gauge,
        "Slabs that are damaged: nothing more is taken from them.", Ledger(|l| &l.slabs_damaged)),
    series("tollgate_ledger_health", Gauge,
        "1 for the state the log is in: good, full (no room), failing.", Table(health)),
    series("tollgate_ledger_lag_records", Gauge,
        "Records settled by shards and not durable yet.", Ledger(|l| &l.lag)),
    series("tollgate_ledger_records_total", Counter,
        "Records made durable.", Ledger(|l| &l.records)),
    series("tollgate_ledger_bytes_total", Counter,
        "Bytes written to the log.", Ledger(|l| &l.bytes)),
    series("tollgate_ledger_commits_total", Counter,
        "Commits.", Ledger(|l| &l.commits)),
    series("tollgate_ledger_commit_nanoseconds_total", Counter,
        "Time the commits took together.", Ledger(|l| &l.commit_ns)),
    series("tollgate_ledger_commit_nanoseconds_max", Gauge,
        "Time the longest commit took.", Ledger(|l| &l.commit_ns_max)),
    series("tollgate_ledger_failures_total", Counter,
        "Writes and syncs of the log that failed.", Ledger(|l| &l.failures)),
    series("tollgate_ledger_last_seq", Gauge,
        "Sequence of the last durable record.", Ledger(|l| &l.last_seq)),
    series("tollgate_ledger_checkpointed_seq", Gauge,
        "Sequence of the last record that the state store vouches for.",
        Ledger(|l| &l.checkpointed_seq)),
    series("tollgate_ledger_checkpoint_failures_total", Counter,
        "Checkpoints that the state store refused.", Ledger(|l| &l.checkpoint_failures)),
];

/// All series with their figures of now.
pub(super) fn render(watched: &Watched) -> String {
    let mut text = String::new();
    for series in SERIES {
        let Series { name, kind, help, .. } = series;
        // Formatting into a String cannot fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        let mut rows = Rows { name, text: &mut text };
        match series.read {
            Node(read) => rows.row(&[], read(watched)),
            Sum(read) => rows.row(&[], sum(watched, read)),
            Shard(read) => {
                for (shard, counters) in watched.counters.iter().enumerate() {
                    rows.row(&[("shard", &shard.to_string())], read(counters));
                }
            }
            Ledger(read) => {
                if let Some(ledger) = &watched.ledger {
                    rows.row(&[], read(ledger).load(Relaxed));
                }
            }
            Table(read) => read(watched, &mut rows),
        }
    }
    text
}

/// Where rows of one series go.
struct Rows<'t> {
    name: &'static str,
    text: &'t mut String,
}

impl Rows<'_> {
    /// Values of labels are of closed lists of ours, or names of providers, which have letters,
    /// digits, `-`, `_` and `.`: nothing in them needs an escape.
    fn row(&mut self, labels: &[(&str, &str)], figure: u64) {
        self.text.push_str(self.name);
        for (at, (label, value)) in labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{value}\"");
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{after} {figure}");
    }
}

fn sum(watched: &Watched, read: impl Fn(&Counters) -> u64) -> u64 {
    watched.counters.iter().map(|counters| read(counters)).fold(0, u64::wrapping_add)
}

fn build_info(_: &Watched, rows: &mut Rows<'_>) {
    rows.row(&[("version", env!("CARGO_PKG_VERSION"))], 1);
}

fn driver_info(watched: &Watched, rows: &mut Rows<'_>) {
    for (shard, counters) in watched.counters.iter().enumerate() {
        let driver = usize::try_from(counters.driver.get()).ok().and_then(|at| DRIVERS.get(at));
        let driver = driver.copied().unwrap_or_default();
        rows.row(&[("shard", &shard.to_string()), ("driver", driver)], 1);
    }
}

fn oldest_snapshot(watched: &Watched) -> u64 {
    watched.counters.iter().map(|c| c.snapshot_version.get()).min().unwrap_or_default()
}

fn requests(watched: &Watched, rows: &mut Rows<'_>) {
    for (route, name) in ROUTES.iter().enumerate() {
        for (class, of) in CLASSES.iter().enumerate() {
            let figure = sum(watched, |counters| counters.requests[route][class].get());
            rows.row(&[("route", name), ("class", of)], figure);
        }
    }
}

fn refusals(watched: &Watched, rows: &mut Rows<'_>) {
    for (at, code) in CODES.iter().enumerate() {
        rows.row(&[("code", code)], sum(watched, |counters| counters.refusals[at].get()));
    }
}

fn upstreams(watched: &Watched) -> Vec<UpstreamState> {
    watched.upstreams.as_ref().map_or_else(Vec::new, |ask| ask())
}

fn host_breakers(watched: &Watched, rows: &mut Rows<'_>) {
    for upstream in upstreams(watched) {
        for (at, state) in BREAKER_STATES.iter().enumerate() {
            let labels = [("provider", &*upstream.provider), ("state", state)];
            rows.row(&labels, u64::from(at == upstream.host));
        }
    }
}

fn credential_breakers(watched: &Watched, rows: &mut Rows<'_>) {
    for upstream in upstreams(watched) {
        for (state, count) in BREAKER_STATES.iter().zip(upstream.credentials) {
            rows.row(&[("provider", &*upstream.provider), ("state", state)], count);
        }
    }
}

fn cooling(watched: &Watched, rows: &mut Rows<'_>) {
    for upstream in upstreams(watched) {
        rows.row(&[("provider", &*upstream.provider)], upstream.cooling);
    }
}

fn slots(watched: &Watched, rows: &mut Rows<'_>) {
    let Some(ledger) = &watched.ledger else { return };
    for (state, figure) in SLOT_STATES.iter().zip(&ledger.slots) {
        rows.row(&[("state", state)], figure.load(Relaxed));
    }
}

fn health(watched: &Watched, rows: &mut Rows<'_>) {
    let Some(ledger) = &watched.ledger else { return };
    let now = ledger.health.load(Relaxed);
    for (at, state) in (0..).zip(HEALTHS) {
        rows.row(&[("state", state)], u64::from(at == now));
    }
}
