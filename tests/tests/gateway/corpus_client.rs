//! The corpus, client side: every row through the whole pipeline.

use crate::{BODY, ok};
use gateway_tests::corpus::{OWN, bytes, rows, text};
use gateway_tests::outcome::{End, Outcome};
use gateway_tests::scenario::{Scenario, Split, Step, send};
use gateway_tests::{script, transports};
use serde_json::Value;

/// Where a row leaves the choice, refusing is ours.
const CHOSEN_REFUSALS: &[&str] = &[
    "h1-o-req-cl-list-same",
    "h1-o-req-cl-in-connection",
    "h1-o-req-ch-trail-space",
    "h1-o-req-ch-trailer-te-host-auth",
];

/// Rows that DESIGN decides differently: the statuses, in order.
const OVERRIDDEN: &[(&str, &[u16], &str)] = &[
    ("h1-o-req-upgrade-ws", &[200, 404], "overridden by DESIGN §15: answered here"),
    ("h1-o-req-get-cl", &[200, 200], "overridden by DESIGN §15: answered here"),
    ("h1-o-req-ver-09", &[400], "at the head's deadline, which DESIGN §15 allows"),
];

/// Short enough to be waited for.
const DEADLINES: &str = "[deadlines]\nheader = \"200ms\"\nbody = \"200ms\"";

struct Row {
    id: String,
    input: Vec<u8>,
    expect: Value,
    statuses: Vec<u16>,
    refused: bool,
    fin: bool,
}

impl Row {
    fn read(row: &Value) -> Row {
        let (id, expect) = (text(row, "id").to_owned(), row["expect"].clone());
        let overridden = OVERRIDDEN.iter().find(|(known, ..)| *known == id);
        let refused = match text(&expect, "verdict") {
            "reject" => true,
            "accept" => false,
            _ => CHOSEN_REFUSALS.contains(&id.as_str()),
        };
        let statuses = match overridden {
            Some((_, statuses, _)) => statuses.to_vec(),
            None if refused => Vec::new(),
            None => vec![200; expect["forwarded"].as_u64().unwrap_or(1) as usize],
        };
        let fin = row["when"] == "FIN after the last byte";
        Row { id, input: bytes(row), expect, statuses, refused, fin }
    }

    fn scenario(&self, split: Split) -> Scenario {
        let long = self.input.len() > 100_000;
        let mut client = vec![match long {
            true => Step::Offer(self.input.clone()),
            false => Step::Send(self.input.clone(), split),
        }];
        if self.fin {
            client.push(Step::Fin);
        }
        if self.expect.get("sends_first").is_some() {
            client.extend([Step::Interim, send(BODY)]);
        }
        client.extend(vec![Step::Answer; self.statuses.len().max(1)]);
        if !self.closes() && !self.fin {
            client.push(Step::Fin);
        }
        client.push(Step::End);
        Scenario::plain(client, ok().as_bytes()).under(DEADLINES)
    }

    fn closes(&self) -> bool {
        self.expect["close"] == true
    }

    fn judge(&self, outcome: &Outcome) {
        outcome.assert_clean();
        let statuses = outcome.statuses(0);
        let overridden = OVERRIDDEN.iter().any(|(id, ..)| *id == self.id);
        if self.refused && !overridden {
            let allowed = self.expect["status"].as_array().unwrap();
            assert!(allowed.iter().any(|one| *one == statuses[0]), "{statuses:?}");
            assert_eq!((statuses.len(), outcome.forwarded()), (1, 0));
            assert_ne!(outcome.answer().code(), "", "no code in {:?}", outcome.answer());
        } else {
            assert_eq!(statuses, self.statuses);
        }
        if overridden {
            assert_eq!(outcome.forwarded(), 0);
        } else if !self.refused {
            self.judge_forwarded(outcome);
        }
        assert_eq!(outcome.clients[0].end, End::Fin);
        assert_eq!(outcome.clients[0].answers.last().unwrap().closes(), self.says_close());
    }

    fn judge_forwarded(&self, outcome: &Outcome) {
        assert_eq!(outcome.forwarded(), self.statuses.len());
        let expected = self.expect["upstream_body"].as_str().unwrap_or(BODY);
        for asked in outcome.requests() {
            assert_eq!(asked.text(), expected);
            assert_eq!(asked.field("authorization").as_deref(), Some("Bearer sk-of-the-provider"));
            for name in ["upgrade", "x-checksum", "expect", "te", "connection"] {
                assert_eq!(asked.count(name), 0, "{name}");
            }
            let host = asked.field("host").unwrap();
            assert!(host.starts_with("127.0.0.1:"), "{host}");
        }
        let continues = self.expect.get("sends_first").is_some();
        assert_eq!(outcome.clients[0].interim, if continues { vec![100] } else { vec![] });
        assert_eq!(outcome.upstream.len(), 1, "pipelined calls share a connection");
    }

    /// An answer that ends the connection says so; a refused request without a body does not end
    /// it.
    fn says_close(&self) -> bool {
        self.closes() || self.refused && self.id != "h1-o-req-trace"
    }
}

fn all() -> Vec<Row> {
    let rows: Vec<Row> =
        rows(OWN).iter().filter(|row| row["side"] == "client").map(Row::read).collect();
    assert_eq!(rows.len(), 66);
    let named = OVERRIDDEN.iter().map(|(id, ..)| id).chain(CHOSEN_REFUSALS);
    for id in named {
        assert!(rows.iter().any(|row| row.id == *id), "{id}");
    }
    rows
}

#[test]
fn every_row_is_taken_or_refused_as_it_says() {
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
        // One of a megabyte is offered, not sent: how it is cut is the reader's affair.
        if row.input.len() > 100_000 {
            continue;
        }
        println!("{}", row.id);
        script::run_splits(
            |split| row.scenario(split),
            row.input.len(),
            |outcome| {
                row.judge(outcome);
                let bodies: Vec<String> = outcome.requests().map(|asked| asked.text()).collect();
                (outcome.statuses(0), bodies, outcome.endings())
            },
        );
    }
}
