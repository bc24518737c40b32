//! The corpus of W3C Trace Context, row by row through the pipeline: what goes to the upstream, and
//! what the client is told.

use crate::{BODY, call, json, ok, post};
use codec::trace_context::Trace;
use gateway_tests::asked::Asked;
use gateway_tests::outcome::Outcome;
use gateway_tests::scenario::{Reach, Scenario};
use gateway_tests::{script, transports};
use serde_json::Value;
use std::collections::BTreeSet;

const CORPUS: &str = include_str!("../../corpus/tracecontext/w3c_cases.jsonl");

/// Rows of the corpus.
const ROWS: usize = 83;

fn rows() -> Vec<Value> {
    let rows: Vec<Value> =
        CORPUS.lines().map(|line| serde_json::from_str(line).expect("a row")).collect();
    assert_eq!(rows.len(), ROWS);
    rows
}

fn fields(row: &Value) -> String {
    let fields = row["request_headers"].as_array().expect("fields").iter();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    fields.map(|field| format!("{}: {}\r\n", text(&field[0]), text(&field[1]))).collect()
}

/// The one traceparent of a request: its trace, its parent.
fn parent(asked: &Asked) -> (String, String) {
    assert_eq!(asked.count("traceparent"), 1);
    let value = asked.field("traceparent").expect("one");
    assert!(Trace::parse(value.as_bytes()).is_some() && value.starts_with("00-"), "{value}");
    let parts: Vec<&str> = value.split('-').collect();
    (parts[1].to_owned(), parts[2].to_owned())
}

