//! Several candidates and credentials, `[retry]`, `[breaker]`, `[endings]`, and the heartbeat.

use super::*;
use crate::exchange::breaker::BreakerRules;
use crate::exchange::call::Dialect;
use crate::exchange::plan::{Candidate, Choices};
use crate::exchange::retry::RetryRules;
use crate::exchange::rules::{ClientLeft, EndingRules, Endings, Unreported};
use std::sync::Arc;

/// Two providers on one host, one of them with two credentials, and one elsewhere.
const THREE: &str = r#"
[[provider]]
name = "openai"
kind = "openai"
base_url = "http://127.0.0.1:9000/v1"
credentials = [
  { name = "big", key = "${OPENAI_API_KEY}", weight = 3 },
  { name = "small", key = "${LOCAL_API_KEY}" },
]
models = ["gpt-*"]
[[provider]]
name = "same"
kind = "openai"
base_url = "http://127.0.0.1:9000/other"
credentials = [{ name = "main", key = "${LOCAL_API_KEY}" }]
[[provider]]
name = "claude"
kind = "anthropic"
base_url = "http://127.0.0.1:9001"
credentials = [{ name = "main", key = "${LOCAL_API_KEY}" }]
[[model]]
name = "m"
candidates = [
  { provider = "claude", model = "claude-x", priority = 2 },
  { provider = "openai", model = "gpt-4o" },
  { provider = "same", model = "gpt-4o", weight = 2 },
]
"#;

/// Provider, credential, priority and weight of each.
fn shown(choices: &Choices) -> Vec<(u16, u16, u16, u32)> {
    let row = |c: &Candidate| (c.provider.0, c.credential.0, c.priority, c.weight);
    choices.candidates.iter().map(row).collect()
}

#[test]
fn each_provider_model_and_credential_is_a_candidate_best_priority_first() {
    let config = good(THREE);
    let snapshot = &config.snapshot;
    let choices = &snapshot.models["m"];
    // A provider's share does not grow with its credentials: 1 to 2, and the 1 as 3 to 1.
    assert_eq!(shown(choices), [(0, 0, 1, 3), (0, 1, 1, 1), (1, 0, 1, 8), (2, 0, 2, 1)]);
    let names: Vec<&str> = choices.candidates.iter().flat_map(|c| c.model.as_deref()).collect();
    assert_eq!(names, ["gpt-4o", "gpt-4o", "gpt-4o", "claude-x"]);
    let [big, small, same, claude] = &*choices.candidates else { panic!("four") };
    assert!(Arc::ptr_eq(&big.host, &small.host) && Arc::ptr_eq(&big.host, &same.host));
    assert!(!Arc::ptr_eq(&big.host, &claude.host));
    assert!(!Arc::ptr_eq(&big.health, &small.health));
    let unconfigured = &snapshot.providers[0].choices;
    assert_eq!(shown(unconfigured), [(0, 0, 1, 3), (0, 1, 1, 1)]);
    assert!(unconfigured.candidates.iter().all(|c| c.model.is_none()));
    assert!(Arc::ptr_eq(&unconfigured.candidates[1].health, &small.health));
    let groups = [choices.group, unconfigured.group, snapshot.providers[1].choices.group];
    assert_eq!(groups, [Some(0), Some(1), None]);
    let outline = check::report(&config);
    assert!(outline.contains("m -> openai/gpt-4o by big, openai/gpt-4o by small"), "{outline}");
}

