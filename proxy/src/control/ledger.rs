//! The ledger of a node: its durable state opened and recovered at the start, a thread that makes
//! settled exchanges durable while it runs, and a clean end.
//!
//! The start, in this order: the folder and its lock, identity and state store, the log from its
//! checkpoint, every slab that a dead process left, a start count above every one before, a slab
//! for each shard, a checkpoint. What fails leaves everything as a next start would find it.
//!
//! What it does not do: decide about exchanges while the log takes nothing (shards do, by
//! [`LedgerGauges::is_good`]), serve keys (whoever has [`Opened::state`] does), remove old
//! segments (nothing has acknowledged them yet). Bounds: those of `store`, and the constants of
//! `keeper`.

use crate::exchange::rules::OrphanRule;
use crate::exchange::time::Now;
use crate::observe::ledger::LedgerGauges;
use arc_swap::ArcSwap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use store::appender::{self, Appender};
use store::balance::Balances;
use store::disk::Folder;
use store::error::{Damage, Error, Place};
use store::reader::{self, Reader};
use store::segment;
use store::slab::{Geometry, Slab};
use store::state::State;

mod error;
mod found;
mod home;
mod keeper;
mod orphans;
mod slabs;

pub use error::{LedgerError, Part};
pub use found::Found;
pub use home::identity;
pub use keeper::Finished;
pub use orphans::charge as charge_orphan;
pub use slabs::slab_folders;

use home::Home;
use keeper::Keeper;
use slabs::{Left, Places};

/// Where time comes from.
pub type Clock = fn() -> Now;

/// What a ledger is opened with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of everything that outlives the machine's power.
    pub state_dir: PathBuf,
    /// Where slabs go, if the configuration says so: a folder on tmpfs.
    pub slab_dir: Option<PathBuf>,
    /// `$RUNTIME_DIRECTORY`, if there is one: the next best place for slabs.
    pub runtime_dir: Option<PathBuf>,
    /// How many slabs.
    pub shards: u16,
    /// How large each.
    pub geometry: Geometry,
    /// Size of a segment of the log.
    pub segment_bytes: u64,
    /// What becomes of exchanges whose process died.
    pub orphans: OrphanRule,
    /// Both clocks.
    pub clock: Clock,
}

/// A ledger that was opened.
#[derive(Debug)]
pub struct Opened {
    /// The node's identity.
    pub node: u64,
    /// How often it was started, this time included.
    pub start: u32,
    /// Keys and checkpoint.
    pub state: Arc<State>,
    /// A slab for each shard, in order.
    pub slabs: Vec<Slab>,
    /// What was found.
    pub found: Found,
    /// What is still to be started.
    pub ledger: Ledger,
}

/// Where the log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Where it ends.
    pub durable: reader::Position,
    /// What the state store vouches for: a log that ends before it has been cut.
    pub checkpointed: reader::Position,
}

/// Opens the ledger of a node: its folder is this process's until the ledger has finished.
pub fn open(options: &Options) -> Result<Opened, LedgerError> {
    let home = Home::enter(&options.state_dir)?;
    let state = Arc::new(home.state()?);
    let node = state.node();
    let (log_path, disk) = home.log()?;
    let state_path = home.path("state.redb");
    let state_failed = LedgerError::store(Part::State, &state_path);
    let checkpoint = state.checkpoint().map_err(&state_failed)?;
    let fixed = appender::Options { node, segment_bytes: options.segment_bytes };
    let (mut appender, log) = Appender::open(disk.clone(), fixed, checkpoint.as_ref())
        .map_err(LedgerError::store(Part::Log, &log_path))?;
    let fresh = checkpoint.is_none() && log.replayed > 0;
    drop(checkpoint);
    let begun = begins_with(&disk, node).map_err(LedgerError::store(Part::Log, &log_path))?;
    if let Some(gone) = begun {
        return Err(LedgerError::store(Part::Log, &log_path)(gone));
    }
    let places = Places::find(&home, options, node)?;
    let now = (options.clock)().wall;
    let Left { recovered, live, lost } = places.settle(&mut appender, options.orphans, now)?;
    let start = state.start(appender.start_max()).map_err(&state_failed)?;
    let made = places.make(&mut appender, options, start)?;
    let mut keeper = Keeper::new(appender, state.clone(), options.orphans, options.clock);
    let mut found = Found {
        replayed: log.replayed,
        end: log.end,
        recovered,
        live: live.iter().map(|(_, collector)| collector.id()).collect(),
        lost,
        unlocked: 0,
        fresh,
    };
    let mut slabs = Vec::with_capacity(made.len());
    for (slab, place, collector) in made {
        found.unlocked += usize::from(!slab.is_locked());
        slabs.push(slab);
        keeper.collect(place, collector, true);
    }
    for (place, collector) in live {
        keeper.collect(place, collector, false);
    }
    keeper.gauges.slabs_unlocked.store(found.unlocked as u64, Relaxed);
    keeper.checkpoint().map_err(&state_failed)?;
    let ledger = Ledger { home, keeper, disk, log_path, segment_bytes: options.segment_bytes };
    Ok(Opened { node, start, state, slabs, found, ledger })
}

