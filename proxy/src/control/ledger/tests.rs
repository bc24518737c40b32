use super::slabs::tests::slab_files;
use super::*;
use crate::exchange::time::{MonoNs, UnixMs};
use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64};
use store::balance::{Account, Total};
use store::ending::{Ending, Provenance};
use store::query;
use store::reader::End;
use store::record::{Head, Window, flag};
use store::slab::{Class, SlabId, Slot};
use store::tail::Tail;
use store::verify::verify;

/// Folders of a test's own, on disk and in memory, gone when it ends.
pub(super) struct Scratch {
    pub(super) disk: PathBuf,
    pub(super) memory: PathBuf,
}

impl Scratch {
    pub(super) fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Relaxed);
        let name = format!("tollgate-test-{}-{count}", std::process::id());
        let scratch = Scratch {
            disk: std::env::temp_dir().join(&name),
            memory: Path::new("/dev/shm").join(name),
        };
        std::fs::create_dir_all(&scratch.disk).unwrap();
        scratch
    }

    pub(super) fn options(&self) -> Options {
        Options {
            state_dir: self.disk.join("state"),
            slab_dir: Some(self.memory.clone()),
            runtime_dir: None,
            shards: 2,
            geometry: small(),
            segment_bytes: 128 << 10,
            orphans: OrphanRule::ChargeNoted,
            clock: ticking,
        }
    }

    fn log(&self) -> Folder {
        Folder::existing(&self.disk.join("state/ledger")).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.disk);
        let _ = std::fs::remove_dir_all(&self.memory);
    }
}

/// A clock that goes on by a millisecond with each look.
fn ticking() -> Now {
    static LOOKS: AtomicU64 = AtomicU64::new(1);
    let ms = LOOKS.fetch_add(1, Relaxed);
    Now { mono: MonoNs(ms * 1_000_000), wall: UnixMs(1_800_000_000_000 + ms) }
}

pub(super) fn small() -> Geometry {
    let class = |slot_bytes, slots| Class { slot_bytes, slots };
    Geometry { classes: [class(512, 64), class(1024, 4), class(2048, 2), class(4096, 1)] }
}

/// The head of an exchange that would cost 7 if its process died, held on a budget of its key's.
pub(super) fn head(key_id: u64) -> Head {
    let mut head = Head {
        key_id,
        hold_picousd: 100,
        cost_picousd: 7,
        upstream_cost_picousd: 7,
        provenance: Provenance::Estimated,
        ..Head::default()
    };
    let budget_id = u32::try_from(key_id).unwrap();
    head.windows[0] = Window { budget_id, window_id: 1 };
    head
}

pub(super) fn settle(slab: &mut Slab, key_id: u64, cost: u64) {
    let slot = slab.open(&head(key_id), &TAIL).unwrap();
    slab.sent(&slot, &head(key_id));
    let head = Head { cost_picousd: cost, flags: flag::PRICED, ..head(key_id) };
    slab.price(&slot, &head);
    slab.done(slot, &Head { ending: Ending::Succeeded, ..head });
}

/// An exchange that was sent and never ended.
pub(super) fn send(slab: &mut Slab, key_id: u64) -> Slot {
    let slot = slab.open(&head(key_id), &TAIL).unwrap();
    slab.sent(&slot, &head(key_id));
    slot
}

const TAIL: Tail<'static> = Tail {
    model_asked: "m",
    model_sent: "m",
    trace_id: None,
    session: "",
    end_user: "",
    labels: store::tail::Labels::Given(&[]),
    metadata: &[],
};

/// Every record of the log, by key: cost and ending; the whole log is proved meanwhile.
pub(super) fn records<D: store::disk::Disk>(disk: &D, node: u64) -> Vec<(u64, u64, Ending)> {
    verify(disk, node, None).unwrap();
    let mut seen = Vec::new();
    query::scan(disk, node, 1, |_, _, record| {
        seen.push((record.head.key_id, record.head.cost_picousd, record.head.ending));
        true
    })
    .unwrap();
    seen.sort_unstable();
    seen
}

