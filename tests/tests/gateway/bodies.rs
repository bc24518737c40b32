//! Bodies of requests: byte for byte the same upstream, but for the model; the JSON cases.

use crate::{BODY, COMPLETION, call, json, ok, post};
use gateway_tests::corpus::{CASES, bytes, row, rows, text};
use gateway_tests::outcome::Outcome;
use gateway_tests::scenario::{Manner, Scenario, Split, Step, send};
use gateway_tests::{script, transports};
use serde_json::Value;

/// What the upstream gets: a status, and the body if it gets one.
type Expected = (Vec<u16>, Option<String>);

/// Body, and what is expected of it.
type Case = (String, Vec<u8>, Expected);

fn inputs(row: &Value) -> Vec<Vec<u8>> {
    match row["variants_text"].as_array() {
        Some(all) => all.iter().map(|one| one.as_str().unwrap().as_bytes().to_vec()).collect(),
        None => vec![bytes(row)],
    }
}

fn aliases(row: &Value) -> String {
    let mut out = "[alias]\n\"openai/gpt-x\" = \"gpt-x-2\"\n".to_owned();
    for (from, to) in row["alias"]
        .as_object()
        .or_else(|| row["expect"]["alias"].as_object())
        .into_iter()
        .flatten()
    {
        out.push_str(&format!("\"{from}\" = {to}\n"));
    }
    out
}

/// What each variant of a JSON case becomes; nothing for those that are whole requests.
fn expected(id: &str, row: &Value) -> Option<Vec<Expected>> {
    let refused = |status: u16| (vec![status], None);
    let taken = |body: &str| (vec![200], Some(body.to_owned()));
    let renamed = || vec![taken(&text(row, "text").replacen("\"alias-a\"", "\"real-a\"", 1))];
    let given = || taken(text(&row["expect"], "upstream_body"));
    Some(match id {
        // Both spellings are escapes; the third writes the key's value with them.
        "json-slash" => vec![given(), given(), given()],
        "json-dup-model" | "json-deep" | "json-model-missing" | "json-non-utf8" => {
            vec![refused(400)]
        }
        "json-nested-model" | "json-ws" => vec![given()],
        "json-numbers" | "json-surrogate" => renamed(),
        "json-stream-string" => {
            let null = taken("{\"model\":\"m\",\"stream\":null}");
            vec![
                refused(400),
                refused(400),
                refused(400),
                refused(400),
                null,
                refused(400),
                refused(400),
            ]
        }
        "json-model-type" => vec![refused(400); 7],
        "json-toplevel" => vec![refused(400); 8],
        _ => return None,
    })
}

fn cases() -> Vec<(Case, String)> {
    let mut cases = Vec::new();
    let mut others = Vec::new();
    for row in rows(CASES).iter().filter(|row| row["area"] == "json") {
        let id = text(row, "id");
        let Some(expected) = expected(id, row) else {
            others.push(id.to_owned());
            continue;
        };
        let inputs = inputs(row);
        assert_eq!(inputs.len(), expected.len(), "{id}");
        for (at, (input, expected)) in inputs.into_iter().zip(expected).enumerate() {
            cases.push(((format!("{id} {at}"), input, expected), aliases(row)));
        }
    }
    assert_eq!(others, ["json-model-last", "json-empty", "json-length"], "played below");
    cases
}

fn post_bytes(body: &[u8]) -> Vec<u8> {
    let mut out =
        post("", "").replace("Length: 0", &format!("Length: {}", body.len())).into_bytes();
    out.extend_from_slice(body);
    out
}

/// Each case, and a good call behind it on the same connection: a whole body that is bad does not
/// cost the connection.
#[test]
fn every_json_case_is_taken_or_refused_as_it_says() {
    let cases = cases();
    let scenarios: Vec<(&str, Scenario)> = cases
        .iter()
        .map(|((name, input, _), config)| {
            let mut client = call(post_bytes(input));
            match unread(name) {
                true => client.push(Step::End),
                false => client.extend(call(post("", BODY))),
            }
            (name.as_str(), Scenario::plain(client, ok().as_bytes()).under(config))
        })
        .collect();
    transports::each_of(&scenarios, |name, outcome| {
        let ((_, _, expected), _) = cases.iter().find(|((id, ..), _)| id == name).unwrap();
        judge(outcome, expected, unread(name));
    });
}

