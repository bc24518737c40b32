//! Everything that is decided before a run begins: the world, its calls, who makes them when and
//! how, what happens to the node, and how each of its lives ends.

use crate::call::{Call, Expect};
use crate::dice::Dice;
use crate::world::{BODY, CLIENT_IDLE, HEADER, WRITE_STALL, World};
use std::time::Duration;
use tollgate::io::script::{CAPACITY, Chop, LinkOptions, Order};

/// When a client goes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// With a reset, after so many bytes of the request.
    Sending(usize),
    /// With a reset, after so many bytes of the answer.
    Reading(usize),
    /// With a reset, so long after the request's first byte.
    After(Duration),
    /// It only ends its side, after the request, and waits for the answer.
    HalfClose,
}

/// A call on a connection.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) call: usize,
    /// How long the connection is quiet before it.
    pub(crate) before: Duration,
    /// Where its bytes are cut, and how long the client then waits.
    pub(crate) pieces: Vec<(usize, Duration)>,
    /// It is sent without waiting for the answer before it.
    pub(crate) pipelined: bool,
    pub(crate) leave: Option<Leave>,
}

/// How a client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    Fast,
    /// With a pause behind each read.
    Slow(Duration),
    /// Not at all for a while, after so many bytes.
    Stalls(usize, Duration),
}

/// A client.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) start: Duration,
    pub(crate) shard: usize,
    pub(crate) link: LinkOptions,
    pub(crate) reading: Reading,
    pub(crate) turns: Vec<Turn>,
}

/// What happens to a node beside its traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Revoke(usize),
    Disable(usize),
    Enable(usize),
    /// The disk hangs.
    Stall(Duration),
    /// The disk fails at its so-manieth next write and sync.
    DiskFault(u64),
    /// So many accepts fail for lack of descriptors.
    FailAccepts(usize),
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By a kill, at this operation or when the span is over.
    Kill { operations: u64, latest: Duration },
    /// By a drain, under traffic.
    Drain(Duration),
    /// By a drain, once every client is done.
    Last,
}

/// A life.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub(crate) end: End,
    /// How long nobody listens after it.
    pub(crate) down: Duration,
    /// The write at which its recovery is killed too.
    pub(crate) crash: Option<u64>,
}

/// A run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) world: World,
    pub(crate) shards: usize,
    pub(crate) order: Order,
    /// How the gateway's own connections behave.
    pub(crate) link: LinkOptions,
    pub(crate) calls: Vec<Call>,
    pub(crate) clients: Vec<Client>,
    pub(crate) deeds: Vec<(Duration, Deed)>,
    pub(crate) lives: Vec<Life>,
}

/// How long traffic goes on.
const TRAFFIC: u64 = 20_000;

// === impl Plan ===

impl Plan {
    pub(crate) fn draw(seed: u64) -> Plan {
        let mut dice = Dice::new(seed);
        let world = World::draw(&mut dice.fork());
        let shards = dice.weighted(&[(70, 1), (30, 2)]);
        let mut calls = Vec::new();
        let mut clients = Vec::new();
        let crowd = dice.between(4, 24);
        for _ in 0..crowd {
            clients.push(Client::draw(&world, shards, &mut calls, &mut dice.fork()));
        }
        let deeds = deeds(&world, &mut dice.fork());
        let lives = lives(&mut dice.fork());
        let order = if dice.percent(60) { Order::Seeded } else { Order::Fifo };
        let link = link(&mut dice);
        Plan { seed, world, shards, order, link, calls, clients, deeds, lives }
    }
}

fn lives(dice: &mut Dice) -> Vec<Life> {
    let mut lives = Vec::new();
    for _ in 0..dice.below(4) {
        let span = dice.millis(200, TRAFFIC / 2);
        let end = match dice.percent(70) {
            true => End::Kill { operations: dice.log_between(20, 20_000), latest: span },
            false => End::Drain(span),
        };
        let down = dice.millis(0, 1_500);
        let crash = dice.percent(25).then(|| dice.between(1, 4));
        lives.push(Life { end, down, crash });
    }
    lives.push(Life { end: End::Last, down: Duration::ZERO, crash: None });
    lives
}

