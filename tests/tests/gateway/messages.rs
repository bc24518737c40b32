//! The messages dialect, whole: what goes to the provider, what comes back, and what it costs.
//!
//! Of `claude-a` a token costs 1,000 pico-dollars in, 10 read from a cache, 100 and 10,000 written
//! to one for five minutes and an hour, 100,000 out.

use crate::{BODY, ONE_ATTEMPT, call, json, post};
use gateway_tests::answer::Answer;
use gateway_tests::corpus::{CASES, row, text};
use gateway_tests::outcome::Outcome;
use gateway_tests::scenario::{Reach, Scenario, Step, send};
use gateway_tests::transports;
use serde_json::Value;
use store::ending::Provenance;
use store::record::flag;
use tollgate::exchange::codes;

/// A message with usage: three tokens in, two out.
pub(crate) const MESSAGE: &str = concat!(
    r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-a","content":"#,
    r#"[{"type":"text","text":"hi"}],"stop_reason":"end_turn","stop_sequence":null,"#,
    r#""usage":{"input_tokens":3,"output_tokens":2}}"#
);

/// The body most requests have: the model after the messages, the stream last.
pub(crate) const ASK: &str =
    r#"{"max_tokens":100,"messages":[],"model":"claude-a","metadata":{},"stream":false}"#;

/// A request to a path with this body, and `fields` (each with its CR LF) in its head.
pub(crate) fn ask_at(path: &str, fields: &str, body: &str) -> String {
    post(fields, body).replacen("/v1/chat/completions", path, 1)
}

fn ask(fields: &str, body: &str) -> String {
    ask_at("/v1/messages", fields, body)
}

/// A second key, `sk-poor`, with these limits.
pub(crate) fn poor(limits: &str) -> String {
    let digest = "0fb7a9381d67a12c97848d48cf5afb221bcc12268161fb10f0b51bf18ead6ae3";
    format!("[[key]]\nname = \"poor\"\nsha256 = \"{digest}\"\n{limits}\n")
}

fn as_poor(request: &str) -> String {
    request.replacen("sk-test", "sk-poor", 1)
}

fn served(request: &str, answer: &str) -> Scenario {
    Scenario::plain(call(request), answer.as_bytes())
}

/// The kind of an error in this dialect, whose id must be the one in the head.
pub(crate) fn kind_of(answer: &Answer) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    assert_eq!(body["type"], "error", "{}", answer.text());
    assert_eq!(body["request_id"].as_str(), answer.field("x-tollgate-request-id").as_deref());
    assert_eq!(body["request_id"].as_str(), answer.field("request-id").as_deref());
    body["error"]["type"].as_str().unwrap_or_default().to_owned()
}

fn refused_as(outcome: &Outcome) -> Option<&'static str> {
    let [refusal] = &outcome.refusals[..] else { return None };
    codes::name(refusal.error_code)
}

#[test]
fn a_message_goes_out_and_comes_back_as_it_is() {
    let fields = "anthropic-version: 2026-10-21\r\nanthropic-beta: one-2026-01-01,two\r\n\
                  x-app: cli\r\nx-api-key: sk-of-mine\r\n";
    let body = "\n{ \"model\" : \"claude-a\",\"system\":[{\"text\":\"s\\u00e9\",\"type\":\"text\"}\
                ],\"max_tokens\":10, \"messages\":[]}\n";
    let answer = json("200 OK", "request-id: req_1\r\n", &format!(" {MESSAGE}\n"));
    let path = "/v1/messages?beta=true&key=secret&x=1";
    transports::each(&served(&ask_at(path, fields, body), &answer), |outcome| {
        outcome.assert_clean();
        let (asked, answer) = (outcome.asked(), outcome.answer());
        assert_eq!(asked.line, "POST /v1/messages?beta=true&x=1 HTTP/1.1");
        assert_eq!(asked.text(), body);
        assert_eq!((asked.count("x-api-key"), asked.count("authorization")), (1, 0));
        assert_eq!(asked.field("x-api-key").as_deref(), Some("sk-of-the-provider"));
        assert_eq!(asked.count("anthropic-version"), 1);
        assert_eq!(asked.field("anthropic-version").as_deref(), Some("2026-10-21"));
        assert_eq!(asked.field("anthropic-beta").as_deref(), Some("one-2026-01-01,two"));
        assert_eq!(asked.field("x-app").as_deref(), Some("cli"));
        assert_eq!((answer.status, answer.text()), (200, format!(" {MESSAGE}\n")));
        assert_eq!(answer.field("request-id").as_deref(), Some("req_1"));
        let [record] = &outcome.records[..] else { panic!("{:?}", outcome.records) };
        assert_eq!((record.dialect, record.tokens[0], record.tokens[4]), (2, 3, 2));
        assert_eq!(record.cost_picousd, 3 * 1_000 + 2 * 100_000);
        assert_eq!(record.served_model.as_str(), "claude-a");
    });
}

