//! The promises of the configuration: what a good file becomes, what each kind of bad one says,
//! and that no secret is ever in it.

use super::snapshot::{Host, ProviderKind};
use super::*;
use crate::exchange::ids::ProviderId;
use crate::exchange::price::Mode;
use crate::io::runtime::Choice;
use std::collections::HashMap;
use std::io;
use std::time::Duration;

mod docs;
mod governing;
mod mutations;
mod operating;
mod refusals;
mod resilience;
mod secrets;
mod secured;
mod values;

pub(super) const SECRET: &str = "sk-0123456789abcdefSECRET";

/// A world made of two tables.
#[derive(Default)]
pub(in crate::config) struct World {
    pub(super) variables: HashMap<&'static str, String>,
    pub(super) files: HashMap<&'static str, String>,
}

impl World {
    pub(in crate::config) fn usual() -> World {
        let variables = [
            ("OPENAI_API_KEY", SECRET.to_owned()),
            ("LOCAL_API_KEY", SECRET.to_owned()),
            ("EMPTY", String::new()),
            ("BROKEN", format!("{SECRET}\r\nX-Evil: 1")),
            ("HOME", "/home/op".to_owned()),
        ];
        let files = [
            ("/etc/tollgate/secret", format!("{SECRET}\n")),
            ("/etc/tollgate/two-lines", format!("{SECRET}\n{SECRET}\n")),
            ("/sys/class/net/eth0/ifindex", "7\n".to_owned()),
            ("/etc/tollgate/prices.json", PRICES.to_owned()),
            ("/etc/tollgate/bad.json", "{\n  \"version\": 1.5\n}".to_owned()),
        ];
        World { variables: variables.into(), files: files.into() }
    }
}

impl Env for World {
    fn var(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn read_file(&self, path: &Path) -> io::Result<String> {
        let known = path.to_str().and_then(|path| self.files.get(path));
        known.cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn cores(&self) -> usize {
        3
    }

    fn memory_bytes(&self) -> u64 {
        3 << 29
    }
}

const PRICES: &str = r#"{"version": 9, "models": [
    {"provider": "local", "model": "llama", "tiers": [{"above_input": 0, "input": 1, "output": 2}]}
]}"#;

/// Every key that is read, but those of `[price]`, of TLS and of the tables in `resilience`, each
/// with a value that is not its default.
pub(super) const FULL: &str = r#"node = "edge-1"
state_dir = "state"
[listen]
data = "127.0.0.1:5180"
admin = "[::1]:5181"

[shards]
count = 2
driver = "epoll"

[[provider]]
name = "openai"
kind = "openai"
base_url = "http://api.openai.test/v1/"
credentials = [{ name = "main", key = "${OPENAI_API_KEY}" }]
models = ["gpt-*", "o3"]
markup = "1.2"
[[provider]]
name = "claude"
kind = "anthropic"
base_url = "http://127.0.0.1:9001"
credentials = [{ name = "main", key = "file:secret" }]
mode = "platform_fee"
[[model]]
name = "fast"
candidates = [{ provider = "openai", model = "gpt-4o-mini" }]

[[model]]
name = "gpt-4.1"
candidates = [{ provider = "openai" }]

[alias]
default = "fast"
"openai/gpt-x" = "openai/gpt-4o"
old = "gpt-5"

[[key]]
name = "first"
sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF"

[[key]]
name = "second"
sha256 = "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

[limits]
request_bytes = "1MiB"
held_bytes = 4194304
hold_output_max = 512
[deadlines]
connect = "1s"
first_byte = "2m"
between_bytes = "3m"
header = "4s"
body = "500ms"
client_idle = "1h"
half_closed = "11s"
write_stall = "6s"
pooled = "7s"
drain = "8s"
heartbeat = "9s"

[ledger]
enabled = true
slab_dir = "/dev/shm/slabs"
segment_bytes = "16MiB"
when_full = "serve_unrecorded"
orphans = "charge_hold"

[[key]]
name = "limited"
sha256 = "2123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
requests_per_minute = 60
concurrent = 0
budget_total = "1.00"
budget_month = "0.5"
strict = true
expires = "2027-01-01T02:00:00+02:00"
models = ["GPT-*", "openai/o3"]
"#;

pub(super) const MINIMAL: &str = r#"
[[provider]]
name = "openai"
kind = "openai"
base_url = "http://127.0.0.1:9000/v1"
credentials = [{ name = "main", key = "${OPENAI_API_KEY}" }]
models = ["gpt-*"]
"#;

pub(super) fn read(text: &str) -> Result<Config, ConfigErrors> {
    parse("/etc/tollgate/tollgate.toml", text, &World::usual())
}

