//! Where one candidate fails the next is asked, as long as nothing of an answer has been passed on;
//! and what the client is told when all have failed.

use crate::events::{
    CHAT, CHAT_COST, Framing, MESSAGES, MESSAGES_COST, ask, ask_messages, ask_with_usage, chunk,
    chunked, framed, named, sent,
};
use crate::streams::gzip;
use crate::{BODY, COMPLETION, call, json, ok, post};
use gateway_tests::corpus::{CASES, bytes, row, variants};
use gateway_tests::outcome::Outcome;
use gateway_tests::scenario::{Act, Host, Manner, Reach, Read, Scenario, Step, Turn, say, send};
use gateway_tests::{script, transports};
use serde_json::Value;
use std::time::Duration;
use store::ending::{Ending, Provenance, Release, StatusClass};

/// Two more providers, `b` and `c`; of each dialect a model whose candidates are one behind the
/// other: `m` has the names `a`, `b-real` and `c-real`.
pub(crate) const THREE: &str = r#"
[[provider]]
name = "b"
kind = "openai"
base_url = "http://{1}/v1"
credentials = [{ name = "of-b", key = "${UPSTREAM_KEY}" }]
[[provider]]
name = "c"
kind = "openai"
base_url = "http://{2}/v1"
credentials = [{ name = "of-c", key = "${UPSTREAM_KEY}" }]
[[provider]]
name = "claude-b"
kind = "anthropic"
base_url = "http://{1}"
credentials = [{ name = "of-b", key = "${UPSTREAM_KEY}" }]
[[model]]
name = "m"
candidates = [
  { provider = "up", model = "a", priority = 1 },
  { provider = "b", model = "b-real", priority = 2 },
  { provider = "c", model = "c-real", priority = 3 },
]
[[model]]
name = "two"
candidates = [
  { provider = "up", model = "a", priority = 1 },
  { provider = "b", model = "b-real", priority = 2 },
]
[[model]]
name = "claude-m"
candidates = [
  { provider = "claude", model = "claude-a", priority = 1 },
  { provider = "claude-b", model = "claude-real", priority = 2 },
]
"#;

/// One call that the first upstream treats like this and the hosts like that.
pub(crate) fn walked(request: &str, first: Vec<Act>, hosts: Vec<Host>) -> Scenario {
    let client = vec![send(request), Step::Answer, Step::Fin, Step::End];
    let missing = 2_usize.saturating_sub(hosts.len());
    let hosts = hosts.into_iter().chain(vec![Host::unreachable(Reach::Refused); missing]);
    Scenario {
        clients: vec![client],
        upstream: vec![Manner::once(first)],
        hosts: hosts.collect(),
        ..Scenario::default()
    }
    .under(THREE)
}

/// A host that answers every call like this.
pub(crate) fn host(answer: impl AsRef<[u8]>) -> Host {
    Host::open(vec![Manner::always(answer.as_ref())])
}

/// One that streams.
fn streaming(body: &str) -> Host {
    host(framed(Framing::Chunked, body.as_bytes()))
}

/// The usual request for a model.
pub(crate) fn of(model: &str) -> String {
    named(&post("", BODY), model)
}

fn pieces(parts: &[&str], end: Act) -> Vec<Act> {
    let mut out = chunked().into_bytes();
    parts.iter().for_each(|part| out.extend(chunk(part)));
    vec![say(out), Act::Pause(Duration::from_millis(100)), end]
}

/// The `class` and `possibly_billed` of each attempt.
pub(crate) fn attempts(outcome: &Outcome) -> Vec<(StatusClass, u8)> {
    let record = &outcome.records[0];
    let listed = record.listed.iter().take(record.attempts.into());
    listed.map(|attempt| (attempt.class, attempt.possibly_billed)).collect()
}

