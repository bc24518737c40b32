//! `[retry]`, `[breaker]` and `[endings]`: how the walk goes on, when an upstream rests, and what
//! an ending means for the answer and its money.
//!
//! What a route does not say of its own is that of all routes, and what nobody says has a default.
//! A drain's bounds under another rule than `drain_short` would change nothing and are refused.

use super::file::File;
use super::findings::{At, Findings, Text};
use super::names::choice;
use super::reader::Reader;
use super::shape;
use crate::exchange::breaker::BreakerRules;
use crate::exchange::retry::RetryRules;
use crate::exchange::rules::{ClientLeft, EndingRules, Endings, Unreported};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Most attempts at one candidate: an upstream that has failed so often has had its chance.
const ATTEMPTS_MAX: u32 = 10;

/// Most failures that a breaker counts: what its word has room for.
const FAILURES_MAX: u32 = 15;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The three tables as written.
#[derive(Debug)]
pub(super) struct Resilience {
    retry: Retry,
    breaker: Breaker,
    endings: WrittenEndings,
}

impl Resilience {
    /// Reads them.
    pub(super) fn read(root: &Reader<'_, '_>, findings: &mut Findings<'_>) -> Resilience {
        Resilience {
            retry: retry(root, findings),
            breaker: breaker(root, findings),
            endings: endings(root, findings),
        }
    }
}

/// `[retry]`.
#[derive(Debug, Default)]
struct Retry {
    attempts: Option<At<u32>>,
    backoff: Option<At<Duration>>,
    backoff_max: Option<At<Duration>>,
    budget: Option<At<Duration>>,
    possibly_billed: Option<At<bool>>,
}

/// `[breaker]`.
#[derive(Debug, Default)]
struct Breaker {
    failures: Option<At<u32>>,
    window: Option<At<Duration>>,
    open: Option<At<Duration>>,
    slow_start: Option<At<Duration>>,
    cooldown: Option<At<Duration>>,
}

/// `[endings]`: what holds for all routes, and what a route has of its own.
#[derive(Debug, Default)]
struct WrittenEndings {
    all: RouteEndings,
    chat_completions: RouteEndings,
    messages: RouteEndings,
}

/// The endings of one route.
#[derive(Debug, Default)]
struct RouteEndings {
    client_left: Option<Text>,
    drain_time: Option<At<Duration>>,
    drain_bytes: Option<At<u64>>,
    succeeded_unreported: Option<Text>,
    broken_unreported: Option<Text>,
    left_unreported: Option<Text>,
}

/// Compiles `[retry]`.
pub(super) fn retry_rules(file: &File, findings: &mut Findings<'_>) -> RetryRules {
    let (written, usual) = (&file.resilience.retry, RetryRules::default());
    let mut span = |name, value: &Option<At<Duration>>, default, range| {
        span(("retry", name), value.as_ref(), default, range, findings)
    };
    let backoff_ms = span("backoff", &written.backoff, usual.backoff_ms, s(0)..=s(60));
    let most = &written.backoff_max;
    let backoff_max_ms = span("backoff_max", most, usual.backoff_max_ms, s(0)..=s(300));
    let budget_ms = span("budget", &written.budget, usual.budget_ms, s(1)..=s(3_600));
    if backoff_max_ms < backoff_ms {
        let at = most.as_ref().or(written.backoff.as_ref()).map_or(0, |span| span.at);
        findings.error(at, "\"backoff_max\" in [retry] is below \"backoff\"");
    }
    let attempts = &written.attempts;
    let most = 1..=ATTEMPTS_MAX;
    let attempts = small(("retry", "attempts"), attempts.as_ref(), usual.attempts, most, findings);
    let possibly_billed = written.possibly_billed.as_ref().is_some_and(|yes| yes.value);
    RetryRules { attempts, backoff_ms, backoff_max_ms, budget_ms, possibly_billed }
}

/// Compiles `[breaker]`.
pub(super) fn breaker_rules(file: &File, findings: &mut Findings<'_>) -> BreakerRules {
    let (written, usual) = (&file.resilience.breaker, BreakerRules::default());
    let failures = written.failures.as_ref();
    let most = 0..=FAILURES_MAX;
    let failures = small(("breaker", "failures"), failures, usual.failures, most, findings);
    let mut span = |name, value: &Option<At<Duration>>, default, range| {
        span(("breaker", name), value.as_ref(), default, range, findings)
    };
    BreakerRules {
        failures,
        window_ms: span("window", &written.window, usual.window_ms, s(1)..=s(3_600)),
        open_ms: span("open", &written.open, usual.open_ms, ms(100)..=s(3_600)),
        slow_start_ms: span("slow_start", &written.slow_start, usual.slow_start_ms, s(0)..=s(600)),
        cool_max_ms: span("cooldown", &written.cooldown, usual.cool_max_ms, s(0)..=s(3_600)),
    }
}

/// Compiles `[endings]`.
pub(super) fn ending_rules(file: &File, findings: &mut Findings<'_>) -> Endings {
    let WrittenEndings { all, chat_completions, messages } = &file.resilience.endings;
    let common = route(all, EndingRules::default(), findings);
    let routes = [chat_completions, messages];
    // A bound for all is of use as long as one route drains shortly.
    let mut used = common.client_left == ClientLeft::DrainShort;
    let [chat_completions, messages] = routes.map(|written| {
        let rules = route(written, common, findings);
        let short = rules.client_left == ClientLeft::DrainShort;
        used |= short;
        if !short {
            inert(written, findings);
        }
        rules
    });
    if !used {
        inert(all, findings);
    }
    Endings { chat_completions, messages }
}

