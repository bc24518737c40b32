//! What a call over TLS asks of the allocator on its shard's thread, once everything that grows has
//! grown: rustls asks for one place a record, and nothing else does. And what a call holds while it
//! waits.

#![cfg(test)]

use gateway_tests::counted::{Counted, PATIENCE, message};
use gateway_tests::secured::{NAMES, Papers};
use gateway_tests::setting;
use rustls::{ClientConnection, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use tollgate::io::runtime::Choice;

#[global_allocator]
static ALLOCATOR: bench::alloc::Counting = bench::alloc::Counting;

/// Calls before counting, and calls that are counted.
const WARM_UP: usize = 100;
const CALLS: usize = 300;

/// Calls that wait at once.
const WAITING: usize = 20;

/// Ticks until a shard has to have come to rest: a minute.
const TICKS_MAX: u32 = 600;

/// Events of the streamed answer; each is a record of its own.
const EVENTS: usize = 100;

type Secured<C> = StreamOwned<C, TcpStream>;

// === the upstream ===

/// Answers every call by the model it names; the last kind never.
fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let config = Papers::usual().server();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            stream.set_nodelay(true).unwrap();
            let session = ServerConnection::new(config.clone()).unwrap();
            let mut stream = StreamOwned::new(session, stream);
            std::thread::spawn(move || while let Some(()) = answer(&mut stream) {});
        }
    });
    at
}

/// Nothing at the end of the connection.
fn answer(stream: &mut Secured<ServerConnection>) -> Option<()> {
    let request = message(stream)?;
    let text = String::from_utf8_lossy(&request);
    if text.contains("\"hang\"") {
        return stream.read(&mut [0]).ok().map(drop);
    }
    if text.contains("\"stream\"") {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).ok()?;
        for nth in 0..=EVENTS {
            let event = if nth < EVENTS { EVENT } else { "data: [DONE]\n\n" };
            let chunk = format!("{:x}\r\n{event}\r\n", event.len());
            stream.write_all(chunk.as_bytes()).and_then(|()| stream.flush()).ok()?;
            // So that it is not read together with the next one.
            std::thread::yield_now();
        }
        return stream.write_all(b"0\r\n\r\n").ok();
    }
    let padding = if text.contains("\"big\"") { 64 * 1024 } else { 500 };
    let body = BODY.replace("TEXT", &"x".repeat(padding));
    let length = body.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
    stream.write_all(format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}").as_bytes()).ok()
}

const BODY: &str = concat!(
    r#"{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":"#,
    r#"{"role":"assistant","content":"TEXT"},"finish_reason":"stop"}],"#,
    r#""usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#
);

const EVENT: &str = concat!(
    r#"data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":"#,
    r#"[{"index":0,"delta":{"content":"some words of an answer"},"finish_reason":null}]}"#,
    "\n\n"
);

// === the shard ===

fn started(upstream: SocketAddr) -> Counted {
    let config = setting::config_of(upstream, &[], "", true);
    Counted::start(Choice::Auto, &config).expect("one of the drivers is there")
}

fn dial(shard: &Counted) -> Secured<ClientConnection> {
    let stream = TcpStream::connect(shard.at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    let name = NAMES[0].try_into().unwrap();
    let session = ClientConnection::new(Papers::usual().client(), name).unwrap();
    StreamOwned::new(session, stream)
}

// === the calls ===

/// One kind of call: its model, more of its body, bytes of its prompt, and the most records that
/// its call and answer have, on all four ways together.
struct Call {
    name: &'static str,
    model: &'static str,
    more: &'static str,
    padding: usize,
    records: u64,
}

impl Call {
    fn request(&self) -> Vec<u8> {
        let Call { model, more, padding, .. } = self;
        let asked = format!("{{\"role\":\"user\",\"content\":\"{}\"}}", "x".repeat(*padding));
        let body = format!("{{\"model\":\"{model}\",{more}\"messages\":[{asked}]}}");
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: gw.test\r\n\
                    authorization: Bearer sk-test\r\ncontent-type: application/json";
        format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }
}

fn measure(shard: &Counted, call: &Call) -> f64 {
    let mut stream = dial(shard);
    let request = call.request();
    let mut exchange = || {
        stream.write_all(&request).unwrap();
        let answer = message(&mut stream).expect(call.name);
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    };
    (0..WARM_UP).for_each(|_| exchange());
    let before = shard.counts();
    (0..CALLS).for_each(|_| exchange());
    let counts = shard.counts().since(before);
    let each = counts.allocations as f64 / CALLS as f64;
    println!("{}: {counts:?} in {CALLS} calls, {each} a call", call.name);
    each
}

#[test]
fn a_record_is_one_allocation_and_nothing_else_is() {
    let shard = started(upstream());
    let small = Call { name: "2 KB", model: "small", more: "", padding: 1_900, records: 4 };
    let kinds = [
        Call { name: "an answer of 64 KB", model: "big", records: 2 + 5 + 5 + 1, ..small },
        Call { name: "a body of 12 KB", padding: 12_000, ..small },
        // 25 records in and out, one more where head and body part.
        Call { name: "a body of 400 KB", padding: 400_000, records: 25 + 27 + 2, ..small },
        Call {
            name: "a stream of 100 events",
            more: "\"stream\":true,",
            // Head, events and end in, and never more out than came in.
            records: 2 + 2 * (EVENTS as u64 + 3),
            ..small
        },
        small,
    ];
    for kind in &kinds {
        let each = measure(&shard, kind);
        assert!(each <= kind.records as f64, "{}: {each} a call of {}", kind.name, kind.records);
    }
}

/// As over TCP: a buffer for each read that waits, and the request.
#[test]
fn a_call_that_waits_holds_no_buffer_more_than_a_plain_one() {
    let shard = started(upstream());
    let call = Call { name: "hang", model: "hang", more: "", padding: 1_900, records: 0 };
    let hang = |_| {
        let mut stream = dial(&shard);
        stream.write_all(&call.request()).unwrap();
        stream
    };
    let hanging: Vec<_> = (0..WAITING as u64).map(hang).collect();
    let begun = || shard.counters.attempts.get() == WAITING as u64;
    let lent = || shard.counters.buffers_lent.get();
    for tick in 0.. {
        // Waits for a tick; the gauge is set at every tenth.
        shard.counts();
        if begun() && lent() == 3 * WAITING as u64 {
            break;
        }
        assert!(tick < TICKS_MAX, "{} buffers for {WAITING} calls", lent());
    }
    // Ends the calls; the shard would wait for them.
    drop(hanging);
}
