//! Who and what there is in a simulated world: providers and their models, keys and their limits,
//! deadlines; and the configuration that tells the gateway of them.

use crate::dice::Dice;
use ring::digest::{SHA256, digest};
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tollgate::config::snapshot::Snapshot;
use tollgate::config::{Env, parse};
use tollgate::exchange::bundle::Bundle;
use tollgate::exchange::ids::{BudgetId, KeyId};
use tollgate::exchange::keys::{Digest, KeyTable};
use tollgate::exchange::limits::{Book, Books, KeyLimits, Limits};
use tollgate::exchange::models::AllowList;
use tollgate::exchange::money::PicoUsd;
use tollgate::exchange::time::UnixMs;
use tollgate::exchange::window::Period;
use tollgate::exchange::words::MoneyLimit;

/// Deadlines of a simulated node: short, and far enough apart from each other and from the tick
/// of 100 ms that whoever keeps one or breaks one does so beyond doubt.
pub(crate) const CONNECT: Duration = Duration::from_secs(1);
pub(crate) const FIRST_BYTE: Duration = Duration::from_secs(4);
pub(crate) const HEADER: Duration = Duration::from_secs(2);
pub(crate) const BODY: Duration = Duration::from_secs(2);
pub(crate) const CLIENT_IDLE: Duration = Duration::from_secs(8);
pub(crate) const WRITE_STALL: Duration = Duration::from_secs(3);
pub(crate) const POOLED: Duration = Duration::from_secs(10);

/// The largest request body that is taken.
pub(crate) const REQUEST_BYTES: usize = 256 * 1024;

/// Body bytes that a shard may hold.
pub(crate) const HELD_BYTES: u64 = 4 * 1024 * 1024;

/// Tokens of an answer whose cap is not given.
const OUTPUT_DEFAULT: u64 = 1_000;

/// Output that a likely hold covers at most.
const HOLD_OUTPUT_MAX: u64 = 4_096;

/// Output that a strict hold covers without a cap.
const OUTPUT_MOST: u64 = 128_000;

/// Whether a provider can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Open,
    Refused,
    BlackHole,
}

/// What calls and answers are spoken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Chat,
    Messages,
}

/// Who serves models.
#[derive(Clone, Debug)]
pub(crate) struct Provider {
    pub(crate) name: &'static str,
    pub(crate) dialect: Dialect,
    pub(crate) secret: String,
    pub(crate) at: SocketAddr,
    pub(crate) reach: Reach,
    /// Parts in a million of the upstream's cost that a key pays.
    pub(crate) ppm: u32,
    /// How that is said in the configuration.
    terms: &'static str,
}

/// Where a call for a model may go.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) provider: usize,
    pub(crate) sent: &'static str,
    /// Pico-dollars a token of input, cached input and output; none: it has no price.
    pub(crate) rates: Option<[u64; 3]>,
    priority: u32,
    weight: u32,
}

/// A model as clients ask for it; its candidates in the order of their places.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) asked: &'static str,
    pub(crate) candidates: Vec<Candidate>,
    /// Whether a `[[model]]` names it, or a provider says that it serves it.
    listed: bool,
}

/// How often and when an upstream is asked again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    pub(crate) attempts: u64,
    /// A request is sent again although it may be billed twice.
    pub(crate) billed_twice: bool,
    failures: u64,
    open: Duration,
}

/// What becomes of money when an ending does not say what was used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endings {
    client_left: &'static str,
    /// Nothing is charged for a success, for what broke, for what its client left.
    pub(crate) succeeded_free: bool,
    pub(crate) broken_free: bool,
    pub(crate) left_free: bool,
}

/// A client's key.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) rpm: Option<u32>,
    pub(crate) concurrent: Option<u32>,
    pub(crate) total: Option<u64>,
    pub(crate) month: Option<u64>,
    pub(crate) strict: bool,
    /// Names of models, if only some are allowed.
    pub(crate) models: Option<Vec<&'static str>>,
}

/// A world.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) providers: Vec<Provider>,
    pub(crate) models: Vec<Model>,
    pub(crate) keys: Vec<Key>,
    pub(crate) retry: Retry,
    pub(crate) endings: Endings,
    /// How long a stream's client hears nothing.
    pub(crate) heartbeat: Duration,
    pub(crate) drain: Duration,
    /// How long an answer may rest between two of its bytes.
    pub(crate) between: Duration,
    /// Milliseconds of the wall clock at the start.
    pub(crate) wall: u64,
}

/// 2026-01-31T23:59:30Z: half a minute before the end of a month.
const MONTH_ENDS: u64 = 1_769_903_970_000;

/// 2026-01-15T12:00:00Z.
const MONTH_MIDDLE: u64 = 1_768_478_400_000;

// === impl World ===

