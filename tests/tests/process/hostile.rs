//! What an attacker can make the program keep, measured on the process.

use crate::program::{ask, chat, connect, get};
use crate::serve::{KEY, serve_with};
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
    assert!(said.matches("HTTP/1.1 4").count() >= 7, "{said}");
    said.push_str(&get(served.admin, "/metrics"));
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.wait(), Some(0));
    let lines = [served.program.out.wait_for_end(), served.program.err.wait_for_end()].concat();
    said.push_str(&lines.join("\n"));
    for secret in [KEY, "sk-secret-of-the-provider"] {
        assert!(!said.contains(secret), "{secret} in {said}");
    }
}
