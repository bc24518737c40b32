use super::super::tests::{Scratch, head, records, send, settle, small};
use super::*;
use crate::exchange::time::{MonoNs, Now};
use std::cell::Cell;
use std::os::unix::fs::FileExt;
use store::appender::Options;
use store::disk::simulated::{Faults, Simulated};
use store::ending::Ending;
use store::frame::RECORDS_MAX;
use store::slab::{Class, Files, Geometry, Slab};

const NODE: u64 = 7;
const MS: u64 = 1_000_000;

thread_local! {
    static NOW_NS: Cell<u64> = const { Cell::new(MS) };
}

fn clock() -> Now {
    Now { mono: MonoNs(NOW_NS.get()), wall: UnixMs(NOW_NS.get() / MS) }
}

fn pass(ms: u64) {
    NOW_NS.set(NOW_NS.get() + ms * MS);
}

/// A keeper on a simulated disk, with slabs in real memory.
struct World {
    scratch: Scratch,
    disk: Simulated,
    prepared: Arc<std::sync::atomic::AtomicU64>,
}

impl World {
    fn new() -> World {
        World {
            scratch: Scratch::new(),
            disk: Simulated::new(64 << 20, 1),
            prepared: Arc::default(),
        }
    }

    fn keeper(&self) -> Keeper<&Simulated> {
        let state = State::open(&self.scratch.disk.join("state.redb"), || NODE).unwrap();
        let options = Options { node: NODE, segment_bytes: 64 << 10 };
        let checkpoint = state.checkpoint().unwrap();
        let (appender, _) = Appender::open(&self.disk, options, checkpoint.as_ref()).unwrap();
        let mut keeper = Keeper::new(appender, Arc::new(state), OrphanRule::ChargeNoted, clock);
        let prepared = self.prepared.clone();
        keeper.prepare = Box::new(move || {
            prepared.fetch_add(1, Relaxed);
        });
        keeper
    }

    fn place(&self) -> Place {
        let folder = self.scratch.memory.clone();
        Place { files: Files::make(&folder, NODE).unwrap(), folder }
    }

    fn slab(&self, keeper: &mut Keeper<&Simulated>, shard: u16, geometry: Geometry) -> Slab {
        let place = self.place();
        let made = place.files.create(SlabId { shard, start: 1 }, geometry);
        let (slab, collector) = made.unwrap();
        keeper.collect(place, collector, true);
        slab
    }

    fn keys(&self) -> Vec<u64> {
        records(&self.disk, NODE).into_iter().map(|(key, ..)| key).collect()
    }
}

/// Turns until a commit is due and done.
fn commit(keeper: &mut Keeper<&Simulated>) {
    keeper.turn();
    pass(20);
    keeper.turn();
}

#[test]
fn a_commit_is_due_20_ms_after_the_first_record_and_then_its_slots_come_back() {
    let world = World::new();
    let mut keeper = world.keeper();
    let mut slab = world.slab(&mut keeper, 0, small());
    settle(&mut slab, 1, 10);
    assert_eq!(keeper.turn(), Duration::from_millis(20));
    pass(19);
    settle(&mut slab, 2, 10);
    assert_eq!(keeper.turn(), Duration::from_millis(1));
    assert_eq!((slab.free()[0], keeper.gauges.lag.load(Relaxed)), (62, 2));
    pass(1);
    assert_eq!(keeper.turn(), Duration::from_millis(5), "nothing is pending");
    assert_eq!((slab.free()[0], keeper.gauges.lag.load(Relaxed)), (64, 0));
    assert_eq!(keeper.gauges.commits.load(Relaxed), 1);
    assert_eq!(world.keys(), [1, 2]);
    assert_eq!(world.prepared.load(Relaxed), 1, "the first segment is begun");
}