/// What is wrong with the log's beginning: no segment is ever given up yet, so that one without its
/// first has lost it.
fn begins_with(disk: &Folder, node: u64) -> Result<Option<Error>, Error> {
    let reader = Reader::first(disk, node)?;
    let first = reader.headers().first().filter(|first| first.first_seq > 1);
    Ok(first.map(|first| Error::Damaged {
        place: Place { segment: first.ordinal.saturating_sub(1), offset: 0 },
        damage: Damage::MissingSegment,
    }))
}

/// A ledger that is open and collects nothing yet.
pub struct Ledger {
    home: Home,
    keeper: Keeper<Folder>,
    disk: Folder,
    log_path: PathBuf,
    segment_bytes: u64,
}

/// Keeps a node that does not run from starting.
#[derive(Debug)]
pub struct Entered(#[expect(dead_code, reason = "the home has the lock")] Home);

/// The state store of a node that does not run, and its identity, for as long as it is kept.
pub fn enter(state_dir: &Path) -> Result<(Arc<State>, u64, Entered), LedgerError> {
    let home = Home::enter(state_dir)?;
    let state = Arc::new(home.state()?);
    let node = state.node();
    Ok((state, node, Entered(home)))
}

// === impl Ledger ===

impl Ledger {
    /// What was settled on each account up to now.
    pub fn balances(&self) -> &Balances {
        self.keeper.appender.balances()
    }

    /// What it tells.
    pub fn gauges(&self) -> Arc<LedgerGauges> {
        self.keeper.gauges.clone()
    }

    /// Starts its thread.
    pub fn start(self) -> io::Result<Running> {
        let gauges = self.gauges();
        let position = self.keeper.position.clone();
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new().name("ledger".to_owned());
        let thread = thread.spawn(move || self.keep(&stopped))?;
        Ok(Running { gauges, position, stop, thread })
    }

    /// Keeps the ledger until the end is asked for.
    fn keep(self, stopped: &Receiver<()>) -> Result<Finished, LedgerError> {
        // Dropped from the last to the first, also by a panic: the lock goes when nobody of this
        // process can write below it any more.
        let Ledger { home: _home, keeper, disk, log_path, segment_bytes } = self;
        let _alarm = Alarm(keeper.gauges.clone());
        let (ask, asked) = mpsc::sync_channel(1);
        let _filler =
            Filler::start(disk, segment_bytes, asked).map_err(LedgerError::io(&log_path))?;
        let mut keeper = keeper;
        // One that was asked for and not begun yet is enough.
        keeper.prepare = Box::new(move || ask.try_send(()).unwrap_or_default());
        (keeper.prepare)();
        loop {
            match stopped.recv_timeout(keeper.turn()) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) => break,
                // Whoever started it is gone without a word. Ended as by a kill: what is settled
                // stays in the slabs, and the next start finds it.
                Err(RecvTimeoutError::Disconnected) => return Ok(Finished::default()),
            }
        }
        let finished = keeper.finish(|wait| {
            let _ = stopped.recv_timeout(wait);
        });
        finished.map_err(LedgerError::store(Part::Log, &log_path))
    }
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").field("log", &self.log_path).finish_non_exhaustive()
    }
}

/// A ledger at work. Dropped without [`Running::finish`] it ends as by a kill.
#[derive(Debug)]
pub struct Running {
    gauges: Arc<LedgerGauges>,
    position: Arc<ArcSwap<Position>>,
    stop: Sender<()>,
    thread: JoinHandle<Result<Finished, LedgerError>>,
}

// === impl Running ===

impl Running {
    /// What it tells.
    pub fn gauges(&self) -> Arc<LedgerGauges> {
        self.gauges.clone()
    }

    /// Where the log is, as of the last commit.
    pub fn position(&self) -> Position {
        **self.position.load()
    }

    /// The same for whoever is asked about it later, and may outlive this.
    pub fn positions(&self) -> impl Fn() -> Position + Send + Sync + 'static {
        let position = self.position.clone();
        move || **position.load()
    }

    /// Whether its thread has ended by itself, which is a defect: nothing becomes durable.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it once the shards have ended: the rest is collected and made durable, slots nobody
    /// will end any more are settled, the slabs and the lock are given back.
    pub fn finish(self) -> Result<Finished, LedgerError> {
        let Running { stop, thread, .. } = self;
        // A thread that has ended hears nothing.
        let _ = stop.send(());
        thread.join().map_err(|_| LedgerError::Died)?
    }
}

/// Turns the health to failing when the thread dies, so that shards hear of it.
struct Alarm(Arc<LedgerGauges>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail();
        }
    }
}

/// The thread that prepares segments: filling one takes longer than a commit may.
struct Filler(Option<JoinHandle<()>>);

// === impl Filler ===

impl Filler {
    fn start(disk: Folder, segment_bytes: u64, asked: Receiver<()>) -> io::Result<Filler> {
        let thread = std::thread::Builder::new().name("segments".to_owned());
        let thread = thread.spawn(move || {
            for () in asked {
                // Without one the log makes its own when it needs it: slower, not less safe.
                let _ = segment::prepare(&disk, segment_bytes);
            }
        })?;
        Ok(Filler(Some(thread)))
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        // Whoever asks it has been dropped before. A segment that is just being filled would be
        // filled over the frames of a successor.
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
