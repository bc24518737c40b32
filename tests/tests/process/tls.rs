//! `serve` with a certificate: calls over TLS, and certificates that are renewed while they come.

use crate::program::{Program, chat, connect, folder, get, tollgate};
use crate::serve::{KEY, Served, serve_in};
use gateway_tests::secured::{NAMES, Papers};
use loadtest::standin::{Config, Standin};
use rustix::process::Signal;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

type Secured = StreamOwned<ClientConnection, TcpStream>;

const LISTEN: &str = "[listen.tls]\ncert_file = \"chain.pem\"\nkey_file = \"key.pem\"\n";

/// Clients that call all the time.
const CLIENTS: usize = 3;

/// Certificates that follow the first.
const RENEWALS: usize = 4;

/// When certificates of these tests end: 4096-01-01T00:00:00Z.
const END: u64 = 67_090_118_400;

/// Calls that are answered before and after something happens.
const CALLS: usize = 20;

fn write(folder: &Path, papers: &Papers) {
    std::fs::write(folder.join("chain.pem"), &papers.chain).unwrap();
    std::fs::write(folder.join("key.pem"), &papers.key).unwrap();
}

fn dial(data: SocketAddr, trust: &Arc<ClientConfig>) -> Secured {
    let session = ClientConnection::new(trust.clone(), NAMES[0].try_into().unwrap());
    StreamOwned::new(session.unwrap(), connect(data))
}

/// One call on a connection that lives on; the status line.
fn call(stream: &mut Secured) -> io::Result<String> {
    stream.write_all(chat(KEY, "ok").replace("connection: close\r\n", "").as_bytes())?;
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        answer.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        if body.len() == length.expect("a length").trim().parse::<usize>().unwrap() {
            return Ok(head.lines().next().unwrap_or_default().to_owned());
        }
    }
}

fn served(name: &str, papers: &Papers, standin: &Standin) -> (Served, std::path::PathBuf) {
    let folder = folder(name);
    write(&folder, papers);
    (serve_in(&folder, LISTEN, standin, "auto", &["--no-pin"]), folder)
}

#[test]
fn a_call_comes_over_tls_and_its_end_is_said() {
    let standin = Standin::start(Config::default()).unwrap();
    let papers = Papers::made();
    let (mut served, _folder) = served("serve-tls", &papers, &standin);
    let trust = papers.client();
    let mut stream = dial(served.data, &trust);
    stream.write_all(chat(KEY, "ok").as_bytes()).unwrap();
    let mut answer = String::new();
    // Fails if the connection ends and the session does not.
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(dial(served.data, &Papers::made().client()).read(&mut [0]).is_err(), "a stranger");
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.wait(), Some(0));
}

/// Ends the clients, also when the test fails.
struct Last<'a>(&'a AtomicBool);

impl Drop for Last<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Waits until nobody who knows `old` alone is answered any more. Each shard hears of a certificate
/// at its next tick, and the kernel says which one takes a connection.
fn wait_for_refusals(data: SocketAddr, old: &Papers) {
    let mut refused = 0;
    while refused < CALLS {
        refused = match call(&mut dial(data, &old.client())) {
            Ok(_) => 0,
            Err(_) => refused + 1,
        };
    }
}

#[test]
fn certificates_are_renewed_under_load_and_no_call_fails() {
    let standin = Standin::start(Config::default()).unwrap();
    let papers: Vec<Papers> = (0..=RENEWALS).map(|_| Papers::made()).collect();
    let (mut served, folder) = served("serve-renewed", &papers[0], &standin);
    // Whoever knows all authorities minds no change.
    let ca = papers.iter().map(|papers| papers.ca.as_str()).collect();
    let all = Papers { ca, ..Papers::made() }.client();
    let mut kept = dial(served.data, &papers[0].client());
    assert_eq!(call(&mut kept).unwrap(), "HTTP/1.1 200 OK");
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (data, new) = (served.data, &papers[RENEWALS]);
    let count = |stream: &mut Secured| {
        assert_eq!(call(stream).unwrap(), "HTTP/1.1 200 OK");
        answered.fetch_add(1, Ordering::SeqCst);
    };
    std::thread::scope(|scope| {
        let over_at_last = Last(&over);
        // Some open a connection for each call, one keeps its own.
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    count(&mut dial(data, &all));
                }
            });
        }
        scope.spawn(|| {
            let mut stream = dial(data, &all);
            while !over.load(Ordering::SeqCst) {
                count(&mut stream);
            }
        });
        let more = || {
            let enough = answered.load(Ordering::SeqCst) + CALLS;
            while answered.load(Ordering::SeqCst) < enough {
                std::thread::yield_now();
            }
        };
        for (old, new) in papers.iter().zip(&papers[1..]) {
            more();
            write(&folder, new);
            served.program.signal(Signal::HUP);
            // The files may have been looked at between the two, which leaves the old one.
            let said = served.program.err.wait_for("certificate");
            assert!(said.ends_with("chain.pem is shown from now on"), "{said}");
            more();
            wait_for_refusals(data, old);
            assert_eq!(call(&mut dial(data, &new.client())).unwrap(), "HTTP/1.1 200 OK");
        }
        drop(over_at_last);
    });
    println!("{} calls through {RENEWALS} renewals", answered.load(Ordering::SeqCst));
    assert_eq!(call(&mut kept).unwrap(), "HTTP/1.1 200 OK", "what stood before them still does");

    std::fs::write(folder.join("key.pem"), &papers[0].key).unwrap();
    served.program.signal(Signal::HUP);
    let said = served.program.err.wait_for("warning");
    assert!(said.contains("the key is not that of the certificate"), "{said}");
    assert!(said.ends_with("; the old certificate stays"), "{said}");
    assert_eq!(call(&mut dial(data, &new.client())).unwrap(), "HTTP/1.1 200 OK");
    let metrics = get(served.admin, "/metrics");
    assert!(metrics.contains("\ntollgate_panics_total 0\n"), "{metrics}");
    assert!(metrics.contains(&format!("\ntollgate_certificate_not_after_seconds {END}\n")));
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.wait(), Some(0));
}

/// A pipe that nobody writes to, in the place of what was there.
fn pipe_at(path: &Path) {
    // What was there may be nothing.
    let _ = std::fs::remove_file(path);
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
}

#[test]
fn a_pipe_in_a_certificate_s_place_is_refused_and_the_node_goes_on() {
    let standin = Standin::start(Config::default()).unwrap();
    let papers = Papers::made();
    let (mut served, folder) = served("serve-tls-pipe", &papers, &standin);
    pipe_at(&folder.join("chain.pem"));
    served.program.signal(Signal::HUP);
    let said = served.program.err.wait_for("warning");
    assert!(said.ends_with("not a regular file; the old certificate stays"), "{said}");
    assert_eq!(call(&mut dial(served.data, &papers.client())).unwrap(), "HTTP/1.1 200 OK");
    assert!(get(served.admin, "/metrics").starts_with("HTTP/1.1 200 "));
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.wait(), Some(0));

    let mut program = Program::start(tollgate(&folder, &["serve", "--no-pin"]));
    assert_eq!(program.wait(), Some(2));
    let said = program.err.wait_for_end().join("\n");
    assert!(said.contains("chain.pem") && said.contains("not a regular file"), "{said}");
}