/// Every row after which the next candidate is asked without asking the same one again.
#[test]
fn the_next_candidate_is_asked_where_the_table_says_so() {
    use StatusClass::{Account, Capability, Invalid, Success};
    let error = |code: &str| format!(r#"{{"error":{{"message":"m","code":"{code}"}}}}"#);
    let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<p/>";
    let answers = [
        ("302", json("302 Found", "Location: http://x/\r\n", ""), Invalid, 0),
        ("101", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n".to_owned(), Invalid, 0),
        ("401", json("401 No", "", "{}"), Account, 0),
        ("402", json("402 Pay", "", "{}"), Account, 0),
        ("403", json("403 No", "", "{}"), Account, 0),
        ("quota", json("429 No", "", &error("insufficient_quota")), Account, 0),
        ("404", json("404 None", "", "{}"), Capability, 0),
        ("405", json("405 No", "", "{}"), Capability, 0),
        ("501", json("501 No", "", "{}"), Capability, 0),
        ("unsupported", json("400 Bad", "", &error("unsupported_parameter")), Capability, 0),
        ("html", html.to_owned(), Invalid, 1),
        ("empty", json("200 OK", "", "{}"), Invalid, 1),
        ("204", "HTTP/1.1 204 None\r\n\r\n".to_owned(), Invalid, 1),
        ("error in a 200", json("200 OK", "", &error("invalid_api_key")), Account, 0),
        ("nonsense", "NONSENSE\r\n\r\n".to_owned(), Invalid, 1),
    ];
    let mut scenarios = Vec::new();
    for (name, answer, class, billed) in answers {
        let scenario = walked(&of("m"), vec![say(answer)], vec![host(ok())]);
        scenarios.push(((name, class, billed), scenario));
    }
    transports::each_of(&scenarios, |(_, class, billed), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, COMPLETION));
        assert_eq!(answer.field("x-tollgate-attempts").as_deref(), Some("2"));
        assert_eq!(answer.field("x-tollgate-fallbacks").as_deref(), Some("1"));
        assert_eq!((outcome.forwarded(), outcome.requests_of(0).count()), (1, 1));
        assert_eq!(attempts(outcome), [(*class, *billed), (Success, 1)]);
        let record = &outcome.records[0];
        // The provider's place in the file, and its name for the model; no price is known for it.
        assert_eq!((record.provider_id, record.candidate, record.fallbacks), (2, 1, 1));
        let models = (record.model.as_str(), record.served_model.as_str());
        assert_eq!(models, ("m", "b-real"));
        assert_eq!((record.ending, record.tokens[4]), (Ending::Succeeded, 2));
    });
}

/// And those after which nobody else is: the answer is told as it came.
#[test]
fn nobody_else_is_asked_where_the_request_is_at_fault_or_something_was_used() {
    let usage = r#"{"error":{"message":"m"},"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let plain = r#"{"error":{"message":"m","code":"theirs"}}"#;
    let mut scenarios = Vec::new();
    for (status, body, cost) in [
        (400, plain, 0),
        (409, plain, 0),
        (413, plain, 0),
        (422, plain, 0),
        (502, plain, 0),
        (504, plain, 0),
        (599, plain, 0),
        (429, usage, CHAT_COST),
        (500, usage, CHAT_COST),
        (503, usage, CHAT_COST),
        (502, usage, CHAT_COST),
    ] {
        let answer = json(&format!("{status} Odd"), "X-Theirs: 1\r\n", body);
        scenarios
            .push(((status, body, cost), walked(&of("m"), vec![say(answer)], vec![host(ok())])));
    }
    transports::each_of(&scenarios, |(status, body, cost), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.reason.as_str()), (*status, "Odd"));
        assert_eq!((answer.text().as_str(), answer.count("x-theirs")), (*body, 1));
        assert_eq!((outcome.forwarded(), outcome.requests_of(0).count()), (1, 0));
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.cost_picousd), (Ending::UpstreamError, *cost));
        let provenance = if *cost > 0 { Provenance::Reported } else { Provenance::Missing };
        assert_eq!((record.provenance, record.attempts), (provenance, 1));
    });
}

