//! The field cases of HTTP, network, encoding and pool, as far as bytes alone decide them.

use codec::http1::{
    Expect, Fields, Framing, HEAD_BYTES_MAX, HeadError, HeadScan, LAST_CHUNK, chunk,
    connection_lists, parse_request,
};
use serde_json::Value;

use crate::corpus::{CASES, generated, rows, text};
use crate::session::{End, Outcome, Side, UPSTREAM, read};

/// Cases that bytes alone do not decide, and who decides them.
const LATER: &[(&str, &str)] = &[
    ("enc-gzip", "the header table and the usage reader"),
    ("http-early-413", "the writer of a request beside the reader of its answer"),
    ("http-slowloris", "the head deadline of a shard"),
    ("pool-stale", "the pool's replay"),
    ("pool-three-ways", "the pool's replay"),
    ("net-ipv6-zone", "the URLs of the configuration"),
];

type Judge = fn(&Value);

const JUDGED: &[(&str, Judge)] = &[
    ("http-cl-te", refused),
    ("http-chunk-ext-lf", refused),
    ("http-fold", refused),
    ("http-dup-cl", refused),
    ("http-trailer", trailer),
    ("http-fold-response", fold_response),
    ("http-double-terminator", double_terminator),
    ("http-huge-head", huge_head),
    ("http-case", odd_case),
    ("http-10", http_10),
    ("http-10-upstream", http_10_upstream),
    ("http-pipeline", pipeline),
    ("http-hop", hop_by_hop),
    ("http-upgrade", upgrade),
    ("http-bodyless", bodyless),
    ("http-1xx", interim),
    ("http-expect", expectation),
];

#[test]
fn every_case_is_judged_or_left_to_somebody() {
    let rows = rows(CASES);
    let mut left: Vec<&str> =
        JUDGED.iter().map(|(id, _)| *id).chain(LATER.iter().map(|(id, _)| *id)).collect();
    for row in &rows {
        if !["http", "net", "encoding", "pool"].contains(&text(row, "area")) {
            continue;
        }
        let id = text(row, "id");
        let at = left.iter().position(|named| *named == id);
        left.swap_remove(at.unwrap_or_else(|| panic!("{id} is judged by nobody")));
        if let Some((_, judge)) = JUDGED.iter().find(|(judged, _)| *judged == id) {
            judge(row);
        }
    }
    assert!(left.is_empty(), "no such case: {left:?}");
}

fn inputs(row: &Value) -> Vec<Vec<u8>> {
    match row["variants_text"].as_array() {
        Some(variants) => {
            variants.iter().map(|text| text.as_str().unwrap().as_bytes().to_vec()).collect()
        }
        None => vec![text(row, "text").as_bytes().to_vec()],
    }
}

fn taken(side: Side, row: &Value) -> Outcome {
    let outcome = read(side, &inputs(row)[0]);
    assert!(!outcome.is_refused(), "{:?}", outcome.end);
    outcome
}

fn refused(row: &Value) {
    for input in inputs(row) {
        let outcome = read(Side::Client, &input);
        assert_eq!(outcome.status(), Some(400), "{}: {:?}", text(row, "id"), outcome.end);
    }
}

fn trailer(row: &Value) {
    // Both that would matter in a head are refused as well: one of the two answers that are
    // allowed.
    refused(row);
}

fn fold_response(row: &Value) {
    let outcome = read(UPSTREAM, &inputs(row)[0]);
    assert_eq!(outcome.end, End::BadHead(HeadError::FieldName));
}

fn double_terminator(_: &Value) {
    let mut out = Vec::new();
    for part in [&b"{\"a\":1}"[..], b""] {
        chunk(&mut out, part);
    }
    out.extend_from_slice(LAST_CHUNK);
    assert_eq!(out, b"7\r\n{\"a\":1}\r\n0\r\n\r\n");
}

fn huge_head(row: &Value) {
    let bytes = generated(&row["gen"]);
    let (mut scan, mut fields) = (HeadScan::new(), Fields::new());
    let refused_at = (1024..bytes.len()).step_by(1024).find_map(|len| {
        scan.request(&bytes[..len], &mut fields).err().map(|error| (len, error.status()))
    });
    assert_eq!(refused_at, Some((HEAD_BYTES_MAX, 431)));
}

fn odd_case(row: &Value) {
    let outcome = taken(Side::Client, row);
    assert_eq!(outcome.messages[0].body.len(), 27);
    assert_eq!(outcome.messages[0].authorizations, 1);
}

fn http_10(row: &Value) {
    let outcome = taken(Side::Client, row);
    assert_eq!(outcome.messages[0].minor, 0);
    assert_eq!(outcome.end, End::Closed { unread: 0 });
}

fn http_10_upstream(row: &Value) {
    let outcome = taken(UPSTREAM, row);
    let answer = &outcome.messages[0];
    assert_eq!((answer.framing, answer.keep_alive), (Framing::UntilClose, false));
    assert!(answer.body.ends_with(b"}}"));
}

fn pipeline(row: &Value) {
    let outcome = taken(Side::Client, row);
    let targets: Vec<&str> = outcome.messages.iter().map(|one| one.target.as_str()).collect();
    assert_eq!(targets, ["/v1/chat/completions", "/v1/models"]);
    assert_eq!((outcome.complete(), outcome.end), (2, End::Idle));
}

fn hop_by_hop(row: &Value) {
    let outcome = taken(Side::Client, row);
    assert!(!outcome.messages[0].keep_alive);
    let input = inputs(row).remove(0);
    let mut fields = Fields::new();
    assert!(parse_request(&input, &mut fields).unwrap().is_some());
    for (name, listed) in [("x-mine", true), ("Close", true), ("te", false), ("mine", false)] {
        assert_eq!(connection_lists(&input, &fields, name.as_bytes()), listed, "{name}");
    }
}

fn upgrade(row: &Value) {
    let outcome = taken(Side::Client, row);
    assert!(outcome.messages[0].upgrade);
    assert_eq!((outcome.complete(), outcome.end), (2, End::Idle));
    assert_eq!(outcome.messages[1].authorizations, 0);
}

fn bodyless(row: &Value) {
    for (input, request_was_head) in inputs(row).iter().zip([false, false, true]) {
        let outcome = read(Side::Upstream { request_was_head }, input);
        let answer = &outcome.messages[0];
        assert_eq!((answer.framing, answer.complete), (Framing::None, true));
    }
    // The surplus behind the 204 is there for the pool to see.
    let outcome = read(UPSTREAM, &inputs(row)[0]);
    assert!(outcome.end != End::Idle);
}

fn interim(row: &Value) {
    let outcome = taken(UPSTREAM, row);
    let seen: Vec<(&str, &[u8])> =
        outcome.messages.iter().map(|one| (one.start.as_str(), one.body.as_slice())).collect();
    assert_eq!(seen, [("103", &b""[..]), ("100", b""), ("200", b"{}")]);
}

fn expectation(row: &Value) {
    let outcome = taken(Side::Client, row);
    assert_eq!(outcome.messages[0].expect, Expect::Continue);
    assert_eq!(outcome.end, End::InBody);
}
