//! The field cases of security and of other origins: what a caller writes becomes no line of a
//! head, no other path, and no right that it did not have.

use crate::{BODY, COMPLETION, call, ok, post};
use gateway_tests::answer::Answer;
use gateway_tests::corpus::{CASES, bytes, row, rows, text, variants};
use gateway_tests::scenario::{Scenario, Step, send};
use gateway_tests::transports;

/// Where each case is played.
const PLAYED: &[(&str, &str)] = &[
    ("sec-key-log", "tests/process/hostile.rs"),
    ("sec-header-inject", "no_text_of_a_body_becomes_a_field_of_an_answer"),
    ("sec-log-inject", "tests/process/hostile.rs"),
    ("sec-path-model", "a_path_of_a_client_never_becomes_one_of_ours"),
    ("cors-preflight", "another_origin_is_granted_nothing"),
];

#[test]
fn every_case_is_played_somewhere() {
    let ids: Vec<String> = rows(CASES)
        .iter()
        .filter(|row| ["security", "cors"].contains(&text(row, "area")))
        .map(|row| text(row, "id").to_owned())
        .collect();
    let played: Vec<&str> = PLAYED.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, played);
}

/// Whether nothing in a head could be taken for another line of it.
fn is_plain(answer: &Answer) -> bool {
    let visible = |text: &[u8]| text.iter().all(|byte| (0x20..0x7f).contains(byte));
    answer.fields.iter().all(|(name, value)| visible(name.as_bytes()) && visible(value))
}

#[test]
fn no_text_of_a_body_becomes_a_field_of_an_answer() {
    let body = text(&row(CASES, "sec-header-inject"), "text").to_owned();
    // The same text where it is not the model's name: that call is served.
    let user = body.replace("\"messages\"", "\"user\":\"u\\r\\nX-Evil: 1\",\"messages\"");
    let user = user.replace(r"x\r\nSet-Cookie: s=1\r\n\r\n<b>", "a");
    assert_eq!(user, r#"{"model":"a","user":"u\r\nX-Evil: 1","messages":[]}"#);
    let hints = "X-Session-Id: s\r\nX-Request-Id: r\r\n";
    let scenarios = [
        (400, post("", &body)),
        (400, post(hints, &body)),
        (400, post("", &body).replace("/chat/completions", "/messages")),
        (200, post(hints, &user)),
    ]
    .map(|(status, request)| (status, Scenario::plain(call(request), ok().as_bytes())));
    transports::each_of(&scenarios, |&status, outcome| {
        outcome.assert_clean();
        let answer = outcome.answer();
        assert_eq!((answer.status, outcome.forwarded()), (status, usize::from(status == 200)));
        assert!(is_plain(answer), "{answer:?}");
        assert_eq!((answer.count("set-cookie"), answer.count("x-evil")), (0, 0), "{answer:?}");
        assert!(!answer.text().contains("s=1"), "{answer:?}");
        for asked in outcome.requests() {
            assert_eq!((asked.count("x-evil"), asked.text()), (0, user.clone()));
        }
    });
}

/// Overridden while the gemini routes are not served: 501 stands beside 400 and 404, for a path
/// that would be one of them. Nothing goes upstream either way.
#[test]
fn a_path_of_a_client_never_becomes_one_of_ours() {
    let case = row(CASES, "sec-path-model");
    let scenarios: Vec<(String, Scenario)> = variants(&case)
        .into_iter()
        .map(|path| {
            let path = String::from_utf8(path).unwrap();
            let request = post("", BODY).replace("/v1/chat/completions", &path);
            (path, Scenario::plain(call(request), ok().as_bytes()))
        })
        .collect();
    assert_eq!(scenarios.len(), 5);
    transports::each_of(&scenarios, |_, outcome| {
        outcome.assert_clean();
        assert!([400, 404, 501].contains(&outcome.answer().status), "{:?}", outcome.answer());
        assert_eq!((outcome.forwarded(), outcome.records.len()), (0, 0));
        assert!(is_plain(outcome.answer()));
    });
    // A path that is served goes on as the provider's own, whatever the client added to it.
    for (added, goes_on) in [("/../admin", false), ("%2F..%2Fadmin", false), ("?a=/../b", true)] {
        let request = post("", BODY).replace("completions ", &format!("completions{added} "));
        transports::each(&Scenario::plain(call(request), ok().as_bytes()), |outcome| {
            assert_eq!(outcome.forwarded(), usize::from(goes_on), "{added}");
            for asked in outcome.requests() {
                assert_eq!(asked.line, "POST /v1/chat/completions?a=/../b HTTP/1.1");
            }
        });
    }
}

#[test]
fn another_origin_is_granted_nothing() {
    let preflight = bytes(&row(CASES, "cors-preflight"));
    let mut client = vec![send(preflight), Step::Answer];
    client.extend(call(post("Origin: https://app.test\r\n", BODY)));
    let answer = crate::json("200 OK", "Access-Control-Allow-Origin: *\r\n", COMPLETION);
    transports::each(&Scenario::plain(client, answer.as_bytes()), |outcome| {
        outcome.assert_clean();
        let [preflight, call] = &outcome.clients[0].answers[..] else { panic!("{outcome:?}") };
        assert_eq!((preflight.status, call.status, outcome.forwarded()), (405, 200, 1));
        for (name, _) in preflight.fields.iter().chain(&call.fields) {
            assert!(!name.starts_with("access-control-"), "{name}");
        }
        // Neither counted nor recorded: the record is that of the call.
        assert_eq!((outcome.records.len(), outcome.refusals.len()), (1, 0));
    });
}
