//! What a call asks of the allocator on its shard's thread, once everything that grows has grown.

#![cfg(test)]

use bench::alloc::Counts;
use gateway_tests::counted::{Counted, PATIENCE, message};
use loadtest::standin::{Config as Script, Standin};
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use tollgate::config::{Config, Env};
use tollgate::io::buffers::BUFFER_BYTES;
use tollgate::io::runtime::Choice;

#[global_allocator]
static ALLOCATOR: bench::alloc::Counting = bench::alloc::Counting;

const KEY: &str = "sk-test";

/// Calls before counting, and calls that are counted.
const WARM_UP: usize = 300;
const CALLS: usize = 1_000;

/// Task, streams and scratch of a connection, and of its upstream's: less than a buffer. Half of
/// it is the connection's future (4,096 at most).
const TASK_BYTES_MAX: u64 = 15 * 512;

struct NoWorld;

impl Env for NoWorld {
    fn var(&self, _: &str) -> Option<String> {
        Some("sk-upstream".into())
    }

    fn read_file(&self, _: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }
}

fn config(upstream: SocketAddr) -> Config {
    let text = format!(
        "[[provider]]\nname = \"openai\"\nkind = \"openai\"\nbase_url = \"http://{upstream}/v1\"\n\
         credentials = [{{ name = \"a\", key = \"${{K}}\" }}]\nmodels = [\"*\"]\n\
         [[provider]]\nname = \"anthropic\"\nkind = \"anthropic\"\n\
         base_url = \"http://{upstream}\"\n\
         credentials = [{{ name = \"a\", key = \"${{K}}\" }}]\nmodels = [\"*\"]\n\
         [alias]\nfast = \"openai/ok\"\n[ledger]\nenabled = false\n\
         [retry]\nattempts = 1\n[breaker]\ncooldown = \"0s\"\n\
         [[key]]\nname = \"t\"\nrequests_per_minute = 1000000000\nsha256 = \"{}\"\n",
        // printf %s sk-test | sha256sum
        "f3abf2a6cc4f00987743db5f544ba345b4899ae31f326d8ee9c4816de153c9e0"
    );
    let config = tollgate::config::parse("allocations.toml", &text, &NoWorld);
    config.unwrap_or_else(|e| panic!("{e}"))
}

/// `None` where the kernel refuses the driver.
fn counted(choice: Choice, upstream: SocketAddr) -> Option<Counted> {
    let counted = Counted::start(choice, &config(upstream));
    if counted.is_none() {
        eprintln!("{choice:?}: the kernel refuses it, not counted");
    }
    counted
}

/// One kind of call on a connection that lives on.
struct Call {
    name: &'static str,
    head: String,
    body: Vec<u8>,
    status: &'static str,
    /// Allocations a call, at most. What is not 0 is listed here and in bench/BUDGET.md.
    allowed: u64,
}

