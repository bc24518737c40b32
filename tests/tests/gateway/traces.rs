//! The corpus of W3C Trace Context, row by row through the pipeline: what goes to the upstream, and
//! what the client is told.

use crate::{BODY, call, json, ok, post};
use codec::trace_context::Trace;
use gateway_tests::asked::Asked;
use gateway_tests::outcome::Outcome;
use gateway_tests::scenario::Scenario;
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
