//! The configuration as written: every key that was there, with its place, nothing checked
//! against anything else.
//!
//! What must be there and is not has already been noted as an error by the reader; it is `None`
//! here so that the rest can still be checked.

use super::findings::{At, Findings, Text};
use super::reader::Reader;
use super::resilience::Resilience;
use super::secret::SecretRef;
use super::shape;
use crate::exchange::money::PicoUsd;
use std::time::Duration;
use toml::Spanned;
use toml::de::DeTable;

/// The whole file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) node: Option<Text>,
    pub(super) listen: Listen,
    pub(super) shards: Shards,
    pub(super) providers: Vec<Provider>,
    pub(super) models: Vec<Model>,
    pub(super) aliases: Vec<(Text, Text)>,
    pub(super) keys: Vec<Key>,
    pub(super) price: Price,
    pub(super) limits: Limits,
    pub(super) deadlines: Deadlines,
    pub(super) state_dir: Option<Text>,
    pub(super) ledger: Ledger,
    pub(super) log: Log,
    pub(super) resilience: Resilience,
}

/// `[listen]`.
#[derive(Debug, Default)]
pub(super) struct Listen {
    pub(super) data: Option<Text>,
    pub(super) admin: Option<Text>,
    pub(super) tls: Option<ListenTls>,
}

/// `tls` of `[listen]`.
#[derive(Debug)]
pub(super) struct ListenTls {
    pub(super) cert_file: Option<Text>,
    pub(super) key_file: Option<Text>,
}

/// `[shards]`.
#[derive(Debug, Default)]
pub(super) struct Shards {
    pub(super) count: Option<At<i64>>,
    pub(super) driver: Option<Text>,
}

/// `[[provider]]`.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) at: usize,
    pub(super) name: Option<Text>,
    pub(super) kind: Option<Text>,
    pub(super) base_url: Option<Text>,
    pub(super) credentials: Vec<Credential>,
    /// Whether the key is there, with whatever value.
    pub(super) has_credentials: bool,
    pub(super) models: Vec<Text>,
    pub(super) mode: Option<Text>,
    pub(super) markup: Option<Text>,
    pub(super) ca_file: Option<Text>,
}

/// An entry of `credentials`.
#[derive(Debug)]
pub(super) struct Credential {
    pub(super) name: Option<Text>,
    pub(super) key: Option<At<SecretRef>>,
    pub(super) weight: Option<At<u32>>,
}

/// `[[model]]`.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) at: usize,
    pub(super) name: Option<Text>,
    pub(super) candidates: Vec<Candidate>,
}

/// An entry of `candidates`.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) at: usize,
    pub(super) provider: Option<Text>,
    pub(super) model: Option<Text>,
    pub(super) priority: Option<At<u32>>,
    pub(super) weight: Option<At<u32>>,
}

/// `[[key]]`.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: Option<Text>,
    pub(super) sha256: Option<Text>,
    pub(super) requests_per_minute: Option<At<u32>>,
    pub(super) concurrent: Option<At<u32>>,
    pub(super) budget_total: Option<At<PicoUsd>>,
    pub(super) budget_month: Option<At<PicoUsd>>,
    pub(super) strict: Option<At<bool>>,
    pub(super) expires: Option<Text>,
    pub(super) models: Option<Vec<Text>>,
    /// Where the list stands.
    pub(super) models_at: usize,
}

/// `[price]`.
#[derive(Debug, Default)]
pub(super) struct Price {
    pub(super) file: Option<Text>,
    pub(super) order: Option<Text>,
    pub(super) fallback: Option<Fallback>,
    pub(super) mode: Option<Text>,
    pub(super) markup: Option<Text>,
}

/// `fallback` of `[price]`: rates in whole pico-dollars a token.
#[derive(Debug)]
pub(super) struct Fallback {
    pub(super) at: usize,
    pub(super) input: Option<At<u64>>,
    pub(super) cache_read: Option<At<u64>>,
    pub(super) cache_write_5m: Option<At<u64>>,
    pub(super) cache_write_1h: Option<At<u64>>,
    pub(super) output: Option<At<u64>>,
    pub(super) audio_in: Option<At<u64>>,
    pub(super) audio_out: Option<At<u64>>,
}

