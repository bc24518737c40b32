//! The configuration a scenario runs under: a provider that takes every model in the chat dialect,
//! one that takes Claude's in the messages dialect, the key of the corpus, and what the scenario
//! adds.

use crate::books::{Books, FEW};
use crate::secured::Papers;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::record::Settled;
use tollgate::config::{Config, Env, parse};
use tollgate::control::keys;
use tollgate::exchange::keys::KeyTable;
use tollgate::exchange::time::UnixMs;
use tollgate::io::runtime::Choice;
use tollgate::observe::counters::Counters;
use tollgate::observe::ledger::LedgerGauges;
use tollgate::server::thread::Setup;
use tollgate::shard::mailbox::Mailbox;
use tollgate::shard::told::Told;
use tollgate::upstream::addresses::Addresses;

/// The good key of the corpus.
pub const KEY: &str = "sk-test";

/// Its SHA-256.
const KEY_DIGEST: &str = "f3abf2a6cc4f00987743db5f544ba345b4899ae31f326d8ee9c4816de153c9e0";

/// The provider's credential.
pub const UPSTREAM_KEY: &str = "sk-of-the-provider";

/// Records one scenario may settle.
const RECORDS_MAX: usize = 4096;

/// A world with a few variables and a few files.
struct Stage;

impl Env for Stage {
    fn var(&self, name: &str) -> Option<String> {
        // `KEY_ONE` is `sk-one`.
        let named = name.strip_prefix("KEY_").map(|rest| format!("sk-{}", rest.to_lowercase()));
        named.or_else(|| (name == "UPSTREAM_KEY").then(|| UPSTREAM_KEY.to_owned()))
    }

    fn read_file(&self, path: &Path) -> io::Result<String> {
        let papers = Papers::usual();
        match path.to_str() {
            Some("prices.json") => Ok(PRICES.to_owned()),
            Some("ca.pem" | "ca-too.pem") => Ok(papers.ca.clone()),
            Some("chain.pem") => Ok(papers.chain.clone()),
            Some("key.pem") => Ok(papers.key.clone()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn cores(&self) -> usize {
        1
    }
}

/// Of `a`, one token in costs 10 pico-dollars and one out 100; of `claude-a`, each bucket has a
/// price of its own; `claude-real` has the prices of the field cases.
const PRICES: &str = r#"{"version": 7, "models": [{"provider": "up", "model": "a",
    "tiers": [{"above_input": 0, "input": 10, "output": 100}]},
    {"provider": "claude", "model": "claude-a",
    "tiers": [{"above_input": 0, "input": 1000, "cache_read": 10, "cache_write_5m": 100,
    "cache_write_1h": 10000, "output": 100000}]},
    {"provider": "claude", "model": "claude-real",
    "tiers": [{"above_input": 0, "input": 3000000, "cache_write_5m": 3750000,
    "cache_write_1h": 6000000, "output": 15000000}]}]}"#;

/// The same, where `{1}` in it stands for the first of these addresses.
#[must_use]
pub fn config_of(upstream: SocketAddr, hosts: &[SocketAddr], more: &str, tls: bool) -> Config {
    let named = hosts.iter().enumerate().fold(more.to_owned(), |text, (nth, at)| {
        text.replace(&format!("{{{}}}", nth + 1), &at.to_string())
    });
    compiled(&text(upstream, &named), tls)
}

/// Compiles the usual configuration with `more` behind it.
#[must_use]
pub fn config(upstream: SocketAddr, more: &str) -> Config {
    compiled(&text(upstream, more), false)
}

/// Every provider behind `https`, and the listener with a certificate, if that is asked for.
fn compiled(text: &str, tls: bool) -> Config {
    let text = match tls {
        true => format!("{LISTEN}\n{}", text.replace(PLAIN, SECURED)),
        false => text.to_owned(),
    };
    parse("tollgate.toml", &text, &Stage).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

const LISTEN: &str = r#"listen = { tls = { cert_file = "chain.pem", key_file = "key.pem" } }"#;
const PLAIN: &str = "base_url = \"http://";
const SECURED: &str = "ca_file = \"ca.pem\"\nbase_url = \"https://";

fn text(upstream: SocketAddr, more: &str) -> String {
    format!(
        r#"state_dir = "nowhere"

[[provider]]
name = "up"
kind = "openai"
base_url = "http://{upstream}/v1"
credentials = [{{ name = "main", key = "${{UPSTREAM_KEY}}" }}]
models = ["*"]

[[provider]]
name = "claude"
kind = "anthropic"
base_url = "http://{upstream}"
credentials = [{{ name = "main", key = "${{UPSTREAM_KEY}}" }}]
models = ["claude-*"]

[[key]]
name = "test"
sha256 = "{KEY_DIGEST}"

[price]
file = "prices.json"

{more}"#
    )
}

/// What a shard is made of, and what is read from it afterwards.
pub(crate) struct Kit {
    pub(crate) mailbox: Mailbox,
    pub(crate) keys: Arc<KeyTable>,
    pub(crate) counters: Arc<Counters>,
    records: Arc<Told>,
    books: Books,
    /// Some may have been served without a record.
    unrecorded: bool,
}

/// A shard under `config`.
pub(crate) fn setup(
    config: &Config,
    driver: Choice,
    mailbox: Mailbox,
    ledger_fails: bool,
) -> (Setup, Kit) {
    let ledger = Arc::new(LedgerGauges::default());
    // A place in the names of its healths: anything but the first is not good.
    ledger.health.store(u64::from(ledger_fails), Ordering::Relaxed);
    let (slab, books) = Books::open(FEW);
    let records = Arc::new(Told::all(RECORDS_MAX));
    let kit = Kit {
        mailbox,
        keys: Arc::new(keys::declared(&config.keys, UnixMs(0))),
        counters: Arc::default(),
        records,
        books,
        unrecorded: ledger_fails,
    };
    let setup = Setup {
        number: 0,
        node: *b"tst",
        start: 1,
        driver,
        core: None,
        snapshot: config.snapshot.clone(),
        identity: config.listen_tls.as_ref().map(|listen| listen.papers.tls.clone()),
        addresses: Arc::new(Addresses::default()),
        keys: kit.keys.clone(),
        mailbox: kit.mailbox.clone(),
        counters: kit.counters.clone(),
        slab: Some(slab),
        ledger,
        shards: 1,
        records: Some(kit.records.clone()),
    };
    (setup, kit)
}

impl Kit {
    /// What was settled, after the shard's end: exchanges, refusals. Whoever listens has heard of
    /// all of it.
    pub(crate) fn settled(self) -> (Vec<Settled>, Vec<Settled>) {
        let told: Vec<[u8; 16]> =
            std::iter::from_fn(|| self.records.pop()).map(|record| record.request_id).collect();
        let (exchanges, refusals) = self.books.settled();
        let mut ids: Vec<[u8; 16]> =
            exchanges.iter().chain(&refusals).map(|record| record.request_id).collect();
        let mut told = told;
        told.sort_unstable();
        ids.sort_unstable();
        if !self.unrecorded {
            assert_eq!(told, ids, "told and recorded");
        }
        (exchanges, refusals)
    }
}