fn call(name: &'static str, model: &str, padding: usize, status: &'static str) -> Call {
    let body = format!(
        "{{\"model\":\"{model}\",\"messages\":[{{\"role\":\"user\",\"content\":\"{}\"}}]}}",
        "x".repeat(padding)
    );
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: gw.test\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\nuser-agent: allocations\r\naccept: */*\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    Call { name, head, body: body.into_bytes(), status, allowed: 0 }
}

/// The same call on another route.
fn at(route: &str, call: Call) -> Call {
    let session = "x-claude-code-session-id: c44e66e9\r\nhost:";
    let head = call.head.replace("/v1/chat/completions", route).replacen("host:", session, 1);
    Call { head, ..call }
}

/// The same call that asks for a stream.
fn streamed(call: Call) -> Call {
    let body = String::from_utf8(call.body).unwrap();
    let body = body.replacen("{\"model\"", "{\"stream\":true,\"model\"", 1);
    let (head, _) = call.head.split_once("content-length").unwrap();
    let head = format!("{head}content-length: {}\r\n\r\n", body.len());
    Call { head, body: body.into_bytes(), ..call }
}

/// Sends the call and reads its answer to the last byte.
fn exchange(stream: &mut TcpStream, call: &Call) {
    stream.write_all(call.head.as_bytes()).unwrap();
    stream.write_all(&call.body).unwrap();
    let answer = message(stream).unwrap_or_else(|| panic!("{}: the connection ended", call.name));
    let head = String::from_utf8_lossy(&answer[..answer.len().min(500)]);
    assert!(head.starts_with(call.status), "{}: {head}", call.name);
}

fn measure(shard: &Counted, call: &Call, calls: usize) -> Counts {
    let mut stream = TcpStream::connect(shard.at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    for _ in 0..WARM_UP.min(calls) {
        exchange(&mut stream, call);
    }
    let before = shard.counts();
    for _ in 0..calls {
        exchange(&mut stream, call);
    }
    shard.counts().since(before)
}

fn steady(choice: Choice) {
    let standin = Standin::start(Script { entries_max: 0, ..Script::default() }).unwrap();
    let Some(shard) = counted(choice, standin.addr()) else { return };
    let kinds = [
        call("2 KB native", "ok", 1_900, "HTTP/1.1 200"),
        call("2 KB through an alias", "fast", 1_900, "HTTP/1.1 200"),
        at("/v1/messages", call("a message of 2 KB", "ok", 1_900, "HTTP/1.1 200")),
        at("/v1/messages/count_tokens", call("a count of tokens", "ok", 1_900, "HTTP/1.1 200")),
        // An error is kept while others could be asked: its head, its body, the place for both.
        Call { allowed: 7, ..call("an upstream's 429", "s429-now", 100, "HTTP/1.1 429") },
        call("a chunked answer", "chunked", 100, "HTTP/1.1 200"),
        call("an answer of 64 KB", "big-64k", 100, "HTTP/1.1 200"),
        call("an answer of 1 MB", "big-1m", 100, "HTTP/1.1 200"),
        call("a body of 12 KB", "ok", 12_000, "HTTP/1.1 200"),
        call("a body of 400 KB", "ok", 400_000, "HTTP/1.1 200"),
        Call { allowed: 1, ..call("a body of 3 MB", "ok", 3_000_000, "HTTP/1.1 200") },
        streamed(call("a stream of 20 events", "stream-20", 1_900, "HTTP/1.1 200")),
        streamed(call("a stream at once", "stream-at-once", 1_900, "HTTP/1.1 200")),
        streamed(call("a paced stream", "stream-slow-2", 1_900, "HTTP/1.1 200")),
        at("/v1/messages", streamed(call("a messages stream", "stream-20", 1_900, "HTTP/1.1 200"))),
        streamed(call("an event of 100 KB", "stream-giant-content-100", 100, "HTTP/1.1 200")),
    ];
    for kind in &kinds {
        // A stream takes as long as its upstream takes for it.
        let streams = kind.body.starts_with(b"{\"stream\"");
        let few = kind.body.len() > 100_000 || streams;
        let calls = if few { CALLS / 10 } else { CALLS };
        let counts = measure(&shard, kind, calls);
        let each = counts.allocations as f64 / calls as f64;
        println!("{choice:?}, {}: {counts:?} in {calls} calls, {each} a call", kind.name);
        assert!(
            counts.allocations <= kind.allowed * calls as u64,
            "{choice:?}, {}: {counts:?} in {calls} calls",
            kind.name
        );
    }
}

/// Opens connections one after the other, each with a call that the upstream never answers.
fn hang(shard: &Counted, standin: &Standin, half_closed: bool, calls: usize) -> Vec<TcpStream> {
    let call = call("hang", "hang", 1_900, "");
    let ask = |_| {
        let mut stream = TcpStream::connect(shard.at).unwrap();
        let before = standin.counts().requests;
        stream.write_all(&[call.head.as_bytes(), &call.body].concat()).unwrap();
        if half_closed {
            stream.shutdown(Shutdown::Write).unwrap();
        }
        standin.tally_of(before as usize + 1, PATIENCE);
        stream
    };
    (0..calls).map(ask).collect()
}

/// Bytes that a call takes which waits for its first byte, its connection and its task included.
fn waiting(choice: Choice, half_closed: bool) -> Option<u64> {
    let standin = Standin::start(Script::default()).unwrap();
    let shard = counted(choice, standin.addr())?;
    let _warm = hang(&shard, &standin, half_closed, CALLS / 50);
    let before = shard.counts();
    let _hanging = hang(&shard, &standin, half_closed, CALLS / 50);
    let bytes = shard.counts().since(before).bytes;
    // Ends the calls; the shard would wait for them.
    drop(standin);
    Some(bytes / (CALLS as u64 / 50))
}

/// A first byte may take minutes, and thousands of calls wait for one. Each holds its request, for
/// a replay, and the buffers of the reads that watch both sides; none that only was on the way.
#[test]
fn a_call_that_waits_holds_a_buffer_for_each_read_and_its_request() {
    for choice in [Choice::Uring, Choice::Epoll] {
        for (half_closed, buffers) in [(false, 3), (true, 2)] {
            let Some(bytes) = waiting(choice, half_closed) else { continue };
            println!("{choice:?}, half closed: {half_closed}: {bytes} bytes a waiting call");
            let most = buffers * BUFFER_BYTES as u64 + TASK_BYTES_MAX;
            assert!(bytes <= most, "{choice:?}, half closed: {half_closed}: {bytes} of {most}");
        }
    }
}

#[test]
fn a_call_on_io_uring_allocates_nothing() {
    steady(Choice::Uring);
}

#[test]
fn a_call_on_epoll_allocates_nothing() {
    steady(Choice::Epoll);
}
