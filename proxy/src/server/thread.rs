//! A shard's thread: pin, build the ring, serve, drain.

use crate::config::snapshot::Snapshot;
use crate::exchange::ids::IdMint;
use crate::exchange::keys::KeyTable;
use crate::exchange::time::UnixMs;
use crate::io::buffers::Buffers;
use crate::io::listen::RingListener;
use crate::io::ring::RingIo;
use crate::io::runtime::{Choice, Driver, ShardRuntime};
use crate::io::tls::{ServerTls, Side, TlsIo};
use crate::io::wheel::Wheel;
use crate::io::{Io, TICK};
use crate::observe::counters::Counters;
use crate::observe::ledger::LedgerGauges;
use crate::pipeline::{self, accept};
use crate::shard::Shard;
use crate::shard::allowance::Allowance;
use crate::shard::chance::Chance;
use crate::shard::draws::Draws;
use crate::shard::mailbox::{Letter, Mailbox};
use crate::shard::refused::RefusedBook;
use crate::shard::snapshot::SnapshotCell;
use crate::shard::told::Told;
use crate::upstream::addresses::Addresses;
use crate::upstream::pool::Pool;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use store::slab::Slab;

/// Ticks between two sweeps of the pool: an end seen within a second is soon enough, since what
/// comes earlier is found at check-out.
const SWEEP_TICKS: u64 = 10;

/// Nanoseconds of the second in which refusals are counted together.
const SECOND_NS: u64 = 1_000_000_000;

/// Ticks that connections have to end after a drain: idle ones need one, what was cut needs as many
/// as a thousand streams take to be told and settled on a starved core.
const LAST_TICKS: u32 = 20;

/// Ticks of these in which clients may read what they were told.
const LINGER_TICKS: u32 = 10;

/// What a shard is made of, before it has a thread.
pub struct Setup {
    /// Its number, from 0.
    pub number: u8,
    /// Three bytes that tell nodes apart.
    pub node: [u8; 3],
    /// How often the node has started.
    pub start: u16,
    /// Which driver to use.
    pub driver: Choice,
    /// The core to stay on.
    pub core: Option<usize>,
    /// The first configuration.
    pub snapshot: Arc<Snapshot>,
    /// Who the listener is at first; none if clients call plainly.
    pub identity: Option<Arc<ServerTls>>,
    /// The first addresses.
    pub addresses: Arc<Addresses>,
    /// The keys of the node.
    pub keys: Arc<KeyTable>,
    /// The way in.
    pub mailbox: Mailbox,
    /// What it counts.
    pub counters: Arc<Counters>,
    /// Where its records live; none if the ledger is off.
    pub slab: Option<Slab>,
    /// What the ledger thread tells.
    pub ledger: Arc<LedgerGauges>,
    /// Shards of the node.
    pub shards: usize,
    /// Where copies of settled records go.
    pub records: Option<Arc<Told>>,
}

/// Runs a shard on the calling thread until it is drained. `started` hears which driver is used.
pub fn run(
    setup: Setup,
    listener: std::net::TcpListener,
    started: impl FnOnce(io::Result<Driver>),
) {
    if let Some(core) = setup.core {
        // Best effort: a core that is not ours leaves the thread where it is.
        crate::io::affinity::pin(core);
    }
    let mut runtime = match ShardRuntime::build(setup.driver) {
        Ok(runtime) => runtime,
        Err(error) => return started(Err(error)),
    };
    let driver = runtime.driver();
    setup.counters.driver.set(match driver {
        Driver::UringCoop => 1,
        Driver::UringBare => 2,
        Driver::Epoll => 3,
    });
    let mailbox = setup.mailbox.clone();
    runtime.block_on(async {
        let listener = match RingListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => return started(Err(error)),
        };
        let shard = shard(RingIo, setup);
        shard.buffers.fill();
        started(Ok(driver));
        serve(shard, listener, mailbox).await;
    });
}

/// A shard over any transport.
pub fn shard<I: Io>(io: I, setup: Setup) -> Rc<Shard<TlsIo<I>>> {
    let held = setup.snapshot.bounds.held_bytes;
    let now = io.now();
    setup.counters.snapshot_version.set(setup.snapshot.version);
    let buffers = Buffers::of_thread();
    let spans = Chance::new(seed_of_spans(&setup, now.wall));
    Rc::new(Shard {
        io: TlsIo::new(io, buffers.clone()),
        wheel: Wheel::new(),
        snapshot: SnapshotCell::new(setup.snapshot),
        identity: RefCell::new(setup.identity),
        addresses: RefCell::new(setup.addresses),
        keys: setup.keys,
        buffers,
        allowance: Allowance::new(held),
        pool: Pool::default(),
        counters: setup.counters,
        mint: RefCell::new(IdMint::new(setup.node, setup.number, setup.start)),
        draws: Draws::default(),
        // Whoever starts together is not to wait together.
        chance: Chance::new(u64::from(setup.number) << 32 ^ now.wall.0),
        spans,
        slab: setup.slab.map(RefCell::new),
        ledger: setup.ledger,
        refused: RefCell::new(RefusedBook::new(setup.shards)),
        records: setup.records,
        ticked: Cell::new(now),
        noticed: Cell::new(false),
        draining: Cell::new(false),
        cut: Cell::new(false),
        drains: Cell::new(0),
        busy: Cell::new(0),
    })
}