/// `[limits]`.
#[derive(Debug, Default)]
pub(super) struct Limits {
    pub(super) request_bytes: Option<At<u64>>,
    pub(super) held_bytes: Option<At<u64>>,
    pub(super) hold_output_max: Option<At<u64>>,
}

/// `[ledger]`.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) enabled: Option<At<bool>>,
    pub(super) slab_dir: Option<Text>,
    pub(super) segment_bytes: Option<At<u64>>,
    pub(super) when_full: Option<Text>,
    pub(super) orphans: Option<Text>,
}

/// `[log]`.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) access: Option<Text>,
    pub(super) errors: Option<Text>,
}

/// `[deadlines]`, as pairs of key and value.
pub(super) type Deadlines = Vec<(&'static str, At<Duration>)>;

impl File {
    /// Reads the parsed document.
    pub(super) fn read(document: &Spanned<DeTable<'_>>, findings: &mut Findings<'_>) -> File {
        let root = Reader::open(&shape::ROOT, document.get_ref(), 0, findings);
        let providers = root.tables("provider", &shape::PROVIDER, findings);
        let models = root.tables("model", &shape::MODEL, findings);
        let keys = root.tables("key", &shape::KEY, findings);
        let aliases = root.table("alias", &shape::ALIAS, findings);
        File {
            node: root.text("node", findings),
            listen: listen(&root, findings),
            shards: shards(&root, findings),
            providers: providers.iter().map(|table| provider(table, findings)).collect(),
            models: models.iter().map(|table| model(table, findings)).collect(),
            aliases: aliases.map(|table| table.entries(findings)).unwrap_or_default(),
            keys: keys.iter().map(|table| key(table, findings)).collect(),
            price: price(&root, findings),
            limits: limits(&root, findings),
            deadlines: deadlines(&root, findings),
            state_dir: root.text("state_dir", findings),
            ledger: ledger(&root, findings),
            log: log(&root, findings),
            resilience: Resilience::read(&root, findings),
        }
    }
}

fn listen(root: &Reader<'_, '_>, findings: &mut Findings<'_>) -> Listen {
    let Some(table) = root.table("listen", &shape::LISTEN, findings) else {
        return Listen::default();
    };
    let tls = table.table("tls", &shape::LISTEN_TLS, findings);
    Listen {
        data: table.text("data", findings),
        admin: table.text("admin", findings),
        tls: tls.map(|tls| ListenTls {
            cert_file: tls.required("cert_file", findings),
            key_file: tls.required("key_file", findings),
        }),
    }
}

fn shards(root: &Reader<'_, '_>, findings: &mut Findings<'_>) -> Shards {
    let Some(table) = root.table("shards", &shape::SHARDS, findings) else {
        return Shards::default();
    };
    Shards { count: table.integer("count", findings), driver: table.text("driver", findings) }
}

fn provider(table: &Reader<'_, '_>, findings: &mut Findings<'_>) -> Provider {
    if !table.has("credentials") {
        table.missing("credentials", findings);
    }
    let credentials = table.tables("credentials", &shape::CREDENTIAL, findings);
    Provider {
        at: table.at,
        name: table.required("name", findings),
        kind: table.required("kind", findings),
        base_url: table.required("base_url", findings),
        credentials: credentials.iter().map(|entry| credential(entry, findings)).collect(),
        has_credentials: table.has("credentials"),
        models: table.texts("models", findings),
        mode: table.text("mode", findings),
        markup: table.text("markup", findings),
        ca_file: table.text("ca_file", findings),
    }
}

fn credential(table: &Reader<'_, '_>, findings: &mut Findings<'_>) -> Credential {
    let key = table.required("key", findings).and_then(|text| {
        // A literal is refused before it gets into a structure that could be shown.
        let reference = SecretRef::parse(&text.value);
        if let Err(why) = &reference {
            findings.error(text.at, *why);
        }
        Some(At { value: reference.ok()?, at: text.at })
    });
    let weight = table.count("weight", findings);
    Credential { name: table.required("name", findings), key, weight }
}

fn model(table: &Reader<'_, '_>, findings: &mut Findings<'_>) -> Model {
    let candidates = table.tables("candidates", &shape::CANDIDATE, findings);
    if !table.has("candidates") {
        table.missing("candidates", findings);
    } else if candidates.is_empty() {
        findings.error(table.at, "[[model]] has no candidate");
    }
    Model {
        at: table.at,
        name: table.required("name", findings),
        candidates: candidates
            .iter()
            .map(|entry| Candidate {
                at: entry.at,
                provider: entry.required("provider", findings),
                model: entry.text("model", findings),
                priority: entry.count("priority", findings),
                weight: entry.count("weight", findings),
            })
            .collect(),
    }
}

fn key(table: &Reader<'_, '_>, findings: &mut Findings<'_>) -> Key {
    let models = table.has("models").then(|| table.texts("models", findings));
    Key {
        name: table.required("name", findings),
        sha256: table.required("sha256", findings),
        requests_per_minute: table.count("requests_per_minute", findings),
        concurrent: table.count("concurrent", findings),
        budget_total: table.money("budget_total", findings),
        budget_month: table.money("budget_month", findings),
        strict: table.boolean("strict", findings),
        expires: table.text("expires", findings),
        models,
        models_at: table.place("models"),
    }
}

fn price(root: &Reader<'_, '_>, findings: &mut Findings<'_>) -> Price {
    let Some(table) = root.table("price", &shape::PRICE, findings) else {
        return Price::default();
    };
    let fallback = table.table("fallback", &shape::FALLBACK, findings);
    Price {
        file: table.text("file", findings),
        order: table.text("order", findings),
        fallback: fallback.map(|rates| fallback_of(&rates, findings)),
        mode: table.text("mode", findings),
        markup: table.text("markup", findings),
    }
}

fn fallback_of(table: &Reader<'_, '_>, findings: &mut Findings<'_>) -> Fallback {
    for rate in ["input", "output"] {
        if !table.has(rate) {
            table.missing(rate, findings);
        }
    }
    Fallback {
        at: table.at,
        input: table.rate("input", findings),
        cache_read: table.rate("cache_read", findings),
        cache_write_5m: table.rate("cache_write_5m", findings),
        cache_write_1h: table.rate("cache_write_1h", findings),
        output: table.rate("output", findings),
        audio_in: table.rate("audio_in", findings),
        audio_out: table.rate("audio_out", findings),
    }
}

fn ledger(root: &Reader<'_, '_>, findings: &mut Findings<'_>) -> Ledger {
    let Some(table) = root.table("ledger", &shape::LEDGER, findings) else {
        return Ledger::default();
    };
    Ledger {
        enabled: table.boolean("enabled", findings),
        slab_dir: table.text("slab_dir", findings),
        segment_bytes: table.size("segment_bytes", findings),
        when_full: table.text("when_full", findings),
        orphans: table.text("orphans", findings),
    }
}

fn log(root: &Reader<'_, '_>, findings: &mut Findings<'_>) -> Log {
    let Some(table) = root.table("log", &shape::LOG, findings) else { return Log::default() };
    Log { access: table.text("access", findings), errors: table.text("errors", findings) }
}

fn limits(root: &Reader<'_, '_>, findings: &mut Findings<'_>) -> Limits {
    let Some(table) = root.table("limits", &shape::LIMITS, findings) else {
        return Limits::default();
    };
    Limits {
        request_bytes: table.size("request_bytes", findings),
        held_bytes: table.size("held_bytes", findings),
        hold_output_max: table.tokens("hold_output_max", findings),
    }
}

fn deadlines(root: &Reader<'_, '_>, findings: &mut Findings<'_>) -> Deadlines {
    let Some(table) = root.table("deadlines", &shape::DEADLINES, findings) else {
        return Vec::new();
    };
    let keys = shape::DEADLINES.keys.iter();
    keys.filter_map(|key| Some((key.name, table.duration(key.name, findings)?))).collect()
}
