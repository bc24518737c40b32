//! Every row of llhttp's tests. Where we differ from llhttp, the row is named here with the reason,
//! and a row that stops to differ fails the test until it is taken off its list.

use codec::http1::{HeadError, fuzz_head};
use serde_json::Value;

use crate::corpus::{LLHTTP, bytes, rows, text, unbase64};
use crate::session::{End, Outcome, Side, UPSTREAM, read};

/// Strict rows that end for us as said here and otherwise for llhttp.
const DIFFERENT: &[(&str, End, &str)] = &[
    ("llhttp-request-connection-03", End::Closed { unread: 38 }, SURPLUS),
    ("llhttp-request-connection-09", End::Closed { unread: 22 }, SURPLUS),
    ("llhttp-request-connection-10", End::Closed { unread: 22 }, SURPLUS),
    ("llhttp-response-connection-06", End::Closed { unread: 19 }, SURPLUS),
    ("llhttp-response-connection-08", End::Closed { unread: 35 }, SURPLUS),
    ("llhttp-request-invalid-04", End::Closed { unread: 2 }, METHOD),
    ("llhttp-request-invalid-14", End::Idle, METHOD),
    (
        "llhttp-request-method-04",
        End::Closed { unread: 3 },
        "the body of a CONNECT is read by its length, since no tunnel follows",
    ),
    (
        "llhttp-request-method-05",
        End::BadHead(HeadError::TargetForm),
        "`*` belongs to OPTIONS alone",
    ),
    ("llhttp-request-method-12", End::BadHead(HeadError::VersionSyntax), SCHEME),
    ("llhttp-request-method-13", End::BadHead(HeadError::VersionSyntax), SCHEME),
    ("llhttp-request-method-14", End::BadHead(HeadError::VersionSyntax), SCHEME),
    (
        "llhttp-request-method-15",
        End::BadHead(HeadError::TargetForm),
        "PRI announces HTTP/2, which is not served",
    ),
    (
        "llhttp-request-sample-10",
        End::BadHead(HeadError::RequestLine),
        "a line without version is HTTP/0.9",
    ),
    ("llhttp-request-transfer-encoding-20", End::BadHead(HeadError::EncodingUnsupported), CODING),
    ("llhttp-request-transfer-encoding-21", End::BadHead(HeadError::EncodingMalformed), CODING),
    (
        "llhttp-request-uri-08",
        End::BadHead(HeadError::TargetByte),
        "a fragment in the target: some cut it off, some match it",
    ),
    (
        "llhttp-request-uri-10",
        End::BadHead(HeadError::TargetForm),
        "user information in the target hides which host is meant",
    ),
    ("llhttp-response-sample-02", End::BadHead(HeadError::VersionSyntax), SCHEME),
    ("llhttp-response-sample-03", End::BadHead(HeadError::VersionSyntax), SCHEME),
    (
        "llhttp-response-sample-18",
        End::BadHead(HeadError::VersionUnsupported),
        "HTTP/0.9 has no status line",
    ),
    ("llhttp-response-transfer-encoding-02", End::BadHead(HeadError::EncodingMalformed), CODING),
    ("llhttp-response-transfer-encoding-03", End::BadHead(HeadError::EncodingRepeated), CODING),
    ("llhttp-response-transfer-encoding-04", End::BadHead(HeadError::EncodingMalformed), CODING),
];

const SURPLUS: &str = "what follows a closing message is left unread, not judged";
const METHOD: &str = "any token is a method here; those not served are the pipeline's 405";
const SCHEME: &str = "RTSP and ICE are not HTTP";
const CODING: &str = "chunked alone is the only transfer coding we undo";

/// Rows of a lenient mode that we do not refuse.
const LENIENT_TAKEN: &[(&str, &str)] = &[
    ("llhttp-request-connection-04", SURPLUS),
    ("llhttp-request-connection-11", SURPLUS),
    ("llhttp-response-connection-07", SURPLUS),
    ("llhttp-response-connection-09", SURPLUS),
];