/// What is wrong is known long before the body's end, which is then not waited for.
fn unread(name: &str) -> bool {
    name == "json-deep 0"
}

fn judge(outcome: &Outcome, (statuses, body): &Expected, unread: bool) {
    outcome.assert_clean();
    let answers = &outcome.clients[0].answers;
    assert_eq!(answers[0].status, statuses[0], "{}", answers[0].text());
    assert_eq!(answers[0].closes(), unread);
    let last = if unread { None } else { Some(BODY) };
    let served: Vec<&str> = answers[1..].iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(served, last.map(|_| "OK").into_iter().collect::<Vec<&str>>());
    let bodies: Vec<String> = outcome.requests().map(|asked| asked.text()).collect();
    let expected = body.iter().map(String::as_str).chain(last).collect::<Vec<&str>>();
    assert_eq!(bodies, expected);
    if statuses[0] == 400 {
        assert_ne!(answers[0].code(), "");
        assert!(answers[0].body.len() < 1000, "a long name is not repeated");
        let text = answers[0].text();
        let digits = text.split(|letter: char| !letter.is_ascii_digit()).map(str::len).max();
        assert!(digits < Some(3), "somebody might read a status in {text}");
    }
}

/// Overridden by DESIGN §4: no length at all is a 411.
#[test]
fn an_empty_body_does_not_cost_the_connection() {
    let variants = row(CASES, "json-empty")["variants_text"].clone();
    for (variant, status) in variants.as_array().unwrap().iter().zip([400, 411, 400]) {
        let mut client = call(variant.as_str().unwrap());
        client.extend(call(post("", BODY)));
        transports::each(&Scenario::plain(client, ok().as_bytes()), |outcome| {
            outcome.assert_clean();
            assert_eq!(outcome.statuses(0), [status, 200]);
            assert_eq!(outcome.forwarded(), 1);
        });
    }
}

#[test]
fn the_model_may_come_last_in_two_megabytes() {
    let stored = String::from_utf8(bytes(&row(CASES, "json-model-last"))).unwrap();
    let whole = stored.replace("\"stream\":true", "\"stream\":false");
    let scenarios = [stored, whole].map(|body| {
        let scenario = Scenario::plain(call(post_bytes(body.as_bytes())), ok().as_bytes());
        (body, scenario.under("[alias]\nalias-a = \"real-a\""))
    });
    transports::each_of(&scenarios, |body, outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().status, 200);
        // As stored it asks for a stream, which is to report its usage.
        let asked = "{\"stream_options\":{\"include_usage\":true},";
        let text = outcome.asked().text();
        let text = if body.contains("\"stream\":true") {
            text.replacen(asked, "{", 1)
        } else {
            assert!(!text.starts_with(asked));
            text
        };
        assert!(text == body.replace("alias-a", "real-a"), "more than the model changed");
    });
}

#[test]
fn length_and_digests_follow_the_body() {
    let stored = String::from_utf8(bytes(&row(CASES, "json-length"))).unwrap();
    let long = "a-very-long-upstream-model-name-2026-01-01";
    let chunked = stored
        .replace("Content-Length: 27", "Transfer-Encoding: chunked")
        .replace(BODY, &format!("1b\r\n{BODY}\r\n0\r\n\r\n"));
    let short = stored.replace("\"a\"", &format!("\"{long}\"")).replace(": 27", ": 68");
    for (request, alias, model) in [
        (stored.clone(), format!("a = \"{long}\""), long),
        (chunked, format!("a = \"{long}\""), long),
        (short, format!("{long} = \"b\""), "b"),
        (stored, "c = \"d\"".to_owned(), "a"),
    ] {
        let scenario = Scenario::plain(call(request), ok().as_bytes());
        transports::each(&scenario.under(&format!("[alias]\n{alias}")), |outcome| {
            outcome.assert_clean();
            let body = BODY.replace("\"a\"", &format!("\"{model}\""));
            let asked = outcome.asked();
            assert_eq!((asked.text(), asked.count("content-length")), (body.clone(), 1));
            let kept = usize::from(model == "a");
            assert_eq!((asked.count("content-md5"), asked.count("digest")), (kept, kept));
        });
    }
}

