//! `POST /v1/messages/count_tokens`: who calls and with which model is judged, and how many calls
//! are in flight; rates, money and the ledger know nothing of it.

use crate::messages::{ASK, MESSAGE, ask_at, kind_of, poor};
use crate::{ONE_ATTEMPT, call, json};
use gateway_tests::outcome::Outcome;
use gateway_tests::scenario::{Act, Manner, Reach, Read, Scenario, Step, Turn, say, send};
use gateway_tests::script::{self, Faults};
use gateway_tests::transports;
use std::time::Duration;
use tollgate::exchange::codes;
use tollgate::observe::counters::ROUTES;

const COUNT: &str = r#"{"input_tokens":14}"#;

/// What a client asks to be counted: no cap, no stream.
const BODY: &str = r#"{"messages":[{"role":"user","content":"hello"}],"model":"claude-a"}"#;

fn count(body: &str) -> String {
    ask_at("/v1/messages/count_tokens?beta=true", "", body).replacen("sk-test", "sk-poor", 1)
}

fn message() -> String {
    ask_at("/v1/messages", "", ASK).replacen("sk-test", "sk-poor", 1)
}

/// An upstream that takes a while over every count.
fn slow(pause: Duration) -> Vec<Manner> {
    let acts = vec![Act::Pause(pause), say(json("200 OK", "", COUNT))];
    vec![Manner { turns: vec![Turn { read: Read::Whole, acts }], repeats: true }]
}

/// Answers to counts, by class of status.
fn counted(outcome: &Outcome, class: usize) -> u64 {
    let route = ROUTES.iter().position(|route| *route == "count_tokens").unwrap();
    outcome.counters.requests[route][class].get()
}

/// No exchange and no refusal of one is on record.
fn assert_unrecorded(outcome: &Outcome) {
    assert!(outcome.records.is_empty() && outcome.refusals.is_empty());
    let counters = &outcome.counters;
    for counter in [&counters.records, &counters.usage_missing, &counters.price_missing] {
        assert_eq!(counter.get(), 0);
    }
    assert_eq!((counters.held_picousd.get(), counters.unrecorded.get()), (0, 0));
}

/// CLIENTS §1.19: Claude Code sends dozens within a blink.
#[test]
fn a_burst_of_counts_passes_a_key_without_rate_and_money() {
    let config = poor("requests_per_minute = 1\nbudget_total = \"0\"");
    let clients = vec![call(count(BODY)); 40];
    let upstream = vec![Manner::always(json("200 OK", "", COUNT).as_bytes())];
    let scenario = Scenario { config, clients, upstream, ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        for client in &outcome.clients {
            let [answer] = &client.answers[..] else { panic!("{client:?}") };
            assert_eq!((answer.status, answer.text().as_str()), (200, COUNT));
            let left = answer.field("anthropic-ratelimit-requests-remaining");
            assert_eq!(left.as_deref(), Some("1"));
        }
        assert_eq!((outcome.forwarded(), counted(outcome, 2)), (40, 40));
        for asked in outcome.requests() {
            assert_eq!(asked.line, "POST /v1/messages/count_tokens?beta=true HTTP/1.1");
            assert_eq!(asked.text(), BODY);
            assert_eq!(asked.field("x-api-key").as_deref(), Some("sk-of-the-provider"));
            assert_eq!(asked.field("anthropic-version").as_deref(), Some("2023-06-01"));
        }
        assert_unrecorded(outcome);
    });
}

/// On one connection, between calls that do cost something.
#[test]
fn counts_take_nothing_from_the_calls_beside_them() {
    let config = poor("requests_per_minute = 2\nbudget_total = \"0.000020206000\"");
    let mut client = Vec::new();
    for request in [count(BODY), message(), count(BODY), message(), message(), count(BODY)] {
        client.extend(call(request));
    }
    let turns = [COUNT, MESSAGE, COUNT, MESSAGE, COUNT];
    let turns = turns.map(|body| Turn::answer(json("200 OK", "", body).as_bytes()));
    let upstream = vec![Manner { turns: turns.to_vec(), repeats: false }];
    let scenario = Scenario { config, clients: vec![client], upstream, ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [200, 200, 200, 200, 429, 200]);
        assert_eq!(outcome.endings(), ["succeeded", "succeeded"]);
        assert_eq!(outcome.records.iter().map(|record| record.cost_picousd).sum::<u64>(), 406_000);
        assert_eq!((counted(outcome, 2), outcome.counters.attempts.get()), (3, 5));
    });
}

