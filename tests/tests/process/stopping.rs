//! SIGTERM under open streams: who asks whether the node is ready knows first, nobody is cut
//! before the deadline, and a second signal settles what it cuts.

use crate::kill::{KEY, home, ledger, serve};
use crate::over::Over;
use crate::program::{Program, connect, get, tollgate};
use loadtest::standin::{Config, Standin};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use store::ending::Ending;

/// Streams that are open when the signal comes.
const STREAMS: usize = 1_000;

/// A stream of this many seconds: longer than opening all of them takes beside other work.
const LONG: &str = "kill-mix-30-500";

fn ask(data: SocketAddr, model: &str, stream: bool) -> TcpStream {
    let body = format!(
        "{{\"model\":\"{model}\",\"max_tokens\":9,\"stream\":{stream},\
         \"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}]}}"
    );
    let mut client = connect(data);
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x";
    let request = format!(
        "{head}\r\nauthorization: Bearer {KEY}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    client.write_all(request.as_bytes()).expect("it reads");
    client
}

/// Reads until the first event is here: from now on the stream is open.
fn opened(client: &mut TcpStream) -> Vec<u8> {
    let (mut got, mut piece) = (Vec::new(), [0; 4096]);
    while !got.windows(6).any(|six| six == b"data: ") {
        let count = client.read(&mut piece).expect("an answer");
        assert!(count > 0, "{}", String::from_utf8_lossy(&got));
        got.extend_from_slice(&piece[..count]);
    }
    got
}

/// With `deadlines` behind the usual configuration.
fn started(
    name: &str,
    standin: &Standin,
    deadlines: &str,
) -> (crate::kill::Home, Program, SocketAddr) {
    let home = home(name, Over::Tcp, standin.addr(), &[LONG, "hang", "stream-giant-8000"]);
    let path = home.folder.join("tollgate.toml");
    let text = std::fs::read_to_string(&path).expect("it is there");
    std::fs::write(&path, format!("{text}\n[deadlines]\n{deadlines}\n"))
        .expect("it can be written");
    let mut command = tollgate(&home.folder, &["serve", "--no-pin"]);
    command.env_remove("RUNTIME_DIRECTORY");
    let mut program = Program::start(command);
    let admin = program.err.wait_for("admin").replace("http://", "");
    let admin = admin.parse().expect("an address");
    (home, program, admin)
}

fn data_of(program: &mut Program) -> SocketAddr {
    let data = program.err.wait_for("data").replace("http://", "");
    program.err.wait_for("ready");
    data.parse().expect("an address")
}

/// The records by their endings; the ledger is proved first.
fn endings(folder: &Path) -> BTreeMap<&'static str, usize> {
    let verify = tollgate(folder, &["ledger", "verify", "--json"]).output().unwrap();
    assert!(verify.status.success(), "{}", String::from_utf8_lossy(&verify.stdout));
    let mut endings = BTreeMap::new();
    for head in ledger(folder) {
        *endings.entry(head.ending.name()).or_default() += 1;
    }
    endings
}

