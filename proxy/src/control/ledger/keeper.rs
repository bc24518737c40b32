//! The ledger's work, one turn after the other: what shards have settled goes into the log, its
//! slots come back, and each second the state store learns how far the log is.
//!
//! A disk that fails loses nothing: what was taken stays in the batch, what was not stays in its
//! slots, and the same records are committed when the disk takes them. Until then shards see the
//! health and decide about new exchanges themselves.
//!
//! No thread and no waiting: a turn says when the next one is due. Bounds: one batch (`store`),
//! a commit a turn.

use super::orphans;
use super::slabs::Place;
use super::{Clock, Position};
use crate::exchange::rules::OrphanRule;
use crate::exchange::time::UnixMs;
use crate::observe::ledger::LedgerGauges;
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use store::appender::{Appender, Health};
use store::commit::{Due, POLL_NS, WAIT_NS};
use store::disk::Disk;
use store::error::Result;
use store::recover::{Recovered, recover};
use store::slab::{Collector, Opened, SlabId};
use store::state::State;

/// Between two checkpoints: what a start reads of the log again.
pub(super) const SECOND_NS: u64 = 1_000_000_000;

/// Wait after a commit that failed: soon enough that room which was made is used at once.
pub(super) const RETRY_NS: u64 = 200_000_000;

/// Longest wait between two attempts: each begins a segment, and a disk that takes files but no
/// syncs must not be filled with them.
pub(super) const RETRY_NS_MAX: u64 = 10_000_000_000;

/// Attempts at the end, a second in all: what they do not bring to the disk stays in the slabs,
/// where the next start finds it.
pub(super) const LAST_TRIES: usize = 5;

/// A slab that is collected.
#[derive(Debug)]
struct Source {
    id: SlabId,
    place: Place,
    /// `None` once its process is gone and it is being recovered, or nothing sound comes of it.
    collector: Option<Collector>,
    /// Made by this start.
    own: bool,
}

/// A commit that failed.
#[derive(Clone, Copy, Debug)]
struct Retry {
    at_ns: u64,
    wait_ns: u64,
}

/// What the end left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Slabs of this start with exchanges that nobody had ended: settled as orphans.
    pub recovered: Vec<(SlabId, Recovered)>,
    /// Slabs that a thread or another process still uses: the next start settles them.
    pub left: Vec<SlabId>,
}

/// The keeper of the ledger.
pub(super) struct Keeper<D: Disk> {
    pub(super) appender: Appender<D>,
    pub(super) state: Arc<State>,
    pub(super) gauges: Arc<LedgerGauges>,
    pub(super) position: Arc<ArcSwap<Position>>,
    pub(super) orphans: OrphanRule,
    pub(super) clock: Clock,
    /// Asks for a segment to be prepared.
    pub(super) prepare: Box<dyn FnMut() + Send>,
    sources: Vec<Source>,
    /// The source whose turn it is to be taken from first.
    first: usize,
    retry: Option<Retry>,
    /// The next look, if nothing is pending: later and later while nothing comes, since a look that
    /// finds nothing costs as much as one that does. At most the wait of a commit.
    idle_ns: u64,
    /// When the work of each second is due.
    second_ns: u64,
    /// When the next checkpoint is.
    checkpoint_ns: u64,
    /// Whether the checkpoint is behind.
    behind: bool,
}

// === impl Keeper ===

impl<D: Disk + Clone> Keeper<D> {
    /// A keeper of an open log, without slabs.
    pub(super) fn new(
        appender: Appender<D>,
        state: Arc<State>,
        orphans: OrphanRule,
        clock: Clock,
    ) -> Keeper<D> {
        let keeper = Keeper {
            appender,
            state,
            gauges: Arc::default(),
            position: Arc::default(),
            orphans,
            clock,
            prepare: Box::new(|| {}),
            sources: Vec::new(),
            first: 0,
            retry: None,
            idle_ns: POLL_NS,
            second_ns: 0,
            checkpoint_ns: 0,
            behind: true,
        };
        keeper.tell_position(|_| {});
        keeper
    }

    /// Takes a slab up.
    pub(super) fn collect(&mut self, place: Place, collector: Collector, own: bool) {
        let id = collector.id();
        self.sources.push(Source { id, place, collector: Some(collector), own });
    }