/// The API takes no call without one.
#[test]
fn a_client_that_names_no_version_gets_one() {
    let other = "[alias]\nclaude-chat = \"up/a\"\n";
    let named = post("", &BODY.replace("\"a\"", "\"claude-chat\""));
    let scenarios = [
        (("2023-06-01", 1), served(&ask("", ASK), &json("200 OK", "", MESSAGE))),
        // As it is listed, it is not for the provider.
        (
            ("2023-06-01", 1),
            served(
                &ask("Connection: anthropic-version\r\nanthropic-version: x\r\n", ASK),
                &json("200 OK", "", MESSAGE),
            ),
        ),
        (("", 0), served(&named, &crate::ok()).under(other)),
    ];
    transports::each_of(&scenarios, |(version, count), outcome| {
        outcome.assert_clean();
        let asked = outcome.asked();
        assert_eq!(asked.count("anthropic-version"), *count);
        assert_eq!(asked.field("anthropic-version").unwrap_or_default(), *version);
    });
}

#[test]
fn every_credential_field_works_here_too_and_goes_no_further() {
    let fields = [
        "Authorization: Bearer sk-test\r\n",
        "x-api-key: sk-test\r\n",
        "api-key: sk-test\r\n",
        "x-goog-api-key: sk-test\r\n",
        "x-tollgate-key: sk-test\r\nAuthorization: Bearer sk-ant-oat\r\n",
    ];
    let scenarios = fields.map(|fields| {
        let request = ask(fields, ASK).replacen("Authorization: Bearer sk-test\r\n", "", 1);
        let request = if fields.starts_with("Auth") { ask("", ASK) } else { request };
        (fields, served(&request, &json("200 OK", "", MESSAGE)))
    });
    transports::each_of(&scenarios, |_, outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().status, 200, "{}", outcome.answer().text());
        let asked = outcome.asked();
        assert_eq!(asked.field("x-api-key").as_deref(), Some("sk-of-the-provider"));
        let other = ["authorization", "api-key", "x-goog-api-key", "x-tollgate-key"];
        assert!(other.iter().all(|name| asked.count(name) == 0), "{:?}", asked.fields);
        assert_eq!(asked.count("x-api-key"), 1);
    });
}