#[test]
fn as_many_counts_are_in_flight_as_calls_may_be() {
    let clients = vec![call(count(BODY)); 5];
    let upstream = slow(Duration::from_millis(1_500));
    let config = poor("concurrent = 2");
    let scenario = Scenario { config, clients, upstream, ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let answers = outcome.clients.iter().flat_map(|client| &client.answers);
        let (good, limited): (Vec<_>, Vec<_>) = answers.partition(|answer| answer.status == 200);
        assert_eq!((good.len(), limited.len(), outcome.forwarded()), (2, 3, 2));
        for answer in limited {
            assert_eq!((answer.status, kind_of(answer).as_str()), (429, "rate_limit_error"));
        }
        // A refusal of a key that is known leaves its trace here too.
        let codes = outcome.refusals.iter().map(|refusal| codes::name(refusal.error_code));
        assert_eq!(codes.collect::<Vec<_>>(), [Some("concurrency_limited"); 3]);
        assert!(outcome.refusals.iter().all(|refusal| (refusal.dialect, refusal.key_id) == (2, 2)));
        assert!(outcome.records.is_empty());
    });
}

#[test]
fn a_count_needs_a_good_key_and_a_model_it_may_use() {
    let config = poor("models = [\"claude-a\"]");
    let expired = poor("expires = \"1970-01-01T00:00:00Z\"");
    let other = count(&BODY.replace("claude-a", "claude-b"));
    let nobody = count(BODY).replace("sk-poor", "sk-nobody");
    for (request, config, status, code) in [
        (count(BODY), &config, 200, None),
        (other, &config, 403, Some("model_not_allowed")),
        (count(&BODY.replace("claude-a", "up/a")), &expired, 403, Some("key_expired")),
        (count(&BODY.replace("claude-a", "up/a")), &poor(""), 400, Some("model_unavailable")),
        (count("[]"), &config, 400, Some("invalid_request")),
        (nobody, &config, 401, None),
    ] {
        let scenario = Scenario::plain(call(request), json("200 OK", "", COUNT).as_bytes());
        transports::each(&scenario.under(config), |outcome| {
            outcome.assert_clean();
            assert_eq!(outcome.answer().status, status, "{}", outcome.answer().text());
            assert_eq!(outcome.forwarded(), usize::from(status == 200));
            let traces = outcome.refusals.iter().map(|refusal| codes::name(refusal.error_code));
            assert_eq!(traces.collect::<Vec<_>>(), code.map(Some).into_iter().collect::<Vec<_>>());
            assert_eq!(outcome.counters.refusal_records.get(), u64::from(code.is_some()));
            if status != 200 {
                kind_of(outcome.answer());
            }
        });
    }
}