impl World {
    pub(crate) fn draw(dice: &mut Dice) -> World {
        let providers = Provider::draw_all(dice);
        let models = Model::draw_all(dice);
        let keys = (0..dice.between(2, 5)).map(|nth| Key::draw(nth, &models, dice)).collect();
        let retry = Retry {
            attempts: dice.weighted(&[(40, 1), (30, 2), (30, 3)]),
            billed_twice: dice.percent(20),
            failures: dice.weighted(&[(50, 15), (30, 5), (20, 2)]),
            open: dice.millis(500, 5_000),
        };
        let endings = Endings {
            client_left: dice.weighted(&[(60, "drain_short"), (20, "drain"), (20, "abort")]),
            succeeded_free: dice.percent(10),
            broken_free: dice.percent(15),
            left_free: dice.percent(15),
        };
        let heartbeat = dice.weighted(&[(50, 600), (30, 1_500), (20, 3_500)]);
        let drain = *dice.pick(&[Duration::from_secs(1), Duration::from_secs(5)]);
        World {
            providers,
            models,
            keys,
            retry,
            endings,
            heartbeat: Duration::from_millis(heartbeat),
            drain,
            // Beyond five seconds a silent stream holds no buffers any more.
            between: Duration::from_secs(dice.weighted(&[(60, 2), (40, 12)])),
            wall: if dice.percent(25) { MONTH_ENDS } else { MONTH_MIDDLE },
        }
    }

    /// The configuration.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        let text = self.toml();
        let stage = Stage(self);
        let config = parse("tollgate.toml", &text, &stage);
        config.unwrap_or_else(|errors| panic!("{errors}\n{text}")).snapshot
    }

    fn toml(&self) -> String {
        let mut text = String::from("state_dir = \"nowhere\"\n[price]\nfile = \"prices.json\"\n");
        let ms = |span: Duration| format!("\"{}ms\"", span.as_millis());
        let _ = write!(
            text,
            "[limits]\nrequest_bytes = \"{}KiB\"\nheld_bytes = \"{}KiB\"\n[deadlines]\n\
             connect = {}\nfirst_byte = {}\nbetween_bytes = {}\nheader = {}\nbody = {}\n\
             client_idle = {}\nwrite_stall = {}\npooled = {}\ndrain = {}\nheartbeat = {}\n",
            REQUEST_BYTES / 1024,
            HELD_BYTES / 1024,
            ms(CONNECT),
            ms(FIRST_BYTE),
            ms(self.between),
            ms(HEADER),
            ms(BODY),
            ms(CLIENT_IDLE),
            ms(WRITE_STALL),
            ms(POOLED),
            ms(self.drain),
            ms(self.heartbeat),
        );
        self.write_rules(&mut text);
        for provider in &self.providers {
            let Provider { name, at, terms, dialect, .. } = provider;
            let (kind, path) = match dialect {
                Dialect::Chat => ("openai", "/v1"),
                Dialect::Messages => ("anthropic", ""),
            };
            let _ = write!(
                text,
                "[[provider]]\nname = \"{name}\"\nkind = \"{kind}\"\n\
                 base_url = \"http://{at}{path}\"\n\
                 credentials = [{{ name = \"main\", key = \"${{{}}}\" }}]\n\
                 models = [\"served-by-{name}\"]\n{terms}\n",
                name.to_uppercase()
            );
        }
        for model in self.models.iter().filter(|model| model.listed) {
            let candidates = model.candidates.iter().map(|candidate| {
                let Candidate { sent, priority, weight, .. } = candidate;
                let provider = self.providers[candidate.provider].name;
                format!(
                    "{{ provider = \"{provider}\", model = '{sent}', priority = {priority}, \
                     weight = {weight} }}"
                )
            });
            let candidates = candidates.collect::<Vec<_>>().join(", ");
            let asked = model.asked;
            let _ = write!(text, "[[model]]\nname = \"{asked}\"\ncandidates = [{candidates}]\n");
        }
        text
    }

    fn write_rules(&self, text: &mut String) {
        let Retry { attempts, billed_twice, failures, open } = self.retry;
        let _ = write!(
            text,
            "[retry]\nattempts = {attempts}\nbackoff = \"100ms\"\nbackoff_max = \"1s\"\n\
             budget = \"8s\"\npossibly_billed = {billed_twice}\n\
             [breaker]\nfailures = {failures}\nwindow = \"5s\"\nopen = \"{}ms\"\n\
             slow_start = \"1s\"\ncooldown = \"1s\"\n",
            open.as_millis(),
        );
        let Endings { client_left, succeeded_free, broken_free, left_free } = self.endings;
        let rule = |free| if free { "release" } else { "charge" };
        let bounds = match client_left {
            "drain_short" => "drain_time = \"1s\"\ndrain_bytes = \"64KiB\"\n",
            _ => "",
        };
        let _ = write!(
            text,
            "[endings]\nclient_left = \"{client_left}\"\n{bounds}succeeded_unreported = \"{}\"\n\
             broken_unreported = \"{}\"\nleft_unreported = \"{}\"\n",
            rule(succeeded_free),
            rule(broken_free),
            rule(left_free),
        );
    }

    fn prices(&self) -> String {
        let candidates = self.models.iter().flat_map(|model| &model.candidates);
        let models = candidates.filter_map(|candidate| {
            let [input, cached, output] = candidate.rates?;
            Some(serde_json::json!({
                "provider": self.providers[candidate.provider].name,
                "model": candidate.sent,
                "tiers": [{
                    "above_input": 0, "input": input, "cache_read": cached, "output": output,
                }],
            }))
        });
        serde_json::json!({ "version": 7, "models": models.collect::<Vec<_>>() }).to_string()
    }

    /// The keys of a start, with what was spent before it.
    pub(crate) fn table(&self, now: UnixMs, spent: impl Fn(u32, u32) -> u64) -> KeyTable {
        let bundles = self.keys.iter().enumerate().map(|(nth, key)| {
            let book = |period: Period| {
                let id = budget_id(nth, period);
                let window = period.window(now).id.0;
                Book { id: BudgetId(id), spent: PicoUsd(spent(id, window)) }
            };
            let books = Books { total: book(Period::Total), month: book(Period::Month) };
            let limits = Limits::new(key.limits(), books, now);
            let bundle = Bundle::with_limits(KeyId(key_id(nth)), format!("key {nth}"), limits);
            (key.digest(), Arc::new(bundle))
        });
        KeyTable::of(bundles)
    }
}