    /// Takes what is settled, commits what is due, and says how long nothing has to be done.
    pub(super) fn turn(&mut self) -> Duration {
        let now = (self.clock)();
        let mut wait_ns = POLL_NS;
        let idle_ns = std::mem::replace(&mut self.idle_ns, POLL_NS);
        if self.retry.is_none_or(|retry| retry.at_ns <= now.mono.0) {
            let full = self.take(now.mono.0);
            wait_ns = match self.appender.due(now.mono.0) {
                // A failure is in the gauges, and the retry is set. There may be more than one
                // batch holds.
                Due::Now if self.commit().is_ok() && full => 0,
                // The slabs hold what comes until then: another look would only cost a wake-up.
                Due::At(at_ns) => at_ns.saturating_sub(now.mono.0),
                Due::Now => POLL_NS,
                Due::Never => {
                    self.idle_ns = WAIT_NS.min(2 * idle_ns);
                    idle_ns
                }
            };
        }
        if now.mono.0 >= self.second_ns {
            self.second_ns = now.mono.0.saturating_add(SECOND_NS);
            self.bury_others(now.wall);
            self.count_slots();
        }
        // A batch that is pending is in the totals already: the first turn without one.
        if now.mono.0 >= self.checkpoint_ns && self.appender.pending() == 0 {
            self.checkpoint_ns = now.mono.0.saturating_add(SECOND_NS);
            // Counted if it failed, and tried again in a second.
            let _ = self.checkpoint();
        }
        self.gauges.lag.store(self.lag(), Relaxed);
        Duration::from_nanos(wait_ns)
    }

    /// Takes from each slab until all is taken or the batch is full; whether it is.
    fn take(&mut self, now_ns: u64) -> bool {
        let count = self.sources.len();
        let Keeper { sources, appender, first, .. } = self;
        let (before, from) = sources.split_at_mut(*first % count.max(1));
        for (step, source) in from.iter_mut().chain(before).enumerate() {
            let Some(collector) = &mut source.collector else { continue };
            let mut full = false;
            let taken = collector.take(|record| {
                let room = appender.push(record, now_ns)?;
                full = !room;
                Ok(room)
            });
            if taken.is_err() {
                // Never skipped: its shard runs out of slots, and an operator is told.
                self.gauges.slabs_damaged.fetch_add(1, Relaxed);
                source.collector = None;
            }
            if full {
                // The others first next time: none waits for a busy one.
                *first = (*first + step + 1) % count;
                return true;
            }
        }
        false
    }

    fn commit(&mut self) -> Result<()> {
        let now_ns = (self.clock)().mono.0;
        let segment = self.appender.position().segment;
        let committed = self.appender.commit();
        let health = match self.appender.health() {
            Health::Good => 0,
            Health::Full => 1,
            Health::Failing => 2,
        };
        self.gauges.health.store(health, Relaxed);
        let committed = match committed {
            Ok(committed) => committed,
            Err(error) => {
                self.gauges.failures.fetch_add(1, Relaxed);
                let wait_ns = self.retry.map_or(RETRY_NS, |retry| {
                    // No room passes with room; anything else is tried more and more seldom.
                    if error.is_full() { RETRY_NS } else { RETRY_NS_MAX.min(2 * retry.wait_ns) }
                });
                self.retry = Some(Retry { at_ns: now_ns.saturating_add(wait_ns), wait_ns });
                return Err(error);
            }
        };
        let failed_before = self.retry.take().is_some();
        for source in &mut self.sources {
            let freed = source.collector.as_mut().map_or(Ok(()), Collector::free);
            if freed.is_err() {
                self.gauges.slabs_damaged.fetch_add(1, Relaxed);
                source.collector = None;
            }
        }
        if failed_before || segment != self.appender.position().segment {
            (self.prepare)();
        }
        if committed.records > 0 {
            self.behind = true;
            let took_ns = (self.clock)().mono.0.saturating_sub(now_ns);
            self.gauges.committed(committed.records, committed.bytes, took_ns);
            self.tell_position(|_| {});
        }
        Ok(())
    }

    fn count_slots(&self) {
        let mut slots = [0_u64; 5];
        for collector in self.sources.iter().filter_map(|source| source.collector.as_ref()) {
            for (sum, count) in slots.iter_mut().zip(collector.count()) {
                *sum += u64::from(count);
            }
        }
        for (gauge, count) in self.gauges.slots.iter().zip(slots) {
            gauge.store(count, Relaxed);
        }
    }