#[test]
fn looks_are_rarer_while_nothing_comes_and_never_later_than_a_commit_waits() {
    let world = World::new();
    let mut keeper = world.keeper();
    let mut slab = world.slab(&mut keeper, 0, small());
    let turns = |keeper: &mut Keeper<&Simulated>, count| -> Vec<u128> {
        (0..count).map(|_| keeper.turn().as_millis()).collect()
    };
    assert_eq!(turns(&mut keeper, 5), [5, 10, 20, 20, 20]);
    settle(&mut slab, 1, 10);
    assert_eq!(turns(&mut keeper, 1), [20], "until it is committed");
    pass(20);
    assert_eq!(turns(&mut keeper, 4), [5, 5, 10, 20]);
    assert_eq!(world.keys(), [1]);
}

#[test]
fn more_than_a_batch_is_committed_without_waiting_and_no_slab_waits_for_a_busy_one() {
    let world = World::new();
    let mut keeper = world.keeper();
    let class = |slot_bytes, slots| Class { slot_bytes, slots };
    let most = u32::try_from(3 * RECORDS_MAX).unwrap();
    let large =
        Geometry { classes: [class(512, most), class(1024, 1), class(2048, 1), class(4096, 1)] };
    let mut busy = world.slab(&mut keeper, 0, large);
    let mut quiet = world.slab(&mut keeper, 1, small());
    for _ in 0..most {
        settle(&mut busy, 1, 1);
    }
    settle(&mut quiet, 2, 1);
    assert_eq!(keeper.turn(), Duration::ZERO);
    assert!(!world.keys().contains(&2), "a batch of the busy one's");
    assert_eq!(keeper.turn(), Duration::ZERO);
    assert!(world.keys().contains(&2), "then the other's turn comes first");
    while keeper.turn() == Duration::ZERO {}
    pass(20);
    keeper.turn();
    assert_eq!(world.keys().len(), 3 * RECORDS_MAX + 1);
}

#[test]
fn a_failing_disk_is_told_at_once_and_loses_nothing() {
    let world = World::new();
    let mut keeper = world.keeper();
    let mut slab = world.slab(&mut keeper, 0, small());
    settle(&mut slab, 1, 10);
    commit(&mut keeper);
    for (round, faults) in [
        Faults { sync_fails_at: 1, ..Faults::default() },
        Faults { write_fails_at: 1, ..Faults::default() },
    ]
    .into_iter()
    .enumerate()
    {
        let round = u64::try_from(round).unwrap();
        world.disk.arm(faults);
        settle(&mut slab, 2 + 2 * round, 10);
        commit(&mut keeper);
        assert!(!keeper.gauges.is_good());
        assert_eq!(keeper.gauges.failures.load(Relaxed), round + 1);
        assert_eq!(keeper.gauges.lag.load(Relaxed), 1, "its slot is not free");
        settle(&mut slab, 3 + 2 * round, 10);
        pass(199);
        keeper.turn();
        assert!(!keeper.gauges.is_good(), "not yet tried again");
        pass(1);
        keeper.turn();
        assert!(keeper.gauges.is_good());
        assert_eq!(slab.free()[0], 64);
    }
    assert_eq!(world.keys(), [1, 2, 3, 4, 5]);
    assert_eq!(keeper.gauges.last_seq.load(Relaxed), 5);
}

#[test]
fn a_full_disk_goes_on_by_itself_once_there_is_room() {
    let world = World::new();
    let mut keeper = world.keeper();
    let mut slab = world.slab(&mut keeper, 0, small());
    world.disk.resize(1 << 10);
    for key in 1..=60 {
        settle(&mut slab, key, 10);
    }
    commit(&mut keeper);
    for _ in 0..20 {
        assert_eq!(keeper.gauges.health.load(Relaxed), 1, "full");
        pass(200);
        keeper.turn();
    }
    assert_eq!(keeper.gauges.failures.load(Relaxed), 21, "tried each 200 ms");
    assert_eq!(slab.free()[0], 4, "shards run out of slots and no record is dropped");
    let begun = world.prepared.load(Relaxed);
    world.disk.resize(1 << 20);
    pass(200);
    keeper.turn();
    assert!(keeper.gauges.is_good());
    assert_eq!(world.keys(), (1..=60).collect::<Vec<u64>>());
    assert_eq!(world.prepared.load(Relaxed), begun + 1);
}