pub(super) fn good(text: &str) -> Config {
    read(text).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The errors of a file, without its folder.
fn errors(text: &str) -> Vec<String> {
    match read(text) {
        Ok(_) => Vec::new(),
        Err(errors) => {
            errors.to_string().lines().map(|line| line.replace("/etc/tollgate/", "")).collect()
        }
    }
}

/// `FULL` with one part of it changed must give exactly these errors.
fn changed(from: &str, to: &str, wanted: &[&str]) {
    assert_eq!(FULL.matches(from).count(), 1, "{from:?} is in the file once");
    assert_eq!(errors(&FULL.replace(from, to)), wanted, "{from:?} → {to:?}");
}

#[test]
fn a_minimal_file_gets_every_default() {
    let config = good(MINIMAL);
    assert_eq!(config.listen_data.to_string(), "127.0.0.1:4180");
    assert_eq!(config.listen_admin.to_string(), "127.0.0.1:4181");
    assert_eq!((config.shards, config.driver), (3, Choice::Auto));
    assert_eq!(config.node, None);
    assert_eq!(config.snapshot.version, 1);
    assert_eq!(config.snapshot.deadlines, snapshot::Deadlines::default());
    let bounds = config.snapshot.bounds;
    assert_eq!((bounds.request_bytes, bounds.held_bytes), (32 << 20, 64 << 20));
    assert_eq!(config.snapshot.prices.version, 20_261_130);
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    let ledger = config.ledger.unwrap();
    assert_eq!(ledger.state_dir, Path::new("/home/op/.local/state/tollgate"));
    assert_eq!((ledger.slab_dir, ledger.runtime_dir), (None, None));
    assert_eq!(ledger.segment_bytes, ledger::SEGMENT_BYTES);
    assert_eq!((ledger.orphans, ledger.when_full), Default::default());
    let terms = &config.snapshot.terms;
    assert_eq!((terms.hold_output_max, &terms.fallback), (4096, &None));
    assert_eq!(config.snapshot.provider(ProviderId(0)).mode, Mode::default());
}

#[test]
fn every_key_of_a_full_file_is_in_the_result() {
    let config = good(FULL);
    assert_eq!(config.node.as_deref(), Some("edge-1"));
    assert_eq!(config.listen_data.to_string(), "127.0.0.1:5180");
    assert_eq!(config.listen_admin.to_string(), "[::1]:5181");
    assert_eq!((config.shards, config.driver), (2, Choice::Epoll));
    let snapshot = &config.snapshot;
    let openai = snapshot.provider(ProviderId(0));
    assert_eq!(openai.kind, ProviderKind::OpenAi);
    assert_eq!(openai.host, Host::Name("api.openai.test".into()));
    assert_eq!((&*openai.authority, openai.port), ("api.openai.test", 80));
    assert_eq!(&*openai.base_path, "/v1");
    assert_eq!(openai.credentials[0].secret.reveal(), SECRET);
    assert!(openai.serves("gpt-9") && openai.serves("o3") && !openai.serves("o3-mini"));
    let claude = snapshot.provider(ProviderId(1));
    assert_eq!(claude.credentials[0].secret.reveal(), SECRET, "without the line break");
    assert_eq!(&*claude.base_path, "");
    let fast = &snapshot.models["fast"].candidates;
    assert_eq!(fast[0].model.as_deref(), Some("gpt-4o-mini"));
    let rates = |c: &crate::exchange::plan::Candidate| {
        snapshot.prices.at(c.price.unwrap()).unwrap().tiers[0].rates
    };
    assert_eq!((rates(&fast[0]).input, rates(&fast[0]).output), (150_000, 600_000));
    assert_eq!(snapshot.models["gpt-4.1"].candidates[0].model.as_deref(), Some("gpt-4.1"));
    assert_eq!(&*snapshot.aliases["default"], "fast");
    assert_eq!(&*snapshot.aliases["openai/gpt-x"], "openai/gpt-4o");
    assert_eq!(&*snapshot.aliases["old"], "gpt-5");
    let mut digest = [0; 32];
    for (n, byte) in digest.iter_mut().enumerate() {
        *byte = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef][n % 8];
    }
    assert_eq!((&*config.keys[0].name, config.keys[0].digest), ("first", digest));
    assert_eq!(config.keys.len(), 3);
    assert_eq!(snapshot.bounds.request_bytes, 1 << 20);
    assert_eq!(snapshot.bounds.held_bytes, 4 << 20);
    let d = snapshot.deadlines;
    let ms = [
        d.connect,
        d.first_byte,
        d.between_bytes,
        d.header,
        d.body,
        d.client_idle,
        d.half_closed,
        d.write_stall,
        d.pooled,
        d.drain,
        d.heartbeat,
    ];
    let wanted =
        [1_000, 120_000, 180_000, 4_000, 500, 3_600_000, 11_000, 6_000, 7_000, 8_000, 9_000];
    assert_eq!(ms, wanted.map(Duration::from_millis));
}