/// Nothing of a stream that is none reaches the client: cases `life-first-error`,
/// `life-200-json-error`, `life-200-html`, `life-200-empty`.
#[test]
fn a_stream_that_is_no_answer_is_replaced_by_the_next_ones() {
    use StatusClass::{Account, Invalid, Server};
    let stored = |id: &str| bytes(&row(CASES, id));
    let preamble = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n";
    let error = "data: {\"error\":{\"message\":\"no\",\"code\":\"overloaded_error\"}}\n\n";
    let coded = gzip(error.as_bytes());
    let gzipped = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\
         Content-Length: {}\r\n\r\n",
        coded.len()
    );
    let comments = sent(Framing::Chunked, ": hi\n\n".as_bytes());
    let chat = |acts: Vec<Act>| (ask_with_usage(), acts);
    let cases = [
        (
            "first error",
            (ask_messages(), sent(Framing::Chunked, &stored("life-first-error"))),
            Server,
        ),
        ("json error", chat(vec![say(stored("life-200-json-error"))]), Account),
        ("html", chat(vec![say(stored("life-200-html"))]), Invalid),
        ("empty", chat(sent(Framing::Chunked, b"")), Invalid),
        ("its end alone", chat(sent(Framing::Chunked, b"data: [DONE]\n\n")), Invalid),
        ("comments", chat(comments), Invalid),
        ("preamble", chat(sent(Framing::Chunked, preamble.as_bytes())), Invalid),
        ("only the end", chat(sent(Framing::Chunked, b"data: [DONE]\n\n")), Invalid),
        (
            "preamble, error",
            chat(sent(Framing::Chunked, format!("{preamble}{error}").as_bytes())),
            Server,
        ),
        (
            "error, end",
            chat(sent(Framing::Chunked, format!("{error}data: [DONE]\n\n").as_bytes())),
            Server,
        ),
        (
            "error without a blank line",
            chat(sent(Framing::Close, error.trim_end().as_bytes())),
            Server,
        ),
        ("error in gzip", chat(vec![say([gzipped.as_bytes(), &coded].concat())]), Server),
        (
            "long error",
            (ask_messages(), sent(Framing::Chunked, &stored("use-error-text-billed"))),
            Server,
        ),
    ];
    assert_eq!(variants(&row(CASES, "life-200-empty")).len(), 2);
    let mut scenarios = Vec::new();
    for (name, (request, acts), class) in cases {
        let is_chat = request.contains("/chat/");
        let request = named(
            &request.replace("\"claude-a\"", "\"a\""),
            if is_chat { "m" } else { "claude-m" },
        );
        let body = if is_chat { CHAT } else { MESSAGES };
        let scenario = walked(&request, acts, vec![streaming(body)]).under("[retry]\nattempts = 1");
        scenarios.push(((name, body, class), scenario));
    }
    transports::each_of(&scenarios, |(_, body, class), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, *body));
        assert_eq!(answer.field("x-tollgate-fallbacks").as_deref(), Some("1"));
        let record = &outcome.records[0];
        assert_eq!((record.ending, attempts(outcome)[0].0), (Ending::Succeeded, *class));
        assert_eq!((record.provenance, record.fallbacks), (Provenance::Reported, 1));
    });
}

