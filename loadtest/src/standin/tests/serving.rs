//! The stand-in as an HTTP server: connections that stay, pipelining, framing of requests.

use std::io::Write;
use std::net::Shutdown;

use super::{End, ask, body, connect, post, read_answer, read_to_end, standin};

#[test]
fn a_connection_stays_for_many_requests() {
    let standin = standin();
    let mut stream = connect(&standin);
    for n in 0..50 {
        let model = ["ok", "big-64k", "s429", "slow-1"][n % 4];
        let status = if model == "s429" { 429 } else { 200 };
        assert_eq!(ask(&mut stream, model, "").0, status, "{n}");
    }
    let entries = standin.tally();
    assert!(entries.iter().all(|entry| entry.connection == 0));
    assert_eq!(entries[49].on_connection, 49);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let standin = standin();
    let mut stream = connect(&standin);
    let models = ["slow-20", "s400", "big-5m", "s503", "ok"];
    let bytes: Vec<u8> = models.iter().flat_map(|model| post(model, "")).collect();
    stream.write_all(&bytes).unwrap();
    let statuses: Vec<u16> = models.iter().map(|_| read_answer(&mut stream).0).collect();
    assert_eq!(statuses, [200, 400, 200, 503, 200]);
}

#[test]
fn requests_arrive_in_any_pieces() {
    let standin = standin();
    let mut stream = connect(&standin);
    let chunked = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
         10;note=1\r\n{}\r\n{:x}\r\n{}\r\n0\r\nx-sum: 1\r\n\r\n",
        &body("s400")[..16],
        body("s400").len() - 16,
        &body("s400")[16..],
    );
    for bytes in [post("s400", ""), chunked.into_bytes()] {
        for piece in [1, 2, 3, 7, 64, bytes.len()] {
            for part in bytes.chunks(piece) {
                stream.write_all(part).unwrap();
            }
            assert_eq!(read_answer(&mut stream).0, 400, "{piece}");
        }
    }
    let entries = standin.tally();
    assert_eq!(entries.len(), 12);
    for entry in &entries {
        assert_eq!(entry.body_bytes, body("s400").len() as u64);
        assert_eq!(entry.body_crc32, crc32fast::hash(body("s400").as_bytes()));
        assert_eq!(entry.model, "s400");
    }
    assert_eq!((entries[0].framing, entries[11].framing), ("length", "chunked"));
}

#[test]
fn models_are_listed_in_the_shape_that_is_asked_for() {
    let standin = standin();
    let mut stream = connect(&standin);
    for (fields, path, model) in [
        ("", "/v1/models", "model"),
        ("anthropic-version: 2023-06-01\r\n", "/v1/models?limit=1000", "model"),
    ] {
        let asked = format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        stream.write_all(asked.as_bytes()).unwrap();
        let (status, _, body) = read_answer(&mut stream);
        let list: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let kind = if fields.is_empty() { "object" } else { "type" };
        assert_eq!((status, &list["data"][0][kind]), (200, &serde_json::json!(model)));
        assert_eq!(list["data"].as_array().map(Vec::len), Some(2), "{list}");
        assert_eq!(list.get("has_more").is_some(), !fields.is_empty(), "{list}");
    }
    let entries = standin.tally();
    assert!(entries.iter().all(|entry| entry.script == "models" && entry.status == 200));
    assert_eq!(entries[1].path, "/v1/models?limit=1000");
}

#[test]
fn large_bodies_with_the_model_last_are_read() {
    let standin = standin();
    let mut stream = connect(&standin);
    let body = format!("{{\"messages\":\"{}\",\"model\":\"s404\"}}", "a".repeat(5 << 20));
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).0, 404);
    assert_eq!(standin.tally()[0].body_bytes, body.len() as u64);
}

#[test]
fn the_body_is_asked_for_when_the_client_waits() {
    let standin = standin();
    let mut stream = connect(&standin);
    let request = post("ok", "Expect: 100-continue\r\n");
    let split = request.len() - body("ok").len();
    stream.write_all(&request[..split]).unwrap();
    assert_eq!(read_answer(&mut stream).0, 100);
    stream.write_all(&request[split..]).unwrap();
    assert_eq!(read_answer(&mut stream).0, 200);
}

#[test]
fn a_half_closed_client_gets_its_answer() {
    let standin = standin();
    let mut stream = connect(&standin);
    stream.write_all(&post("slow-20", "")).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_answer(&mut stream).0, 200);
    assert_eq!(read_to_end(&mut stream), (vec![], End::Fin));
}

#[test]
fn what_is_no_request_gets_400_and_the_end() {
    let standin = standin();
    for bad in [
        "nonsense\r\n\r\n",
        "POST /v1/chat/completions HTTP/2\r\n\r\n",
        "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: +2\r\n\r\n{}",
        "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        "POST /v1/chat/completions HTTP/1.1\r\nA b: c\r\n\r\n",
        "POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let mut stream = connect(&standin);
        stream.write_all(bad.as_bytes()).unwrap();
        assert_eq!(read_answer(&mut stream).0, 400, "{bad:?}");
        assert_eq!(read_to_end(&mut stream).1, End::Fin, "{bad:?}");
    }
    assert!(standin.tally().iter().all(|entry| entry.script == "malformed" && entry.ended));
}

#[test]
fn other_paths() {
    let standin = standin();
    let mut stream = connect(&standin);
    let mut get = |target: &str| {
        stream.write_all(format!("{target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
        read_answer(&mut stream)
    };
    assert_eq!(get("GET /healthz").0, 200);
    assert_eq!(get("GET /v1/files").0, 404);
    assert_eq!(get("GET /v1/chat/completions").0, 404);
    assert_eq!(get("POST /any/prefix/chat/completions?api-version=1").0, 200);
    assert!(get("GET /scenarios").2.split(|&byte| byte == b'\n').count() > 80);
}

#[test]
fn an_idle_connection_of_a_client_that_left_is_let_go() {
    let standin = standin();
    for n in 0..200 {
        let mut stream = connect(&standin);
        assert_eq!(ask(&mut stream, "ok", "").0, 200, "{n}");
    }
    assert_eq!(standin.counts().connections, 200);
    let until = crate::clock::now() + super::LIMIT;
    while standin.counts().open > 0 {
        assert!(crate::clock::now() < until, "{:?}", standin.counts());
    }
    standin.stop().unwrap();
}
