//! What an attacker can make the program keep, measured on the process.

use crate::program::{ask, chat, connect, folder, get, tollgate};
use crate::serve::{KEY, serve_in, serve_with};
use gateway_tests::corpus::{CASES, row, text};
use loadtest::standin::{Config, Standin};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

/// Connections that each send one large head and then nothing.
const CONNECTIONS: usize = 400;

/// Largest field of such a head; nobody needs a key to send it.
const FIELD: usize = 30_000;

/// What is held for each of them afterwards: a task, a buffer, and some of the allocator's own.
const KEPT_KIB_EACH: u64 = 20;

/// Reads one answer of the local routes.
fn read_answer(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    while !answer.ends_with(b"}") {
        let count = stream.read(&mut piece).expect("it answers");
        assert!(count > 0, "it ended");
        answer.extend_from_slice(&piece[..count]);
    }
    String::from_utf8(answer).expect("text")
}

#[test]
fn a_large_head_is_not_kept_for_as_long_as_its_connection_lives() {
    let standin = Standin::start(Config::default()).unwrap();
    for driver in ["auto", "epoll"] {
        let served = serve_with("hostile-heads", "", &standin, driver, &["--no-pin"]);
        assert!(get(served.data, "/healthz").starts_with("HTTP/1.1 200 "));
        let before = served.program.resident_kib();
        let field = "a".repeat(FIELD);
        let request = format!("GET /healthz HTTP/1.1\r\nhost: x\r\nx-large: {field}\r\n\r\n");
        let open: Vec<TcpStream> = (0..CONNECTIONS)
            .map(|_| {
                let mut stream = connect(served.data);
                stream.write_all(request.as_bytes()).expect("it reads");
                assert!(read_answer(&mut stream).starts_with("HTTP/1.1 200 "));
                stream
            })
            .collect();
        let grown = served.program.resident_kib().saturating_sub(before);
        let most = KEPT_KIB_EACH * open.len() as u64;
        assert!(grown <= most, "{driver}: {grown} KiB for {} connections", open.len());
    }
}

/// What a client that reads nothing may make the kernel hold for it, beside its own window.
const UNREAD_MAX: usize = 2 * 1024 * 1024;

#[test]
fn a_client_that_reads_nothing_does_not_fill_the_kernel() {
    let standin = Standin::start(Config::default()).unwrap();
    let short = "[deadlines]\nwrite_stall = \"500ms\"\n";
    for driver in ["auto", "epoll"] {
        let mut served =
            serve_with("hostile-unread", short, &standin, driver, &["--no-pin", "--print-records"]);
        let mut client = connect(served.data);
        client.write_all(chat(KEY, "big-64m").as_bytes()).expect("it reads");
        // The record is printed once the stall has ended the exchange.
        let record = served.program.out.wait_for("{");
        assert!(record.contains("write_stall"), "{record}");
        let mut unread = Vec::new();
        // It may end with a reset: what came before is what counts.
        let _ = client.read_to_end(&mut unread);
        assert!(unread.len() < UNREAD_MAX, "{driver}: {} bytes", unread.len());
        drop(client);
        served.program.signal(Signal::TERM);
        assert_eq!(served.program.wait(), Some(0));
    }
}

/// Answers, metrics and every line of the log, after calls that go wrong in all stages.
#[test]
fn no_key_is_told_whatever_goes_wrong() {
    let standin = Standin::start(Config::default()).unwrap();
    let mut served =
        serve_with("hostile-keys", "", &standin, "auto", &["--no-pin", "--print-records"]);
    let mut said = String::new();
    for model in ["ok", "s401", "s500", "fin", "rst-body", "cut-head", "bad-chunk", "html", "s101"]
    {
        said.push_str(&ask(served.data, &chat(KEY, model)));
    }
    let good = chat(KEY, "ok");
    let broken = [
        good.replace("Bearer ", "Bearer x"),
        good.replace("Bearer ", "Bearer \u{7f}"),
        good.replace("authorization: ", "authorization : "),
        good.replace("\"model\"", "\"mod\\u0065l\""),
        good.replace("POST /v1/chat/completions", &format!("POST /v1/{KEY}")),
        good.replace(" HTTP/1.1", &format!("?key={KEY} HTTP/3.0")),
        good.replace("host: x", &format!("host: x\r\nx-api-key: {KEY}\r\nx-api-key: {KEY}")),
    ];
    for request in broken {
        let mut client = connect(served.data);
        client.write_all(request.as_bytes()).expect("it reads");
        client.shutdown(Shutdown::Write).expect("it is open");
        client.read_to_string(&mut said).expect("it answers");
    }
    let refused = said.matches("HTTP/1.1 4").count() + said.matches("HTTP/1.1 505 ").count();
    assert!(refused >= 7, "{said}");
    said.push_str(&get(served.admin, "/metrics"));
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.wait(), Some(0));
    let lines = [served.program.out.wait_for_end(), served.program.err.wait_for_end()].concat();
    said.push_str(&lines.join("\n"));
    for secret in [KEY, "sk-secret-of-the-provider"] {
        assert!(!said.contains(secret), "{secret} in {said}");
    }
}