#[test]
fn what_the_provider_says_is_passed_on_whole() {
    let error = r#"{"type":"error","error":{"type":"invalid_request_error","message":"x"}}"#;
    let fields = "request-id: req_1\r\nretry-after: 3\r\n";
    let body = r#"{"model":"nick","stream":true,"n":"?","max_tokens":-1,"messages":[]}"#;
    let config = poor("budget_total = \"0\"") + "[alias]\nnick = \"claude/claude-a\"\n";
    for (status, answer) in [
        ("200 OK", COUNT),
        ("200 OK", r#"{"context_management":{"original_input_tokens":9}}"#),
        ("400 Bad Request", error),
        ("404 Not Found", error),
        ("529 Overloaded", error),
    ] {
        let upstream = json(status, fields, answer);
        let scenario = Scenario::plain(call(count(body)), upstream.as_bytes()).under(&config);
        transports::each(&scenario.under(ONE_ATTEMPT), |outcome| {
            outcome.assert_clean();
            let got = outcome.answer();
            assert_eq!(format!("{} {}", got.status, got.reason), status);
            assert_eq!(got.text(), answer);
            assert_eq!(got.field("request-id").as_deref(), Some("req_1"));
            assert_eq!(got.field("retry-after").as_deref(), Some("3"));
            assert_eq!(got.field("x-tollgate-attempts").as_deref(), Some("1"));
            assert_eq!(outcome.asked().text(), body.replace("nick", "claude-a"));
            assert_unrecorded(outcome);
        });
    }
}

#[test]
fn a_provider_that_fails_is_told_as_ever_and_nothing_is_recorded() {
    let of = |upstream: Vec<Manner>, reach: Reach| Scenario {
        config: poor("concurrent = 1"),
        clients: vec![[call(count(BODY)), call(count(BODY))].concat()],
        upstream,
        reach,
        ..Scenario::default()
    };
    let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>";
    let cut = json("200 OK", "", COUNT).into_bytes();
    let cut = Manner::once(vec![say(&cut[..cut.len() - 3]), Act::Close]);
    for (second, scenario) in [
        (502, of(vec![Manner::default()], Reach::Refused)),
        (502, of(vec![Manner::always(html.as_bytes())], Reach::Open)),
        // The credential that is refused cools down.
        (503, of(vec![Manner::always(json("401 No", "", COUNT).as_bytes())], Reach::Open)),
        (502, of(vec![cut.clone(), cut], Reach::Open)),
    ] {
        transports::each(&scenario.under(ONE_ATTEMPT), |outcome| {
            outcome.assert_clean();
            // Twice: the first one's place was given back.
            assert_eq!(outcome.statuses(0), [502, second]);
            outcome.clients[0].answers.iter().for_each(|answer| {
                let kind = if answer.status == 502 { "api_error" } else { "overloaded_error" };
                assert_eq!(kind_of(answer), kind);
            });
            assert_unrecorded(outcome);
            assert_eq!(counted(outcome, 5), 2);
        });
    }
}

/// The ledger has no part in it.
#[test]
fn a_count_passes_where_no_call_can_be_recorded() {
    let client = [call(message()), call(count(BODY))].concat();
    let mut scenario = Scenario::plain(client, json("200 OK", "", COUNT).as_bytes());
    scenario.ledger_fails = true;
    transports::each(&scenario.under(&poor("")), |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [503, 200]);
        assert!(outcome.records.is_empty());
    });
}

#[test]
fn a_client_that_leaves_gives_its_place_back() {
    let leaver = vec![send(count(BODY)), Step::Wait("asked"), Step::Reset, Step::Signal("left")];
    let mut next = vec![Step::Wait("left"), Step::Pause(Duration::from_millis(500))];
    next.extend(call(count(BODY)));
    let upstream = vec![
        Manner::once(vec![Act::Signal("asked"), Act::Hang]),
        Manner::always(json("200 OK", "", COUNT).as_bytes()),
    ];
    let config = poor("concurrent = 1");
    let clients = vec![leaver, next];
    let scenario = Scenario { config, clients, upstream, ..Scenario::default() };
    transports::each(&scenario, |outcome| {
        assert_eq!(outcome.clients[1].answers[0].status, 200);
        assert_unrecorded(outcome);
    });
}

/// And so does one whose connection meets a defect of ours.
#[test]
fn a_panic_gives_the_place_back_and_leaves_no_record() {
    let mut next = vec![Step::Wait("broken")];
    next.extend(call(count(BODY)));
    let first = vec![send(count(BODY)), Step::End, Step::Signal("broken")];
    let upstream = vec![Manner::always(json("200 OK", "", COUNT).as_bytes())];
    let config = poor("concurrent = 1");
    let clients = vec![first, next];
    let scenario = Scenario { config, clients, upstream, ..Scenario::default() };
    let faults = Faults { client_write: Some(1), ..Faults::default() };
    let outcome = script::run_with_faults(&scenario, faults);
    assert_eq!((outcome.counters.panics.get(), outcome.clients[0].answers.len()), (1, 0));
    assert_eq!(outcome.statuses(1), [200]);
    assert_unrecorded(&outcome);
}