/// Cache reads and writes stand beside `input_tokens`, and each has its price.
#[test]
fn every_bucket_is_priced_as_what_it_is() {
    let buckets = [
        (r#""input_tokens":3,"output_tokens":2"#, [3, 0, 0, 0, 2]),
        (
            r#""input_tokens":3,"cache_read_input_tokens":50,"cache_creation_input_tokens":7,
               "output_tokens":2"#,
            [3, 50, 7, 0, 2],
        ),
        (
            r#""input_tokens":3,"cache_creation_input_tokens":7,"cache_read_input_tokens":0,
               "cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":3},
               "output_tokens":2,"service_tier":"standard",
               "server_tool_use":{"web_search_requests":9,"input_tokens":9}"#,
            [3, 0, 4, 3, 2],
        ),
        (
            r#""input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,
               "cache_creation":null,"output_tokens":0"#,
            [0; 5],
        ),
    ];
    let scenarios = buckets.map(|(usage, tokens)| {
        let body = MESSAGE.replace(r#""input_tokens":3,"output_tokens":2"#, usage);
        (tokens, served(&ask("", ASK), &json("200 OK", "", &body)))
    });
    transports::each_of(&scenarios, |tokens, outcome| {
        outcome.assert_clean();
        let record = &outcome.records[0];
        assert_eq!(record.tokens[..5], *tokens);
        assert_eq!(record.provenance, Provenance::Reported);
        let rates = [1_000, 10, 100, 10_000, 100_000];
        let cost: u64 = tokens.iter().zip(rates).map(|(n, rate)| u64::from(*n) * rate).sum();
        assert_eq!(record.cost_picousd, cost);
        assert!(record.has(flag::PRICED) && !record.has(flag::USAGE_AMBIGUOUS));
    });
}

#[test]
fn the_field_cases_of_caches_cost_what_they_say() {
    for (id, micro_usd) in [("use-anth-cached-extra", 45_012), ("use-cache-5m-1h", 5_100)] {
        let case = row(CASES, id);
        assert_eq!(case["expect"]["cost_microusd"], micro_usd.to_string(), "{id}");
        let request = ask("", &ASK.replace("claude-a", "claude-real"));
        let answer = json("200 OK", "", text(&case, "text"));
        transports::each(&served(&request, &answer), |outcome| {
            outcome.assert_clean();
            assert_eq!(outcome.answer().text(), text(&case, "text"));
            assert_eq!(outcome.records[0].cost_picousd, micro_usd * 1_000_000, "{id}");
        });
    }
}

/// What a model wrote about usage is not usage.
#[test]
fn only_the_usage_of_the_message_counts() {
    let content = r#"[{"type":"tool_use","id":"t","name":"n","input":
        {"usage":{"input_tokens":900,"output_tokens":900}}},
        {"type":"text","text":"\"usage\":{\"output_tokens\":900}"}]"#;
    let body = MESSAGE.replace(r#"[{"type":"text","text":"hi"}]"#, content);
    transports::each(&served(&ask("", ASK), &json("200 OK", "", &body)), |outcome| {
        outcome.assert_clean();
        assert_eq!((outcome.records[0].tokens[0], outcome.records[0].tokens[4]), (3, 2));
    });
}

#[test]
fn a_good_answer_says_something_or_why_it_ended() {
    let none = r#""usage":{}"#;
    let usage = r#""usage":{"input_tokens":3,"output_tokens":2}"#;
    let content = r#"[{"type":"text","text":"hi"}]"#;
    let empty = MESSAGE.replace(content, "[]").replace(usage, none);
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#;
    for (body, status, code) in [
        (MESSAGE.replace(content, "[]"), 200, ""),
        (empty.clone(), 200, ""),
        (MESSAGE.replace(usage, none), 200, ""),
        (empty.replace(r#""end_turn""#, "null"), 502, "empty_completion"),
        ("{}".to_owned(), 502, "empty_completion"),
        // It has the status it stands for.
        (error.to_owned(), 529, ""),
        ("<html></html>".to_owned(), 502, "upstream_invalid"),
    ] {
        let scenario = served(&ask("", ASK), &json("200 OK", "", &body)).under(ONE_ATTEMPT);
        transports::each(&scenario, |outcome| {
            outcome.assert_clean();
            let answer = outcome.answer();
            if code.is_empty() {
                assert_eq!((answer.status, answer.text()), (status, body.clone()));
                let ending = if status == 200 { "succeeded" } else { "upstream_error" };
                assert_eq!(outcome.endings(), [ending]);
            } else {
                assert_eq!((answer.status, kind_of(answer).as_str()), (502, "api_error"), "{body}");
                assert_eq!(codes::name(outcome.records[0].error_code), Some(code), "{body}");
            }
        });
    }
}

#[test]
fn a_providers_errors_are_passed_on_as_they_are() {
    let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},
        "request_id":"req_1"}"#;
    let fields = "request-id: req_1\r\nretry-after: 7\r\nx-should-retry: true\r\n\
                  anthropic-ratelimit-requests-remaining: 0\r\nanthropic-organization-id: o\r\n";
    for status in ["400 Bad Request", "404 Not Found", "413 Large", "429 Many", "529 Overloaded"] {
        transports::each(&served(&ask("", ASK), &json(status, fields, body)), |outcome| {
            outcome.assert_clean();
            let answer = outcome.answer();
            assert_eq!(format!("{} {}", answer.status, answer.reason), status);
            assert_eq!(answer.text(), body);
            for (name, value) in [
                ("request-id", Some("req_1")),
                ("retry-after", Some("7")),
                ("x-should-retry", Some("true")),
                ("anthropic-organization-id", Some("o")),
                ("anthropic-ratelimit-requests-remaining", None),
            ] {
                assert_eq!(answer.field(name).as_deref(), value, "{name}");
            }
            assert_eq!(outcome.endings(), ["upstream_error"]);
            assert_eq!(outcome.records[0].cost_picousd, 0);
        });
    }
    // Of our credential it is not the caller's affair.
    let unauthorised = json("401 Unauthorized", "", &body.replace("overloaded", "authentication"));
    transports::each(&served(&ask("", ASK), &unauthorised), |outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, kind_of(answer).as_str()), (502, "api_error"));
        assert_eq!(answer.field("x-should-retry").as_deref(), Some("false"));
    });
}

