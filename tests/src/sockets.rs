//! Scenarios on the real drivers: the shard on a thread of its own, clients and upstream as plain
//! sockets on others. Nothing sleeps; every read has a time-out.

use crate::outcome::{ClientSaw, Outcome, UpstreamSaw};
use crate::play;
use crate::scenario::{Act, Guise, Manner, Reach, Scenario, Step};
use crate::script::manner_of;
use crate::secured::TlsWire;
use crate::setting;
use crate::wire::{Fault, Wire};
use socket2::{SockRef, Socket};
use std::cell::RefCell;
use std::future::Future;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tollgate::exchange::keys::KeyTable;
use tollgate::io::runtime::Choice;
use tollgate::shard::mailbox::{Letter, Mailbox};

/// How long a blocking call may take: far above every deadline a scenario sets.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long nobody may take bytes before an offer counts as turned down.
const OFFER: Duration = Duration::from_millis(300);

/// Plays a scenario on a driver. Nothing if the kernel refuses io_uring.
#[must_use]
pub fn run(choice: Choice, scenario: &Scenario) -> Option<Outcome> {
    let mailbox = Mailbox::default();
    let board = Board::of(scenario, &mailbox);
    let tls = scenario.tls.then_some(scenario.guise);
    let of_hosts = scenario.tls.then_some(Guise::Itself);
    let upstream = Upstream::open((&scenario.upstream, scenario.reach), &board, tls);
    let hosts: Vec<Upstream> = scenario
        .hosts
        .iter()
        .map(|host| Upstream::open((&host.manners, host.reach), &board, of_hosts))
        .collect();
    let at: Vec<SocketAddr> = hosts.iter().map(|host| host.at).collect();
    let config = setting::config_of(upstream.at, &at, &scenario.config, scenario.tls);
    let (setup, kit) = setting::setup(&config, choice, mailbox, scenario.ledger_fails);
    assert!(board.keys.set(kit.keys.clone()).is_ok(), "one shard");
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let gateway = listener.local_addr().expect("an address");
    let (started, starting) = mpsc::channel();
    let (ended, ending) = mpsc::channel::<()>();
    let shard = thread::spawn(move || {
        let _ended = ended;
        tollgate::server::thread::run(setup, listener, |driver| drop(started.send(driver)));
    });
    match starting.recv().expect("the shard says whether it started") {
        Ok(_) => {}
        Err(error) if choice == Choice::Uring => {
            eprintln!("the kernel refuses io_uring ({error}): not played on it");
            upstream.close();
            hosts.into_iter().for_each(|host| drop(host.close()));
            return None;
        }
        Err(error) => panic!("no runtime: {error}"),
    }
    let clients = play_clients(gateway, scenario, &board);
    assert!(kit.mailbox.send(Letter::Drain).is_ok(), "the mailbox takes a letter");
    match ending.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Timeout) => panic!("{choice:?}: the drain does not end"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {}
    }
    assert!(shard.join().is_ok(), "{choice:?}: the shard's thread panicked");
    let upstream = upstream.close();
    let hosts = hosts.into_iter().map(Upstream::close).collect();
    let counters = kit.counters.clone();
    let (records, refusals) = kit.settled();
    Some(Outcome { clients, upstream, hosts, counters, records, refusals, inside: None })
}

fn play_clients(gateway: SocketAddr, scenario: &Scenario, board: &Board) -> Vec<ClientSaw> {
    let players: Vec<JoinHandle<ClientSaw>> = scenario
        .clients
        .iter()
        .map(|steps| {
            let stream = TcpStream::connect(gateway).expect("the gateway listens");
            let mut wire = SocketWire::new(stream, board);
            let (steps, tls) = (steps.clone(), scenario.tls);
            thread::spawn(move || match tls {
                true => now(play::client(&mut TlsWire::calling(wire), &steps)),
                false => now(play::client(&mut wire, &steps)),
            })
        })
        .collect();
    players.into_iter().map(|player| player.join().expect("a client ends")).collect()
}

/// The upstream's port and its threads.
struct Upstream {
    at: SocketAddr,
    closing: Arc<AtomicBool>,
    accepting: Option<JoinHandle<Vec<UpstreamSaw>>>,
    _held: Vec<Socket>,
}

impl Upstream {
    fn open((manners, reach): (&[Manner], Reach), board: &Board, tls: Option<Guise>) -> Upstream {
        let closing = Arc::new(AtomicBool::new(false));
        match reach {
            Reach::Open => {}
            Reach::Refused => {
                let (at, held) = closed_port();
                return Upstream { at, closing, accepting: None, _held: held };
            }
            Reach::BlackHole => {
                let (at, held) = black_hole();
                return Upstream { at, closing, accepting: None, _held: held };
            }
        }
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let at = listener.local_addr().expect("an address");
        let (manners, board, over) = (manners.to_vec(), board.clone(), closing.clone());
        let accepting = thread::spawn(move || {
            let mut players = Vec::new();
            while let Ok((stream, _)) = listener.accept() {
                if over.load(Ordering::SeqCst) {
                    break;
                }
                let manner = manner_of(&manners, players.len());
                let mut wire = SocketWire::new(stream, &board);
                players.push(thread::spawn(move || {
                    let saw = RefCell::new(UpstreamSaw::default());
                    match tls {
                        Some(guise) => {
                            let mut wire = TlsWire::called(wire, guise);
                            now(play::upstream(&mut wire, &manner, &saw));
                        }
                        None => now(play::upstream(&mut wire, &manner, &saw)),
                    }
                    saw.into_inner()
                }));
            }
            let ended = |player: JoinHandle<UpstreamSaw>| player.join().expect("an upstream ends");
            players.into_iter().map(ended).collect()
        });
        Upstream { at, closing, accepting: Some(accepting), _held: Vec::new() }
    }