fn inert(written: &RouteEndings, findings: &mut Findings<'_>) {
    let places = [
        ("drain_time", written.drain_time.as_ref().map(|span| span.at)),
        ("drain_bytes", written.drain_bytes.as_ref().map(|size| size.at)),
    ];
    for (name, at) in places {
        let Some(at) = at else { continue };
        let why = "has an effect under client_left = \"drain_short\" only";
        findings.error(at, format!("\"{name}\" in [endings] {why}"));
    }
}

fn route(written: &RouteEndings, usual: EndingRules, findings: &mut Findings<'_>) -> EndingRules {
    let left = written.client_left.as_ref();
    let left = left.and_then(|text| {
        choice(text, "\"client_left\" in [endings]", &ClientLeft::NAMES, findings)
    });
    let time = written.drain_time.as_ref();
    let drain_ms =
        span(("endings", "drain_time"), time, usual.drain_ms, ms(100)..=s(600), findings);
    if let Some(size) = written.drain_bytes.as_ref().filter(|size| size.value > DRAIN_BYTES_MAX) {
        findings.error(size.at, "\"drain_bytes\" in [endings] must be at most 1GiB");
    }
    let mut unreported = |name: &str, text: &Option<Text>, usual| {
        let what = format!("\"{name}\" in [endings]");
        let chosen = text.as_ref();
        let chosen = chosen.and_then(|text| choice(text, &what, &Unreported::NAMES, findings));
        chosen.unwrap_or(usual)
    };
    EndingRules {
        client_left: left.unwrap_or(usual.client_left),
        drain_ms,
        drain_bytes: written.drain_bytes.as_ref().map_or(usual.drain_bytes, |size| size.value),
        succeeded_unreported: unreported(
            "succeeded_unreported",
            &written.succeeded_unreported,
            usual.succeeded_unreported,
        ),
        broken_unreported: unreported(
            "broken_unreported",
            &written.broken_unreported,
            usual.broken_unreported,
        ),
        left_unreported: unreported(
            "left_unreported",
            &written.left_unreported,
            usual.left_unreported,
        ),
    }
}

/// Most bytes of a short drain: beyond it `drain` is meant.
const DRAIN_BYTES_MAX: u64 = 1 << 30;

/// A time span within its bounds, in milliseconds.
fn span(
    (table, name): (&str, &str),
    written: Option<&At<Duration>>,
    default_ms: u32,
    range: RangeInclusive<Duration>,
    findings: &mut Findings<'_>,
) -> u32 {
    let Some(span) = written else { return default_ms };
    if !range.contains(&span.value) {
        let (from, to) = (range.start().as_millis(), range.end().as_secs());
        let what = format!("must be between {from}ms and {to}s");
        findings.error(span.at, format!("\"{name}\" in [{table}] {what}"));
    }
    u32::try_from(span.value.as_millis()).unwrap_or(u32::MAX)
}

/// A small number.
fn small(
    (table, name): (&str, &str),
    written: Option<&At<u32>>,
    default: u8,
    range: RangeInclusive<u32>,
    findings: &mut Findings<'_>,
) -> u8 {
    let Some(number) = written else { return default };
    if !range.contains(&number.value) {
        let (least, most) = (range.start(), range.end());
        let what = format!("\"{name}\" in [{table}] must be from {least} to {most}");
        findings.error(number.at, what);
    }
    u8::try_from(number.value).unwrap_or(u8::MAX)
}

fn retry(root: &Reader<'_, '_>, findings: &mut Findings<'_>) -> Retry {
    let Some(table) = root.table("retry", &shape::RETRY, findings) else {
        return Retry::default();
    };
    Retry {
        attempts: table.count("attempts", findings),
        backoff: table.duration("backoff", findings),
        backoff_max: table.duration("backoff_max", findings),
        budget: table.duration("budget", findings),
        possibly_billed: table.boolean("possibly_billed", findings),
    }
}

fn breaker(root: &Reader<'_, '_>, findings: &mut Findings<'_>) -> Breaker {
    let Some(table) = root.table("breaker", &shape::BREAKER, findings) else {
        return Breaker::default();
    };
    Breaker {
        failures: table.count("failures", findings),
        window: table.duration("window", findings),
        open: table.duration("open", findings),
        slow_start: table.duration("slow_start", findings),
        cooldown: table.duration("cooldown", findings),
    }
}

fn endings(root: &Reader<'_, '_>, findings: &mut Findings<'_>) -> WrittenEndings {
    let Some(table) = root.table("endings", &shape::ENDINGS, findings) else {
        return WrittenEndings::default();
    };
    let mut route = |name: &str| {
        let own = table.table(name, &shape::ROUTE_ENDINGS, findings);
        own.map(|own| route_endings(&own, findings)).unwrap_or_default()
    };
    let (chat_completions, messages) = (route("chat_completions"), route("messages"));
    WrittenEndings { all: route_endings(&table, findings), chat_completions, messages }
}

fn route_endings(table: &Reader<'_, '_>, findings: &mut Findings<'_>) -> RouteEndings {
    RouteEndings {
        client_left: table.text("client_left", findings),
        drain_time: table.duration("drain_time", findings),
        drain_bytes: table.size("drain_bytes", findings),
        succeeded_unreported: table.text("succeeded_unreported", findings),
        broken_unreported: table.text("broken_unreported", findings),
        left_unreported: table.text("left_unreported", findings),
    }
}
