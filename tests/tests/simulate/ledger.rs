//! The books of a simulated node: a log on a simulated disk, slabs on tmpfs, a collector in
//! virtual time, and the recovery of what a kill left.
//!
//! Appender, collector and recovery are the store's own. What is played here is the ledger's
//! thread: when it looks, when it commits, and what it does when the disk fails.

use crate::process::Process;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::appender::{Appender, Health, Options};
use store::balance::Account;
use store::commit::Due;
use store::disk::simulated::{Faults, Simulated};
use store::record::{Head, Settled};
use store::recover::{Recovered, recover};
use store::slab::{Class, Collector, Files, Geometry, Opened, Slab, SlabId, State};
use store::tail::Tail;
use tollgate::control::ledger::charge_orphan;
use tollgate::exchange::rules::OrphanRule;
use tollgate::io::Io;
use tollgate::io::script::ScriptIo;
use tollgate::observe::ledger::LedgerGauges;

/// The node's identity in its log and slabs.
const NODE: u64 = 11;

/// Small segments, so that a run has several.
const SEGMENT_BYTES: u64 = 128 * 1024;

/// Room on the disk: more than any run writes.
const DISK_BYTES: u64 = 256 << 20;

/// How often the ledger's thread looks.
const LOOK: Duration = Duration::from_millis(20);

/// After a commit that failed.
const RETRY: Duration = Duration::from_millis(200);

/// Few slots, so that a stalled disk is felt.
pub(crate) const GEOMETRY: Geometry = Geometry {
    classes: [
        Class { slot_bytes: 512, slots: 192 },
        Class { slot_bytes: 2048, slots: 16 },
        Class { slot_bytes: 8192, slots: 2 },
        Class { slot_bytes: 24 * 1024, slots: 2 },
    ],
};

/// A slot that a kill left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) state: State,
    pub(crate) head: Head,
}

/// The node's books over all its lives.
pub(crate) struct Ledger {
    folder: PathBuf,
    disk: Simulated,
    appender: Option<Appender<Simulated>>,
    collectors: Vec<Collector>,
    pub(crate) gauges: Arc<LedgerGauges>,
    /// Until when nothing is collected: a disk that hangs.
    pub(crate) stalled_until_ns: u64,
}

// === impl Ledger ===

impl Ledger {
    pub(crate) fn open(seed: u64) -> Ledger {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tollgate-simulation-{}-{number}", std::process::id());
        let disk = Simulated::new(DISK_BYTES, seed);
        let appender = Some(reopen(&disk));
        let folder = Path::new("/dev/shm").join(name);
        let gauges = Arc::default();
        Ledger { folder, disk, appender, collectors: Vec::new(), gauges, stalled_until_ns: 0 }
    }

    fn slabs_of(&self, start: u32) -> PathBuf {
        self.folder.join(format!("live-{start}"))
    }

    /// A slab for each shard of a start.
    pub(crate) fn slabs(&mut self, start: u32, shards: u16) -> Vec<Slab> {
        let files = Files::make(&self.slabs_of(start), NODE).expect("a folder on tmpfs");
        let make = |shard| files.create(SlabId { shard, start }, GEOMETRY).expect("a slab");
        let (slabs, collectors) = (0..shards).map(make).unzip();
        self.collectors = collectors;
        self.gauges = Arc::default();
        slabs
    }

    /// What stands on a budget's window.
    pub(crate) fn spent(&self, budget: u32, window: u32) -> u64 {
        let appender = self.appender.as_ref().expect("an open log");
        appender.balances().total(Account::window(budget, window)).cost_picousd as u64
    }

    /// What the next operations of the disk meet.
    pub(crate) fn arm(&self, faults: Faults) {
        self.disk.arm(faults);
    }

    /// Takes what is settled and commits it if it is due, or `now`; true once nothing is left.
    fn turn(&mut self, process: &Process, now_ns: u64, must: bool) -> Result<bool, ()> {
        let Some(appender) = &mut self.appender else { return Ok(true) };
        let mut full = false;
        for collector in &mut self.collectors {
            let taken = collector.take(|bytes| {
                let room = appender.push(bytes, now_ns)?;
                full |= !room;
                Ok(room)
            });
            assert!(taken.is_ok(), "a sound slab: {taken:?}");
        }
        if process.point("taken") {
            return Ok(true);
        }
        if !must && appender.due(now_ns) != Due::Now {
            return Ok(true);
        }
        let committed = appender.commit();
        self.gauges.health.store(health(appender.health()), Ordering::Relaxed);
        committed.map_err(drop)?;
        if process.point("committed") {
            return Ok(true);
        }
        for collector in &mut self.collectors {
            collector.free().expect("a sound slab");
        }
        Ok(!full)
    }