/// A call goes out in the dialect it came in: what cannot take it is no candidate.
#[test]
fn a_model_of_the_other_dialect_is_unavailable() {
    let with = |model: &str| ASK.replace("claude-a", model);
    let chat = |model: &str| post("", &BODY.replace("\"a\"", &format!("\"{model}\"")));
    let config = "[[model]]\nname = \"sonnet\"\n\
                  candidates = [{ provider = \"claude\", model = \"claude-a\" }]\n\
                  [alias]\nnick = \"claude/claude-a\"\nfast = \"up/a\"\n";
    let scenarios = [
        ((400, "", "model_unavailable"), ask("", &with("a"))),
        ((400, "", "model_unavailable"), ask("", &with("up/a"))),
        ((400, "", "model_unavailable"), ask("", &with("fast"))),
        ((400, "", "model_unavailable"), chat("claude/claude-a")),
        ((400, "", "model_unavailable"), chat("nick")),
        ((400, "", "model_unavailable"), chat("sonnet")),
        ((200, "claude-a", ""), ask("", &with("nick"))),
        ((200, "claude-a", ""), ask("", &with("sonnet"))),
        ((200, "claude-a", ""), ask("", &with("claude/claude-a"))),
        ((200, "claude-a", ""), ask("", &with("claude-a[1m]"))),
        // Both providers say they serve it: the one that can is taken.
        ((200, "claude-b", ""), ask("", &with("claude-b"))),
        ((200, "claude-b", ""), chat("claude-b")),
    ]
    .map(|(wanted, request)| {
        let scenario = served(&request, &json("200 OK", "", MESSAGE)).under(config);
        (wanted, scenario)
    });
    transports::each_of(&scenarios, |(status, sent, code), outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().status, *status, "{}", outcome.answer().text());
        assert_eq!(refused_as(outcome).unwrap_or_default(), *code);
        for asked in outcome.requests() {
            assert!(asked.text().contains(&format!("\"model\":\"{sent}\"")), "{}", asked.text());
        }
        assert_eq!(outcome.forwarded(), usize::from(*status == 200));
    });
}

