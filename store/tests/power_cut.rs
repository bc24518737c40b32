//! Power cuts by seed: whatever a cut keeps of what was not synced, every acknowledged record is
//! there exactly once and in order, nothing else than what was pushed is, and the totals are right.
//! The same code that ships runs on the simulated disk, with failing syncs, short writes, a full
//! disk, rotation and recycled segments on the way.

#![cfg(test)]

use store::appender::{Appender, Checkpoint, Options};
use store::disk::simulated::{Faults, Simulated};
use store::ending::Ending;
use store::record::{Head, Record};
use store::segment;
use store::tail::Tail;
use store::verify::verify;

const OPTIONS: Options = Options { node: 9, segment_bytes: 12 * 1024 };
const SEEDS: u64 = 400;
const STEPS: u64 = 120;

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn record(sequence: u64, text: &str) -> Vec<u8> {
    let head = Head {
        key_id: sequence % 4,
        cost_picousd: sequence * 10,
        slab: 5,
        settle_sequence: sequence,
        ending: Ending::Succeeded,
        ..Head::default()
    };
    let mut bytes = Vec::new();
    let tail = Tail { model_asked: text, ..Tail::default() };
    Record { head, tail }.encode(512, &mut bytes);
    bytes
}

/// What the world outside the disk knows.
#[derive(Default)]
struct World {
    pushed: u64,
    acknowledged: u64,
    checkpoint: Option<Checkpoint>,
    /// Ends of checkpoints written since segments could go: truncation stays behind them.
    cuts: u64,
    recycled: usize,
}

fn run(seed: u64) -> World {
    let mut chance = Chance(seed);
    let disk = Simulated::new(1 << 20, seed);
    let mut world = World::default();
    let mut appender = Appender::open(&disk, OPTIONS, None).unwrap().0;
    for _ in 0..STEPS {
        match chance.below(20) {
            0..=9 => {
                let text = "m".repeat(usize::try_from(chance.below(90)).unwrap());
                if appender.push(&record(world.pushed + 1, &text), 0).unwrap() {
                    world.pushed += 1;
                }
            }
            10..=13 => {
                if appender.commit().is_ok() {
                    world.acknowledged = world.pushed;
                }
            }
            14 => disk.arm(Faults {
                sync_fails_at: chance.below(4),
                write_fails_at: chance.below(4),
                short_write_at: chance.below(4),
            }),
            15 => disk.resize(30_000 + chance.below(2) * (1 << 20)),
            16 => {
                // A disk without room keeps its checkpoint; what is pending is not in it.
                world.checkpoint = appender.checkpoint().or(world.checkpoint);
            }
            17 => {
                let known = world.checkpoint.as_ref().map_or(0, |known| known.position.segment);
                world.recycled += segment::retire(&disk, known.saturating_sub(1)).unwrap_or(0);
            }
            18 => {
                // The process is killed: the disk's cache lives on, what was pending is gone (it
                // would be in the slab).
                drop(appender);
                appender = reopen(&disk, &mut world);
            }
            _ => {
                drop(appender);
                disk.cut_power();
                disk.resize(1 << 20);
                world.cuts += 1;
                appender = reopen(&disk, &mut world);
            }
        }
    }
    world
}

fn reopen<'d>(disk: &'d Simulated, world: &mut World) -> Appender<&'d Simulated> {
    disk.arm(Faults::default());
    let checkpoint = world.checkpoint.as_ref();
    let (appender, _) = Appender::open(disk, OPTIONS, checkpoint).expect("starts without help");
    let last = appender.settled(5);
    assert!(last >= world.acknowledged, "acknowledged {} of {last}", world.acknowledged);
    assert!(last <= world.pushed, "a record nobody pushed");
    let known = checkpoint.map(|known| known.position);
    let report = verify(disk, 9, known).expect("the log verifies");
    assert_eq!(report.last_seq, last, "sequences are the slab's: one slab");
    let first = report.first_seq.max(1);
    let sum: u128 = (first..=last).map(|sequence| u128::from(sequence) * 10).sum();
    assert_eq!(report.sum.cost_picousd, sum, "each exactly once");
    let total: u128 = appender.balances().iter().map(|(_, total)| total.cost_picousd).sum();
    assert_eq!(total, (1..=u128::from(last)).map(|sequence| sequence * 10).sum::<u128>());
    // Recovery accepted these: they count as durable from here on.
    world.acknowledged = last;
    world.pushed = last;
    appender
}

#[test]
fn every_acknowledged_record_survives_every_cut() {
    let (mut cuts, mut records, mut recycled) = (0, 0, 0);
    for seed in 1..=SEEDS {
        let world = run(seed);
        cuts += world.cuts;
        records += world.acknowledged;
        recycled += world.recycled;
    }
    assert!(cuts > SEEDS && records > 20 * SEEDS, "{cuts} cuts, {records} records");
    assert!(recycled > 0, "segments were recycled on the way");
}