    /// Once the shard is gone: no connection is left, so every thread ends.
    fn close(self) -> Vec<UpstreamSaw> {
        self.closing.store(true, Ordering::SeqCst);
        let Some(accepting) = self.accepting else { return Vec::new() };
        drop(TcpStream::connect(self.at));
        accepting.join().expect("the upstream ends")
    }
}

/// A port that nobody listens on, and nobody else is given meanwhile.
fn closed_port() -> (SocketAddr, Vec<Socket>) {
    let kind = socket2::Type::STREAM;
    let socket = Socket::new(socket2::Domain::IPV4, kind, Some(socket2::Protocol::TCP));
    let socket = socket.expect("a socket");
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
    let address = socket.local_addr().expect("an address").as_socket().expect("an address");
    (address, vec![socket])
}

/// A listener whose backlog is full: the kernel drops the handshake without a word.
fn black_hole() -> (SocketAddr, Vec<Socket>) {
    let tcp = || {
        let kind = socket2::Type::STREAM.nonblocking();
        Socket::new(socket2::Domain::IPV4, kind, Some(socket2::Protocol::TCP)).expect("a socket")
    };
    let listener = tcp();
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
    listener.listen(0).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let mut held = vec![listener];
    // A backlog of 0 takes one; the rest make sure.
    for _ in 0..4 {
        let dialer = tcp();
        drop(dialer.connect(&address));
        held.push(dialer);
    }
    (address.as_socket().expect("an address"), held)
}

/// The output of a future that never waits.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a socket's future waits"),
    }
}

/// What has happened, by name.
#[derive(Clone)]
struct Board {
    seen: Arc<[(&'static str, AtomicBool)]>,
    mailbox: Mailbox,
    /// Known once the shard is made.
    keys: Arc<OnceLock<Arc<KeyTable>>>,
}

impl Board {
    fn of(scenario: &Scenario, mailbox: &Mailbox) -> Board {
        let steps = scenario.clients.iter().flatten().filter_map(|step| match step {
            Step::Signal(what) | Step::Wait(what) => Some(*what),
            _ => None,
        });
        let others = scenario.hosts.iter().flat_map(|host| &host.manners);
        let turns = scenario.upstream.iter().chain(others).flat_map(|manner| &manner.turns);
        let acts = turns.flat_map(|turn| &turn.acts).filter_map(|act| match act {
            Act::Signal(what) | Act::Wait(what) => Some(*what),
            _ => None,
        });
        let seen = steps.chain(acts).map(|what| (what, AtomicBool::new(false))).collect();
        Board { seen, mailbox: mailbox.clone(), keys: Arc::default() }
    }

    /// A name may stand here more than once; the first place counts.
    fn place(&self, what: &str) -> &AtomicBool {
        let place = self.seen.iter().find(|(name, _)| *name == what);
        &place.expect("every name is collected").1
    }
}

struct SocketWire {
    /// Nothing once it was reset.
    stream: Option<TcpStream>,
    board: Board,
}

impl SocketWire {
    fn new(stream: TcpStream, board: &Board) -> SocketWire {
        let set = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
        set.expect("socket options");
        SocketWire { stream: Some(stream), board: board.clone() }
    }
}

impl Wire for SocketWire {
    async fn send(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let stream = self.stream.as_mut().ok_or(Fault::Reset)?;
        stream.write_all(bytes).map_err(|e| fault_of(&e))
    }

    async fn offer(&mut self, bytes: &[u8]) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        drop(stream.set_write_timeout(Some(OFFER)));
        let sent = stream.write_all(bytes);
        drop(stream.set_write_timeout(Some(PATIENCE)));
        sent.is_ok()
    }

    async fn read(&mut self) -> Result<Vec<u8>, Fault> {
        let stream = self.stream.as_mut().ok_or(Fault::Reset)?;
        let mut bytes = vec![0; 64 * 1024];
        let count = stream.read(&mut bytes).map_err(|e| fault_of(&e))?;
        bytes.truncate(count);
        Ok(bytes)
    }

    async fn fin(&mut self) {
        drop(self.stream.as_ref().map(|stream| stream.shutdown(Shutdown::Write)));
    }

    fn reset(&mut self) {
        if let Some(stream) = self.stream.take() {
            drop(SockRef::from(&stream).set_linger(Some(Duration::ZERO)));
        }
    }

    async fn settle(&mut self) {
        thread::yield_now();
    }

    fn now_ms(&self) -> Option<u64> {
        None
    }

    async fn pause(&mut self, span: Duration) {
        let (_open, never) = mpsc::channel::<()>();
        let _ = never.recv_timeout(span);
    }

    fn drain(&mut self) {
        assert!(self.board.mailbox.send(Letter::Drain).is_ok(), "the mailbox takes a letter");
    }

    fn revoke(&mut self) {
        self.board.keys.get().expect("a shard").each(|bundle| bundle.revoke());
    }

    fn signal(&mut self, what: &'static str) {
        self.board.place(what).store(true, Ordering::SeqCst);
    }

    async fn wait(&mut self, what: &'static str) -> bool {
        let place = self.board.place(what);
        for _ in 0..LOOKS_MAX {
            if place.load(Ordering::SeqCst) {
                return true;
            }
            thread::park_timeout(LOOK);
        }
        false
    }
}

/// How often somebody who waits looks at the board.
const LOOK: Duration = Duration::from_millis(1);

/// Looks before a wait is given up.
const LOOKS_MAX: u32 = 20_000;

fn fault_of(error: &io::Error) -> Fault {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Fault::TimedOut,
        _ => Fault::Reset,
    }
}