    /// The end of a start that was drained: the rest is made durable; slots left, by state.
    pub(crate) fn finish(&mut self, start: u32, wall_ms: u64) -> Result<(), String> {
        self.disk.arm(Faults::default());
        let nobody = Process::new(None);
        while !self.turn(&nobody, u64::MAX, true).map_err(|()| "a sound disk fails")? {}
        for collector in &self.collectors {
            let [_, used @ ..] = collector.count();
            if used != [0; 4] {
                return Err(format!("slots left in use (open, sent, priced, done): {used:?}"));
            }
        }
        self.collectors.clear();
        let folder = self.slabs_of(start);
        let left = left_in(&folder)?;
        let recovered = self.recover_in(&folder, wall_ms)?;
        match left.is_empty() && recovered == Recovered::default() {
            true => Ok(()),
            false => Err(format!("a drained slab had {left:?}, {recovered:?}")),
        }
    }

    /// What is done at the instant of a kill: what outlives a process is taken as it is then.
    pub(crate) fn will(&self, start: u32) -> impl FnOnce() + 'static {
        let (from, to) = (self.slabs_of(start), self.dead());
        move || {
            std::fs::create_dir_all(&to).expect("a folder");
            for entry in std::fs::read_dir(&from).expect("slabs") {
                let name = entry.expect("a name").file_name();
                std::fs::copy(from.join(&name), to.join(&name)).expect("a copy");
            }
        }
    }

    fn dead(&self) -> PathBuf {
        self.folder.join("dead")
    }

    /// What a next start does with it. `crash` lets the recovery itself die once, at that write of
    /// the disk. Returns what was found.
    pub(crate) fn recover(
        &mut self,
        wall_ms: u64,
        crash: Option<u64>,
    ) -> Result<Vec<Left>, String> {
        self.collectors.clear();
        self.disk.arm(Faults::default());
        // What was taken and not committed was in the process.
        self.appender = Some(reopen(&self.disk));
        let dead = self.dead();
        let left = left_in(&dead)?;
        if let Some(write) = crash {
            self.disk.arm(Faults { write_fails_at: write, ..Faults::default() });
            // Whether it got through does not matter: the next one must find its way.
            let _ = self.recover_in(&dead, wall_ms);
            self.disk.arm(Faults::default());
            self.appender = Some(reopen(&self.disk));
        }
        self.recover_in(&dead, wall_ms)?;
        std::fs::remove_dir_all(&dead).map_err(|error| error.to_string())?;
        Ok(left)
    }

    fn recover_in(&mut self, folder: &Path, wall_ms: u64) -> Result<Recovered, String> {
        let shown = |error| format!("recovery: {error}");
        let files = Files::make(folder, NODE).map_err(shown)?;
        let mut sum = Recovered::default();
        let appender = self.appender.as_mut().ok_or("no log")?;
        for id in files.list().map_err(shown)? {
            let Opened::Dead(dead) = files.open(id).map_err(shown)? else {
                return Err(format!("{id:?} is still alive"));
            };
            let charge = |head: &mut Head, _: &Tail<'_>| {
                charge_orphan(OrphanRule::ChargeNoted, head);
            };
            let recovered = recover(dead, appender, wall_ms, charge).map_err(shown)?;
            sum.known += recovered.known;
            sum.settled += recovered.settled;
            sum.confirmed += recovered.confirmed;
            sum.charged += recovered.charged;
            sum.released += recovered.released;
        }
        Ok(sum)
    }

    /// Every record of the log, in its order.
    pub(crate) fn records(&self) -> Result<Vec<Settled>, String> {
        let mut records = Vec::new();
        let scanned = store::query::scan(&self.disk, NODE, 1, |_, _, record| {
            records.push(Settled::from(record));
            true
        });
        scanned.map_err(|error| format!("the log: {error}"))?;
        Ok(records)
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        // What cannot be removed is left to the end of the machine.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The thread of a start, in virtual time, until its process is over.
pub(crate) async fn collect(ledger: Rc<RefCell<Ledger>>, process: Rc<Process>, io: ScriptIo) {
    let mut wait = LOOK;
    loop {
        io.sleep(wait).await;
        wait = LOOK;
        let now_ns = io.now().mono.0;
        if process.is_dead() {
            return;
        }
        let stalled = ledger.borrow().stalled_until_ns > now_ns;
        // A kill inside takes the books from the process: not while they are borrowed here.
        if !stalled && ledger.borrow_mut().turn(&process, now_ns, false).is_err() {
            wait = RETRY;
        }
    }
}

/// Slots in use of processes that are gone.
fn left_in(folder: &Path) -> Result<Vec<Left>, String> {
    let seen = Files::make(folder, NODE).and_then(|files| files.unrecovered());
    let seen = seen.map_err(|error| format!("looking at what is left: {error}"))?;
    Ok(seen.into_iter().map(|seen| Left { state: seen.state, head: seen.head }).collect())
}

fn reopen(disk: &Simulated) -> Appender<Simulated> {
    let options = Options { node: NODE, segment_bytes: SEGMENT_BYTES };
    let (appender, _) = Appender::open(disk.clone(), options, None).expect("a sound log");
    appender
}

fn health(health: Health) -> u64 {
    match health {
        Health::Good => 0,
        Health::Full => 1,
        Health::Failing => 2,
    }
}