    /// Tells the state store how far the log is. A store that refuses is behind, and only that:
    /// the log is the truth.
    pub(super) fn checkpoint(&mut self) -> Result<()> {
        if !self.behind {
            return Ok(());
        }
        let Some(changes) = self.appender.changes() else { return Ok(()) };
        let saved = self.state.save(&changes);
        if saved.is_err() {
            self.gauges.checkpoint_failures.fetch_add(1, Relaxed);
            return saved;
        }
        self.appender.saved();
        self.behind = false;
        self.tell_position(|position| position.checkpointed = changes.position);
        Ok(())
    }

    /// Settles the slabs of predecessors that have gone meanwhile.
    fn bury_others(&mut self, now: UnixMs) {
        if self.retry.is_some() {
            // The disk comes first.
            return;
        }
        let mut at = 0;
        while let Some(source) = self.sources.get(at) {
            // One that cannot be settled now is tried again; an operator sees the failures.
            let gone = !source.own && matches!(self.bury(at, now), Ok(Some(_)));
            at += usize::from(!gone);
        }
    }

    /// Settles and removes a slab if nobody uses it any more.
    fn bury(&mut self, at: usize, now: UnixMs) -> Result<Option<Recovered>> {
        let Some(source) = self.sources.get_mut(at) else { return Ok(None) };
        let (id, own) = (source.id, source.own);
        if own {
            // What holds the slab's lock for this process, but for a shard that goes on.
            source.collector = None;
        }
        let dead = match source.place.files.open(id)? {
            Opened::Dead(dead) => dead,
            Opened::Live(_) | Opened::Nothing => return Ok(None),
        };
        // What is pending counts as being in the log, and recovery frees what the log has.
        if self.appender.pending() > 0 {
            self.commit()?;
        }
        if let Some(source) = self.sources.get_mut(at) {
            // Recovery frees on its own account from here on, also if it is cut short.
            source.collector = None;
        }
        let rule = self.orphans;
        let appender = &mut self.appender;
        let recovered = recover(dead, appender, now.0, |head, _| orphans::charge(rule, head));
        if recovered.is_err() {
            self.gauges.failures.fetch_add(1, Relaxed);
        }
        let recovered = recovered?;
        self.behind = true;
        let source = self.sources.remove(at);
        source.place.leave();
        Ok(Some(recovered))
    }

    /// The end: the shards have ended, or are left to the end of the process. Collects the rest,
    /// settles what nobody ended, removes the slabs. `wait` waits before another attempt.
    pub(super) fn finish(&mut self, mut wait: impl FnMut(Duration)) -> Result<Finished> {
        let mut tries = 1;
        loop {
            let full = self.take((self.clock)().mono.0);
            match self.commit() {
                Ok(()) if !full => break,
                Ok(()) => {}
                Err(error) if tries == LAST_TRIES => return Err(error),
                Err(_) => {
                    tries += 1;
                    wait(Duration::from_nanos(RETRY_NS));
                }
            }
        }
        let (mut finished, mut failed) = (Finished::default(), None);
        let wall = (self.clock)().wall;
        let mut at = 0;
        while let Some(source) = self.sources.get(at) {
            let id = source.id;
            match self.bury(at, wall) {
                Ok(Some(recovered)) if recovered == Recovered::default() => continue,
                Ok(Some(recovered)) => {
                    finished.recovered.push((id, recovered));
                    continue;
                }
                Ok(None) => finished.left.push(id),
                // The others have an end of their own.
                Err(error) => failed = failed.or(Some(error)),
            }
            at += 1;
        }
        self.gauges.lag.store(0, Relaxed);
        self.checkpoint()?;
        failed.map_or(Ok(finished), Err)
    }

    /// Records settled and not durable.
    fn lag(&self) -> u64 {
        let collectors = self.sources.iter().filter_map(|source| source.collector.as_ref());
        collectors.map(Collector::pending).sum::<u64>() + u64::from(self.appender.pending())
    }

    fn tell_position(&self, change: impl FnOnce(&mut Position)) {
        let mut position = **self.position.load();
        position.durable = self.appender.position();
        change(&mut position);
        self.gauges.last_seq.store(position.durable.next_seq.saturating_sub(1), Relaxed);
        let checkpointed = position.checkpointed.next_seq.saturating_sub(1);
        self.gauges.checkpointed_seq.store(checkpointed, Relaxed);
        self.position.store(Arc::new(position));
    }
}

#[cfg(test)]
mod tests;