#[test]
fn weights_are_brought_to_one_measure_or_refused() {
    let weights = |three: &str, one: &str| {
        let text = THREE.replace("weight = 3", three).replace("weight = 2", one);
        shown(&good(&text).snapshot.models["m"]).iter().map(|row| row.3).collect::<Vec<_>>()
    };
    assert_eq!(weights("weight = 1", "weight = 1"), [1, 1, 2, 1]);
    assert_eq!(weights("weight = 1000", "weight = 1000"), [1000, 1, 1_001_000, 1]);
    // Sums without a common factor: their product is the measure.
    let primes = [997, 991, 983, 977].map(|weight| {
        format!(
            "[[provider]]\nname = \"p{weight}\"\nkind = \"openai\"\nbase_url = \
             \"http://h/v1\"\ncredentials = [{{ name = \"a\", key = \"${{LOCAL_API_KEY}}\", \
             weight = {} }}, {{ name = \"b\", key = \"${{LOCAL_API_KEY}}\" }}]\n",
            weight - 1
        )
    });
    let listed = [997, 991, 983, 977].map(|n| format!("{{ provider = \"p{n}\" }}")).join(", ");
    let text = format!(
        "{}[[model]]\nname = \"gpt-4o\"\ncandidates = [{listed}]\n[price.fallback]\ninput = 1\n\
         output = 1\n",
        primes.concat()
    );
    let found = errors(&text);
    let what = "the weights here have no common measure that is small enough: round them";
    assert!(found.len() == 1 && found[0].ends_with(what), "{found:?}");
}

#[test]
fn candidates_that_cannot_be_meant_are_refused() {
    for (from, to, wanted) in [
        (
            "weight = 3",
            "weight = 0",
            "7:55: \"weight\" in credentials of [[provider]] must be from 1",
        ),
        ("weight = 2", "weight = 1001", "in candidates of [[model]] must be from 1 to 1000"),
        ("priority = 2", "priority = 0", "in candidates of [[model]] must be from 1 to 1000"),
        ("priority = 2", "priority = \"a\"", "must be a whole number, not a text"),
        ("\"same\", model = \"gpt-4o\"", "\"openai\", model = \"gpt-4o\"", "listed already"),
        ("name = \"small\"", "name = \"big\"", "there is a credential \"big\" already"),
    ] {
        assert_eq!(THREE.matches(from).count(), 1, "{from}");
        let found = errors(&THREE.replace(from, to));
        assert!(found.len() == 1 && found[0].contains(wanted), "{to}: {found:?}");
    }
    let credential = |n: usize| format!("{{ name = \"c{n}\", key = \"${{LOCAL_API_KEY}}\" }},");
    let many = |count: usize| {
        let list: String = (0..count).map(credential).collect();
        MINIMAL.replace("{ name = \"main\", key = \"${OPENAI_API_KEY}\" }", &list)
            + "[[model]]\nname = \"gpt-4o\"\ncandidates = [{ provider = \"openai\" }]\n"
    };
    let config = good(&many(128));
    assert_eq!(config.snapshot.models["gpt-4o"].candidates.len(), 128);
    let found = errors(&many(129));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|error| error.contains("129 candidates")), "{found:?}");
}

const RESILIENCE: &str = r#"
[retry]
attempts = 2
backoff = "100ms"
backoff_max = "1s"
budget = "10s"
possibly_billed = true
[breaker]
failures = 10
window = "30s"
open = "1m"
slow_start = "0s"
cooldown = "5s"
[endings]
client_left = "drain"
succeeded_unreported = "release"
[endings.messages]
client_left = "drain_short"
drain_time = "1s"
drain_bytes = "64KiB"
succeeded_unreported = "charge"
broken_unreported = "release"
left_unreported = "release"
"#;

#[test]
fn every_key_of_these_tables_is_in_the_result() {
    let config = good(&format!("{MINIMAL}{RESILIENCE}"));
    let snapshot = &config.snapshot;
    let retry = RetryRules {
        attempts: 2,
        backoff_ms: 100,
        backoff_max_ms: 1_000,
        budget_ms: 10_000,
        possibly_billed: true,
    };
    let breaker = BreakerRules {
        failures: 10,
        window_ms: 30_000,
        open_ms: 60_000,
        slow_start_ms: 0,
        cool_max_ms: 5_000,
    };
    assert_eq!((snapshot.retry, snapshot.breaker), (retry, breaker));
    let all = EndingRules {
        client_left: ClientLeft::Drain,
        succeeded_unreported: Unreported::Release,
        ..EndingRules::default()
    };
    let messages = EndingRules {
        client_left: ClientLeft::DrainShort,
        drain_ms: 1_000,
        drain_bytes: 64 << 10,
        succeeded_unreported: Unreported::Charge,
        broken_unreported: Unreported::Release,
        left_unreported: Unreported::Release,
    };
    assert_eq!(snapshot.endings, Endings { chat_completions: all, messages });
    assert_eq!(*snapshot.endings.of(Dialect::Messages), messages);
    assert_eq!(*snapshot.endings.of(Dialect::Chat), all);
    let absent = good(MINIMAL);
    assert_eq!(absent.snapshot.endings, Endings::default());
}