#[test]
fn our_own_errors_speak_the_dialect() {
    let limits = "models = [\"claude-a\"]\nrequests_per_minute = 2\nbudget_total = \"0\"";
    let length = format!("Content-Length: {}\r\n", ASK.len());
    let good = as_poor(&ask("", ASK));
    let scenarios = [
        ((401, "authentication_error"), ask("", ASK).replace("sk-test", "sk-other")),
        ((403, "permission_error"), good.replace("\"claude-a\"", "\"claude-b\"")),
        ((402, "api_error"), good.clone()),
        ((400, "invalid_request_error"), as_poor(&ask("", "[0]"))),
        ((400, "invalid_request_error"), as_poor(&ask("", "{}"))),
        ((405, "api_error"), ask("", ASK).replacen("POST", "PUT", 1)),
        ((411, "api_error"), ask("", "").replacen("Content-Length: 0\r\n", "", 1)),
        (
            (413, "request_too_large"),
            ask("", ASK).replacen(&length, "Content-Length: 99999999\r\n", 1),
        ),
        ((415, "api_error"), ask("Content-Encoding: gzip\r\n", ASK)),
        ((501, "api_error"), ask_at("/v1/messages/batches", "", ASK)),
        ((400, "invalid_request_error"), ask("X Y: 1\r\n", ASK)),
    ]
    .map(|(wanted, request)| (wanted, served(&request, "").under(&poor(limits))));
    transports::each_of(&scenarios, |(status, kind), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!(answer.status, *status, "{}", answer.text());
        assert_eq!(kind_of(answer), *kind);
        assert_eq!(outcome.forwarded(), 0);
        // Claude Code reads them and draws its own conclusions.
        let text = answer.text().to_lowercase();
        assert!(!text.contains("credit") && !text.contains("billing"), "{text}");
    });
    let unreachable = Scenario { reach: Reach::Refused, ..served(&ask("", ASK), "") };
    transports::each(&unreachable, |outcome| {
        outcome.assert_clean();
        assert_eq!(
            (outcome.answer().status, kind_of(outcome.answer()).as_str()),
            (502, "api_error")
        );
        assert_eq!(outcome.records.len(), 1);
    });
}

#[test]
fn the_keys_own_limits_are_told_by_the_names_the_dialect_has() {
    let theirs = "anthropic-ratelimit-requests-limit: 4000\r\n\
                  anthropic-ratelimit-tokens-remaining: 1\r\nx-ratelimit-limit-requests: 1\r\n";
    let answer = json("200 OK", theirs, MESSAGE);
    let client = [call(as_poor(&ask("", ASK))), call(as_poor(&ask("", ASK)))].concat();
    let scenario = Scenario::plain(client, answer.as_bytes());
    transports::each(&scenario.under(&poor("requests_per_minute = 1")), |outcome| {
        outcome.assert_clean();
        let [first, second] = &outcome.clients[0].answers[..] else { panic!("two answers") };
        let field = |name: &str| first.field(&format!("anthropic-ratelimit-{name}"));
        assert_eq!(field("requests-limit").as_deref(), Some("1"));
        assert_eq!(field("requests-remaining").as_deref(), Some("0"));
        let reset = field("requests-reset").unwrap();
        assert!(tollgate::exchange::rfc3339::parse(&reset).is_some() && reset.len() == 20);
        assert_eq!(
            (field("tokens-remaining"), first.count("x-ratelimit-limit-requests")),
            (None, 0)
        );
        assert_eq!((second.status, kind_of(second).as_str()), (429, "rate_limit_error"));
        let wait: u32 = second.field("retry-after").and_then(|wait| wait.parse().ok()).unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
    });
    transports::each(&served(&ask("", ASK), &answer), |outcome| {
        let fields = format!("{:?}", outcome.answer().fields);
        assert!(!fields.contains("ratelimit"), "no limit, no field: {fields}");
    });
}

/// DESIGN §16.13, for the name that this dialect's providers use.
#[test]
fn the_providers_id_moves_aside_for_the_callers_own() {
    let answer = json("200 OK", "request-id: req_1\r\n", MESSAGE);
    for (fields, own, theirs, moved) in [
        ("", None, Some("req_1"), None),
        ("x-request-id: mine\r\n", Some("mine"), None, Some("req_1")),
    ] {
        transports::each(&served(&ask(fields, ASK), &answer), |outcome| {
            outcome.assert_clean();
            let field = |name: &str| outcome.answer().field(name);
            assert_eq!(field("x-request-id").as_deref(), own);
            assert_eq!(field("request-id").as_deref(), theirs);
            assert_eq!(field("x-tollgate-upstream-request-id").as_deref(), moved);
        });
    }
}

