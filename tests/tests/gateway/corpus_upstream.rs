//! The corpus, upstream side: every row as the answer to a call, with a second call behind it that
//! shows whether the connection went back to the pool.

use crate::{BODY, COMPLETION, ok, post};
use gateway_tests::corpus::{OWN, bytes, rows, text};
use gateway_tests::outcome::{End, Outcome};
use gateway_tests::scenario::{Act, Manner, Read, Scenario, Split, Step, Turn, send};
use gateway_tests::{script, transports};
use serde_json::Value;
use std::time::Duration;

/// Rows that are no answer to one call, and where they are played.
const ELSEWHERE: &[(&str, &str)] = &[
    ("h1-o-resp-head-cl", "no route sends HEAD upstream: see below"),
    ("h1-o-resp-early-413", "in `early`"),
    ("h1-o-resp-fin-empty-reused", "in `replay`"),
];

/// Rows that DESIGN decides differently: the code the client gets, as stored.
const OVERRIDDEN: &[(&str, &str, &str)] = &[
    ("h1-o-resp-204-cl", "upstream_invalid", "overridden by DESIGN §15"),
    ("h1-o-resp-100-200", "empty_completion", "overridden by DESIGN §15: {}"),
    ("h1-o-resp-close-delim", "empty_completion", "overridden by DESIGN §6: nothing in it"),
    ("h1-o-resp-extra", "empty_completion", "overridden by DESIGN §15: {}"),
    ("h1-o-resp-no-reason", "empty_completion", "overridden by DESIGN §15: {}"),
    ("h1-o-resp-cookies", "empty_completion", "overridden by DESIGN §15: {}"),
    ("h1-o-resp-ext-trailer", "empty_completion", "overridden by DESIGN §15: {}"),
    // A stream is no answer to a whole call; as one to a stream it is played in `stream_life`.
    ("h1-o-resp-trunc-chunk", "upstream_invalid", "overridden by DESIGN §6: before the commit"),
];

/// A row, as stored or with a completion in the place of its body.
struct Row {
    id: String,
    input: Vec<u8>,
    fin: bool,
    /// What the client gets: a code, or nothing if the answer is relayed.
    refused: Option<String>,
    reused: bool,
}

impl Row {
    fn stored(row: &Value) -> Row {
        let (id, expect) = (text(row, "id").to_owned(), &row["expect"]);
        let overridden = OVERRIDDEN.iter().find(|(known, ..)| *known == id);
        let refused = match (overridden, text(expect, "verdict")) {
            (Some((_, code, _)), _) => Some((*code).to_owned()),
            (None, "bad_gateway" | "relay_or_bad_gateway") => Some("upstream_invalid".to_owned()),
            (None, _) => None,
        };
        let fin = row["when"] == "FIN";
        // A connection whose answer broke its framing is of no use, whatever the row says.
        let whole = refused.as_deref().is_none_or(|code| code == "empty_completion");
        let reused = whole && expect["reuse"] != false;
        Row { id, input: bytes(row), fin, refused, reused }
    }

    /// The row with something in it, so that what it is about is seen to be relayed.
    fn completed(row: &Value) -> Option<Row> {
        let stored = Row::stored(row);
        let input = String::from_utf8(stored.input).ok()?;
        let chunk = format!("{:x};x=1\r\n{COMPLETION}", COMPLETION.len());
        let input = input
            .replace("2;x=1\r\n{}", &chunk)
            .replace("Content-Length: 2\r\n", &format!("Content-Length: {}\r\n", COMPLETION.len()))
            .replace("\r\n\r\n{}", &format!("\r\n\r\n{COMPLETION}"))
            .replace("{\"a\":1}", COMPLETION);
        let relayed = ["204-cl", "trunc-chunk"].iter().all(|odd| !stored.id.ends_with(odd));
        let overridden = OVERRIDDEN.iter().any(|(id, ..)| *id == stored.id);
        let reused = row["expect"]["reuse"] != false;
        (overridden && relayed).then(|| Row {
            id: format!("{} with a completion", stored.id),
            input: input.into_bytes(),
            refused: None,
            reused,
            ..stored
        })
    }