fn costs(balances: &Balances) -> BTreeMap<u64, u128> {
    let keys = balances.iter().filter(|(account, _)| account.kind == Account::KEY);
    keys.map(|(account, total)| (account.id, total.cost_picousd)).collect()
}

/// Ends the thread as a kill would: nothing is collected, committed or removed any more.
fn kill(running: Running) {
    let Running { stop, thread, .. } = running;
    drop(stop);
    assert_eq!(thread.join().unwrap().unwrap(), Finished::default());
}

fn until_durable(running: &Running, seq: u64) {
    while running.gauges().last_seq.load(Relaxed) < seq {
        assert!(!running.is_over());
        std::thread::yield_now();
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_was_settled_is_in_the_log_and_a_clean_end_leaves_no_slab() {
    let scratch = Scratch::new();
    let mut opened = open(&scratch.options()).unwrap();
    assert_eq!((opened.start, opened.slabs.len()), (1, 2));
    assert_eq!((opened.found.replayed, opened.found.end), (0, End::Clean));
    assert_eq!(slab_files(&scratch.memory), 2);
    let running = opened.ledger.start().unwrap();
    for n in 0..150_u64 {
        settle(&mut opened.slabs[usize::from(n % 2 == 0)], n % 3, 10);
        if n % 40 == 0 {
            until_durable(&running, 1);
        }
        if n == 100 {
            until_durable(&running, 80);
        }
    }
    let gauges = running.gauges();
    drop(opened.slabs);
    assert_eq!(running.finish().unwrap(), Finished::default());
    assert!(!scratch.memory.join(format!("tollgate-{:016x}", opened.node)).exists());
    let records = records(&scratch.log(), opened.node);
    assert_eq!(records.len(), 150);
    assert!(records.iter().all(|record| (record.1, record.2) == (10, Ending::Succeeded)));
    assert_eq!(gauges.records.load(Relaxed), 150);
    assert_eq!((gauges.lag.load(Relaxed), gauges.last_seq.load(Relaxed)), (0, 150));
    assert_eq!(gauges.checkpointed_seq.load(Relaxed), 150);
    assert!(gauges.is_good());
}

#[test]
fn everything_is_its_users_alone() {
    let scratch = Scratch::new();
    let opened = open(&scratch.options()).unwrap();
    let state = scratch.disk.join("state");
    assert_eq!(mode(&state), 0o700);
    assert_eq!(mode(&state.join("ledger")), 0o700);
    assert_eq!(mode(&state.join("state.redb")), 0o600);
    assert_eq!(mode(&state.join("node")), 0o600);
    let folder = scratch.memory.join(format!("tollgate-{:016x}", opened.node));
    assert_eq!(mode(&folder), 0o700);
    drop(opened);
    // A folder of slabs that was opened to others is closed again.
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    drop(open(&scratch.options()).unwrap());
    assert_eq!(mode(&folder), 0o700);
}

#[test]
fn a_kill_loses_nothing_and_books_nothing_twice() {
    for rule in [OrphanRule::ChargeNoted, OrphanRule::Release, OrphanRule::ChargeHold] {
        let scratch = Scratch::new();
        let options = Options { orphans: rule, ..scratch.options() };
        let mut opened = open(&options).unwrap();
        let node = opened.node;
        let running = opened.ledger.start().unwrap();
        for key in 1..=3 {
            settle(&mut opened.slabs[0], key, 10);
        }
        until_durable(&running, 3);
        // Taken or not, committed or not: as the kill finds it.
        settle(&mut opened.slabs[0], 4, 20);
        settle(&mut opened.slabs[1], 5, 20);
        let open_only = opened.slabs[1].open(&head(6), &TAIL).unwrap();
        let sent = send(&mut opened.slabs[1], 7);
        let priced = send(&mut opened.slabs[0], 8);
        opened.slabs[0].price(&priced, &Head { cost_picousd: 30, ..head(8) });
        kill(running);
        drop((opened.slabs, opened.state, open_only, sent, priced));

        let mut again = open(&options).unwrap();
        assert_eq!((again.node, again.start), (node, 2));
        let orphan = match rule {
            OrphanRule::ChargeNoted => 7,
            OrphanRule::Release => 0,
            OrphanRule::ChargeHold => 100,
        };
        let expected = [
            (1, 10, Ending::Succeeded),
            (2, 10, Ending::Succeeded),
            (3, 10, Ending::Succeeded),
            (4, 20, Ending::Succeeded),
            (5, 20, Ending::Succeeded),
            (6, 0, Ending::Orphaned),
            (7, orphan, Ending::Orphaned),
            (8, 30, Ending::Unknown),
        ];
        assert_eq!(records(&scratch.log(), node), expected, "{rule:?}");
        let spent = expected.map(|(key, cost, _)| (key, u128::from(cost)));
        assert_eq!(costs(again.ledger.balances()), BTreeMap::from(spent));
        let window = again.ledger.balances().total(Account::window(7, 1));
        assert_eq!(
            window,
            Total {
                upstream_cost_picousd: window.upstream_cost_picousd,
                exchanges: 1,
                cost_picousd: orphan.into(),
                overrun_picousd: 0
            }
        );
        let [(_, one), (_, two)] = again.found.recovered[..] else { panic!("two slabs") };
        assert_eq!((one.charged + two.charged, one.confirmed + two.confirmed), (1, 1));
        assert_eq!((one.released + two.released, again.found.lost.len()), (1, 0));
        // It goes on where it was.
        let running = again.ledger.start().unwrap();
        settle(&mut again.slabs[0], 9, 40);
        drop(again.slabs);
        running.finish().unwrap();
        assert_eq!(records(&scratch.log(), node).last(), Some(&(9, 40, Ending::Succeeded)));
    }
}

#[test]
fn a_second_process_is_told_who_has_the_folder() {
    let scratch = Scratch::new();
    let opened = open(&scratch.options()).unwrap();
    let refused = open(&scratch.options()).unwrap_err();
    let state_dir = scratch.disk.join("state");
    assert!(matches!(&refused, LedgerError::Locked { state_dir: of } if *of == state_dir));
    let text = refused.to_string();
    assert!(text.starts_with(&format!("{}: another tollgate has", state_dir.display())), "{text}");
    drop(opened);
    assert_eq!(open(&scratch.options()).unwrap().start, 2);
}

#[test]
fn a_lost_state_store_comes_back_from_the_log() {
    let scratch = Scratch::new();
    let mut node = 0;
    for start in 1..=3 {
        let mut opened = open(&scratch.options()).unwrap();
        assert_eq!(
            (opened.node, opened.start),
            (if start == 1 { opened.node } else { node }, start)
        );
        node = opened.node;
        let running = opened.ledger.start().unwrap();
        settle(&mut opened.slabs[0], start.into(), 10);
        let sent = send(&mut opened.slabs[1], 9);
        until_durable(&running, 1);
        kill(running);
        drop((opened.slabs, opened.state, sent));
        std::fs::remove_file(scratch.disk.join("state/state.redb")).unwrap();
    }
    let opened = open(&scratch.options()).unwrap();
    assert_eq!((opened.node, opened.start), (node, 4));
    assert_eq!(
        costs(opened.ledger.balances()),
        BTreeMap::from([(1, 10), (2, 10), (3, 10), (9, 21)])
    );
    assert_eq!(records(&scratch.log(), node).len(), 6);
}

#[test]
fn a_log_that_was_cut_is_not_continued() {
    let scratch = Scratch::new();
    let mut opened = open(&scratch.options()).unwrap();
    let running = opened.ledger.start().unwrap();
    settle(&mut opened.slabs[0], 1, 10);
    drop((opened.slabs, opened.state));
    running.finish().unwrap();
    std::fs::remove_dir_all(scratch.disk.join("state/ledger")).unwrap();
    let refused = open(&scratch.options()).unwrap_err().to_string();
    assert!(refused.contains("record 1 was acknowledged"), "{refused}");
    assert!(refused.contains("put the missing segments back"), "{refused}");
}

#[test]
fn slabs_are_found_where_they_were_made_and_not_where_they_would_be_now() {
    let scratch = Scratch::new();
    let mut opened = open(&scratch.options()).unwrap();
    settle(&mut opened.slabs[0], 1, 10);
    drop((opened.slabs, opened.state, opened.ledger));
    let elsewhere = Scratch::new();
    let moved = Options {
        slab_dir: None,
        runtime_dir: Some(elsewhere.memory.clone()),
        ..scratch.options()
    };
    let opened = open(&moved).unwrap();
    assert_eq!(opened.found.recovered.len(), 2);
    assert_eq!(records(&scratch.log(), opened.node), [(1, 10, Ending::Succeeded)]);
    assert_eq!((slab_files(&scratch.memory), slab_files(&elsewhere.memory)), (0, 2));
}

/// The table of slabs is in each frame and bounded: machines that lose power often must not
/// fill it.
#[test]
fn slabs_that_went_with_the_power_are_forgotten_and_told() {
    let scratch = Scratch::new();
    for start in 1..=2_u32 {
        let mut opened = open(&scratch.options()).unwrap();
        let lost: Vec<SlabId> = (0..start - 1).map(|_| SlabId { shard: 1, start: 1 }).collect();
        assert_eq!(opened.found.lost, lost);
        assert_eq!(opened.ledger.keeper.appender.changes().unwrap().slabs, []);
        let running = opened.ledger.start().unwrap();
        settle(&mut opened.slabs[1], 1, 10);
        until_durable(&running, u64::from(start));
        kill(running);
        drop((opened.slabs, opened.state));
        std::fs::remove_dir_all(&scratch.memory).unwrap();
    }
}

#[test]
fn what_a_shard_still_holds_at_the_end_is_left_to_the_next_start() {
    let scratch = Scratch::new();
    let mut opened = open(&scratch.options()).unwrap();
    let running = opened.ledger.start().unwrap();
    let sent = send(&mut opened.slabs[0], 1);
    let ended = send(&mut opened.slabs[1], 2);
    let held = opened.slabs.remove(0);
    drop((opened.slabs, ended));
    let finished = running.finish().unwrap();
    assert_eq!(finished.left, [held.id()]);
    let [(id, recovered)] = finished.recovered[..] else { panic!("the other one") };
    assert_eq!((id.shard, recovered.charged), (1, 1), "nobody ended it: an orphan");
    drop((held, sent, opened.state));
    let opened = open(&scratch.options()).unwrap();
    let expected = [(1, 7, Ending::Orphaned), (2, 7, Ending::Orphaned)];
    assert_eq!(records(&scratch.log(), opened.node), expected);
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    let scratch = Scratch::new();
    let on_disk = Options { slab_dir: Some(scratch.disk.join("slabs")), ..scratch.options() };
    if !on_tmpfs(&scratch.disk) {
        let refused = open(&on_disk).unwrap_err().to_string();
        assert!(refused.contains("slab_dir in [ledger]"), "{refused}");
        assert_eq!(std::fs::read_dir(scratch.disk.join("slabs")).unwrap().count(), 0);
    }
    let mut geometry = small();
    geometry.classes[0].slot_bytes = 1000;
    let refused = open(&Options { geometry, ..scratch.options() });
    assert!(matches!(refused, Err(LedgerError::Store { part: Part::Slabs, .. })));
    assert_eq!(slab_files(&scratch.memory), 0);
    // Somebody else's folder in the place of ours.
    let opened = open(&scratch.options()).unwrap();
    let folder = scratch.memory.join(format!("tollgate-{:016x}", opened.node));
    drop(opened);
    std::fs::rename(&folder, scratch.memory.join("theirs")).unwrap();
    symlink(scratch.memory.join("theirs"), &folder).unwrap();
    let refused = open(&scratch.options());
    assert!(matches!(refused, Err(LedgerError::Foreign { path }) if path == folder));
}

fn on_tmpfs(path: &Path) -> bool {
    store::slab::Files::make(path, 1).is_ok()
}