#[test]
fn a_price_file_replaces_the_built_in_prices() {
    let text = MINIMAL.replace("name = \"openai\"", "name = \"local\"")
        + "[price]\nfile = \"prices.json\"\n[[model]]\nname = \"m\"\n\
           candidates = [{ provider = \"local\", model = \"llama\" }]\n";
    let config = good(&text);
    assert_eq!(config.snapshot.prices.version, 9);
    let price = config.snapshot.models["m"].candidates[0].price.unwrap();
    assert_eq!(config.snapshot.prices.at(price).unwrap().tiers[0].rates.output, 2);
    assert_eq!(config.snapshot.prices.lookup("openai", "gpt-4o"), None);
}

#[test]
fn a_model_may_be_served_in_either_dialect() {
    let served = FULL
        .replace(
            "base_url = \"http://127.0.0.1:9001\"",
            "base_url = \"http://127.0.0.1:9001\"\nmodels = [\"gpt-*\"]",
        )
        .replace("default = \"fast\"", "default = \"claude/opus\"");
    let config = good(&format!(
        "{served}\n[[model]]\nname = \"m\"\ncandidates = [{{ provider = \"claude\" }}]"
    ));
    assert_eq!(config.snapshot.models["m"].candidates[0].provider, ProviderId(1));
    assert!(config.snapshot.providers.iter().all(|provider| provider.serves("gpt-5")));
}

#[test]
fn what_is_allowed_and_probably_not_meant_is_a_warning_with_its_line() {
    let text =
        format!("{FULL}\n[[model]]\nname = \"m\"\ncandidates = [{{ provider = \"openai\" }}]")
            .replace("\"127.0.0.1:5180\"", "\"0.0.0.0:5180\"")
            .replace("127.0.0.1:9001", "127.0.0.1:9001/v1");
    let config = good(&text);
    let warnings: Vec<String> =
        config.warnings.iter().map(|warning| warning.located("t")).collect();
    assert_eq!(
        warnings,
        [
            "t:4:8: \"data\" in [listen] is reachable from other machines, without TLS",
            "t:21:12: base_url ends in /v1: calls to providers of kind anthropic add it themselves",
            "t:82:15: no price is known for \"m\" of provider \"openai\": its calls count as zero, \
             and keys with a budget cannot make them",
        ]
    );
}

#[test]
fn a_report_tells_all_and_no_secret() {
    let config = good(&FULL.replace("\"127.0.0.1:5180\"", "\"0.0.0.0:5180\""));
    let text = check::report(&config);
    for part in [
        "tollgate.toml:4:8: \"data\" in [listen] is reachable",
        "node       edge-1",
        "data 0.0.0.0:5180, admin [::1]:5181",
        "shards     2, driver epoll",
        "openai (openai) at http://api.openai.test/v1, serves gpt-*, o3",
        "claude (anthropic) at http://127.0.0.1:9001\n",
        "model      fast -> openai/gpt-4o-mini\n",
        "alias      old -> gpt-5",
        "keys       3",
        "prices     version 20261130",
        "ledger     /etc/tollgate/state, when full: serve_unrecorded, orphans: charge_hold",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&check::report_json(&config)).unwrap();
    assert_eq!(json["usable"], true);
    assert_eq!(json["warnings"][0]["line"], 4);
    assert_eq!(json["providers"][1]["dialled"], "127.0.0.1:9001");
    assert_eq!(json["models"][0]["candidates"][0]["model"], "gpt-4o-mini");
    assert_eq!(json["keys"], 3);
    assert_eq!(json["ledger"]["state_dir"], "/etc/tollgate/state");
    for shown in [text, json.to_string(), format!("{config:?}")] {
        assert!(!shown.contains(SECRET), "{shown}");
    }
    let refused = read("node = 1").unwrap_err();
    let json: serde_json::Value = serde_json::from_str(&check::errors_json(&refused)).unwrap();
    assert_eq!(json["usable"], false);
    assert_eq!((&json["errors"][1]["line"], &json["errors"][1]["column"]), (&1.into(), &8.into()));
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_without_a_place() {
    let errors = load(Path::new("/nowhere.toml"), &World::usual()).unwrap_err();
    assert_eq!(errors.to_string(), "/nowhere.toml: cannot be read: entity not found");
    let real = ProcessEnv.read_file(Path::new("/nowhere/at/all.toml")).unwrap_err();
    assert_eq!(real.kind(), io::ErrorKind::NotFound);
    assert!(ProcessEnv.read_file(Path::new("Cargo.toml")).unwrap().contains("tollgate"));
    assert!(ProcessEnv.cores() >= 1);
    let endless = ProcessEnv.read_named(Path::new("/dev/zero")).unwrap_err();
    assert_eq!(endless.kind(), io::ErrorKind::FileTooLarge);
}