    fn scenario(&self, split: Split) -> Scenario {
        let mut acts = vec![Act::Send(self.input.clone(), split)];
        if self.fin {
            acts.push(Act::Fin);
        }
        let first = Turn { read: Read::Whole, acts };
        let request = post("", BODY);
        Scenario {
            clients: vec![vec![
                send(&request),
                Step::Answer,
                // Bytes behind an answer that come only with the next request are that one's.
                Step::Pause(Duration::from_millis(1)),
                send(&request),
                Step::Answer,
                Step::Fin,
                Step::End,
            ]],
            upstream: vec![
                Manner { turns: vec![first, Turn::answer(ok().as_bytes())], repeats: true },
                Manner::always(ok().as_bytes()),
            ],
            ..Scenario::default()
        }
    }

    fn judge(&self, outcome: &Outcome) {
        assert_eq!(outcome.clients[0].faults, Vec::<String>::new());
        assert_eq!((outcome.clients[0].surplus.len(), outcome.clients[0].end), (0, End::Fin));
        let [first, second] = outcome.clients[0].answers.as_slice() else { panic!("{outcome:?}") };
        match &self.refused {
            Some(code) => assert_eq!((first.status, first.code()), (502, code.clone())),
            None => assert_eq!((first.status, first.text()), (200, COMPLETION.to_owned())),
        }
        for name in ["set-cookie", "x-t", "upgrade"] {
            assert_eq!(first.count(name), 0, "{name}");
        }
        assert_eq!((second.status, second.text()), (200, COMPLETION.to_owned()));
        assert_eq!(outcome.upstream.len(), if self.reused { 1 } else { 2 }, "connections");
        let ending = if self.refused.is_some() { "exhausted" } else { "succeeded" };
        assert_eq!(outcome.endings(), [ending, "succeeded"]);
        assert_eq!(outcome.counters.replays.get(), 0);
    }
}

fn all() -> Vec<Row> {
    let stored: Vec<Value> =
        rows(OWN).into_iter().filter(|row| row["side"] == "upstream").collect();
    assert_eq!(stored.len(), 18);
    let played: Vec<&Value> =
        stored.iter().filter(|row| ELSEWHERE.iter().all(|(id, _)| row["id"] != *id)).collect();
    assert_eq!(played.len() + ELSEWHERE.len(), stored.len());
    let completed = played.iter().filter_map(|row| Row::completed(row));
    let rows: Vec<Row> = played.iter().map(|row| Row::stored(row)).chain(completed).collect();
    assert_eq!(rows.len(), 15 + 6);
    rows
}

#[test]
fn every_row_is_relayed_or_refused_as_it_says() {
    let rows = all();
    let scenarios: Vec<(&str, Scenario)> =
        rows.iter().map(|row| (row.id.as_str(), row.scenario(Split::Whole))).collect();
    transports::each_of(&scenarios, |id, outcome| {
        rows.iter().find(|row| row.id == *id).unwrap().judge(outcome);
    });
}

#[test]
fn no_row_depends_on_how_it_is_cut() {
    for row in all() {
        println!("{}", row.id);
        script::run_splits(
            |split| row.scenario(split),
            row.input.len(),
            |outcome| {
                row.judge(outcome);
                outcome.statuses(0)
            },
        );
    }
}

#[test]
fn head_is_no_method_of_a_governed_route() {
    let request = "HEAD /v1/chat/completions HTTP/1.1\r\nHost: gw.test\r\n\r\n";
    let client = vec![send(request), Step::HeadAnswer, Step::Fin, Step::End];
    transports::each(&Scenario::plain(client, b""), |outcome| {
        outcome.assert_clean();
        assert_eq!((outcome.answer().status, outcome.forwarded()), (405, 0));
    });
}
