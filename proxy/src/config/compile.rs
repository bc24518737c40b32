//! The file, checked against itself and the world, becomes a snapshot and what the process
//! needs beside it. Past this point no value is checked again.

use super::env::Env;
use super::file::{self, File};
use super::findings::{Finding, Findings, Text, quoted};
use super::idle;
use super::keys::{self, DeclaredKey};
use super::ledger::{self, LedgerSettings};
use super::log::{self, LogSettings};
use super::names::{choice, token};
use super::prices;
use super::resilience;
use super::routing::routing;
use super::snapshot::{Bounds, Deadlines, REQUEST_BYTES, Snapshot};
use super::terms;
use super::tls::{self, ListenTls};
use crate::exchange::price::PriceList;
use crate::io::runtime::Choice;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Where clients call, unless configured.
const DATA_PORT: u16 = 4180;

/// Where operators look, unless configured.
const ADMIN_PORT: u16 = 4181;

/// Shards of a node: a request id has one byte for its shard.
const SHARDS_MAX: usize = 256;

/// Shortest deadline: one step of a shard's coarse clock, which cannot tell less.
const DEADLINE_MIN: Duration = Duration::from_millis(100);

/// Longest deadline: longer than any exchange, so a mistyped unit shows.
const DEADLINE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Smallest request bound: below it no real call fits.
const REQUEST_BYTES_MIN: u64 = 1024;

/// Largest request bound: places in a body are 32-bit numbers.
const REQUEST_BYTES_MAX: u64 = 1 << 30;

/// Largest allowance of one shard: more than a machine has, so a mistyped unit shows.
const HELD_BYTES_MAX: u64 = 1 << 40;

/// The allowances of all shards together, unless configured: this part of memory (DESIGN §10).
const HELD_PART: u64 = 8;

/// A configuration in force.
#[derive(Debug)]
pub struct Config {
    /// The file's name, as it was given.
    pub file: Box<str>,
    /// The node's name, if it has one.
    pub node: Option<Box<str>>,
    /// The keys it declares.
    pub keys: Vec<DeclaredKey>,
    /// What the shards read; version 1.
    pub snapshot: Arc<Snapshot>,
    /// Where clients call.
    pub listen_data: SocketAddr,
    /// Who they find there; none if they call plainly.
    pub listen_tls: Option<ListenTls>,
    /// Health, metrics; loopback only.
    pub listen_admin: SocketAddr,
    /// Number of shards, 1 to 256.
    pub shards: usize,
    /// Which driver the shards ask for.
    pub driver: Choice,
    /// Where records are kept; `None` for a node that keeps none.
    pub ledger: Option<LedgerSettings>,
    /// What is logged.
    pub log: LogSettings,
    /// What is allowed and probably not meant.
    pub warnings: Vec<Finding>,
}

/// Compiles a file. The result counts only while `findings` is clean.
pub(super) fn compile(
    name: &str,
    file: &File,
    folder: &Path,
    env: &dyn Env,
    findings: &mut Findings<'_>,
) -> Option<Config> {
    if let Some(node) = &file.node {
        token(node, "the name of the node", findings);
    }
    let prices = price_list(file, folder, env, findings);
    let default_mode = terms::default_mode(&file.price, findings);
    let routing = routing(file, &prices, default_mode, folder, env, findings);
    let keys = keys::keys(&file.keys, findings);
    let terms = terms::terms(file, findings);
    idle::warn(file, &routing, (&prices, &terms), findings);
    let when_full = ledger::when_full(&file.ledger, findings);
    let ledger = ledger::settings(file, when_full, folder, env, findings);
    if file.keys.is_empty() && ledger.is_none() {
        findings.warn(0, "there is no [[key]]: every call will be refused");
    }
    let (shards, driver) = (shards(file, env, findings), driver(file, findings));
    let share = env.memory_bytes() / HELD_PART / shards as u64;
    let (deadlines, bounds) = (deadlines(file, findings), bounds(&file.limits, share, findings));
    let listen_tls = tls::listener(file.listen.tls.as_ref(), folder, env, findings);
    let (listen_data, listen_admin) = listen(&file.listen, findings)?;
    let snapshot = Snapshot {
        version: 1,
        providers: routing.providers,
        models: routing.models,
        aliases: routing.aliases,
        prices,
        terms,
        when_full,
        deadlines,
        bounds,
        retry: resilience::retry_rules(file, findings),
        breaker: resilience::breaker_rules(file, findings),
        endings: resilience::ending_rules(file, findings),
    };
    Some(Config {
        file: name.into(),
        node: file.node.as_ref().map(|node| node.value.clone()),
        keys,
        snapshot: Arc::new(snapshot),
        listen_data,
        listen_tls,
        listen_admin,
        shards,
        driver,
        ledger,
        log: log::settings(&file.log, (folder, env), findings),
        warnings: Vec::new(),
    })
}

fn price_list(file: &File, folder: &Path, env: &dyn Env, findings: &mut Findings<'_>) -> PriceList {
    let (at, list) = match &file.price.file {
        None => (0, prices::built_in().map_err(|why| format!("the built-in prices: {why}"))),
        Some(path) => {
            let shown = quoted(&path.value);
            let text = env.read_file(&folder.join(&*path.value));
            let text = text.map_err(|error| format!("price file {shown} cannot be read: {error}"));
            let list = text.and_then(|text| {
                prices::parse(&text).map_err(|why| format!("price file {shown}: {why}"))
            });
            (path.at, list)
        }
    };
    list.unwrap_or_else(|why| {
        findings.error(at, why);
        PriceList::default()
    })
}

