//! The header table of `docs/reference/headers.md`, row by row through the pipeline, both ways.

use crate::{BODY, COMPLETION, call, json, ok, post};
use codec::trace_context::Trace;
use gateway_tests::outcome::Outcome;
use gateway_tests::scenario::{Scenario, Step, send};
use gateway_tests::transports;

const TABLE: &str = include_str!("../../../docs/reference/headers.md");

/// A value that nobody would set by chance.
const PROBE: &str = "probe-7";

#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    header: String,
    action: String,
    note: String,
}

impl Row {
    /// Names the row stands for: also one that is longer than any known name.
    fn names(&self) -> Vec<String> {
        match self.header.strip_suffix('*') {
            None => vec![self.header.clone()],
            Some("") => vec!["x-nobody-knows".to_owned(), format!("x-{}", "n".repeat(80))],
            Some(prefix) => vec![format!("{prefix}probe"), format!("{prefix}{}", "n".repeat(80))],
        }
    }

    fn needs_unchanged_body(&self) -> bool {
        self.note.contains("when the body was changed")
    }
}

fn rows(direction: &str) -> Vec<Row> {
    let rows: Vec<Row> = TABLE
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<&str>>())
        .filter(|cells| cells[0] == direction)
        .map(|cells| Row {
            header: cells[1].to_owned(),
            action: cells[2].to_owned(),
            note: cells[3].to_owned(),
        })
        .collect();
    assert!(rows.len() > 20, "the table is not found");
    rows
}

/// What a client may send under a name without being refused for it.
fn sent_value(name: &str) -> &str {
    match name {
        "authorization" => "Bearer sk-test",
        "connection" => "keep-alive",
        "content-encoding" => "identity",
        "content-type" => "application/json",
        "expect" => "100-continue",
        "host" => "gw.test",
        "x-tollgate-key" => "sk-test",
        _ => PROBE,
    }
}

fn request_with(name: &str, body: &str) -> String {
    let value = sent_value(name);
    match name {
        "authorization" | "host" | "content-type" | "content-length" => post("", body),
        "transfer-encoding" => post("", &format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()))
            .lines()
            .map(|line| match line.starts_with("Content-Length") {
                true => "Transfer-Encoding: chunked\r\n".to_owned(),
                false => format!("{line}\r\n"),
            })
            .collect(),
        // In odd case: names are compared without it.
        _ => post(&format!("{}: {value}\r\n", name.to_uppercase()), body),
    }
}

#[test]
fn each_row_of_the_request_holds() {
    let mut scenarios = Vec::new();
    for row in rows("request") {
        for name in row.names() {
            for (changed, model) in [(false, "a"), (true, "nick")] {
                if changed && !row.needs_unchanged_body() {
                    continue;
                }
                let body = BODY.replace("\"a\"", &format!("\"{model}\""));
                let scenario = Scenario::plain(call(request_with(&name, &body)), ok().as_bytes());
                let scenario = scenario.under("[alias]\nnick = \"a\"");
                scenarios.push(((row.clone(), name.clone(), changed), scenario));
            }
        }
    }
    transports::each_of(&scenarios, |(row, name, changed), outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().status, 200, "{}", outcome.answer().text());
        let asked = outcome.asked();
        assert_eq!(asked.text(), BODY);
        let forwarded = match row.action.as_str() {
            "forward" => true,
            "strip" => row.needs_unchanged_body() && !changed,
            "consume" => false,
            "rewrite" | "add" => return judge_ours(outcome, name),
            action => panic!("no such action: {action}"),
        };
        let expected = forwarded.then(|| sent_value(name).to_owned());
        assert_eq!((asked.count(name), asked.field(name)), (usize::from(forwarded), expected));
    });
}

/// What the upstream gets from us under a name, whatever the client sent.
fn judge_ours(outcome: &Outcome, name: &str) {
    let asked = outcome.asked();
    let value = asked.field(name);
    match name {
        "transfer-encoding" => return assert_eq!(value, None),
        "x-tollgate-request-id" => {
            assert_eq!(value, outcome.answer().field("x-tollgate-request-id"));
        }
        "traceparent" => {
            let value = value.clone().unwrap_or_default();
            assert!(Trace::parse(value.as_bytes()).is_some() && !value.contains(PROBE), "{value}");
        }
        "x-tollgate-attempt" => assert_eq!(value.as_deref(), Some("1")),
        "authorization" => assert_eq!(value.as_deref(), Some("Bearer sk-of-the-provider")),
        "accept-encoding" => assert_eq!(value.as_deref(), Some("identity")),
        "content-length" => assert_eq!(value, Some(BODY.len().to_string())),
        "host" => assert!(value.is_some_and(|value| value.starts_with("127.0.0.1:"))),
        _ => panic!("{name} has no value of ours"),
    }
    assert_eq!(asked.count(name), 1);
}