/// With nobody else the client is told the status it stands for, with the error as its body.
#[test]
fn an_error_in_a_stream_is_told_as_the_status_it_stands_for() {
    let messages = bytes(&row(CASES, "life-first-error"));
    let data = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    let chat = r#"{"error":{"message":"no","type":"x","code":"context_length_exceeded"}}"#;
    let number = r#"{"error":{"message":"no","code":418}}"#;
    let strange = r#"{"error":{"message":"no"}}"#;
    let quota = r#"{"error":{"message":"no","code":"insufficient_quota"}}"#;
    let event = |data: &str| format!("data: {data}\n\n");
    let said = "The upstream account behind this gateway cannot serve this call now.";
    let reworded = quota.replace("\"no\"", &format!("\"{said}\""));
    let mut scenarios = Vec::new();
    for (request, body, status, told) in [
        (ask_messages(), String::from_utf8(messages).unwrap(), 529, data),
        (ask(""), event(chat), 400, chat),
        (ask(""), event(number), 418, number),
        (ask(""), event(strange), 502, "upstream_invalid"),
        (ask(""), event(quota), 429, &reworded),
        (ask(""), ": hi\n\n".to_owned(), 502, "empty_completion"),
        (ask(""), String::new(), 502, "empty_completion"),
    ] {
        for framing in [Framing::Chunked, Framing::Length, Framing::Close] {
            let client = vec![send(&request), Step::Answer, Step::Fin, Step::End];
            let upstream = vec![Manner::once(sent(framing, body.as_bytes()))];
            let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
            let scenario = scenario.under("[retry]\nattempts = 1");
            scenarios.push(((framing, status, told.to_owned()), scenario));
        }
    }
    transports::each_of(&scenarios, |(_, status, told), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!(answer.status, *status, "{}", answer.text());
        assert_eq!(answer.field("content-type").as_deref(), Some("application/json"));
        assert_eq!((answer.count("cache-control"), answer.count("content-type")), (0, 1));
        let ending = match told.starts_with('{') {
            true => {
                assert_eq!(answer.text(), *told);
                Ending::UpstreamError
            }
            false => {
                assert_eq!(answer.code(), *told);
                Ending::Exhausted
            }
        };
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.cost_picousd, record.status), (ending, 0, *status));
    });
}

/// It does not matter how an error that comes first is cut.
#[test]
fn an_error_that_comes_first_fails_however_it_is_cut() {
    for (request, body) in [
        (ask_messages(), bytes(&row(CASES, "life-first-error"))),
        (ask(""), b"data: {\"error\":{\"message\":\"no\",\"code\":503}}\r\n\r\n".to_vec()),
    ] {
        for framing in [Framing::Chunked, Framing::Close] {
            let bytes = framed(framing, &body);
            let scenario = |split| {
                let mut acts = vec![Act::Send(bytes.clone(), split)];
                acts.extend((framing == Framing::Close).then_some(Act::Fin));
                let client = vec![send(&request), Step::Answer, Step::Fin, Step::End];
                let upstream = vec![Manner::once(acts)];
                let scenario = Scenario { clients: vec![client], upstream, ..Scenario::default() };
                scenario.under("[retry]\nattempts = 1")
            };
            script::run_splits(scenario, bytes.len(), |outcome| {
                outcome.assert_clean();
                (outcome.answer().status, outcome.answer().text())
            });
        }
    }
}

/// The last answer there was is told, not the last failure.
#[test]
fn the_last_answer_is_told_else_the_last_failure() {
    let answer = |status: &str, text: &str| {
        json(status, "X-Theirs: 1\r\n", &format!(r#"{{"error":{{"message":"{text}"}}}}"#))
    };
    let refused = || Host::unreachable(Reach::Refused);
    let reset = || Host::open(vec![Manner::once(vec![Act::Reset])]);
    let not_found = || vec![say(answer("404 None", "of a"))];
    let cases = [
        ("b has none", not_found(), vec![refused(), refused()], 404, "of a"),
        (
            "c has the last",
            not_found(),
            vec![host(answer("403 No", "of b")), host(answer("404 None", "of c"))],
            404,
            "of c",
        ),
        (
            "b has the last",
            not_found(),
            vec![host(answer("403 No", "of b")), refused()],
            403,
            "of b",
        ),
        ("none at all", vec![Act::Close], vec![], 502, "upstream_cut"),
        (
            "none reachable",
            vec![say(answer("401 No", "of a"))],
            vec![refused(), refused()],
            502,
            "upstream_unreachable",
        ),
        (
            "the last is ours",
            vec![say(json("200 OK", "", "{}"))],
            vec![host(answer("401 No", "of b")), reset()],
            502,
            "upstream_cut",
        ),
    ];
    let mut scenarios = Vec::new();
    for (name, first, hosts, status, told) in cases {
        let scenario = walked(&of("m"), first, hosts).under("[retry]\nattempts = 1");
        scenarios.push(((name, status, told), scenario));
    }
    transports::each_of(&scenarios, |(_, status, told), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!(answer.status, *status, "{}", answer.text());
        assert!(answer.text().contains(told), "{}", answer.text());
        let theirs = told.starts_with("of ");
        assert_eq!(answer.count("x-theirs"), usize::from(theirs));
        let ending = if theirs { Ending::UpstreamError } else { Ending::Exhausted };
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.status, record.cost_picousd), (ending, *status, 0));
    });
}