#[test]
fn a_thousand_streams_end_by_themselves_once_nobody_is_sent_here_any_more() {
    let standin = Standin::start(Config { entries_max: 1 << 20, ..Config::default() }).unwrap();
    let (home, mut program, admin) = started("sigterm", &standin, "drain_notice = \"3s\"");
    let data = data_of(&mut program);
    let mut clients: Vec<TcpStream> = (0..STREAMS).map(|_| ask(data, LONG, true)).collect();
    let mut got: Vec<Vec<u8>> = clients.iter_mut().map(opened).collect();
    assert!(get(data, "/readyz").starts_with("HTTP/1.1 200 "));

    program.signal(Signal::TERM);
    let said = program.err.wait_for("draining");
    assert!(said.contains("connections are taken for 3 s"), "{said}");
    assert!(get(admin, "/readyz").starts_with("HTTP/1.1 503 "));
    // Shards hear of it within a tick; meanwhile and after it they take connections.
    let answer = loop {
        let mut last = connect(data);
        last.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut piece = [0; 4096];
        let count = last.read(&mut piece).expect("an answer");
        if piece.starts_with(b"HTTP/1.1 503 ") {
            let mut answer = piece[..count].to_vec();
            last.read_to_end(&mut answer).expect("the node closes, though nobody asked it to");
            break String::from_utf8_lossy(&answer).into_owned();
        }
    };
    assert!(answer.contains("connection: close"), "{answer}");
    let open = open_connections(admin);
    assert!(open >= STREAMS, "{open} of {STREAMS} streams are open");
    program.err.wait_for("draining");
    while TcpStream::connect(data).is_ok() {}

    for (client, got) in clients.iter_mut().zip(&mut got) {
        let mut piece = [0; 16 * 1024];
        while !got.ends_with(b"0\r\n\r\n") {
            let count = client.read(&mut piece).expect("it goes on");
            assert!(count > 0, "cut: {}", String::from_utf8_lossy(got));
            got.extend_from_slice(&piece[..count]);
        }
        assert!(got.windows(12).any(|end| end == b"data: [DONE]"));
    }
    assert_eq!(program.wait(), Some(0), "{:#?}", program.err.seen());
    assert_eq!(endings(&home.folder), BTreeMap::from([("succeeded", STREAMS)]));
    let left = std::fs::read_dir(&home.slabs).map_or(0, Iterator::count);
    assert_eq!(left, 0, "slabs left after a drain");
}

fn open_connections(admin: SocketAddr) -> usize {
    let metrics = get(admin, "/metrics");
    let rows = metrics.lines().filter(|line| line.starts_with("tollgate_connections_open{"));
    rows.filter_map(|row| row.split(' ').nth(1)?.parse::<usize>().ok()).sum()
}

/// Streams, calls that wait for a provider, and clients that read nothing.
#[test]
fn what_a_second_signal_cuts_is_told_and_settled_before_the_end() {
    const EACH: usize = 40;
    let standin = Standin::start(Config::default()).unwrap();
    let (home, mut program, _) = started("sigterm-twice", &standin, "drain_notice = \"1h\"");
    let data = data_of(&mut program);
    let mut streams: Vec<TcpStream> = (0..EACH).map(|_| ask(data, LONG, true)).collect();
    streams.iter_mut().for_each(|client| drop(opened(client)));
    let mut waiting: Vec<TcpStream> = (0..EACH).map(|_| ask(data, "hang", false)).collect();
    // Each has reached its provider.
    while standin.tally().len() < 2 * EACH {}
    let _deaf: Vec<TcpStream> = (0..3).map(|_| ask(data, "stream-giant-8000", true)).collect();
    while standin.tally().len() < 2 * EACH + 3 {}

    program.signal(Signal::TERM);
    program.err.wait_for("draining");
    program.signal(Signal::TERM);
    assert_eq!(program.wait(), Some(3), "{:#?}", program.err.seen());
    for client in &mut streams {
        let mut rest = Vec::new();
        // Cut inside an event it is a reset or an end without a last chunk.
        let ended = client.read_to_end(&mut rest);
        let rest = String::from_utf8_lossy(&rest);
        let told = rest.contains("shutting_down");
        assert!(told || ended.is_err() || !rest.ends_with("0\r\n\r\n"), "a clean end: {rest}");
    }
    for client in &mut waiting {
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("shutting_down"));
    }
    let endings = endings(&home.folder);
    assert_eq!(endings.values().sum::<usize>(), 2 * EACH + 3, "{endings:?}");
    assert_eq!(endings.get(Ending::Shutdown.name()), Some(&(2 * EACH + 3)), "{endings:?}");
    let left = std::fs::read_dir(&home.slabs).map_or(0, Iterator::count);
    assert_eq!(left, 0, "slabs left for the next start");

    let (mut program, _) = serve(&home.folder);
    let said = program.err.seen().join("\n");
    assert!(said.contains("slabs recovered 0"), "{said}");
    program.signal(Signal::TERM);
    program.err.wait_for("draining");
    program.signal(Signal::TERM);
    program.wait();
}
