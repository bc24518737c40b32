//! `serve` with a certificate: calls over TLS, and a certificate that is renewed while they come.

use crate::program::{chat, connect, folder, get};
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

#[test]
fn a_certificate_is_renewed_under_load_and_no_call_fails() {
    let standin = Standin::start(Config::default()).unwrap();
    let [old, new] = [Papers::made(), Papers::made()];
    let (mut served, folder) = served("serve-renewed", &old, &standin);
    // Whoever knows both authorities minds no change.
    let both = Papers { ca: format!("{}{}", old.ca, new.ca), ..Papers::made() }.client();
    let mut kept = dial(served.data, &old.client());
    assert_eq!(call(&mut kept).unwrap(), "HTTP/1.1 200 OK");
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let data = served.data;
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    assert_eq!(call(&mut dial(data, &both)).unwrap(), "HTTP/1.1 200 OK");
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let more = || {
            let enough = answered.load(Ordering::SeqCst) + CALLS;
            while answered.load(Ordering::SeqCst) < enough {
                std::thread::yield_now();
            }
        };
        more();
        write(&folder, &new);
        served.program.signal(Signal::HUP);
        let said = served.program.err.wait_for("certificate");
        assert!(said.ends_with("chain.pem is shown from now on"), "{said}");
        more();
        over.store(true, Ordering::SeqCst);
    });
    assert_eq!(call(&mut kept).unwrap(), "HTTP/1.1 200 OK", "what stood before it still does");
    // Each shard hears of it at its next tick; the kernel says which one takes a connection.
    let mut refused = 0;
    while refused < CALLS {
        refused = match call(&mut dial(data, &old.client())) {
            Ok(_) => 0,
            Err(_) => refused + 1,
        };
    }
    assert_eq!(call(&mut dial(data, &new.client())).unwrap(), "HTTP/1.1 200 OK");

    std::fs::write(folder.join("key.pem"), &old.key).unwrap();
    served.program.signal(Signal::HUP);
    let said = served.program.err.wait_for("warning");
    assert!(said.contains("the key is not that of the certificate"), "{said}");
    assert!(said.ends_with("; the old certificate stays"), "{said}");
    assert_eq!(call(&mut dial(data, &new.client())).unwrap(), "HTTP/1.1 200 OK");
    let metrics = get(served.admin, "/metrics");
    assert!(metrics.contains("\ntollgate_panics_total 0\n"), "{metrics}");
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.wait(), Some(0));
}