#[test]
fn strict_rows_are_judged_as_llhttp_does_or_for_a_reason() {
    let mut faults = Vec::new();
    for row in rows(LLHTTP).iter().filter(|row| is_strict(row)) {
        if let Err(fault) = judge_strict(row) {
            faults.push(format!("{}: {fault}", text(row, "id")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn lenient_rows_are_refused_but_for_a_reason() {
    let mut faults = Vec::new();
    for row in rows(LLHTTP).iter().filter(|row| text(row, "mode").contains("lenient")) {
        let listed = LENIENT_TAKEN.iter().any(|(id, _)| *id == text(row, "id"));
        let outcome = read(side(row), &ended(&with_host(&bytes(row))));
        if outcome.is_refused() == listed {
            faults.push(format!("{}: {:?}", text(row, "id"), outcome.end));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_row_has_one_meaning_however_it_arrives() {
    let rows = rows(LLHTTP);
    assert_eq!(rows.len(), 251);
    for row in &rows {
        let stored = bytes(row);
        for variant in [stored.clone(), with_crlf(&stored), with_host(&stored)] {
            read(side(row), &variant);
            fuzz_head(&variant);
        }
    }
}

#[test]
fn requests_without_host_are_refused_as_stored() {
    let mut count = 0;
    for row in rows(LLHTTP).iter().filter(|row| is_strict(row) && side(row) == Side::Client) {
        let stored = with_crlf(&bytes(row));
        let taken = !read(side(row), &with_host(&stored)).messages.is_empty();
        let outcome = read(side(row), &stored);
        let is_http_10 = outcome.messages.first().is_some_and(|message| message.minor == 0);
        if taken && with_host(&stored) != stored && !is_http_10 {
            let end = outcome.end;
            assert_eq!(end, End::BadHead(HeadError::HostMissing), "{}", text(row, "id"));
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}

#[test]
fn exceptions_name_rows_that_exist() {
    let rows = rows(LLHTTP);
    let named = DIFFERENT.iter().map(|(id, _, why)| (id, why));
    let named = named.chain(LENIENT_TAKEN.iter().map(|(id, why)| (id, why)));
    for (id, why) in named {
        assert!(rows.iter().any(|row| text(row, "id") == *id), "{id}");
        assert!(!why.is_empty());
    }
}

fn judge_strict(row: &Value) -> Result<(), String> {
    let id = text(row, "id");
    let stored = with_host(&bytes(row));
    let outcome = match text(&row["expect"], "verdict") {
        "incomplete" => read(side(row), &stored),
        // Some of these stop before their head ends, where we have not judged yet.
        "error" if !read(side(row), &stored).is_refused() => read(side(row), &ended(&stored)),
        "error" => read(side(row), &stored),
        _ => read(side(row), &with_crlf(&stored)),
    };
    let listed = DIFFERENT.iter().find(|(listed, ..)| *listed == id).map(|(_, end, _)| *end);
    match (agrees(&outcome, &row["expect"]), listed) {
        (Err(_), Some(end)) if end == outcome.end => Ok(()),
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(_)) => Err("is on the list and no longer differs".to_owned()),
        (Err(fault), _) => Err(format!("{fault}, {:?}", outcome.end)),
    }
}

fn agrees(outcome: &Outcome, expect: &Value) -> Result<(), String> {
    let verdict = text(expect, "verdict");
    if verdict == "error" {
        return if outcome.is_refused() { Ok(()) } else { Err("taken".to_owned()) };
    }
    // Behind an upgrade llhttp stops. We do not upgrade, so the next bytes are a request or a
    // fault.
    let stops = verdict == "upgrade";
    if outcome.is_refused() && (!stops || outcome.messages.is_empty()) {
        return Err("refused".to_owned());
    }
    let waits = verdict == "incomplete";
    if !stops && waits != matches!(outcome.end, End::InHead | End::InBody) {
        return Err("waits".to_owned());
    }
    let complete = outcome.complete();
    if Some(complete as u64) != expect["messages_complete"].as_u64() {
        return Err(format!("{complete} messages"));
    }
    // The bodies are recorded without their line ends.
    let body = expect.get("body_b64").and_then(Value::as_str).map(unbase64).unwrap_or_default();
    let seen: Vec<u8> = outcome.body().into_iter().filter(|byte| !b"\r\n".contains(byte)).collect();
    if seen != body {
        return Err(format!("body {:?}", String::from_utf8_lossy(&seen)));
    }
    for (index, message) in outcome.messages.iter().enumerate() {
        let method = expect["method"][index].as_str();
        let url = expect["url"][index].as_str();
        if method.is_some_and(|method| method != message.start)
            || url.is_some_and(|url| url != message.target)
        {
            return Err(format!("{} {}", message.start, message.target));
        }
    }
    Ok(())
}

fn is_strict(row: &Value) -> bool {
    !text(row, "mode").contains("lenient") && row.get("skip_body").is_none()
}

fn side(row: &Value) -> Side {
    if text(row, "role") == "request" { Side::Client } else { UPSTREAM }
}

/// The row with the CR LF that its storing may have cost it.
fn with_crlf(bytes: &[u8]) -> Vec<u8> {
    [bytes, b"\r\n"].concat()
}

/// The row with whatever it takes to end the head it stops in.
fn ended(bytes: &[u8]) -> Vec<u8> {
    [bytes, b"\r\n\r\n"].concat()
}

/// llhttp does not ask for `Host`, we do: with one, a row shows what it was written to show.
fn with_host(bytes: &[u8]) -> Vec<u8> {
    const LINE: &[u8] = b" HTTP/1.1\r\n";
    if bytes.to_ascii_lowercase().windows(6).any(|part| part == b"\nhost:") {
        return bytes.to_vec();
    }
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(LINE.len()).position(|part| part == LINE) {
        let (line, tail) = rest.split_at(at + LINE.len());
        out.extend_from_slice(line);
        out.extend_from_slice(b"Host: gw.test\r\n");
        rest = tail;
    }
    out.extend_from_slice(rest);
    out
}