/// The number of a key.
pub(crate) fn key_id(nth: usize) -> u64 {
    nth as u64 + 1
}

/// The number of a key's budget.
pub(crate) fn budget_id(nth: usize, period: Period) -> u32 {
    let number = 2 * nth as u32;
    match period {
        Period::Total => number + 1,
        Period::Month => number + 2,
    }
}

// === impl Provider ===

impl Provider {
    fn draw_all(dice: &mut Dice) -> Vec<Provider> {
        const TERMS: [(u32, &str); 4] = [
            (1_000_000, ""),
            (1_500_000, "markup = \"1.5\""),
            (1_333_333, "markup = \"1.333333\""),
            (100_000, "mode = \"platform_fee\""),
        ];
        const NAMES: [(&str, Dialect); 5] = [
            ("alpha", Dialect::Chat),
            ("beta", Dialect::Chat),
            ("gone", Dialect::Chat),
            ("cedar", Dialect::Messages),
            ("dune", Dialect::Messages),
        ];
        let down = dice.weighted(&[(1, Reach::Refused), (1, Reach::BlackHole)]);
        let named = NAMES.iter().enumerate().map(|(at, (name, dialect))| {
            let (ppm, terms) = *dice.pick(&TERMS);
            Provider {
                name,
                dialect: *dialect,
                secret: format!("sk-of-{name}-{:x}", dice.draw()),
                at: SocketAddr::from(([127, 0, 0, 1], 9_000 + at as u16)),
                reach: if *name == "gone" { down } else { Reach::Open },
                ppm,
                terms,
            }
        });
        named.collect()
    }
}

// === impl Model ===

/// Places of the providers.
const ALPHA: usize = 0;
const BETA: usize = 1;
const GONE: usize = 2;
const CEDAR: usize = 3;
const DUNE: usize = 4;

impl Model {
    fn draw_all(dice: &mut Dice) -> Vec<Model> {
        let mut at = |provider, sent, priority, weight| {
            let rates = [dice.between(1, 3_000), dice.between(0, 500), dice.between(1, 9_000)];
            let rates = (sent != UNPRICED).then_some(rates);
            Candidate { provider, sent, rates, priority, weight }
        };
        let mut one = |asked, provider, sent, listed| {
            let candidates = vec![at(provider, sent, 1, 1)];
            Model { asked, candidates, listed }
        };
        let mut models = vec![
            one("plain", ALPHA, "plain", true),
            one("renamed", ALPHA, "alpha-large-2026-01-01", true),
            one("other", BETA, "beta \"quoted\" name", true),
            one("beta/small", BETA, "small", false),
            one("served-by-beta", BETA, "served-by-beta", false),
            one("unpriced", ALPHA, UNPRICED, true),
            one("lost", GONE, "lost", true),
            one("talk", CEDAR, "talk-1", true),
            one("dune/hum", DUNE, "hum", false),
        ];
        let mut many = |asked, candidates| models.push(Model { asked, candidates, listed: true });
        many("either", vec![at(ALPHA, "either-a", 1, 1), at(BETA, "either-b", 2, 1)]);
        many("shared", vec![at(ALPHA, "shared-a", 1, 2), at(BETA, "shared-b", 1, 1)]);
        many(
            "long-way",
            vec![at(GONE, "way-g", 1, 1), at(ALPHA, "way-a", 2, 1), at(BETA, "way-b", 3, 1)],
        );
        many("twice", vec![at(ALPHA, "twice-big", 1, 1), at(ALPHA, "twice-small", 2, 1)]);
        many("chorus", vec![at(CEDAR, "chorus-c", 1, 1), at(DUNE, "chorus-d", 2, 1)]);
        many(
            "both",
            vec![at(ALPHA, "both-a", 1, 1), at(CEDAR, "both-c", 1, 1), at(DUNE, "both-d", 2, 1)],
        );
        models
    }

