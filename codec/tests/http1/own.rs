//! Our own rows: both sides of the gateway. What a row asks of the pipeline is listed with the
//! reason, and what the codec has to hand over for it is asserted all the same.

use codec::http1::{BodyError, BodyProgress, Expect, Framing, TrailerRule};
use serde_json::Value;

use crate::corpus::{OWN, bytes, rows, text};
use crate::session::{End, Message, Outcome, Side, read};

/// What the codec hands over for the pipeline to refuse.
type Shows = fn(&Outcome) -> bool;

/// Refused by the pipeline, not by the codec: what the codec must say, and why it does not refuse.
const REFUSED_LATER: &[(&str, Shows, &str)] = &[
    ("h1-o-req-cl-body-short", |o| o.end == End::InBody, "the end of the connection: see the test"),
    ("h1-o-req-ch-eof-mid", |o| o.end == End::InBody, "the end of the connection: see the test"),
    ("h1-o-req-ch-no-final-crlf", |o| o.end == End::InBody, "the body's deadline"),
    ("h1-o-req-trace", |o| first(o).start == "TRACE", "405 by the route table"),
    ("h1-o-req-method-lower", |o| first(o).start == "post", "405 by the route table"),
    ("h1-o-req-url-dotdot", |o| first(o).target.contains("..%2f"), "404: matched as sent"),
    ("h1-o-req-auth-two", |o| first(o).authorizations == 2, "whose request it is stays open"),
    ("h1-o-req-expect-other", |o| first(o).expect == Expect::Other, "417"),
];

/// Rows of the upstream side that the pipeline alone can judge.
const UPSTREAM_LATER: &[(&str, &str)] = &[
    ("h1-o-resp-fin-empty-reused", "no byte came: the pool decides on a replay"),
    ("h1-o-resp-101", "a valid head; 502 is the walk's answer to any 101"),
];

/// Where a row leaves the choice, refusing is ours.
const CHOSEN_REFUSALS: &[&str] = &[
    "h1-o-req-cl-list-same",
    "h1-o-req-cl-in-connection",
    "h1-o-req-ch-trail-space",
    "h1-o-req-ch-trailer-te-host-auth",
];

#[test]
fn every_row_is_judged() {
    let rows = rows(OWN);
    assert_eq!(rows.len(), 84);
    let faults: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let judged = match text(row, "side") {
                "client" => judge_client(row),
                _ => judge_upstream(row),
            };
            judged.err().map(|fault| format!("{}: {fault}", text(row, "id")))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let named = REFUSED_LATER.iter().map(|(id, ..)| id);
    for id in named.chain(UPSTREAM_LATER.iter().map(|(id, _)| id)).chain(CHOSEN_REFUSALS) {
        assert!(rows.iter().any(|row| text(row, "id") == *id), "{id}");
    }
}

#[test]
fn an_upgrade_stays_plain_http() {
    let outcome = row_outcome("h1-o-req-upgrade-ws");
    assert!(first(&outcome).upgrade);
    assert_eq!(outcome.messages[1].target, "/admin");
    assert_eq!(outcome.end, End::Idle);
}

#[test]
fn the_body_of_a_get_is_consumed_before_the_next_request() {
    let outcome = row_outcome("h1-o-req-get-cl");
    assert_eq!(first(&outcome).body.len(), 27);
    assert_eq!((outcome.complete(), outcome.end), (2, End::Idle));
}

#[test]
fn only_a_body_without_framing_may_end_with_its_connection() {
    for (framing, fed, expected) in [
        (Framing::Length(27), &b"20 bytes of the body"[..], Err(7)),
        (Framing::Length(2), b"{}", Ok(())),
        (Framing::None, b"", Ok(())),
        (Framing::UntilClose, b"{}", Ok(())),
    ] {
        let mut body = BodyProgress::new(framing, TrailerRule::RefuseReserved);
        let _ = body.step(fed).unwrap();
        let cut = expected.map_err(|missing| BodyError::CutInLength { missing });
        assert_eq!(body.end_of_connection(), cut, "{framing:?}");
    }
    for (fed, expected) in [
        (&b"0\r\n\r\n"[..], Ok(())),
        (b"0\r\n", Err(BodyError::CutInChunks)),
        (b"", Err(BodyError::CutInChunks)),
    ] {
        let mut body = BodyProgress::new(Framing::Chunked, TrailerRule::RefuseReserved);
        let _ = body.step(fed).unwrap();
        assert_eq!(body.end_of_connection(), expected);
    }
}

