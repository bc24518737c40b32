//! Each scenario sends what its name says.

use std::io::{Read, Write};

use super::{End, all_of, ask, connect, post, read_answer, read_to_end, standin};
use crate::wire::{BodyReader, Framing, Head};

/// An answer read strictly: status, fields, content, and whether it was whole.
struct Read1 {
    status: u16,
    head: String,
    content: Vec<u8>,
    whole: bool,
    rest: Vec<u8>,
}

fn read1(bytes: &[u8]) -> Read1 {
    let head = Head::find(bytes).expect("a whole head");
    let status = head.status().expect("a status line");
    let framing = Framing::of_answer(&head, status).expect("a clear framing");
    let mut reader = BodyReader::new(framing);
    let mut content = Vec::new();
    let body = &bytes[head.len()..];
    let used = reader.feed(body, |piece| content.extend_from_slice(piece)).expect("framed");
    Read1 {
        status,
        head: String::from_utf8(head.bytes().to_vec()).unwrap(),
        content,
        whole: reader.done() || framing == Framing::UntilClose,
        rest: body[used..].to_vec(),
    }
}

#[test]
fn whole_answers_are_whole_and_have_their_size_and_usage() {
    let standin = standin();
    for (model, size, cached) in [
        ("ok", 823, 0),
        ("gpt-4o-mini", 823, 0),
        ("ok-cached", 823, 384),
        ("big-2k", 2 << 10, 0),
        ("big-64k", 64 << 10, 0),
        ("big-1m", 1 << 20, 0),
        ("big-5m", 5 << 20, 0),
        ("slow-5", 823, 0),
        ("chunked", 823, 0),
        ("chunked-small", 823, 0),
        ("chunked-64k", 64 << 10, 0),
        ("chunked-ext-trailer", 823, 0),
        ("close-delimited", 823, 0),
        ("http10", 823, 0),
        ("http10-length", 823, 0),
        ("close-announced", 823, 0),
        ("no-reason", 823, 0),
        ("cookies", 823, 0),
        ("rate-headers", 823, 0),
        ("huge-head", 823, 0),
        ("split-1", 823, 0),
        ("ok+split=7+pace=1", 823, 0),
        ("close-after", 823, 0),
        ("close-after-5", 823, 0),
        ("fin-on-reuse", 823, 0),
        ("rst-on-reuse", 823, 0),
    ] {
        let (bytes, end) = all_of(&standin, model);
        assert_eq!(end, End::Fin, "{model}");
        let answer = read1(&bytes);
        assert_eq!((answer.status, answer.whole, answer.rest.len()), (200, true, 0), "{model}");
        assert_eq!(answer.content.len(), size, "{model}");
        let json: serde_json::Value = serde_json::from_slice(&answer.content).unwrap();
        assert_eq!(json["model"], model);
        assert_eq!(json["object"], "chat.completion");
        let usage = &json["usage"];
        assert_eq!(usage["prompt_tokens"], 512, "{model}");
        assert_eq!(usage["total_tokens"], 576, "{model}");
        assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], cached, "{model}");
    }
}

#[test]
fn statuses_are_what_their_names_say() {
    let standin = standin();
    for (model, status, field) in [
        ("s204", 204, ""),
        ("s304", 304, "etag: \"a\""),
        ("s400", 400, ""),
        ("s400-feature", 400, ""),
        ("s401", 401, "www-authenticate: Bearer"),
        ("s402", 402, ""),
        ("s403", 403, ""),
        ("s404", 404, ""),
        ("s408", 408, ""),
        ("s409", 409, ""),
        ("s413", 413, ""),
        ("s429-soon", 429, "retry-after: 1"),
        ("s405", 405, "allow: GET"),
        ("s429", 429, "retry-after: 7"),
        ("s429-now", 429, "retry-after: 0"),
        ("s429-huge", 429, "retry-after: 86400"),
        ("s429-quota", 429, ""),
        ("s500", 500, ""),
        ("s500-usage", 500, ""),
        ("s501", 501, ""),
        ("s502", 502, "content-type: text/html"),
        ("s503", 503, ""),
        ("s504", 504, ""),
        ("s529", 529, ""),
        ("redirect", 307, "location: http://127.0.0.1:9/v1/chat/completions"),
        ("s101", 101, "upgrade: websocket"),
    ] {
        let (bytes, _) = all_of(&standin, model);
        let answer = read1(&bytes);
        assert_eq!((answer.status, answer.whole, answer.rest.len()), (status, true, 0), "{model}");
        assert!(answer.head.contains(field), "{model}: {}", answer.head);
    }
}

