//! What `tollgate check FILE` prints: the configuration as it was understood, or its errors; for
//! people and as JSON. Never a secret. The exit code is 0 for a usable file and 2 for any other.

use super::compile::Config;
use super::findings::{ConfigErrors, Finding};
use super::ledger::LedgerSettings;
use super::snapshot::{Host, Provider, ProviderKind};
use crate::exchange::plan::Candidate;
use crate::exchange::rules::{self, OrphanRule, WhenFull};
use crate::io::runtime::Choice;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Exit code of a usable configuration.
pub const EXIT_USABLE: u8 = 0;

/// Exit code of one that is refused.
pub const EXIT_REFUSED: u8 = 2;

/// The configuration in a few lines, warnings first.
pub fn report(config: &Config) -> String {
    let mut text = String::new();
    for warning in &config.warnings {
        line(&mut text, &format!("warning: {}", warning.located(&config.file)));
    }
    let snapshot = &config.snapshot;
    line(&mut text, &format!("{}: usable", config.file));
    if let Some(node) = &config.node {
        line(&mut text, &format!("  node       {node}"));
    }
    let secured = if config.listen_tls.is_some() { " (TLS)" } else { "" };
    let listen = format!("data {}{secured}, admin {}", config.listen_data, config.listen_admin);
    line(&mut text, &format!("  listen     {listen}"));
    let driver = driver_name(config.driver);
    line(&mut text, &format!("  shards     {}, driver {driver}", config.shards));
    for provider in &snapshot.providers {
        line(&mut text, &format!("  provider   {}", provider_line(provider)));
    }
    for (name, choices) in sorted(snapshot.models.iter()) {
        let to: Vec<String> =
            choices.candidates.iter().map(|c| candidate_name(config, c)).collect();
        line(&mut text, &format!("  model      {name} -> {}", to.join(", ")));
    }
    for (name, target) in sorted(snapshot.aliases.iter()) {
        line(&mut text, &format!("  alias      {name} -> {target}"));
    }
    line(&mut text, &format!("  keys       {}", config.keys.len()));
    line(&mut text, &format!("  prices     version {}", snapshot.prices.version));
    let ledger = config.ledger.as_ref().map_or_else(|| "none".to_owned(), ledger_line);
    line(&mut text, &format!("  ledger     {ledger}"));
    text
}

/// The configuration as one JSON object.
pub fn report_json(config: &Config) -> String {
    let snapshot = &config.snapshot;
    let providers: Vec<Value> = snapshot.providers.iter().map(provider_json).collect();
    let models: Vec<Value> = sorted(snapshot.models.iter())
        .map(|(name, choices)| {
            let to: Vec<Value> =
                choices.candidates.iter().map(|c| candidate_json(config, c)).collect();
            json!({"name": name, "candidates": to})
        })
        .collect();
    let aliases: Vec<Value> = sorted(snapshot.aliases.iter())
        .map(|(name, target)| json!({"name": name, "target": target}))
        .collect();
    json!({
        "file": config.file,
        "usable": true,
        "errors": [],
        "warnings": findings_json(&config.warnings),
        "node": config.node,
        "listen": {
            "data": config.listen_data.to_string(),
            "tls": config.listen_tls.is_some(),
            "admin": config.listen_admin.to_string(),
        },
        "shards": {"count": config.shards, "driver": driver_name(config.driver)},
        "providers": providers,
        "models": models,
        "aliases": aliases,
        "keys": config.keys.len(),
        "price_version": snapshot.prices.version,
        "ledger": config.ledger.as_ref().map(ledger_json),
    })
    .to_string()
}

/// A refused configuration as one JSON object of the same kind.
pub fn errors_json(errors: &ConfigErrors) -> String {
    json!({
        "file": errors.file,
        "usable": false,
        "errors": findings_json(&errors.errors),
        "warnings": [],
    })
    .to_string()
}

fn line(text: &mut String, line: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{line}");
}

/// A map by name: the order of a hash map differs from run to run.
fn sorted<'m, V: 'm>(
    entries: impl Iterator<Item = (&'m Box<str>, &'m V)>,
) -> impl Iterator<Item = (&'m Box<str>, &'m V)> {
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by_key(|(name, _)| *name);
    entries.into_iter()
}

/// A provider on one line: name, kind, base URL, patterns.
pub fn provider_line(provider: &Provider) -> String {
    let mut text = format!("{} ({}) at {}", provider.name, kind(provider), url(provider));
    if !provider.serves.is_empty() {
        // Formatting into a String cannot fail.
        let _ = write!(text, ", serves {}", provider.serves.join(", "));
    }
    text
}

fn provider_json(provider: &Provider) -> Value {
    let dialled = match &provider.host {
        Host::Name(name) => format!("{name}:{}", provider.port),
        Host::Address(address) => address.to_string(),
    };
    let credentials: Vec<&str> = provider.credentials.iter().map(|c| &*c.name).collect();
    json!({
        "name": provider.name,
        "kind": kind(provider),
        "base_url": url(provider),
        "dialled": dialled,
        "credentials": credentials,
        "models": provider.serves,
    })
}

fn ledger_line(ledger: &LedgerSettings) -> String {
    let (dir, full) = (ledger.state_dir.display(), rules::name(&WhenFull::NAMES, ledger.when_full));
    let orphans = rules::name(&OrphanRule::NAMES, ledger.orphans);
    format!("{dir}, when full: {full}, orphans: {orphans}")
}

fn ledger_json(ledger: &LedgerSettings) -> Value {
    json!({
        "state_dir": ledger.state_dir.display().to_string(),
        "slab_dir": ledger.slab_dir.as_ref().map(|dir| dir.display().to_string()),
        "segment_bytes": ledger.segment_bytes,
        "when_full": rules::name(&WhenFull::NAMES, ledger.when_full),
        "orphans": rules::name(&OrphanRule::NAMES, ledger.orphans),
    })
}

fn url(provider: &Provider) -> String {
    let scheme = if provider.tls.is_some() { "https" } else { "http" };
    format!("{scheme}://{}{}", provider.authority, provider.base_path)
}

fn kind(provider: &Provider) -> &'static str {
    match provider.kind {
        ProviderKind::OpenAi => "openai",
        ProviderKind::Anthropic => "anthropic",
    }
}

fn candidate_name(config: &Config, candidate: &Candidate) -> String {
    let provider = config.snapshot.provider(candidate.provider);
    let mut text = format!("{}/{}", provider.name, candidate.model.as_deref().unwrap_or("*"));
    if provider.credentials.len() > 1 {
        text += &format!(" by {}", provider.credential(candidate.credential).name);
    }
    if candidate.price.is_none() {
        text += " (no price)";
    }
    text
}

fn candidate_json(config: &Config, candidate: &Candidate) -> Value {
    let provider = config.snapshot.provider(candidate.provider);
    json!({
        "provider": provider.name,
        "credential": provider.credential(candidate.credential).name,
        "priority": candidate.priority,
        "weight": candidate.weight,
        "model": candidate.model.as_deref(),
        "priced": candidate.price.is_some(),
    })
}

fn findings_json(findings: &[Finding]) -> Vec<Value> {
    let place = |n: usize| if n == 0 { Value::Null } else { n.into() };
    findings
        .iter()
        .map(|f| json!({"line": place(f.line), "column": place(f.column), "text": f.text}))
        .collect()
}

fn driver_name(driver: Choice) -> &'static str {
    match driver {
        Choice::Auto => "auto",
        Choice::Uring => "uring",
        Choice::Epoll => "epoll",
    }
}
