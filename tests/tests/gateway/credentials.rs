//! Who may call, and what is read and sent before that is known.

use crate::messages::MESSAGE;
use crate::{BODY, ONE_ATTEMPT, call, json, ok, post};
use gateway_tests::answer::Answer;
use gateway_tests::outcome::End;
use gateway_tests::scenario::{Scenario, Step, send};
use gateway_tests::transports;

fn request(fields: &str) -> String {
    post(fields, BODY).replacen("Authorization: Bearer sk-test\r\n", "", 1)
}

#[test]
fn every_credential_field_works_and_goes_no_further() {
    let good = [
        "Authorization: Bearer sk-test\r\n",
        "authorization: BEARER sk-test\r\n",
        "x-api-key: sk-test\r\n",
        "api-key: sk-test\r\n",
        "X-Goog-Api-Key: sk-test\r\n",
        "x-tollgate-key: sk-test\r\n",
        // Beside a caller's own key, in any order.
        "x-tollgate-key: sk-test\r\nAuthorization: Bearer sk-of-mine\r\n",
        "Authorization: Bearer sk-of-mine\r\nx-tollgate-key: sk-test\r\n",
        "x-api-key: sk-of-mine\r\nAuthorization: Bearer sk-test\r\n",
    ];
    let bad = [
        "",
        "Authorization: Bearer \r\n",
        "Authorization: Basic sk-test\r\n",
        "Authorization: sk-test\r\n",
        "Authorization: Bearer sk-tes\r\n",
        "Authorization: Bearer sk-test2\r\n",
        "x-tollgate-key: sk-other\r\nAuthorization: Bearer sk-test\r\n",
        "Authorization: Bearer sk-other\r\nx-api-key: sk-test\r\n",
    ];
    let named = |status: u16, list: &'static [&'static str]| {
        list.iter().map(move |fields| {
            let scenario = Scenario::plain(call(request(fields)), ok().as_bytes());
            ((status, *fields), scenario)
        })
    };
    let good: &'static [&'static str] = Vec::leak(good.to_vec());
    let bad: &'static [&'static str] = Vec::leak(bad.to_vec());
    let scenarios: Vec<_> = named(200, good).chain(named(401, bad)).collect();
    transports::each_of(&scenarios, |(status, _), outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().status, *status);
        assert_eq!(outcome.forwarded(), usize::from(*status == 200));
        assert_eq!(outcome.records.len(), usize::from(*status == 200));
        for asked in outcome.requests() {
            let fields = format!("{:?}{}", asked.fields, asked.line);
            assert_eq!(asked.field("authorization").unwrap(), "Bearer sk-of-the-provider");
            let own = ["x-api-key", "api-key", "x-goog-api-key", "x-tollgate-key"];
            assert!(own.iter().all(|name| asked.count(name) == 0), "{fields}");
        }
        if *status == 401 {
            assert_eq!(outcome.answer().code(), "invalid_api_key");
        }
    });
}