#[test]
fn bodies_of_200_that_are_no_completion() {
    let standin = standin();
    for (model, body) in [("empty-object", "{}"), ("empty-body", "")] {
        assert_eq!(read1(&all_of(&standin, model).0).content, body.as_bytes(), "{model}");
    }
    let html = read1(&all_of(&standin, "html").0);
    assert!(html.head.contains("content-type: text/html"), "{}", html.head);
    let error = read1(&all_of(&standin, "error-200").0);
    let json: serde_json::Value = serde_json::from_slice(&error.content).unwrap();
    assert_eq!((error.status, json["error"]["code"].as_str()), (200, Some("overloaded")));
    let none = read1(&all_of(&standin, "no-usage").0);
    let json: serde_json::Value = serde_json::from_slice(&none.content).unwrap();
    assert!(json.get("usage").is_none() && json.get("choices").is_some());
    let cut = read1(&all_of(&standin, "bad-json").0);
    assert!(cut.whole && serde_json::from_slice::<serde_json::Value>(&cut.content).is_err());
}

#[test]
fn gzip_is_a_valid_member_around_a_completion() {
    let answer = read1(&all_of(&standin(), "gzip").0);
    assert!(answer.head.contains("content-encoding: gzip"), "{}", answer.head);
    let bytes = answer.content;
    // one stored block: header 10, block header 5, content, sum 4, length 4
    assert_eq!(bytes[..3], [0x1f, 0x8b, 8]);
    assert_eq!(bytes[10], 1);
    let length = usize::from(u16::from_le_bytes([bytes[11], bytes[12]]));
    assert_eq!(
        !u16::from_le_bytes([bytes[13], bytes[14]]),
        u16::from_le_bytes([bytes[11], bytes[12]])
    );
    let content = &bytes[15..15 + length];
    assert_eq!(bytes[15 + length..][..4], crc32fast::hash(content).to_le_bytes());
    assert_eq!(bytes[19 + length..], 823_u32.to_le_bytes());
    assert!(serde_json::from_slice::<serde_json::Value>(content).is_ok());
}

#[test]
fn interim_answers_come_before_the_real_one() {
    let standin = standin();
    for model in ["interim", "interim-spaced"] {
        let (bytes, _) = all_of(&standin, model);
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with("HTTP/1.1 ")).collect();
        assert_eq!(lines.len(), 3, "{model}");
        assert!(lines[0].contains(" 103 ") && lines[2].contains(" 200 "), "{lines:?}");
    }
}

#[test]
fn cut_answers_end_early_and_in_order() {
    let standin = standin();
    for (model, expected) in [("cut-head", &b"HTTP/1.1 2"[..]), ("fin", &b""[..])] {
        assert_eq!(all_of(&standin, model), (expected.to_vec(), End::Fin), "{model}");
    }
    let (fields, end) = all_of(&standin, "cut-fields");
    assert_eq!((fields.len(), end), (40, End::Fin));
    for (model, kept) in [
        ("cut-after-head", Some(0)),
        ("cut-body", Some(411)),
        ("cut-last", Some(822)),
        ("cut-big", Some(512 << 10)),
        ("cut-chunked", None),
        ("cut-terminator", Some(823)),
    ] {
        let (bytes, end) = all_of(&standin, model);
        let answer = read1(&bytes);
        assert_eq!((answer.status, answer.whole, end), (200, false, End::Fin), "{model}");
        assert!(kept.is_none_or(|kept| kept == answer.content.len()), "{model}");
    }
}

#[test]
fn resets_are_resets() {
    let standin = standin();
    for model in ["rst", "rst-head", "rst-body", "rst-close-delimited"] {
        let (bytes, end) = all_of(&standin, model);
        assert_eq!(end, End::Reset, "{model}");
        assert_eq!(bytes.is_empty(), model == "rst", "{model}");
    }
    let (bytes, end) = all_of(&standin, "rst-after-5");
    assert_eq!((read1(&bytes).content.len(), end), (823, End::Reset));
}

#[test]
fn a_second_request_on_a_connection_finds_it_dead() {
    let standin = standin();
    for (model, expected) in [
        ("fin-on-reuse", (vec![], End::Fin)),
        ("rst-on-reuse", (vec![], End::Reset)),
        ("cut-on-reuse", (b"HTTP/1.1 2".to_vec(), End::Fin)),
    ] {
        let mut stream = connect(&standin);
        assert_eq!(ask(&mut stream, model, "").0, 200, "{model}");
        stream.write_all(&post(model, "")).unwrap();
        assert_eq!(read_to_end(&mut stream), expected, "{model}");
    }
    for model in ["close-after", "close-after-5", "http10-length", "close-announced"] {
        let mut stream = connect(&standin);
        stream.write_all(&post(model, "")).unwrap();
        let (bytes, end) = read_to_end(&mut stream);
        assert_eq!((read1(&bytes).content.len(), end), (823, End::Fin), "{model}");
    }
}