#[test]
fn each_row_of_the_response_holds() {
    let mut scenarios = Vec::new();
    for row in rows("response") {
        for name in row.names() {
            let answer = match name.as_str() {
                "content-type" | "content-length" => ok(),
                "connection" => json("200 OK", "Connection: keep-alive\r\n", COMPLETION),
                "transfer-encoding" => format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                     Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{COMPLETION}\r\n0\r\n\r\n",
                    COMPLETION.len()
                ),
                _ => json("200 OK", &format!("{}: {PROBE}\r\n", name.to_uppercase()), COMPLETION),
            };
            let scenario = Scenario::plain(call(post("", BODY)), answer.as_bytes());
            scenarios.push(((row.clone(), name), scenario));
        }
    }
    transports::each_of(&scenarios, |(row, name), outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, COMPLETION));
        let value = answer.field(name);
        let expected = match (row.action.as_str(), name.as_str()) {
            ("forward", "content-type") => Some("application/json".to_owned()),
            ("forward", _) => Some(PROBE.to_owned()),
            ("strip", _) => None,
            ("rewrite", "content-length") => Some(COMPLETION.len().to_string()),
            ("rewrite", "transfer-encoding") => None,
            ("add", "traceparent") => {
                let asked = outcome.asked().field("traceparent").expect("a trace");
                let told = value.clone().unwrap_or_default();
                assert_eq!(told.get(..36), asked.get(..36), "one trace");
                Some(told)
            }
            ("add", "x-tollgate-attempts") => Some("1".to_owned()),
            ("add", "x-tollgate-fallbacks") => Some("0".to_owned()),
            ("add", "x-tollgate-upstream-request-id") => None,
            // This key has no limits; `governed` has one that does.
            ("add", "x-tollgate-budget-warning") => None,
            ("add", name) if name.contains("ratelimit-") => None,
            ("add", "x-tollgate-request-id") => outcome.asked().field("x-tollgate-request-id"),
            ("add", "x-tollgate-overhead-us") => {
                let own = value.as_ref().and_then(|text| text.parse::<u32>().ok());
                assert!(own.is_some_and(|own| own < 1_000_000), "{value:?}");
                value.clone()
            }
            other => panic!("no such row: {other:?}"),
        };
        assert_eq!(
            (value, answer.count(name)),
            (expected.clone(), usize::from(expected.is_some()))
        );
    });
}

/// Whatever `Connection` lists goes no further, except what is for us anyway.
#[test]
fn what_connection_lists_is_stripped_both_ways() {
    let fields = "Connection: close, X-Mine, Digest\r\nX-Mine: 1\r\nDigest: a\r\n\
                  Content-MD5: b\r\nKeep-Alive: timeout=1\r\nX-Other: 2\r\n";
    let answer = json("200 OK", "Connection: X-Theirs\r\nX-Theirs: 1\r\nX-Rest: 2\r\n", COMPLETION);
    let client = vec![send(post(fields, BODY)), Step::Answer, Step::End];
    transports::each(&Scenario::plain(client, answer.as_bytes()), |outcome| {
        outcome.assert_clean();
        let (asked, answer) = (outcome.asked(), outcome.answer());
        for name in ["connection", "x-mine", "digest", "keep-alive"] {
            assert_eq!(asked.count(name), 0, "{name}");
        }
        assert_eq!((asked.count("x-other"), asked.count("content-md5")), (1, 1));
        assert_eq!((answer.count("x-theirs"), answer.count("x-rest")), (0, 1));
        assert!(answer.closes());
    });
}

#[test]
fn repeated_fields_keep_their_order_and_their_bytes() {
    let fields = "X-A: one\r\nx-b:caf\u{e9}\r\nX-A:   two  \r\nX-Empty:\r\n";
    let answer = json("200 OK", "X-A: 1\r\nX-A: 2\r\nX-Empty:\r\n", COMPLETION);
    let scenario = Scenario::plain(call(post(fields, BODY)), answer.as_bytes());
    transports::each(&scenario, |outcome| {
        outcome.assert_clean();
        let values = |fields: &[(String, Vec<u8>)], name: &str| -> Vec<String> {
            let named = fields.iter().filter(|(known, _)| known == name);
            named.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect()
        };
        assert_eq!(values(&outcome.asked().fields, "x-a"), ["one", "two"]);
        assert_eq!(values(&outcome.asked().fields, "x-b"), ["caf\u{e9}"]);
        assert_eq!(values(&outcome.asked().fields, "x-empty"), [""]);
        assert_eq!(values(&outcome.answer().fields, "x-a"), ["1", "2"]);
    });
}