/// The members of the state, in order.
fn members(asked: &Asked) -> Vec<(String, String)> {
    assert!(asked.count("tracestate") < 2);
    let value = asked.field("tracestate").unwrap_or_default();
    let members = value.split(',').map(|member| member.trim_matches([' ', '\t']));
    let members = members.filter_map(|member| member.split_once('='));
    members.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn judge(row: &Value, outcome: &Outcome) {
    let all: Vec<&Asked> = outcome.requests().collect();
    let first = all[0];
    let (trace, span) = parent(first);
    let state = members(first);
    let has = |key: &str| state.iter().any(|(known, _)| known == key);
    let plain: Vec<String> = state.iter().map(|(key, value)| format!("{key}={value}")).collect();
    for fact in row["expect"].as_array().expect("facts") {
        let (name, value) = fact.as_object().and_then(|fact| fact.iter().next()).expect("a fact");
        let text = value.as_str().unwrap_or_default();
        let holds = match name.as_str() {
            "traceparent" => text == "valid, one header",
            "trace_id" => trace == text,
            "trace_id_not" => trace != text,
            "parent_id_not" => span != text,
            "tracestate_has" => has(text),
            "tracestate_lacks" => !has(text),
            "tracestate_contains" => plain.iter().any(|member| member == text),
            "tracestate_member" => {
                let wanted = value.as_object().expect("members").iter();
                let same = |key: &str, text: &Value| {
                    state.iter().any(|(known, value)| known == key && text == value)
                };
                wanted.into_iter().all(|(key, text)| same(key, text))
            }
            "tracestate_order" => {
                let place = |text: &Value| plain.iter().position(|member| text == member);
                let places: Vec<Option<usize>> =
                    value.as_array().expect("two").iter().map(place).collect();
                places.iter().all(Option::is_some) && places.is_sorted()
            }
            "tracestate_member_count" => state.len() as u64 <= value.as_u64().expect("a count"),
            "trace_flags_bit_set" => {
                let flags = first.field("traceparent").expect("one");
                let flags = u8::from_str_radix(&flags[53..], 16).expect("flags");
                flags & 1 << (value.as_u64().expect("a bit") - 1) != 0
            }
            "distinct_parent_ids" => {
                let spans: BTreeSet<(String, String)> = all.iter().map(|a| parent(a)).collect();
                spans.len() as u64 == value.as_u64().expect("a count")
                    && spans.iter().all(|(known, _)| *known == trace)
            }
            other => panic!("no such fact: {other}"),
        };
        assert!(holds, "{}: {fact} in {:?}", row["id"], first.fields);
    }
}

#[test]
fn every_row_of_the_corpus_holds_and_the_client_is_told_its_trace() {
    let mut scenarios = Vec::new();
    for row in rows() {
        let request = post(&fields(&row), BODY);
        if row["upstream_attempts"].is_u64() {
            let busy = json("503 Busy", "", r#"{"error":{"code":"x"}}"#);
            let outcome = script::run(&Scenario::plain(call(request), busy.as_bytes()));
            outcome.assert_clean();
            assert_eq!(outcome.forwarded(), 3, "{}", row["id"]);
            judge(&row, &outcome);
        } else {
            scenarios.push((row, Scenario::plain(call(request), ok().as_bytes())));
        }
    }
    assert_eq!(scenarios.len(), ROWS - 3);
    transports::each_of(&scenarios, |row, outcome| {
        outcome.assert_clean();
        judge(row, outcome);
        let (trace, span) = parent(outcome.asked());
        let answer = outcome.answer();
        let told = answer.field("traceparent").expect("a trace");
        assert_eq!((answer.count("traceparent"), told[3..35].to_owned()), (1, trace));
        // The client's own call is another span than the attempt at a provider.
        assert!(Trace::parse(told.as_bytes()).is_some() && told[36..52] != span, "{told}");
    });
}

#[test]
fn thirty_two_members_go_on_as_one_list_and_in_order() {
    let row = rows().into_iter().find(|row| row["id"] == "tc-tracestate_member_count_limit-01");
    let request = post(&fields(&row.expect("it is there")), BODY);
    transports::each(&Scenario::plain(call(request), ok().as_bytes()), |outcome| {
        let keys = members(outcome.asked()).into_iter().map(|(key, _)| key);
        let wanted = (1..=32).map(|n| format!("bar{n:02}"));
        assert_eq!(keys.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
    });
}

#[test]
fn traces_that_begin_here_differ_from_call_to_call() {
    let mut client = call(post("", BODY));
    for _ in 0..9 {
        client.extend(call(post("", BODY)));
    }
    transports::each(&Scenario::plain(client, ok().as_bytes()), |outcome| {
        outcome.assert_clean();
        let traces: BTreeSet<String> = outcome.requests().map(|asked| parent(asked).0).collect();
        assert_eq!(traces.len(), 10);
    });
}

const KNOWN: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A key of its own with these limits, for the sake of their refusals.
fn limited(limits: &str) -> String {
    let digest = "0fb7a9381d67a12c97848d48cf5afb221bcc12268161fb10f0b51bf18ead6ae3";
    format!("[[key]]\nname = \"poor\"\nsha256 = \"{digest}\"\n{limits}\n")
}

/// What is refused at every stage that can refuse, and two answers of our own that are none: the
/// request (its fields at `{}`), the configuration behind the usual one, the status.
fn own_answers() -> Vec<(String, String, u16)> {
    let usual = post("{}", BODY);
    let poor = usual.replace("sk-test", "sk-poor");
    let messages = usual.replace("/v1/chat/completions", "/v1/messages");
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: gw.test\r\n{{}}\r\n");
    let priced = "budget_total = \"0.00\"";
    let mut answers = vec![
        (get("/nowhere"), 404),
        (get("/v1/chat/completions"), 405),
        (usual.replace("{}", "Expect: anything\r\n{}"), 417),
        (usual.replace("{}", "Content-Encoding: br\r\n{}"), 415),
        (usual.replace("{}", "Authorization: Bearer sk-two\r\n{}"), 400),
        (usual.replace("Content-Length: ", "X-Length: ").replace(BODY, ""), 411),
        (usual.replace("/chat/completions", "/embeddings"), 501),
        (usual.replace("sk-test", "sk-other"), 401),
        (messages.replace("sk-test", "sk-other"), 401),
        (usual.replace("\"model\"", "\"mudel\""), 400),
        (messages, 400),
        (get("/healthz"), 200),
        (get("/v1/models").replace("{}", "x-api-key: sk-test\r\n{}"), 200),
        (get("/v1/models"), 401),
    ];
    answers.push((
        get("/v1/responses").replace("{}", "Connection: upgrade\r\nUpgrade: websocket\r\n{}"),
        426,
    ));
    let mut answers: Vec<_> =
        answers.into_iter().map(|(request, status)| (request, String::new(), status)).collect();
    for (limits, status) in [(priced, 402), ("requests_per_minute = 0", 429), ("models = []", 403)]
    {
        answers.push((poor.clone(), limited(limits), status));
    }
    answers
}

/// An answer of our own leads to a trace as a provider's does, whatever it says.
#[test]
fn refusals_and_other_answers_of_ours_carry_the_trace_and_the_callers_id() {
    let fields = format!("traceparent: 00-{KNOWN}-00f067aa0ba902b7-01\r\nX-Request-Id: mine\r\n");
    let mut scenarios = Vec::new();
    for (request, config, status) in own_answers() {
        for (fields, known) in [(fields.as_str(), true), ("", false)] {
            let client = call(request.replace("{}", fields));
            let scenario = Scenario::plain(client, b"").under(&config);
            scenarios.push(((request.clone(), known, status), scenario));
        }
    }
    transports::each_of(&scenarios, |(request, known, status), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, outcome.forwarded()), (*status, 0), "{request}");
        let told = answer.field("traceparent").unwrap_or_default();
        let trace = Trace::parse(told.as_bytes()).unwrap_or_else(|| panic!("{request}: {told}"));
        assert_eq!((told[3..35] == *KNOWN, trace.flags), (*known, u8::from(*known)), "{request}");
        assert_ne!(&told[36..52], "00f067aa0ba902b7", "a span of ours");
        let wanted = known.then(|| "mine".to_owned());
        assert_eq!(answer.field("x-request-id"), wanted, "{request}");
        for record in &outcome.refusals {
            assert_eq!(record.trace_id, Some(trace.id), "{request}");
        }
    });
}

