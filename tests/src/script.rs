//! Scenarios on the scripted transport: one thread, virtual time.

pub use crate::faulty::Faults;
use crate::faulty::FaultyIo;
use crate::outcome::{ClientSaw, Inside, Outcome, UpstreamSaw};
use crate::play;
use crate::scenario::{Guise, Manner, Reach, Scenario};
use crate::secured::TlsWire;
use crate::setting::{self, Kit};
use crate::wire::{Fault, Wire};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tollgate::config::Config;
use tollgate::exchange::keys::KeyTable;
use tollgate::io::Io;
use tollgate::io::runtime::Choice;
use tollgate::io::script::{Peer, PeerError, PeerFault, ScriptIo, ScriptListener, ScriptWorld};
use tollgate::server::thread;
use tollgate::shard::mailbox::{Letter, Mailbox};

/// How long everybody gets to finish once the last client is done: a linger and a sweep.
const REST: Duration = Duration::from_secs(4);

/// Where the gateway listens.
#[must_use]
pub fn gateway_at() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 4180))
}

/// Where the upstream listens.
#[must_use]
pub fn upstream_at() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9000))
}

/// Where the further upstreams of a scenario listen.
#[must_use]
pub fn hosts_at(scenario: &Scenario) -> Vec<SocketAddr> {
    let port = |nth: usize| u16::try_from(9001 + nth).expect("few hosts");
    (0..scenario.hosts.len()).map(|nth| ([127, 0, 0, 1], port(nth)).into()).collect()
}

/// The configuration of a scenario.
#[must_use]
pub fn config(scenario: &Scenario) -> Config {
    setting::config_of(upstream_at(), &hosts_at(scenario), &scenario.config, scenario.tls)
}

/// What has happened.
#[derive(Clone)]
struct Board {
    seen: Rc<RefCell<BTreeSet<&'static str>>>,
    mailbox: Mailbox,
    keys: Arc<KeyTable>,
}

/// Plays a scenario.
#[must_use]
pub fn run(scenario: &Scenario) -> Outcome {
    run_in(&ScriptWorld::new(1), &config(scenario), scenario)
}

/// Plays a scenario in a world that may have been given faults of its own, under a configuration
/// that is compiled already.
#[must_use]
pub fn run_in(world: &ScriptWorld, config: &Config, scenario: &Scenario) -> Outcome {
    run_over(world, world.io(), config, scenario, |_| {})
}

/// The same, with faults that need the gateway's listener to be there.
#[must_use]
pub fn run_prepared(
    world: &ScriptWorld,
    config: &Config,
    scenario: &Scenario,
    prepare: impl FnOnce(&ScriptWorld),
) -> Outcome {
    run_over(world, world.io(), config, scenario, prepare)
}

/// Plays a scenario while the first client's connection meets a defect.
#[must_use]
pub fn run_with_faults(scenario: &Scenario, faults: Faults) -> Outcome {
    let world = ScriptWorld::new(1);
    let io = FaultyIo::new(world.io(), faults);
    run_over(&world, io, &config(scenario), scenario, |_| {})
}