/// Where the names of spans begin: no two shards of any two nodes are to begin alike.
fn seed_of_spans(setup: &Setup, wall: UnixMs) -> u64 {
    let [first, second, third] = setup.node;
    let who = u64::from_be_bytes([first, second, third, setup.number, 0, 0, 0, 0]);
    who ^ wall.0.rotate_left(8) ^ u64::from(setup.start)
}

/// Serves until a drain is asked for and done.
pub async fn serve<I: Io>(shard: Rc<Shard<I>>, listener: I::Listener, mailbox: Mailbox) {
    let listener = Rc::new(listener);
    shard.io.spawn(accept_all(shard.clone(), listener.clone()));
    let begun = shard.io.mono();
    let mut drain_by = None;
    loop {
        shard.io.tick().await;
        let now = shard.io.now();
        shard.ticked.set(now);
        shard.wheel.advance(Duration::from_nanos(now.mono.since(begun)));
        pipeline::record_counted(&shard, now.mono.0 / SECOND_NS);
        while let Some(letter) = mailbox.take() {
            take_in(&shard, letter);
        }
        if shard.wheel.tick().is_multiple_of(SWEEP_TICKS) {
            sweep(&shard);
        }
        if shard.draining.get() {
            if drain_by.is_none() {
                shard.io.stop_listening(&listener);
                shard.wheel.fire_idle();
            }
            let drain = shard.snapshot.pin().deadlines.drain.as_nanos() as u64;
            let by = *drain_by.get_or_insert_with(|| now.mono.0.saturating_add(drain));
            if shard.busy.get() == 0 || now.mono.0 >= by || shard.cut.get() {
                return last_turns(&shard).await;
            }
        }
    }
}

/// Peers see an end now, and what was told to end gets the turns to do so: tasks that outlive
/// their runtime would keep their descriptors.
async fn last_turns<I: Io>(shard: &Shard<I>) {
    if shard.busy.get() > 0 {
        // Whoever waits for an upstream is told, and settled.
        shard.cut.set(true);
        shard.wheel.fire_all();
    }
    shard.pool.clear(&shard.buffers);
    for tick in 1..=LAST_TICKS {
        shard.io.tick().await;
        if shard.counters.connections_open.get() == 0 {
            break;
        }
        if tick >= LINGER_TICKS {
            // Who was told and does not close keeps the shard, and with it its slab.
            shard.wheel.fire_all();
        }
    }
    // No second follows that would record what this one has counted.
    pipeline::record_counted(shard, u64::MAX);
}

fn take_in<I: Io>(shard: &Shard<I>, letter: Letter) {
    match letter {
        Letter::Publish(snapshot) => {
            shard.counters.snapshot_version.set(snapshot.version);
            shard.snapshot.adopt(snapshot);
        }
        Letter::Addresses(addresses) => *shard.addresses.borrow_mut() = addresses,
        Letter::Identity(tls) => *shard.identity.borrow_mut() = Some(tls),
        Letter::Notice => shard.noticed.set(true),
        Letter::Drain => {
            shard.noticed.set(true);
            shard.draining.set(true);
        }
        Letter::Cut => {
            shard.noticed.set(true);
            shard.draining.set(true);
            shard.cut.set(true);
        }
    }
}

fn sweep<I: Io>(shard: &Shard<I>) {
    let snapshot = shard.snapshot.pin();
    let age_max = (snapshot.deadlines.pooled.as_millis() / TICK.as_millis()) as u64;
    shard.pool.sweep(shard.wheel.tick(), age_max, &shard.buffers);
    shard.counters.upstream_idle.set(shard.pool.len() as u64);
    let held = snapshot.bounds.held_bytes.saturating_sub(shard.allowance.left());
    shard.counters.held_bytes.set(held);
    shard.counters.buffers_lent.set(shard.buffers.lent());
}

/// A client's connection as the listener has it.
fn identified<I: Io>(shard: &Shard<I>, stream: I::Stream) -> io::Result<I::Stream> {
    match &*shard.identity.borrow() {
        Some(tls) => shard.io.secure(stream, Side::Server(tls)),
        None => Ok(stream),
    }
}

/// Takes connections until the shard drains.
async fn accept_all<I: Io>(shard: Rc<Shard<I>>, listener: Rc<I::Listener>) {
    while !shard.draining.get() {
        match shard.io.accept(&listener).await {
            Ok((stream, _)) => match identified(&shard, stream) {
                Ok(stream) => shard.io.spawn(accept::connection(shard.clone(), stream)),
                Err(_) => shard.counters.client_tls_failures.increment(),
            },
            // The listener was stopped: no failure, and nobody to take any more.
            Err(_) if shard.draining.get() => return,
            Err(_) => {
                // Out of descriptors, mostly: trying again at once would spin until one closes.
                shard.counters.accept_errors.increment();
                shard.io.tick().await;
            }
        }
    }
}