/// Case `sec-key-log`: credentials of a caller, good or bad, in every field that can hold one.
#[test]
fn no_field_of_a_caller_is_told_by_answers_metrics_or_lines() {
    let standin = Standin::start(Config::default()).unwrap();
    let mut served =
        serve_with("hostile-fields", "", &standin, "auto", &["--no-pin", "--print-records"]);
    let fields: Vec<String> = row(CASES, "sec-key-log")["headers"]
        .as_array()
        .expect("fields")
        .iter()
        .map(|field| field.as_str().expect("a text").to_owned())
        .collect();
    assert_eq!(fields.len(), 5);
    let own = format!("authorization: Bearer {KEY}");
    let mut said = String::new();
    for model in ["ok", "s401", "fin", "unknown\\u000a"] {
        let good = chat(KEY, model);
        assert!(good.contains(&own), "{good}");
        for field in &fields {
            // Instead of the key, and beside it.
            said.push_str(&ask(served.data, &good.replace(&own, field)));
            let beside = format!("x-tollgate-key: {KEY}\r\n{field}");
            said.push_str(&ask(served.data, &good.replace(&own, &beside)));
        }
    }
    let found = [" 200 OK", " 401 "].map(|status| said.matches(status).count());
    assert!(found.iter().all(|count| *count > 0), "{said}");
    said.push_str(&get(served.admin, "/metrics"));
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.wait(), Some(0));
    let lines = [served.program.out.wait_for_end(), served.program.err.wait_for_end()].concat();
    said.push_str(&lines.join("\n"));
    // The last is the secret of `Proxy-Authorization` in its coding.
    for secret in ["SECRET", "c2VjcmV0"] {
        assert!(!said.contains(secret), "{secret} in {said}");
    }
}

/// Case `sec-log-inject`: one call is one line, whatever it calls itself.
#[test]
fn no_text_of_a_caller_makes_a_line_of_its_own() {
    let standin = Standin::start(Config::default()).unwrap();
    let folder = folder("hostile-lines");
    let arguments = ["--no-pin", "--print-records"];
    let mut served = serve_in(&folder, "", &standin, "auto", &arguments);
    let case = row(CASES, "sec-log-inject");
    let good = chat(KEY, "ok");
    let (head, body) = good.split_once("\r\n\r\n").expect("a head");
    let length = format!("content-length: {}", body.len());
    assert!(head.contains(&length), "{head}");
    // As stored its model's name is refused; without it the call is served, and the rest is kept.
    let stored = text(&case, "text").to_owned();
    let served_text = stored.replace(r"m\n2026-01-01 INFO admin ok\u001b[2J", r"m\u2028");
    let served_text =
        served_text.replace("\"user\":\"a", r#""messages":[],"user":"a\n2026 INFO\u001b[2J"#);
    let strange = "user-agent: a\u{2028}b\r\nx-session-id: s\u{2028}t";
    let call = |head: &str, body: &str| {
        let head = head.replace(&length, &format!("content-length: {}", body.len()));
        let answer = ask(served.data, &format!("{head}\r\n\r\n{body}"));
        answer.split(' ').nth(1).map(str::to_owned).unwrap_or_default()
    };
    let statuses = [
        call(head, &stored),
        call(&format!("{head}\r\n{strange}"), &served_text),
        call(&format!("{head}\r\nuser-agent: a\u{1b}[2Jb"), &served_text),
        call(&head.replace("/v1/", "/v1/%0a%1b[2J/"), &served_text),
    ];
    assert_eq!(statuses, ["400", "200", "400", "404"]);
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.wait(), Some(0));
    // A head that cannot be read, and a path that is none, belong to no key and have no record.
    let printed = served.program.out.wait_for_end();
    assert_eq!(printed.len(), 2, "{printed:#?}");
    for line in printed {
        let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert!(record["status"].is_number(), "{line}");
    }
    let listed = |command: &[&str]| {
        let output = tollgate(&folder, command).output().expect("it runs");
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).expect("text")
    };
    let tail = listed(&["ledger", "tail", "--ending", "succeeded"]);
    assert_eq!(tail.lines().count(), 2, "{tail}");
    let id = tail.split_whitespace().last().expect("an id");
    let show = listed(&["ledger", "show", id]);
    for part in [r"m\u{2028}", r"s\u{2028}t", r"a\n2026 INFO\u{1b}[2J\u{2028}b"] {
        assert!(show.contains(part), "{part} in {show}");
    }
    let said = [served.program.err.wait_for_end().join("\n"), tail, show].concat();
    for part in ["\u{1b}", "\u{2028}", "\n2026 INFO"] {
        assert!(!said.contains(part), "{part:?} in {said}");
    }
}