/// The cap of the dialect is held, and a hold needs the price of the candidate.
#[test]
fn a_budget_holds_what_a_message_may_cost() {
    let body = r#"{"model":"claude-a","max_tokens":7,"n":9,"max_completion_tokens":99,
        "system":"12345678","messages":[{"role":"user","content":[
        {"type":"image","source":{"type":"base64","media_type":"i","data":"AAAA"}}]}]}"#;
    // "user", "image", "base64", "i" and the system's text, by four; a thousand for the image.
    let hold = ((4 + 5 + 6 + 1 + 8_u64).div_ceil(4) + 1_000) * 1_000 + 7 * 100_000;
    let budget = poor(&format!("budget_total = \"0.{hold:012}\""));
    let scenario = served(&as_poor(&ask("", body)), &json("200 OK", "", MESSAGE)).under(&budget);
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().status, 200, "{}", outcome.answer().text());
        assert_eq!(outcome.records[0].hold_picousd, hold);
    });
    let less = poor(&format!("budget_total = \"0.{:012}\"", hold - 1));
    let scenario = served(&as_poor(&ask("", body)), &json("200 OK", "", MESSAGE)).under(&less);
    transports::each(&scenario, |outcome| {
        assert_eq!((outcome.answer().status, outcome.forwarded()), (402, 0));
        assert_eq!(outcome.answer().field("x-should-retry").as_deref(), Some("false"));
    });
}

/// Longer than what is looked at before the first byte goes out.
#[test]
fn a_long_message_passes_and_is_priced() {
    let long = MESSAGE.replace("hi", &"z\u{e9}".repeat(100_000));
    let mut client = call(ask("", ASK));
    client.extend([Step::Fin, Step::End]);
    let scenario = Scenario::plain(client, json("200 OK", "", &long).as_bytes());
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().text(), long);
        assert_eq!(outcome.records[0].cost_picousd, 203_000);
    });
}