#[test]
fn attempts_of_one_call_are_counted_together() {
    let standin = standin();
    for (model, first) in [("s429-once", 429), ("s500-once", 500), ("s503-once", 503)] {
        let mut stream = connect(&standin);
        let mut status =
            |id: &str| ask(&mut stream, model, &format!("x-tollgate-request-id: {id}\r\n")).0;
        assert_eq!([status("a"), status("b"), status("a"), status("a")], [first, first, 200, 200]);
    }
}

#[test]
fn requests_for_one_model_are_counted_together_over_calls_and_connections() {
    let standin = standin();
    let status = |model: &str, id: &str| {
        let field = format!("x-tollgate-request-id: {id}\r\n");
        ask(&mut connect(&standin), model, &field).0
    };
    assert_eq!(status("s429-first-1", "a"), 429);
    assert_eq!(status("s429-first-2", "a"), 429);
    assert_eq!(status("s429-first-1", "b"), 200);
    assert_eq!(status("s429-first-1", "c"), 200);
}

#[test]
fn stalls_send_their_part_and_stay() {
    let standin = standin();
    for (model, part) in [("hang", 0), ("stall-head", 10), ("stall-body", 411)] {
        let mut stream = connect(&standin);
        stream.write_all(&post(model, "")).unwrap();
        // the script is noted as ended once it does nothing more
        let entries = standin.tally_of(1, super::LIMIT);
        assert!(entries[0].ended && !entries[0].sent_whole, "{model}");
        standin.clear();
        let mut bytes = vec![0; 4096];
        let mut got = 0;
        stream.set_nonblocking(true).unwrap();
        while let Ok(n) = stream.read(&mut bytes[got..]) {
            assert_ne!(n, 0, "{model} ended");
            got += n;
        }
        let body_at = Head::find(&bytes[..got]).map_or(0, |head| head.len());
        assert_eq!(got - body_at, part, "{model}");
    }
}

#[test]
fn a_stand_in_that_stops_reading_fills_the_senders_side() {
    let standin = standin();
    let mut stream = connect(&standin);
    let length = 64 << 20;
    let start = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n\
         {{\"model\":\"stall-read\",\"messages\":\""
    );
    stream.write_all(start.as_bytes()).unwrap();
    stream.write_all(&[b'a'; 4096]).unwrap();
    assert!(standin.tally_of(1, super::LIMIT)[0].ended);
    stream.set_nonblocking(true).unwrap();
    let (piece, mut sent) = (vec![b'a'; 64 << 10], 0);
    while let Ok(n) = stream.write(&piece) {
        sent += n;
        assert!(sent < length, "all of it was taken");
    }
}

#[test]
fn illegal_framing_is_sent_as_named() {
    let standin = standin();
    for (model, has) in [
        ("cl-te", "content-length: 823\r\ntransfer-encoding: chunked\r\n"),
        ("cl-plus", "content-length: +823\r\n"),
        ("cl-two", "content-length: 5\r\ncontent-length: 823\r\n"),
        ("bad-chunk", "\r\nzz\r\n"),
        ("chunk-ext-lf", "\r\n2;a\n{}"),
        ("nul-header", "x-nul: a\0b\r\n"),
        ("bare-cr-header", "x-cr: a\rset-cookie: b=c\r\n"),
        ("fold-head", "content-length: 5\r\n \t\r\nx-after: v\r\n\r\nhello"),
        ("h2-status-line", "HTTP/2 200 OK\r\n"),
        ("two-answers", "}HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-surplus: 1\r\n"),
        ("surplus-bytes", "}xyz"),
        (
            "s204-body",
            "HTTP/1.1 204 No Content\r\ncontent-type: text/plain\r\ncontent-length: 24\r\n",
        ),
        ("s304-chunked", "HTTP/1.1 304 Not Modified\r\n"),
    ] {
        let (bytes, _) = all_of(&standin, model);
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains(has), "{model}: {}", &text[..text.len().min(300)]);
    }
}

#[test]
fn an_early_answer_comes_before_the_body_is_there() {
    let standin = standin();
    for (model, end) in [("early-413", End::Fin), ("early-413-hard", End::Fin)] {
        let mut stream = connect(&standin);
        let head =
            "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n";
        let start = format!("{head}{{\"model\":\"{model}\",\"messages\":\"");
        stream.write_all(start.as_bytes()).unwrap();
        stream.write_all(&vec![b'a'; 4096]).unwrap();
        assert_eq!(read_answer(&mut stream).0, 413, "{model}");
        assert_eq!(read_to_end(&mut stream).1, end, "{model}");
    }
}