/// Our own account is nobody's business; all else of the answer is told.
#[test]
fn what_is_said_of_our_account_is_reworded() {
    let said = "The upstream account behind this gateway cannot serve this call now.";
    let body = concat!(
        r#"{ "error" : {"code":"insufficient_quota", "message" : "Of org-\"x\"\u00e9", "#,
        r#""param":null} , "more":[1]}"#
    );
    let reworded = body.replace(r#""Of org-\"x\"\u00e9""#, &format!("\"{said}\""));
    let html = concat!(
        "HTTP/1.1 402 Pay\r\nContent-Type: text/html\r\nX-Theirs: 1\r\n",
        "Content-Length: 9\r\n\r\n<p>org-x<"
    );
    let coded = gzip(body.as_bytes());
    let head = format!(
        "HTTP/1.1 402 Pay\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\
         X-Theirs: 1\r\nContent-Length: {}\r\n\r\n",
        coded.len()
    );
    let mut scenarios = Vec::new();
    for (answer, text) in [
        (json("429 No", "X-Theirs: 1\r\n", body).into_bytes(), Some(reworded)),
        (html.as_bytes().to_vec(), None),
        ([head.as_bytes(), &coded].concat(), None),
    ] {
        let client = vec![send(post("", BODY)), Step::Answer, Step::Fin, Step::End];
        scenarios.push((text, Scenario::plain(client, &answer)));
    }
    transports::each_of(&scenarios, |text, outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert!(answer.status == 429 || answer.status == 402);
        assert_eq!((answer.count("x-theirs"), answer.count("content-encoding")), (1, 0));
        assert_eq!(answer.field("content-type").as_deref(), Some("application/json"));
        assert!(!answer.text().contains("org-"), "{}", answer.text());
        match text {
            Some(text) => assert_eq!(answer.text(), *text),
            None => assert_eq!(answer.code(), "upstream_unavailable"),
        }
    });
}

/// An error too long to be kept passes as it comes if nobody is asked after it.
#[test]
fn a_long_error_is_told_too() {
    let body = format!(r#"{{"error":{{"message":"{}","code":"theirs"}}}}"#, "x".repeat(400 << 10));
    let mut scenarios = Vec::new();
    for status in [422, 400, 502, 503, 404, 429] {
        for framing in ["Content-Length", "chunked"] {
            let answer = match framing {
                "chunked" => [
                    format!(
                        "HTTP/1.1 {status} Odd\r\nContent-Type: application/json\r\n\
                             X-Theirs: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
                    )
                    .into_bytes(),
                    chunk(&body),
                    b"0\r\n\r\n".to_vec(),
                ]
                .concat(),
                _ => json(&format!("{status} Odd"), "X-Theirs: 1\r\n", &body).into_bytes(),
            };
            let client = vec![send(post("", BODY)), Step::Answer, Step::Fin, Step::End];
            let few = "[retry]\nattempts = 2\nbackoff = \"100ms\"";
            let scenario = Scenario::plain(client, &answer).under(few);
            scenarios.push(((status, framing, "alone"), scenario));
            // The last of two, the first of which had another error.
            let first = vec![say(json("404 None", "", "{}"))];
            let scenario = walked(&of("two"), first, vec![host(&answer)]).under(few);
            scenarios.push(((status, framing, "last"), scenario));
        }
    }
    transports::each_of(&scenarios, |(status, ..), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.reason.as_str()), (*status, "Odd"));
        assert_eq!(answer.count("x-theirs"), 1);
        assert!(answer.text() == body, "{} bytes", answer.body.len());
        assert_eq!(outcome.endings(), ["upstream_error"]);
        let record = &outcome.records[0];
        assert_eq!((record.cost_picousd, record.relayed_bytes), (0, body.len() as u64));
    });
}