#[test]
fn a_rule_that_cannot_be_meant_is_refused() {
    for (lines, wanted) in [
        ("[retry]\nattempts = 0", "9:12: \"attempts\" in [retry] must be from 1 to 10"),
        ("[retry]\nattempts = 11", "\"attempts\" in [retry] must be from 1 to 10"),
        (
            "[retry]\nbackoff = \"61s\"\nbackoff_max = \"61s\"",
            "\"backoff\" in [retry] must be between 0ms and 60s",
        ),
        ("[retry]\nbackoff = \"6s\"", "9:11: \"backoff_max\" in [retry] is below \"backoff\""),
        ("[retry]\nbudget = \"0s\"", "\"budget\" in [retry] must be between 1000ms and 3600s"),
        ("[retry]\nbudget = 240", "must be a whole number with a unit"),
        ("[retry]\npossibly_biled = true", "did you mean \"possibly_billed\"?"),
        ("[breaker]\nfailures = 16", "\"failures\" in [breaker] must be from 0 to 15"),
        ("[breaker]\nwindow = \"500ms\"", "\"window\" in [breaker] must be between 1000ms and"),
        ("[breaker]\nopen = \"50ms\"", "\"open\" in [breaker] must be between 100ms and 3600s"),
        ("[breaker]\ncooldown = \"2h\"", "must be between 0ms and 3600s"),
        ("[breaker]\nattempts = 3", "unknown key \"attempts\" in [breaker]; it belongs to [retry]"),
        (
            "[endings]\nclient_left = \"drian\"",
            "drain_short, drain or abort; did you mean \"drain\"",
        ),
        ("[endings]\nbroken_unreported = true", "must be a text, not a boolean"),
        ("[endings]\nleft_unreported = \"free\"", "must be charge or release"),
        ("[endings]\ndrain_bytes = \"2GiB\"", "must be at most 1GiB"),
        ("[endings]\ndrain_time = \"1h\"", "must be between 100ms and 600s"),
        ("[endings]\nresponses = {}", "unknown key \"responses\" in [endings]"),
        ("[endings.messages]\nmessages = {}", "unknown key \"messages\" in a route of [endings]"),
        (
            "[endings]\nclient_left = \"abort\"\ndrain_time = \"1s\"",
            "\"drain_time\" in [endings] has an effect under client_left = \"drain_short\" only",
        ),
        (
            "[endings.messages]\nclient_left = \"drain\"\ndrain_bytes = 1",
            "\"drain_bytes\" in [endings] has an effect under",
        ),
        (
            "[deadlines]\nheartbeat = \"5m\"",
            "9:13: \"heartbeat\" in [deadlines] must be shorter than \"client_idle\"",
        ),
        ("[deadlines]\nheartbeat = \"50ms\"", "must be between 100ms"),
    ] {
        let found = errors(&format!("{MINIMAL}{lines}\n"));
        assert!(found.len() == 1 && found[0].contains(wanted), "{lines}: {found:#?}");
    }
    let short = good(&format!("{MINIMAL}[deadlines]\nclient_idle = \"4s\"\n"));
    assert_eq!(short.snapshot.deadlines.heartbeat, Duration::from_secs(2), "nobody wrote it");
    let one = "[endings]\nclient_left = \"abort\"\ndrain_time = \"1s\"\n\
               [endings.messages]\nclient_left = \"drain_short\"\n";
    let drains = good(&format!("{MINIMAL}{one}")).snapshot.endings.messages;
    assert_eq!(drains.drain_ms, 1_000, "a bound for all is used by the one that drains shortly");
}