fn run_over<I: Io<Listener = ScriptListener>>(
    world: &ScriptWorld,
    io: I,
    config: &Config,
    scenario: &Scenario,
    prepare: impl FnOnce(&ScriptWorld),
) -> Outcome {
    let (setup, kit) =
        setting::setup(config, Choice::Auto, Mailbox::default(), scenario.ledger_fails);
    let listener = world.listen(gateway_at()).expect("a free address");
    prepare(world);
    let (mailbox, keys) = (kit.mailbox.clone(), kit.keys.clone());
    let board = Board { seen: Rc::default(), mailbox, keys };
    let tls = scenario.tls.then_some(scenario.guise);
    let upstream =
        open_upstream(world, (upstream_at(), tls), (&scenario.upstream, scenario.reach), &board);
    let of_hosts = scenario.tls.then_some(Guise::Itself);
    let hosts: Vec<Connections> = std::iter::zip(hosts_at(scenario), &scenario.hosts)
        .map(|(at, host)| open_upstream(world, (at, of_hosts), (&host.manners, host.reach), &board))
        .collect();
    let shard = thread::shard(io, setup);
    let served = Rc::new(Cell::new(false));
    let (serving, done) = (shard.clone(), served.clone());
    let (mailbox, counters) = (kit.mailbox.clone(), kit.counters.clone());
    let left_open = Rc::new(Cell::new(0));
    let left = left_open.clone();
    world.spawn(async move {
        thread::serve(serving, listener, mailbox).await;
        // On the drivers the runtime ends here, and every task with it.
        left.set(counters.connections_open.get());
        done.set(true);
    });
    let clients = play_clients(world, scenario, &board);
    let clients_ms = world.now().mono.0 / 1_000_000;
    world.run_until(world.sleep(REST)).expect("time to pass");
    let (allowance_left, pooled) = (shard.allowance.left(), shard.pool.len());
    let buffers = shard.buffers.clone();
    drop(shard);
    let drain_ms = drain(world, &kit, &served);
    let left_open = left_open.get();
    world.run_until(world.sleep(REST)).expect("time to pass");
    let counters = kit.counters.clone();
    let (records, refusals) = kit.settled();
    // A panic drops what its task held; whatever else happens, each buffer comes back.
    assert!(counters.panics.get() > 0 || buffers.lent() == 0, "{} buffers lent", buffers.lent());
    Outcome {
        clients,
        upstream: upstream.seen(),
        hosts: hosts.iter().map(Connections::seen).collect(),
        counters,
        records,
        refusals,
        inside: Some(Inside { allowance_left, pooled, drain_ms, left_open, clients_ms }),
    }
}

fn drain(world: &ScriptWorld, kit: &Kit, served: &Rc<Cell<bool>>) -> u64 {
    let begun = world.now().mono.0;
    assert!(kit.mailbox.send(Letter::Drain).is_ok(), "the mailbox takes a letter");
    let io = world.io();
    let waiting = async {
        while !served.get() {
            io.sleep(Duration::from_millis(10)).await;
        }
    };
    world.run_until(waiting).unwrap_or_else(|stuck| panic!("the drain does not end: {stuck}"));
    (world.now().mono.0 - begun) / 1_000_000
}

/// A list that grows with the connections.
struct Connections(Rc<RefCell<Vec<Rc<RefCell<UpstreamSaw>>>>>);

impl Connections {
    fn seen(&self) -> Vec<UpstreamSaw> {
        self.0.borrow().iter().map(|saw| saw.borrow().clone()).collect()
    }
}

fn open_upstream(
    world: &ScriptWorld,
    (at, tls): (SocketAddr, Option<Guise>),
    (manners, reach): (&[Manner], Reach),
    board: &Board,
) -> Connections {
    let connections = Rc::new(RefCell::new(Vec::new()));
    match reach {
        Reach::Refused => {}
        Reach::BlackHole => world.set_black_hole(at),
        Reach::Open => {
            let listener = world.serve(at).expect("a free address");
            let (io, board) = (world.io(), board.clone());
            let (manners, list) = (manners.to_vec(), connections.clone());
            world.spawn(async move {
                loop {
                    // An accept that timed out in virtual time is simply begun again.
                    let Ok(peer) = listener.accept().await else { continue };
                    let saw = Rc::new(RefCell::new(UpstreamSaw::default()));
                    let manner = manner_of(&manners, list.borrow().len());
                    list.borrow_mut().push(saw.clone());
                    let mut wire = ScriptWire { peer, io: io.clone(), board: board.clone() };
                    io.spawn(async move {
                        match tls {
                            Some(guise) => {
                                let mut wire = TlsWire::called(wire, guise);
                                play::upstream(&mut wire, &manner, &saw).await;
                            }
                            None => play::upstream(&mut wire, &manner, &saw).await,
                        }
                    });
                }
            });
        }
    }
    Connections(connections)
}

/// The manner of the `nth` connection.
pub(crate) fn manner_of(manners: &[Manner], nth: usize) -> Manner {
    manners.get(nth).or_else(|| manners.last()).cloned().unwrap_or_default()
}