/// If somebody was asked after it and gave no answer, its head is told, over words of ours.
#[test]
fn a_long_error_that_others_were_asked_after_keeps_its_head() {
    let body = format!(r#"{{"error":{{"message":"{}"}}}}"#, "x".repeat(400 << 10));
    let first = vec![say(json("404 None", "X-Theirs: 1\r\n", &body))];
    let hosts = vec![Host::unreachable(Reach::Refused)];
    let scenario = walked(&of("two"), first, hosts).under("[retry]\nattempts = 1");
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.count("x-theirs")), (404, 1));
        assert_eq!(answer.code(), "upstream_invalid");
    });
}

/// What was waited for upstreams and between attempts is none of our own time, and an answer that
/// was kept has some of it.
#[test]
fn the_time_of_ours_is_told_with_an_error_that_was_kept() {
    let slow = vec![Act::Pause(Duration::from_millis(400)), say(json("503 Busy", "", "{}"))];
    let mut manner = Manner::once(slow.clone());
    manner.turns.push(Turn { read: Read::Whole, acts: slow });
    let client = vec![send(post("", BODY)), Step::Answer, Step::Fin, Step::End];
    let scenario =
        Scenario { clients: vec![client], upstream: vec![manner], ..Scenario::default() }
            .under("[retry]\nattempts = 2\nbackoff = \"600ms\"");
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let told = outcome.answer().field("x-tollgate-overhead-us").unwrap();
        let (told, record) = (told.parse::<u32>().unwrap(), &outcome.records[0]);
        assert_eq!((told, record.attempts), (record.overhead_us, 2));
        // Three waits of 300 ms and more.
        assert!(told < 300_000, "{told} µs");
        // Virtual time passes in waits only.
        assert_eq!(told > 0, outcome.inside.is_none(), "{told} µs");
    });
}

/// Each candidate gets its own name for the model, however the client spells it, and nobody gets
/// another's.
#[test]
fn each_candidate_is_sent_its_own_name() {
    let gone = || json("404 None", "", "{}");
    let config = "[alias]\nnick = \"m\"\n";
    let mut scenarios = Vec::new();
    for (model, asked) in
        [("m", "m"), ("nick", "nick"), (r"\u006d", "m"), (r"nic\u006b", "nick"), ("m[1m]", "m[1m]")]
    {
        for large in [false, true] {
            let text = "y".repeat(if large { 40 << 10 } else { 1 });
            let body = format!(r#"{{"messages":["{text}"],"model":"{model}","x":"m"}}"#);
            let hosts = vec![host(gone()), host(ok())];
            let scenario = walked(&post("", &body), vec![say(gone())], hosts).under(config);
            scenarios.push(((model, asked, text), scenario));
        }
    }
    transports::each_of(&scenarios, |(_, asked, text), outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().status, 200, "{}", outcome.answer().text());
        let body = |name: &str| format!(r#"{{"messages":["{text}"],"model":"{name}","x":"m"}}"#);
        let sent = [
            outcome.asked().text(),
            outcome.requests_of(0).next().unwrap().text(),
            outcome.requests_of(1).next().unwrap().text(),
        ];
        assert!(sent == ["a", "b-real", "c-real"].map(body), "{:?}", sent.map(|s| s.len()));
        let record = &outcome.records[0];
        let models = (record.model.as_str(), record.served_model.as_str());
        assert_eq!((models, record.fallbacks), ((*asked, "c-real"), 2));
        let ids: Vec<_> = outcome
            .requests()
            .chain(outcome.requests_of(0))
            .map(|asked| {
                (
                    asked.field("x-tollgate-request-id").unwrap(),
                    asked.field("x-tollgate-attempt").unwrap(),
                )
            })
            .collect();
        assert_eq!(ids[0].0, ids[1].0, "one exchange, one id");
        assert_eq!((ids[0].1.as_str(), ids[1].1.as_str()), ("1", "2"));
    });
}