/// What the request before it said of itself is no part of one that cannot be read.
#[test]
fn a_head_that_cannot_be_read_has_no_trace_and_no_id() {
    let fields = format!("traceparent: 00-{KNOWN}-00f067aa0ba902b7-01\r\nX-Request-Id: mine\r\n");
    let config = "[deadlines]\nheader = \"1s\"\n";
    for (broken, status) in [("GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400), ("POST /v1/ch", 408)] {
        let mut client = call(post(&fields, BODY));
        client.extend(call(broken));
        let scenario = Scenario::plain(client, ok().as_bytes()).under(config);
        transports::each(&scenario, |outcome| {
            outcome.assert_clean();
            let [first, second] = &outcome.clients[0].answers[..] else { panic!("two answers") };
            assert_eq!((first.status, second.status), (200, status));
            assert_eq!(first.field("x-request-id").as_deref(), Some("mine"));
            for name in ["traceparent", "x-request-id"] {
                assert_eq!((first.count(name), second.count(name)), (1, 0), "{name}");
            }
        });
    }
}

/// From a trace to a receipt: of what was served, of what no provider gave, of a refusal.
#[test]
fn a_record_has_the_trace_that_its_answer_names() {
    let request = post("", BODY);
    let unreachable = Scenario { reach: Reach::Refused, ..Scenario::plain(call(&request), b"") };
    for (scenario, status) in [
        (Scenario::plain(call(&request), ok().as_bytes()), 200),
        (unreachable, 502),
        (Scenario::plain(call(request.replace("\"a\"", "\"b\"")), b""), 400),
    ] {
        transports::each(
            &scenario.under("[alias]\nb = \"claude/x\"\n[retry]\nattempts = 1\n"),
            |outcome| {
                outcome.assert_clean();
                let answer = outcome.answer();
                let told = answer.field("traceparent").unwrap_or_default();
                let trace = Trace::parse(told.as_bytes()).expect("a trace");
                let records: Vec<_> = outcome.records.iter().chain(&outcome.refusals).collect();
                assert_eq!((answer.status, records.len()), (status, 1));
                assert_eq!(records[0].trace_id, Some(trace.id));
                if let Some(asked) = outcome.requests().next() {
                    assert_eq!(parent(asked).0, told[3..35]);
                }
            },
        );
    }
}