fn play_clients(world: &ScriptWorld, scenario: &Scenario, board: &Board) -> Vec<ClientSaw> {
    let seen = Rc::new(RefCell::new(vec![None; scenario.clients.len()]));
    for (nth, steps) in scenario.clients.iter().enumerate() {
        let peer = world.dial(gateway_at()).expect("the gateway listens");
        let mut wire = ScriptWire { peer, io: world.io(), board: board.clone() };
        let (steps, seen, tls) = (steps.clone(), seen.clone(), scenario.tls);
        world.spawn(async move {
            // Closes before it counts as done.
            let saw = match tls {
                true => play::client(&mut TlsWire::calling(wire), &steps).await,
                false => {
                    let saw = play::client(&mut wire, &steps).await;
                    drop(wire);
                    saw
                }
            };
            seen.borrow_mut()[nth] = Some(saw);
        });
    }
    let io = world.io();
    let all = async {
        while seen.borrow().iter().any(Option::is_none) {
            io.sleep(Duration::from_millis(1)).await;
        }
    };
    world.run_until(all).unwrap_or_else(|stuck| panic!("a client is stuck: {stuck}"));
    seen.take().into_iter().flatten().collect()
}

/// A scripted end of a connection.
struct ScriptWire {
    peer: Peer,
    io: ScriptIo,
    board: Board,
}

/// How long nobody may take bytes before an offer counts as turned down.
const OFFER: Duration = Duration::from_millis(500);

/// How often somebody who waits looks at the board.
const LOOK: Duration = Duration::from_millis(10);

/// Looks before a wait is given up: 600 s of virtual time.
const LOOKS_MAX: u32 = 60_000;

impl Wire for ScriptWire {
    async fn send(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.peer.send(bytes).await.map_err(|e| fault_of(&e))
    }

    async fn offer(&mut self, bytes: &[u8]) -> bool {
        self.peer.set_patience(OFFER);
        let sent = self.peer.send(bytes).await;
        self.peer.set_patience(tollgate::io::script::PATIENCE);
        sent.is_ok()
    }

    async fn read(&mut self) -> Result<Vec<u8>, Fault> {
        self.peer.read_some().await.map_err(|e| fault_of(&e))
    }

    async fn fin(&mut self) {
        self.peer.fin();
    }

    fn reset(&mut self) {
        self.peer.rst();
    }

    async fn settle(&mut self) {
        // Time moves only when nobody else can run.
        self.io.sleep(Duration::from_nanos(1)).await;
    }

    fn now_ms(&self) -> Option<u64> {
        Some(self.io.now().mono.0 / 1_000_000)
    }

    async fn pause(&mut self, span: Duration) {
        self.io.sleep(span).await;
    }

    fn drain(&mut self) {
        assert!(self.board.mailbox.send(Letter::Drain).is_ok(), "the mailbox takes a letter");
    }

    fn revoke(&mut self) {
        self.board.keys.each(|bundle| bundle.revoke());
    }

    fn signal(&mut self, what: &'static str) {
        self.board.seen.borrow_mut().insert(what);
    }

    async fn wait(&mut self, what: &'static str) -> bool {
        for _ in 0..LOOKS_MAX {
            if self.board.seen.borrow().contains(what) {
                return true;
            }
            self.io.sleep(LOOK).await;
        }
        false
    }
}

fn fault_of(error: &PeerError) -> Fault {
    match error.fault {
        PeerFault::TimedOut => Fault::TimedOut,
        PeerFault::Ended | PeerFault::Broken(_) => Fault::Reset,
    }
}

/// Plays a scenario once for each of `splits`, with the bytes that `place` puts into it.
pub fn run_splits<T: PartialEq + std::fmt::Debug>(
    scenario: impl Fn(crate::scenario::Split) -> Scenario,
    len: usize,
    digest: impl Fn(&Outcome) -> T,
) {
    use crate::scenario::Split;
    // Compiled anew each time: breakers belong to a configuration.
    let play = |split: Split| digest(&run(&scenario(split)));
    let expected = play(Split::Whole);
    // A long input is cut at evenly spread places only, and at none byte by byte.
    let step = len / SPLITS_MAX + 1;
    if len <= BYTEWISE_MAX {
        assert_eq!(play(Split::Bytes), expected, "byte by byte");
    }
    for cut in (1..len).step_by(step) {
        assert_eq!(play(Split::At(vec![cut])), expected, "cut at {cut}");
    }
}

/// Two-way splits of one input: every place of the corpus' short rows.
const SPLITS_MAX: usize = 512;

/// Inputs up to this long are also sent byte by byte.
const BYTEWISE_MAX: usize = 4096;