/// DESIGN §16.13.
#[test]
fn the_callers_request_id_is_echoed_and_never_sent_on() {
    let theirs = json("200 OK", "x-request-id: theirs\r\n", COMPLETION);
    let mine = "X-Request-Id: mine\r\n";
    let unknown = |fields: &str| format!("GET /nothing HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    let bad = post(mine, "[]");
    for (requests, echoed) in [
        (vec![post(mine, BODY)], vec![Some("mine")]),
        (vec![post("", BODY)], vec![Some("theirs")]),
        (vec![post(mine, BODY), post("", BODY)], vec![Some("mine"), Some("theirs")]),
        (vec![bad.clone(), post("", "[]")], vec![Some("mine"), None]),
        // A head that is refused before its fields are sorted.
        (vec![unknown(mine)], vec![Some("mine")]),
        (vec![post(mine, BODY), unknown("")], vec![Some("mine"), None]),
        (vec![post(mine, BODY), "BROKEN\r\n\r\n".to_owned()], vec![Some("mine"), None]),
    ] {
        let mut client: Vec<Step> = Vec::new();
        for request in &requests {
            client.extend(call(request));
        }
        transports::each(&Scenario::plain(client, theirs.as_bytes()), |outcome| {
            outcome.assert_clean();
            let answers = &outcome.clients[0].answers;
            let seen: Vec<Option<String>> =
                answers.iter().map(|answer| answer.field("x-request-id")).collect();
            assert_eq!(seen, echoed.iter().map(|id| id.map(str::to_owned)).collect::<Vec<_>>());
            for (answer, echoed) in answers.iter().zip(&echoed) {
                let moved = *echoed == Some("mine") && answer.status == 200;
                let upstream = answer.field("x-tollgate-upstream-request-id");
                assert_eq!(upstream.as_deref(), moved.then_some("theirs"));
                assert!(answer.field("x-tollgate-request-id").unwrap().starts_with("tgr_"));
            }
            assert!(outcome.requests().all(|asked| asked.count("x-request-id") == 0));
        });
    }
}

/// DESIGN §6: unchanged, with `x-should-retry: false` above a minute.
#[test]
fn a_long_retry_after_says_not_to_retry() {
    let busy = |fields: &str| json("429 Too Many", fields, r#"{"error":{"code":"x"}}"#);
    for (fields, retry_after, should_retry) in [
        ("Retry-After: 60\r\n", "60", None),
        ("Retry-After: 61\r\n", "61", Some("false")),
        ("Retry-After: 99999999999999999999999\r\n", "99999999999999999999999", Some("false")),
        ("Retry-After: 61\r\nx-should-retry: true\r\n", "61", Some("false")),
        ("Retry-After: 5\r\nx-should-retry: true\r\n", "5", Some("true")),
        ("Retry-After: soon\r\n", "soon", None),
    ] {
        let scenario = Scenario::plain(call(post("", BODY)), busy(fields).as_bytes());
        transports::each(&scenario, |outcome| {
            outcome.assert_clean();
            let answer = outcome.answer();
            assert_eq!((answer.status, answer.code().as_str()), (429, "x"));
            assert_eq!(answer.field("retry-after").as_deref(), Some(retry_after));
            assert_eq!(answer.field("x-should-retry").as_deref(), should_retry, "{fields}");
            assert!(answer.count("x-should-retry") < 2);
        });
    }
}

#[test]
fn a_gateway_before_this_one_is_served_like_anybody() {
    let other = format!("x-tollgate-request-id: tgr_{}\r\n", "p".repeat(32));
    let gateway = format!("{other}x-tollgate-attempt: 1\r\n");
    let scenarios = [
        (None, other.clone()),
        // Who is no gateway names none.
        (None, format!("{other}x-tollgate-via: ababab\r\n")),
        (Some("pppppp"), gateway.clone()),
        (
            Some("ababab,pppppp"),
            format!("X_Tollgate_Via: b\r\nX-Tollgate-Via: ababab\r\n{gateway}"),
        ),
    ]
    .map(|(via, fields)| (via, Scenario::plain(call(post(&fields, BODY)), ok().as_bytes())));
    transports::each_of(&scenarios, |via, outcome| {
        outcome.assert_clean();
        assert_eq!((outcome.answer().status, outcome.forwarded()), (200, 1));
        for asked in outcome.requests() {
            assert_eq!(
                (asked.count("x-tollgate-request-id"), asked.count("x-tollgate-attempt")),
                (1, 1)
            );
            assert_eq!(asked.field("x-tollgate-via").as_deref(), *via);
            assert_eq!(asked.count("x_tollgate_via"), 0);
        }
    });
}

#[test]
fn a_call_that_came_through_more_gateways_than_any_chain_has_is_refused() {
    let gateway =
        format!("x-tollgate-request-id: tgr_{}\r\nx-tollgate-attempt: 1\r\n", "p".repeat(32));
    let scenarios = [(200, 7), (508, 8), (508, 400)].map(|(status, names)| {
        let via = format!("{gateway}x-tollgate-via: {}\r\n", vec!["ababab"; names].join(","));
        (status, Scenario::plain(call(post(&via, BODY)), ok().as_bytes()))
    });
    transports::each_of(&scenarios, |&status, outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, outcome.forwarded()), (status, usize::from(status == 200)));
        if status == 508 {
            assert_eq!(answer.code(), "loop_detected");
            assert_eq!(answer.field("x-should-retry").as_deref(), Some("false"));
        }
    });
}