/// Bodies as clients send them: 87 KB with tools, the model behind the messages, images.
#[test]
fn captured_requests_pass_byte_for_byte() {
    let captures = [
        include_str!("../../corpus/requests/claude-code.simple.1.json"),
        include_str!("../../corpus/requests/claude-code.image.1.json"),
        include_str!("../../corpus/requests/anthropic-py.image.1.json"),
        include_str!("../../corpus/requests/pydantic-ai-anthropic.image.1.json"),
    ];
    let scenarios = captures.map(|text| {
        let capture: Value = serde_json::from_str(text).unwrap();
        let own = ["host", "content-length", "authorization", "x-api-key", "connection"];
        let mut fields = String::new();
        for field in capture["headers"].as_array().unwrap() {
            let (name, value) = (field[0].as_str().unwrap(), field[1].as_str().unwrap());
            if !own.contains(&name.to_lowercase().as_str()) {
                fields.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        let body =
            capture["body_raw"].as_str().unwrap().replace("\"stream\":true", "\"stream\":null");
        let target = capture["target"].as_str().unwrap();
        let head =
            ask_at(target, "", "").replacen("Content-Type: application/json\r\n", &fields, 1);
        let length = format!("Content-Length: {}", body.len());
        let request = head.replacen("Content-Length: 0", &length, 1) + &body;
        let client = vec![send(request), Step::Answer];
        let answer = json("200 OK", "", MESSAGE);
        ((target.to_owned(), body), Scenario::plain(client, answer.as_bytes()))
    });
    transports::each_of(&scenarios, |(target, body), outcome| {
        outcome.assert_clean();
        let (asked, answer) = (outcome.asked(), outcome.answer());
        assert_eq!((answer.status, answer.text().as_str()), (200, MESSAGE));
        assert_eq!(asked.line, format!("POST {target} HTTP/1.1"));
        assert!(asked.text() == *body, "every byte");
        assert_eq!(asked.count("anthropic-version"), 1);
        assert_eq!(outcome.records[0].request_bytes, body.len() as u64);
    });
}

fn models(list: &Value) -> &[Value] {
    list["data"].as_array().unwrap()
}

/// One list in two shapes: what the key may ask for, on whatever route.
#[test]
fn the_list_of_models_has_the_shape_its_client_knows() {
    let config = "[[model]]\nname = \"sonnet\"\n\
                  candidates = [{ provider = \"claude\", model = \"claude-a\" }]\n\
                  [alias]\nbest = \"claude/claude-b\"\nfast = \"up/a\"\n";
    // Exact names are listed, once, whoever else serves them; patterns are not.
    let served = "[[provider]]\nname = \"second\"\nkind = \"openai\"\n\
                  base_url = \"http://127.0.0.1:9/v1\"\n\
                  credentials = [{ name = \"k\", key = \"${UPSTREAM_KEY}\" }]\n\
                  models = [\"shared\", \"fast\", \"gpt-*\", \"gpt-own\", \"sonnet[1m]\"]\n\
                  [[provider]]\nname = \"third\"\nkind = \"anthropic\"\n\
                  base_url = \"http://127.0.0.1:9\"\n\
                  credentials = [{ name = \"k\", key = \"${UPSTREAM_KEY}\" }]\n\
                  models = [\"shared\", \"claude-haiku\", \"sonnet\"]\n";
    let config = format!("{served}{config}");
    let list = |fields: &str| {
        format!(
            "GET /v1/models?limit=1000 HTTP/1.1\r\nHost: h\r\nx-api-key: sk-poor\r\n{fields}\r\n"
        )
    };
    let requests = [list(""), list("anthropic-version: 2023-06-01\r\n")];
    for (limits, names) in [
        ("", &["best", "claude-haiku", "fast", "gpt-own", "shared", "sonnet"][..]),
        ("models = [\"claude/*\"]", &["best", "claude-haiku", "sonnet"]),
        // Whose a name is depends on the route: here on that of messages only.
        ("models = [\"third/*\"]", &["shared"]),
        ("models = [\"SHARED\", \"gpt-*\"]", &["gpt-own", "shared"]),
        ("models = [\"a\", \"SONNET\"]", &["fast", "sonnet"]),
        ("models = []", &[]),
    ] {
        let client = requests.iter().flat_map(call).collect();
        let scenario = Scenario::plain(client, b"").under(&config).under(&poor(limits));
        transports::each(&scenario, |outcome| {
            outcome.assert_clean();
            assert_eq!((outcome.statuses(0), outcome.forwarded()), (vec![200, 200], 0));
            let bodies: Vec<Value> = outcome.clients[0]
                .answers
                .iter()
                .map(|answer| serde_json::from_slice(&answer.body).unwrap())
                .collect();
            for body in &bodies {
                let listed: Vec<&str> =
                    models(body).iter().map(|model| model["id"].as_str().unwrap()).collect();
                assert_eq!(listed, names, "{limits}");
            }
            assert_eq!(bodies[0]["object"], "list");
            for (chat, messages) in models(&bodies[0]).iter().zip(models(&bodies[1])) {
                assert_eq!(
                    (&chat["object"], &chat["owned_by"]),
                    (&"model".into(), &"tollgate".into())
                );
                assert!(chat["created"].is_u64() && messages["created_at"].is_string());
                assert_eq!(
                    (&messages["type"], &messages["display_name"]),
                    (&"model".into(), &messages["id"])
                );
            }
            let (first, last) = (names.first().copied(), names.last().copied());
            assert_eq!(
                (bodies[1]["first_id"].as_str(), bodies[1]["last_id"].as_str()),
                (first, last)
            );
            assert_eq!(bodies[1]["has_more"], false);
        });
    }
}