fn judge_client(row: &Value) -> Result<(), String> {
    let (id, expect) = (text(row, "id"), &row["expect"]);
    let outcome = read(Side::Client, &bytes(row));
    let later = REFUSED_LATER.iter().find(|(listed, ..)| *listed == id);
    match text(expect, "verdict") {
        "reject" => match (outcome.status(), later) {
            (Some(status), None) => is_one_of(status, &expect["status"]),
            (None, Some((_, shows, _))) if shows(&outcome) => Ok(()),
            (status, _) => Err(format!("{status:?} {:?}", outcome.end)),
        },
        "accept" => accepted(&outcome, expect),
        _ => match outcome.status() {
            Some(status) if CHOSEN_REFUSALS.contains(&id) => is_one_of(status, &expect["status"]),
            Some(status) => Err(format!("refused with {status}")),
            None if CHOSEN_REFUSALS.contains(&id) => Err("no longer refused".to_owned()),
            None => accepted(&outcome, expect),
        },
    }
}

fn accepted(outcome: &Outcome, expect: &Value) -> Result<(), String> {
    if outcome.is_refused() {
        return Err(format!("{:?}", outcome.end));
    }
    if let Some(count) = expect["forwarded"].as_u64()
        && count != outcome.messages.len() as u64
    {
        return Err(format!("{} messages", outcome.messages.len()));
    }
    if expect.get("sends_first").is_some() {
        // The body is still to come.
        let waits = first(outcome).expect == Expect::Continue && outcome.end == End::InBody;
        return if waits { Ok(()) } else { Err("does not wait".to_owned()) };
    }
    match expect["upstream_body"].as_str() {
        Some(body) if body.as_bytes() != first(outcome).body => Err("body".to_owned()),
        _ if !first(outcome).complete => Err("incomplete".to_owned()),
        _ if expect["close"] == true && first(outcome).keep_alive => Err("keeps on".to_owned()),
        _ => Ok(()),
    }
}

fn judge_upstream(row: &Value) -> Result<(), String> {
    let (id, expect) = (text(row, "id"), &row["expect"]);
    let request_was_head = row.get("for_method").is_some_and(|method| method == "HEAD");
    let outcome = read(Side::Upstream { request_was_head }, &bytes(row));
    if UPSTREAM_LATER.iter().any(|(listed, _)| *listed == id) {
        return if outcome.is_refused() { Err("refused".to_owned()) } else { Ok(()) };
    }
    let answer = outcome.messages.iter().find(|message| !message.start.starts_with('1'));
    match (text(expect, "verdict"), answer) {
        ("bad_gateway" | "relay_or_bad_gateway", None) if outcome.is_refused() => Ok(()),
        ("relay_then_abort", Some(answer)) if !answer.complete && outcome.end == End::InBody => {
            Ok(())
        }
        ("relay", Some(answer)) => relayed(&outcome, answer, expect),
        _ => Err(format!("{outcome:?}")),
    }
}

fn relayed(outcome: &Outcome, answer: &Message, expect: &Value) -> Result<(), String> {
    let by_close = answer.framing == Framing::UntilClose;
    if !answer.complete && !by_close {
        return Err("incomplete".to_owned());
    }
    if let Some(body) = expect["body_to_client"].as_str()
        && body.as_bytes() != answer.body
    {
        return Err("body".to_owned());
    }
    // Anything behind the answer, even half a head, keeps the connection out of the pool.
    let reusable = answer.keep_alive
        && !by_close
        && outcome.end == End::Idle
        && outcome.messages.last() == Some(answer);
    if reusable == (expect["reuse"] == false) {
        return Err(format!("reusable: {reusable}"));
    }
    Ok(())
}

fn is_one_of(status: u16, allowed: &Value) -> Result<(), String> {
    let allowed = allowed.as_array().is_some_and(|list| list.iter().any(|one| *one == status));
    if allowed { Ok(()) } else { Err(format!("status {status}")) }
}

fn row_outcome(id: &str) -> Outcome {
    let rows = rows(OWN);
    let row = rows.iter().find(|row| text(row, "id") == id).unwrap();
    read(Side::Client, &bytes(row))
}

fn first(outcome: &Outcome) -> &Message {
    &outcome.messages[0]
}