/// 400 KB, in every framing, with and without a change: only the model differs.
#[test]
fn large_bodies_go_on_byte_for_byte() {
    let text = "q\\\"\\\\\\u00e9\u{96e8} \u{1f600}".repeat(20_000);
    let mut scenarios = Vec::new();
    for (model, place) in ["a", "nick"].iter().flat_map(|model| [(model, 0), (model, 1)]) {
        let (first, last) = match place {
            0 => (format!("\"model\":\"{model}\",\n "), String::new()),
            _ => (String::new(), format!(" , \"model\" : \"{model}\"")),
        };
        let body = format!("{{{first}\"messages\":[{{\"content\":\"{text}\"}}]{last}}}\r\n");
        let mut chunked = post("Transfer-Encoding: chunked\r\n", "")
            .replace("Content-Length: 0\r\n", "")
            .into_bytes();
        for piece in body.as_bytes().chunks(7777) {
            chunked.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            chunked.extend_from_slice(piece);
            chunked.extend_from_slice(b"\r\n");
        }
        chunked.extend_from_slice(b"0\r\n\r\n");
        for (framing, request) in [("length", post_bytes(body.as_bytes())), ("chunked", chunked)] {
            let scenario = Scenario::plain(call(request), ok().as_bytes());
            let scenario = scenario.under("[alias]\nnick = \"a\"");
            scenarios.push(((body.replace("nick", "a"), *model, framing), scenario));
        }
    }
    transports::each_of(&scenarios, |(body, ..), outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().status, 200);
        assert!(outcome.asked().text() == *body, "bytes differ");
        assert!(outcome.inside.is_none_or(|inside| inside.allowance_left == 8 * (32 << 20)));
    });
}

#[test]
fn bodies_do_not_depend_on_how_they_are_cut() {
    let text = "\\u00e9\u{96e8}\u{1f600}".repeat(700);
    let body = format!("{{\"messages\":[\"{text}\"],\"model\":\"nick\"}}");
    let request = post_bytes(body.as_bytes());
    let scenario = |split: Split| {
        let client = vec![Step::Send(request.clone(), split), Step::Answer];
        Scenario::plain(client, ok().as_bytes()).under("[alias]\nnick = \"a\"")
    };
    script::run_splits(scenario, request.len(), |outcome| {
        outcome.assert_clean();
        assert!(outcome.asked().text() == body.replace("nick", "a"));
        outcome.statuses(0)
    });
}

/// `json-response-model`, whole form (its stream: since = streams): nothing is rewritten back.
#[test]
fn the_answers_model_is_not_rewritten() {
    assert_eq!(row(CASES, "json-response-model")["expect"]["if_off"], "relay untouched");
    let answer = COMPLETION.replace("\"hi\"", "\"\\\"model\\\":\\\"a\\\"\"");
    let request = post("", &BODY.replace("\"a\"", "\"nick\""));
    let scenario = Scenario::plain(call(request), json("200 OK", "", &answer).as_bytes());
    transports::each(&scenario.under("[alias]\nnick = \"a\""), |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.answer().text(), answer);
        let record = &outcome.records[0];
        assert_eq!((record.model.as_str(), record.served_model.as_str()), ("nick", "a"));
    });
}

#[test]
fn explicit_and_configured_models_go_where_they_should() {
    let config = "[[model]]\nname = \"fast\"\ncandidates = [{ provider = \"up\", model = \"b\" }]\n\
                  [alias]\nnick = \"fast\"";
    let scenarios = [("up/b", "b"), ("fast", "b"), ("nick", "b"), ("other/b", "other/b")].map(
        |(asked, sent)| {
            let body = BODY.replace("\"a\"", &format!("\"{asked}\""));
            let manner = Manner::always(ok().as_bytes());
            let client = vec![send(post("", &body)), Step::Answer];
            let scenario =
                Scenario { clients: vec![client], upstream: vec![manner], ..Scenario::default() };
            (sent, scenario.under(config))
        },
    );
    transports::each_of(&scenarios, |sent, outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.asked().text(), BODY.replace("\"a\"", &format!("\"{sent}\"")));
    });
}