#[test]
fn a_disk_that_stays_broken_is_tried_more_and_more_seldom() {
    let world = World::new();
    let mut keeper = world.keeper();
    let mut slab = world.slab(&mut keeper, 0, small());
    settle(&mut slab, 1, 10);
    keeper.turn();
    let mut waits = Vec::new();
    let mut last = None;
    for _ in 0..400 {
        world.disk.arm(Faults { sync_fails_at: 1, ..Faults::default() });
        pass(100);
        let before = keeper.gauges.failures.load(Relaxed);
        keeper.turn();
        if keeper.gauges.failures.load(Relaxed) > before {
            let now = clock().mono.0 / MS;
            waits.extend(last.map(|last| now - last));
            last = Some(now);
        }
    }
    assert_eq!(waits, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    world.disk.arm(Faults::default());
    pass(10_000);
    keeper.turn();
    assert_eq!(world.keys(), [1]);
}

#[test]
fn the_state_store_learns_each_second_how_far_the_log_is() {
    let world = World::new();
    let mut keeper = world.keeper();
    let mut slab = world.slab(&mut keeper, 0, small());
    keeper.turn();
    let begun = keeper.state.checkpoint().unwrap().unwrap();
    assert_eq!(begun.position.next_seq, 1);
    settle(&mut slab, 1, 10);
    commit(&mut keeper);
    assert_eq!(keeper.position.load().durable.next_seq, 2);
    assert_eq!(keeper.position.load().checkpointed.next_seq, 1);
    pass(1000);
    keeper.turn();
    let saved = keeper.state.checkpoint().unwrap().unwrap();
    assert_eq!(saved.position, keeper.position.load().checkpointed);
    assert_eq!(saved.position, keeper.position.load().durable);
    assert_eq!(keeper.gauges.checkpointed_seq.load(Relaxed), 1);
    let slots = keeper.gauges.slots.each_ref().map(|gauge| gauge.load(Relaxed));
    assert_eq!(slots, [71, 0, 0, 0, 0]);
    let sent = send(&mut slab, 2);
    settle(&mut slab, 3, 10);
    pass(1000);
    keeper.turn();
    assert_eq!(keeper.gauges.checkpointed_seq.load(Relaxed), 1, "a batch is pending");
    let slots = keeper.gauges.slots.each_ref().map(|gauge| gauge.load(Relaxed));
    assert_eq!(slots, [69, 0, 1, 0, 1]);
    settle(&mut slab, 4, 10);
    pass(20);
    keeper.turn();
    assert_eq!(keeper.gauges.checkpointed_seq.load(Relaxed), 3, "as soon as none is");
    drop(sent);
}

/// Upgrade: the log's lock has passed, the predecessor's shard still ends its exchanges.
#[test]
fn a_draining_predecessor_is_collected_and_settled_once_it_is_gone() {
    let world = World::new();
    let mut keeper = world.keeper();
    let place = world.place();
    let id = SlabId { shard: 4, start: 1 };
    let (mut theirs, mine) = place.files.create(id, small()).unwrap();
    drop(mine);
    let Ok(Opened::Live(collector)) = place.files.open(id) else { panic!("its shard lives") };
    keeper.collect(place.clone(), collector, false);
    settle(&mut theirs, 1, 10);
    commit(&mut keeper);
    assert_eq!(world.keys(), [1]);
    settle(&mut theirs, 2, 10);
    let sent = send(&mut theirs, 3);
    pass(1000);
    keeper.turn();
    drop((theirs, sent));
    // The disk fails before and in the midst of it (after a failure a segment is begun, with two
    // syncs of its own): nothing is settled twice.
    for (sync_fails_at, committed) in [(1, 1), (4, 2)] {
        world.disk.arm(Faults { sync_fails_at, ..Faults::default() });
        pass(1000);
        keeper.turn();
        assert_eq!(place.files.list().unwrap(), [id]);
        assert_eq!(keeper.gauges.last_seq.load(Relaxed), committed, "{sync_fails_at}");
    }
    assert_eq!(keeper.gauges.failures.load(Relaxed), 2);
    world.disk.arm(Faults::default());
    for _ in 0..12 {
        pass(1000);
        keeper.turn();
    }
    let (ok, orphan) = (Ending::Succeeded, Ending::Orphaned);
    assert_eq!(records(&world.disk, NODE), [(1, 10, ok), (2, 10, ok), (3, 7, orphan)]);
    assert!(!world.scratch.memory.exists(), "the slab and its folder are gone");
    assert_eq!(keeper.finish(|_| {}).unwrap(), Finished::default());
    assert!(keeper.appender.changes().unwrap().slabs.is_empty());
}

#[test]
fn the_end_settles_what_nobody_ended() {
    let world = World::new();
    let mut keeper = world.keeper();
    let mut slab = world.slab(&mut keeper, 0, small());
    settle(&mut slab, 1, 10);
    let sent = send(&mut slab, 2);
    drop((slab, sent));
    let finished = keeper.finish(|_| panic!("nothing to wait for")).unwrap();
    assert_eq!(finished.recovered.len(), 1);
    assert_eq!((finished.recovered[0].1.charged, finished.left.len()), (1, 0));
    assert_eq!(world.keys(), [1, 2]);
    let saved = keeper.state.checkpoint().unwrap().unwrap();
    assert_eq!((saved.position.next_seq, saved.slabs.len()), (3, 0));
}

#[test]
fn an_end_without_a_disk_leaves_everything_to_the_next_start() {
    let world = World::new();
    let mut keeper = world.keeper();
    let mut slab = world.slab(&mut keeper, 0, small());
    settle(&mut slab, 1, 10);
    drop(slab);
    world.disk.resize(0);
    let mut waited = 0;
    assert!(keeper.finish(|_| waited += 1).unwrap_err().is_full());
    assert_eq!(waited + 1, LAST_TRIES);
    drop(keeper);
    world.disk.resize(1 << 20);
    let mut keeper = world.keeper();
    let place = world.place();
    let Ok(Opened::Dead(dead)) = place.files.open(SlabId { shard: 0, start: 1 }) else { panic!() };
    let recovered = recover(dead, &mut keeper.appender, 1, |_, _| {}).unwrap();
    assert_eq!((recovered.settled, world.keys()), (1, vec![1]));
}

/// Memory that was overwritten: named, not skipped, and the other shards go on.
#[test]
fn a_damaged_slab_is_told_and_the_others_go_on() {
    let world = World::new();
    let mut keeper = world.keeper();
    let mut broken = world.slab(&mut keeper, 0, small());
    let folder = world.place();
    let mut whole = world.slab(&mut keeper, 1, small());
    settle(&mut broken, 1, 10);
    settle(&mut broken, 2, 10);
    // The second slot of the first class: ring of 128 entries behind one page, then a page's edge.
    let path = world.scratch.memory.join("slab-00000-0000000001");
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[99], 8192 + 512 + 4).unwrap();
    for key in 3..=4 {
        settle(&mut whole, key, 10);
        commit(&mut keeper);
    }
    assert_eq!(keeper.gauges.slabs_damaged.load(Relaxed), 1);
    assert_eq!(world.keys(), [1, 3, 4]);
    assert_eq!(whole.free()[0], 64);
    assert!(broken.open(&head(5), &store::tail::Tail::default()).is_some());
    settle(&mut whole, 6, 10);
    drop((broken, whole));
    assert!(matches!(keeper.finish(|_| {}), Err(store::error::Error::Slab(_))));
    assert_eq!(world.keys(), [1, 3, 4, 6]);
    let left: Vec<u16> = folder.files.list().unwrap().iter().map(|id| id.shard).collect();
    assert_eq!(left, [0], "kept for whoever can read it");
}