/// No client's field is tied to its dialect, and lists and counts are no exception.
#[test]
fn every_credential_field_works_on_every_route() {
    let fields = [
        "Authorization: Bearer {}",
        "x-api-key: {}",
        "api-key: {}",
        "x-goog-api-key: {}",
        "x-tollgate-key: {}",
        "x-tollgate-key: {}\r\nauthorization: Bearer sk-of-mine\r\nx-api-key: sk-of-mine",
    ];
    let body = r#"{"model":"claude-a","max_tokens":5,"messages":[]}"#;
    let posted = |path: &str, body: &str| (format!("POST {path}"), body.to_owned());
    let routes = [
        (posted("/v1/chat/completions", BODY), ok()),
        (posted("/v1/messages", body), json("200 OK", "", MESSAGE)),
        (posted("/v1/messages/count_tokens", body), json("200 OK", "", r#"{"input_tokens":7}"#)),
        (("GET /v1/models?limit=1000".to_owned(), String::new()), ok()),
    ];
    let mut scenarios = Vec::new();
    for ((line, body), answer) in &routes {
        for field in fields {
            for (key, status) in [("sk-test", 200), ("sk-other", 401)] {
                let field = field.replace("{}", key);
                let length = if body.is_empty() {
                    String::new()
                } else {
                    format!("Content-Length: {}\r\n", body.len())
                };
                let request =
                    format!("{line} HTTP/1.1\r\nHost: gw.test\r\n{field}\r\n{length}\r\n{body}");
                let scenario = Scenario::plain(call(request), answer.as_bytes());
                scenarios.push((format!("{line} {field} {status}"), scenario));
            }
        }
    }
    transports::each_of(&scenarios, |name, outcome| {
        outcome.assert_clean();
        let status = outcome.answer().status;
        assert!(name.ends_with(&status.to_string()), "{status}: {}", outcome.answer().text());
    });
}

/// There is a client that tries to upgrade before anything else; whatever it is told but 426 costs
/// it seconds.
#[test]
fn a_probe_for_a_socket_is_told_at_once_to_fall_back() {
    for key in ["", "Authorization: Bearer sk-test\r\n", "Authorization: Bearer sk-other\r\n"] {
        let probe = format!(
            "GET /v1/responses HTTP/1.1\r\nHost: gw.test\r\n{key}Connection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        let client = vec![send(probe), Step::Answer, Step::End];
        transports::each(&Scenario::plain(client, b""), |outcome| {
            outcome.assert_clean();
            let answer = outcome.answer();
            assert_eq!((answer.status, answer.code().as_str()), (426, "upgrade_required"));
            assert_eq!(answer.field("upgrade").as_deref(), Some("HTTP/1.1"));
            let options = fields_of(answer, "connection");
            assert!(options.iter().any(|option| option == "upgrade"), "{options:?}");
            assert!(answer.closes() && outcome.clients[0].end == End::Fin, "{options:?}");
            assert_eq!((outcome.forwarded(), outcome.refusals.len()), (0, 0));
        });
    }
}

fn fields_of(answer: &Answer, name: &str) -> Vec<String> {
    let named = answer.fields.iter().filter(|(known, _)| known == name);
    named.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect()
}

#[test]
fn an_ambiguous_credential_is_refused() {
    let twice = [
        "x-api-key: sk-test\r\nx-api-key: sk-other\r\n",
        "x-tollgate-key: a\r\nx-tollgate-key: b\r\n",
    ];
    for fields in twice {
        let client = vec![send(request(fields)), Step::Answer, Step::End];
        transports::each(&Scenario::plain(client, b""), |outcome| {
            outcome.assert_clean();
            assert_eq!((outcome.answer().status, outcome.forwarded()), (400, 0));
        });
    }
}

/// The answer comes although the body never does, and no continue is sent.
#[test]
fn an_unknown_key_is_refused_before_a_byte_of_the_body() {
    let length = "Authorization: Bearer sk-other\r\nContent-Length: 500\r\n\r\n";
    for more in ["", "Expect: 100-continue\r\n"] {
        let head = format!("POST /v1/chat/completions HTTP/1.1\r\nHost: gw.test\r\n{more}{length}");
        let client = vec![send(head), Step::Answer, Step::End];
        transports::each(&Scenario::plain(client, b""), |outcome| {
            outcome.assert_clean();
            assert_eq!((outcome.answer().status, outcome.answer().closes()), (401, true));
            assert_eq!((outcome.clients[0].interim.len(), outcome.clients[0].end), (0, End::Fin));
        });
    }
}

#[test]
fn the_query_goes_on_without_credentials() {
    for (query, expected) in [
        ("", ""),
        ("?", ""),
        ("?beta=true&x=%20y&&z", "?beta=true&x=%20y&z"),
        ("?key=sk-test", ""),
        ("?a=1&KEY=sk&api_key=x&api-key=y&access_token=z&b=2", "?a=1&b=2"),
        ("?a=1;%6bey=sk&x-api-key=x;x%2Dgoog-api-key=y&authorization=z&b=2", "?a=1;b=2"),
        ("?monkey=1&key", "?monkey=1"),
    ] {
        let line = format!("POST /v1/chat/completions{query} HTTP/1.1");
        let request = post("", BODY).replace("POST /v1/chat/completions HTTP/1.1", &line);
        transports::each(&Scenario::plain(call(request), ok().as_bytes()), |outcome| {
            outcome.assert_clean();
            let expected = format!("POST /v1/chat/completions{expected} HTTP/1.1");
            assert_eq!(outcome.asked().line, expected);
        });
    }
}

/// The provider's refusal of our credential is not the caller's; its other refusals are verbatim.
#[test]
fn upstream_statuses_are_relayed_or_named() {
    let body = r#"{"error":{"message":"m","code":"theirs"}}"#;
    let retry = "Retry-After: 7\r\nretry-after-ms: 7000\r\n";
    let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<p/>";
    let page = "HTTP/1.1 503 Busy\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<p/>";
    let mut scenarios = Vec::new();
    let mut row = |answer: String, status: u16, code: &'static str, ending: &'static str| {
        let mut client = call(post("", BODY));
        client.extend([Step::Fin, Step::End]);
        let scenario = Scenario::plain(client, answer.as_bytes()).under(ONE_ATTEMPT);
        scenarios.push(((status, code, ending), scenario));
    };
    for status in [400, 402, 403, 404, 405, 409, 422, 429, 500, 501, 502, 503, 504, 529, 599] {
        let answer = json(&format!("{status} Odd Reason"), retry, body);
        row(answer, status, "theirs", "upstream_error");
    }
    let overloaded = body.replace("theirs", "overloaded_error");
    row(json("200 OK", "", &overloaded), 529, "overloaded_error", "upstream_error");
    row(json("401 Unauthorized", retry, body), 502, "upstream_auth", "exhausted");
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let answer = json(status, "Location: http://127.0.0.1:1/\r\n", body);
        row(answer, 502, "upstream_invalid", "exhausted");
    }
    row(
        "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n".into(),
        502,
        "upstream_invalid",
        "exhausted",
    );
    row("HTTP/1.1 204 No Content\r\n\r\n".into(), 502, "upstream_invalid", "exhausted");
    row(html.into(), 502, "upstream_invalid", "exhausted");
    row(page.into(), 503, "", "upstream_error");
    row(json("200 OK", "", body), 502, "upstream_invalid", "exhausted");
    row(json("200 OK", "", "{}"), 502, "empty_completion", "exhausted");
    row(json("200 OK", "", "<p>nonsense"), 502, "upstream_invalid", "exhausted");
    transports::each_of(&scenarios, |(status, code, ending), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.code().as_str()), (*status, *code), "{}", answer.text());
        assert_eq!(outcome.endings(), [*ending]);
        assert_eq!((outcome.forwarded(), outcome.counters.attempts.get()), (1, 1));
        assert_eq!(outcome.records[0].status, *status);
        if *code == "theirs" {
            let said = "\"The upstream account behind this gateway cannot serve this call now.\"";
            // What is said about our own account is not for the caller; all else is.
            let text = if *status == 402 { body.replace("\"m\"", said) } else { body.to_owned() };
            assert_eq!((answer.reason.as_str(), answer.text()), ("Odd Reason", text));
            assert_eq!(answer.field("retry-after").as_deref(), Some("7"));
            assert_eq!(answer.field("retry-after-ms").as_deref(), Some("7000"));
        }
        let final_for_us = *code == "upstream_auth";
        assert_eq!(answer.field("x-should-retry").is_some(), final_for_us);
        assert_eq!(answer.count("location"), 0);
    });
}