fn deadlines(file: &File, findings: &mut Findings<'_>) -> Deadlines {
    let mut deadlines = Deadlines::default();
    for (name, span) in &file.deadlines {
        // A notice that is none is the default, and the only span without a use for the clock.
        let none = *name == "drain_notice" && span.value.is_zero();
        if !none && !(DEADLINE_MIN..=DEADLINE_MAX).contains(&span.value) {
            let range = "must be between 100ms, the step of the clock, and 24h";
            findings.error(span.at, format!("\"{name}\" in [deadlines] {range}"));
        }
        let field = match *name {
            "connect" => &mut deadlines.connect,
            "tls" => &mut deadlines.tls,
            "first_byte" => &mut deadlines.first_byte,
            "between_bytes" => &mut deadlines.between_bytes,
            "header" => &mut deadlines.header,
            "body" => &mut deadlines.body,
            "client_idle" => &mut deadlines.client_idle,
            "half_closed" => &mut deadlines.half_closed,
            "write_stall" => &mut deadlines.write_stall,
            "pooled" => &mut deadlines.pooled,
            "drain_notice" => &mut deadlines.drain_notice,
            "drain" => &mut deadlines.drain,
            "heartbeat" => &mut deadlines.heartbeat,
            other => {
                debug_assert!(false, "{other} is in the shape and not here");
                continue;
            }
        };
        *field = span.value;
    }
    match file.deadlines.iter().find(|(name, _)| *name == "heartbeat") {
        None => deadlines.heartbeat = deadlines.heartbeat.min(deadlines.client_idle / 2),
        Some((_, span)) if span.value >= deadlines.client_idle => {
            let why = "must be shorter than \"client_idle\"";
            findings.error(span.at, format!("\"heartbeat\" in [deadlines] {why}"));
        }
        Some(_) => {}
    }
    deadlines
}

fn bounds(written: &file::Limits, share: u64, findings: &mut Findings<'_>) -> Bounds {
    let request = written.request_bytes.as_ref();
    let request_bytes = request.map_or(REQUEST_BYTES, |size| size.value);
    if let Some(size) = request
        && !(REQUEST_BYTES_MIN..=REQUEST_BYTES_MAX).contains(&size.value)
    {
        findings.error(size.at, "\"request_bytes\" in [limits] must be between 1KiB and 1GiB");
    }
    let held = written.held_bytes.as_ref();
    // A small machine with many shards still takes one request of the largest size in each.
    let held_bytes = held.map_or_else(|| share.max(request_bytes), |size| size.value);
    if let Some(size) = held {
        if size.value > HELD_BYTES_MAX {
            findings.error(size.at, "\"held_bytes\" in [limits] must be at most 1024GiB");
        } else if size.value < request_bytes {
            let why = "is below \"request_bytes\": the largest request would never fit";
            findings.error(size.at, format!("\"held_bytes\" in [limits] {why}"));
        }
    }
    Bounds { request_bytes, held_bytes }
}

fn shards(file: &File, env: &dyn Env, findings: &mut Findings<'_>) -> usize {
    let Some(count) = &file.shards.count else { return env.cores().clamp(1, SHARDS_MAX) };
    match usize::try_from(count.value) {
        Ok(shards @ 1..=SHARDS_MAX) => shards,
        _ => {
            findings.error(count.at, "\"count\" in [shards] must be between 1 and 256");
            1
        }
    }
}

fn driver(file: &File, findings: &mut Findings<'_>) -> Choice {
    let names = [("auto", Choice::Auto), ("uring", Choice::Uring), ("epoll", Choice::Epoll)];
    let driver = file.shards.driver.as_ref();
    let driver = driver.and_then(|text| choice(text, "\"driver\" in [shards]", &names, findings));
    driver.unwrap_or(Choice::Auto)
}

fn listen(written: &file::Listen, findings: &mut Findings<'_>) -> Option<(SocketAddr, SocketAddr)> {
    let data = address("data", written.data.as_ref(), DATA_PORT, findings);
    let admin = address("admin", written.admin.as_ref(), ADMIN_PORT, findings);
    let (data, admin) = (data?, admin?);
    if let Some(at) = &written.data
        && written.tls.is_none()
        && !data.ip().to_canonical().is_loopback()
    {
        findings.warn(at.at, "\"data\" in [listen] is reachable from other machines, without TLS");
    }
    if let Some(at) = &written.admin
        && !admin.ip().to_canonical().is_loopback()
    {
        let why = "must be a loopback address: tokens for it are not built yet";
        findings.error(at.at, format!("\"admin\" in [listen] {why}"));
    }
    if data == admin && data.port() != 0 {
        let at = written.admin.as_ref().or(written.data.as_ref()).map_or(0, |text| text.at);
        findings.error(at, "\"data\" and \"admin\" in [listen] are the same address");
    }
    Some((data, admin))
}

fn address(
    key: &str,
    written: Option<&Text>,
    port: u16,
    findings: &mut Findings<'_>,
) -> Option<SocketAddr> {
    let Some(text) = written else { return Some((Ipv4Addr::LOCALHOST, port).into()) };
    let address = text.value.parse().ok();
    if address.is_none() {
        let what = "must be an address and a port, such as \"127.0.0.1:4180\" or \"[::1]:4180\"";
        findings.error(text.at, format!("\"{key}\" in [listen] {what}"));
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_deadline_is_a_step_of_the_clock() {
        assert_eq!(DEADLINE_MIN, crate::io::TICK);
    }
}