fn deeds(world: &World, dice: &mut Dice) -> Vec<(Duration, Deed)> {
    let mut deeds = Vec::new();
    for _ in 0..dice.below(5) {
        let at = dice.millis(0, TRAFFIC);
        let key = dice.index(world.keys.len());
        match dice.below(10) {
            0 => deeds.push((at, Deed::Revoke(key))),
            1..=3 => {
                deeds.push((at, Deed::Disable(key)));
                deeds.push((at + dice.millis(10, 3_000), Deed::Enable(key)));
            }
            4..=5 => deeds.push((at, Deed::Stall(dice.millis(100, 4_000)))),
            6..=8 => deeds.push((at, Deed::DiskFault(dice.between(1, 6)))),
            _ => deeds.push((at, Deed::FailAccepts(dice.between(1, 3) as usize))),
        }
    }
    deeds
}

fn link(dice: &mut Dice) -> LinkOptions {
    let capacity = dice.weighted(&[(50, CAPACITY), (25, 64 * 1024), (15, 4096), (10, 1500)]);
    LinkOptions { capacity, to_dialer: chop(dice), to_acceptor: chop(dice) }
}

fn chop(dice: &mut Dice) -> Chop {
    match dice.below(10) {
        0..=4 => Chop::Whole,
        5..=7 => Chop::Random(dice.log_between(16, 20_000) as usize),
        _ => Chop::AtMost(dice.log_between(500, 9_000) as usize),
    }
}

// === impl Client ===

impl Client {
    fn draw(world: &World, shards: usize, calls: &mut Vec<Call>, dice: &mut Dice) -> Client {
        let reading = match dice.below(20) {
            0..=15 => Reading::Fast,
            16..=17 => Reading::Slow(dice.millis(1, 60)),
            18 => Reading::Stalls(dice.log_between(1, 100_000) as usize, dice.millis(100, 1_500)),
            _ => Reading::Stalls(
                dice.log_between(1, 20_000) as usize,
                WRITE_STALL + dice.millis(1_000, 3_000),
            ),
        };
        let mut link = link(dice);
        if reading != Reading::Fast {
            // Slow, and done within a run all the same.
            link.to_dialer = Chop::AtMost(dice.log_between(1_000, 9_000) as usize);
            if dice.percent(50) {
                link.capacity = 2_000;
            }
        }
        let start = dice.millis(0, TRAFFIC);
        let shard = dice.index(shards);
        let mut turns = Vec::new();
        for _ in 0..dice.between(1, 7) {
            let call = Call::draw(calls.len(), world, dice);
            turns.push(Turn::draw(calls.len(), &call, dice));
            calls.push(call);
        }
        Client { start, shard, link, reading, turns }
    }
}

// === impl Turn ===

impl Turn {
    fn draw(number: usize, call: &Call, dice: &mut Dice) -> Turn {
        let before = match dice.below(20) {
            0..=9 => Duration::ZERO,
            10..=17 => dice.millis(1, 2_000),
            // Close to where the read is taken back from an idle connection, or beyond its end.
            18 => dice.millis(4_900, 5_200),
            _ => CLIENT_IDLE + dice.millis(500, 1_000),
        };
        let most = if call.bytes.len() < 900 && dice.percent(4) { 300 } else { 3 };
        let mut pieces = Vec::new();
        for cut in dice.cuts(call.bytes.len(), most) {
            let pause = match dice.below(60) {
                0 => HEADER.max(BODY) + Duration::from_millis(700),
                1..=8 => dice.millis(1, 300),
                _ => Duration::from_nanos(1),
            };
            pieces.push((cut, pause));
        }
        let leave = match dice.below(40) {
            0 => Some(Leave::Sending(1 + dice.index(call.bytes.len()))),
            1..=2 => Some(Leave::Reading(dice.log_between(1, 60_000) as usize)),
            3..=4 => Some(Leave::After(dice.millis(0, 2_500))),
            5..=6 => Some(Leave::HalfClose),
            _ => None,
        };
        Turn { call: number, before, pieces, pipelined: dice.percent(20), leave }
    }

    /// Whether the client takes so long over its request that it may be told so.
    pub(crate) fn is_slow(&self) -> bool {
        let total: Duration = self.pieces.iter().map(|(_, pause)| *pause).sum();
        total >= HEADER.min(BODY) - Duration::from_millis(300)
    }
}

/// Whether nothing of a call may ever reach an upstream.
pub(crate) fn stays_here(call: &Call) -> bool {
    call.expect != Expect::Upstream
}
