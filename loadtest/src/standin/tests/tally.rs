//! The tally says what came in and what went out.

use std::io::Write;

use super::{LIMIT, all_of, ask, body, connect, post, read_answer, standin};
use crate::standin::{Config, Standin, hashed};

#[test]
fn an_entry_joins_with_the_gateways_record() {
    let standin = standin();
    let mut stream = connect(&standin);
    let fields = "X-Tollgate-Request-Id: tgr_abc\r\nx-tollgate-attempt: 2\r\n\
                  Authorization: Bearer sk-secret\r\nX-Api-Key: k\r\nUser-Agent: test\r\n";
    ask(&mut stream, "ok-cached", fields);
    let entry = &standin.tally()[0];
    assert_eq!(entry.request_id.as_deref(), Some("tgr_abc"));
    assert_eq!(entry.attempt.as_deref(), Some("2"));
    assert_eq!((entry.script.as_str(), entry.status), ("ok-cached", 200));
    assert_eq!((entry.method.as_str(), entry.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(
        (entry.usage.prompt_tokens, entry.usage.completion_tokens, entry.usage.cached_tokens),
        (512, 64, 384)
    );
    assert!(entry.sent_whole && entry.ended && entry.sent_bytes > 823);
    assert_eq!(entry.body_crc32, crc32fast::hash(body("ok-cached").as_bytes()));
    assert_eq!(entry.header("authorization"), Some(hashed(b"Bearer sk-secret").as_str()));
    assert_eq!(entry.header("user-agent"), Some("test"));
    let text = serde_json::to_string(entry).unwrap();
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn what_was_not_sent_whole_is_not_reported_as_such() {
    let standin = standin();
    for (model, status) in [
        ("cut-body", 200),
        ("cut-last", 200),
        ("rst-body", 200),
        ("cut-head", 0),
        ("fin", 0),
        ("bad-chunk", 200),
        ("cl-te", 200),
    ] {
        standin.clear();
        all_of(&standin, model);
        let entry = &standin.tally_of(1, LIMIT)[0];
        assert_eq!((entry.sent_whole, entry.status), (false, status), "{model}");
        assert_eq!(entry.usage.completion_tokens, 0, "{model}");
    }
}

#[test]
fn a_peer_that_leaves_before_the_answer_is_noted() {
    let standin = standin();
    let mut stream = connect(&standin);
    stream.write_all(&post("slow-10000", "")).unwrap();
    assert_eq!(standin.tally_of(2, std::time::Duration::from_millis(50)).len(), 1);
    crate::loopback::reset_on_close(&stream).unwrap();
    drop(stream);
    let entry = &standin.tally_of(1, LIMIT)[0];
    assert!(entry.ended && entry.peer_left && !entry.sent_whole, "{entry:?}");
}

#[test]
fn captured_requests_are_the_bytes_that_came() {
    let standin = standin();
    let mut stream = connect(&standin);
    let requests: Vec<Vec<u8>> =
        (0..12).map(|n| post("ok", &format!("X-Number: {n}\r\n"))).collect();
    for request in &requests {
        stream.write_all(request).unwrap();
        read_answer(&mut stream);
    }
    assert_eq!(standin.captured(), requests[4..]);
}

#[test]
fn the_tally_is_bounded_and_says_what_it_dropped() {
    let standin = Standin::start(Config { entries_max: 3, ..Config::default() }).unwrap();
    let mut stream = connect(&standin);
    for _ in 0..5 {
        ask(&mut stream, "ok", "");
    }
    let counts = standin.counts();
    assert_eq!((standin.tally().len(), counts.dropped, counts.requests), (3, 2, 5));
    assert_eq!((counts.whole, counts.by_script["ok"]), (5, 5));
    standin.clear();
    ask(&mut stream, "ok", "");
    assert_eq!(standin.tally()[0].sequence, 5);
}

#[test]
fn the_tally_is_served_as_json_lines() {
    let standin = standin();
    let mut stream = connect(&standin);
    for model in ["ok", "s429", "chunked"] {
        all_of(&standin, model);
    }
    let mut page = |line: &str| {
        stream.write_all(format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
        String::from_utf8(read_answer(&mut stream).2).unwrap()
    };
    let lines = page("GET /tally");
    let models: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["model"].to_string())
        .collect();
    assert_eq!(models, ["\"ok\"", "\"s429\"", "\"chunked\""]);
    assert_eq!(page("GET /tally?from=2").lines().count(), 1);
    assert!(page("GET /counts").contains("\"requests\":3"));
    page("DELETE /tally");
    assert_eq!(page("GET /tally"), "");
}