/// Who answers early, before it has read all of the request, is answered for by the next: the body
/// is whole again.
#[test]
fn a_large_body_goes_to_the_next_after_an_early_answer() {
    let text = "z".repeat(6 << 20);
    let body = |name: &str| format!(r#"{{"messages":["{text}"],"model":"{name}"}}"#);
    for (status, same) in [("404 None", false), ("503 Busy", true)] {
        let early = json(status, "Connection: close\r\n", "{}");
        let turn = Turn { read: Read::Bytes(1000), acts: vec![say(early), Act::Hang] };
        let mut scenario = walked(&post("", &body("m")), vec![], vec![host(ok())]);
        scenario.upstream =
            vec![Manner { turns: vec![turn], repeats: false }, Manner::always(ok().as_bytes())];
        transports::each(&scenario, |outcome| {
            assert_eq!(outcome.statuses(0), [200], "{:?}", outcome.clients[0].faults);
            let asked = if same { outcome.asked() } else { outcome.requests_of(0).next().unwrap() };
            let name = if same { "a" } else { "b-real" };
            assert!(asked.text() == body(name), "{} bytes", asked.body.len());
            assert_eq!(outcome.answer().text(), COMPLETION);
            assert!(outcome.inside.is_none_or(|i| i.allowance_left == 8 * (32 << 20)));
        });
    }
}

/// A credential that is used up or refused is passed over for the next one, and left alone for a
/// while.
#[test]
fn a_used_up_credential_gives_way_to_the_next_and_cools_down() {
    let quota = r#"{"error":{"message":"m","code":"insufficient_quota"}}"#;
    let refused = json("401 No", "Retry-After: 1\r\n", "{}");
    // Two credentials of one provider: the host judges by the one it is sent.
    let config = r#"
[[provider]]
name = "two-keys"
kind = "openai"
base_url = "http://{1}/v1"
credentials = [{ name = "one", key = "${KEY_ONE}" }, { name = "two", key = "${KEY_TWO}" }]
[[model]]
name = "m"
candidates = [{ provider = "two-keys", model = "real" }]
"#;
    for (answer, rest_s) in [(json("429 No", "", quota), 60), (refused, 1)] {
        let mut client = call(of("m"));
        client.extend(call(of("m")));
        client.push(Step::Pause(Duration::from_secs(rest_s + 1)));
        client.extend(call(of("m")));
        let turns = |answers: &[&str]| -> Vec<Turn> {
            answers.iter().map(|answer| Turn::answer(answer.as_bytes())).collect()
        };
        let good = ok();
        let manner =
            Manner { turns: turns(&[&answer, &good, &good, &good, &good]), repeats: false };
        let scenario = Scenario {
            clients: vec![client],
            hosts: vec![Host::open(vec![manner, Manner::always(ok().as_bytes())])],
            ..Scenario::default()
        };
        let outcome = script::run(&scenario.under(config));
        outcome.assert_clean();
        assert_eq!(outcome.statuses(0), [200, 200, 200]);
        let keys: Vec<String> =
            outcome.requests_of(0).map(|asked| asked.field("authorization").unwrap()).collect();
        let keys: Vec<&str> = keys.iter().map(|key| key.trim_start_matches("Bearer ")).collect();
        assert_eq!(keys[..3], ["sk-one", "sk-two", "sk-two"], "{keys:?}");
        assert_eq!(keys.len(), 4);
        let record = &outcome.records[0];
        assert_eq!((record.attempts, record.fallbacks, record.credential_id), (2, 1, 1));
    }
}

/// The price is that of whoever served: the charge of a failed candidate is gone.
#[test]
fn the_one_that_serves_is_the_one_that_is_charged() {
    let error = concat!(
        "event: error\n",
        "data: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"x\"}}\n\n"
    );
    let request = ask_messages();
    let request = named(&request.replace("\"claude-a\"", "\"a\""), "claude-m");
    let first = sent(Framing::Chunked, error.as_bytes());
    let config = "[retry]\nattempts = 1\n";
    let good = walked(&request, first.clone(), vec![streaming(MESSAGES)]).under(config);
    transports::each(&good, |outcome| {
        outcome.assert_clean();
        let record = &outcome.records[0];
        assert_eq!(record.served_model.as_str(), "claude-real");
        assert_eq!(record.provenance, Provenance::Reported);
        // Of `claude-b` no price is known: the price list has that of `claude`.
        assert_eq!((record.tokens[0], record.tokens[4], record.cost_picousd), (3, 2, 0));
    });
    assert_ne!(MESSAGES_COST, 0);
    // A cut after content is charged, and nobody else is asked.
    let begun =
        &CHAT[..CHAT.find("data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{}").unwrap()];
    let request = named(&ask(""), "m");
    let cut = walked(&request, pieces(&[begun], Act::Reset), vec![streaming(CHAT)]);
    let mut cut = cut.under(config);
    cut.clients[0] = vec![send(&request), Step::Answer, Step::End];
    transports::each(&cut, |outcome| {
        outcome.assert_clean();
        let record = &outcome.records[0];
        assert_eq!((record.ending, record.cost_picousd), (Ending::UpstreamCut, 100));
        assert_eq!(outcome.requests_of(0).count(), 0, "nothing is replayed");
        assert_eq!((record.attempts, record.release), (1, Release::None));
    });
}

/// A client that leaves while nobody works on its call has used nothing.
#[test]
fn who_leaves_between_two_attempts_is_charged_nothing() {
    let busy = json("503 Busy", "Retry-After: 4\r\n", "{}");
    let text = "x".repeat(4_000);
    let body = format!(r#"{{"model":"a","messages":[{{"content":"{text}"}}]}}"#);
    let client = vec![
        send(post("", &body)),
        Step::Wait("busy"),
        Step::Pause(Duration::from_secs(1)),
        Step::Reset,
        Step::Pause(Duration::from_secs(6)),
    ];
    let acts = vec![say(busy), Act::Signal("busy")];
    let scenario = Scenario {
        clients: vec![client],
        upstream: vec![Manner::once(acts)],
        ..Scenario::default()
    };
    let outcome = script::run(&scenario);
    let record = &outcome.records[0];
    assert_eq!((record.ending, record.attempts), (Ending::ClientLeft, 1));
    assert_eq!((record.cost_picousd, record.release), (0, Release::NothingReceived));
    let ms = record.closed_unix_ms - record.opened_unix_ms;
    assert!((1_000..1_500).contains(&ms), "seen gone at once: {ms} ms");
}

/// Errors keep their dialect.
#[test]
fn the_end_of_a_walk_speaks_the_dialect_of_its_route() {
    let request = ask_messages();
    let request = named(&request.replace("\"claude-a\"", "\"a\""), "claude-m");
    let scenario = walked(&request, vec![Act::Close], vec![]).under("[retry]\nattempts = 1");
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let told: Value = serde_json::from_slice(&outcome.answer().body).unwrap();
        assert_eq!((outcome.answer().status, &told["type"]), (502, &"error".into()));
    });
}