    /// The candidates that take a dialect, with their places.
    pub(crate) fn native<'m>(
        &'m self,
        world: &'m World,
        dialect: Dialect,
    ) -> impl Iterator<Item = (usize, &'m Candidate)> + Clone {
        let candidates = self.candidates.iter().enumerate();
        candidates.filter(move |(_, one)| world.providers[one.provider].dialect == dialect)
    }
}

/// The model that has no price.
const UNPRICED: &str = "nobody-knows-what-it-costs";

// === impl Key ===

impl Key {
    fn draw(nth: u64, models: &[Model], dice: &mut Dice) -> Key {
        // From what is gone after a call or two to what lasts.
        let mut money =
            |percent| dice.percent(percent).then(|| dice.log_between(500_000, 40_000_000_000));
        let (total, month) = (money(50), money(35));
        let allowed = models.iter().map(|model| model.asked);
        Key {
            text: format!("tg-client-{nth}-{:x}", dice.draw()),
            rpm: dice.percent(25).then(|| dice.log_between(1, 200) as u32),
            concurrent: dice.percent(30).then(|| dice.between(1, 6) as u32),
            total,
            month,
            strict: dice.percent(30),
            models: dice.percent(20).then(|| allowed.filter(|_| dice.percent(60)).collect()),
        }
    }

    pub(crate) fn digest(&self) -> Digest {
        let mut out = [0; 32];
        out.copy_from_slice(digest(&SHA256, self.text.as_bytes()).as_ref());
        out
    }

    pub(crate) fn has_budget(&self) -> bool {
        self.total.is_some() || self.month.is_some()
    }

    fn limits(&self) -> KeyLimits {
        let money = |limit: Option<u64>| limit.and_then(|pico| MoneyLimit::new(PicoUsd(pico)).ok());
        let models = self.models.as_ref();
        KeyLimits {
            requests_per_minute: self.rpm,
            concurrent: self.concurrent,
            budget_total: money(self.total),
            budget_month: money(self.month),
            strict: self.strict,
            expires: None,
            models: models.map(|list| AllowList::new(list.iter().copied()).expect("few models")),
        }
    }

    /// What a call holds of this key's budgets: the dearest candidate's.
    pub(crate) fn hold<'m>(
        &self,
        world: &World,
        candidates: impl Iterator<Item = &'m Candidate>,
        (input, cap, n): (u64, Option<u64>, u64),
    ) -> u64 {
        let held = candidates.filter_map(|candidate| {
            let [fresh, cached, out] = candidate.rates?;
            let (rate, output) = match self.strict {
                true => (fresh.max(cached), cap.unwrap_or(OUTPUT_MOST)),
                false => (fresh, cap.unwrap_or(OUTPUT_DEFAULT).min(HOLD_OUTPUT_MAX)),
            };
            let ppm = world.providers[candidate.provider].ppm;
            Some(debit(ppm, (input * rate + output * out) * n))
        });
        if self.has_budget() { held.max().unwrap_or(0) } else { 0 }
    }
}

/// What a key pays for an upstream's cost.
pub(crate) fn debit(ppm: u32, upstream: u64) -> u64 {
    let cost = (u128::from(upstream) * u128::from(ppm)).div_ceil(1_000_000);
    u64::try_from(cost).expect("small sums")
}

/// What the configuration refers to.
struct Stage<'w>(&'w World);

impl Env for Stage<'_> {
    fn var(&self, name: &str) -> Option<String> {
        let provider = self.0.providers.iter().find(|p| p.name.to_uppercase() == name);
        provider.map(|provider| provider.secret.clone())
    }

    fn read_file(&self, path: &Path) -> io::Result<String> {
        match path.to_str() {
            Some("prices.json") => Ok(self.0.prices()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn cores(&self) -> usize {
        1
    }

    fn memory_bytes(&self) -> u64 {
        1 << 30
    }
}
