//! All rows of the store as bundles: what a start waits for. By several threads, each with a range
//! of numbers, since every one of them waits for memory most of the time.
//!
//! Bounds: [`THREADS_MAX`]; below [`ROWS_A_THREAD`] it is not worth a thread.

use super::spent::{Place, Spent};
use super::{KeyFault, row};
use crate::exchange::bundle::Bundle;
use crate::exchange::keys::Digest;
use crate::exchange::time::UnixMs;
use std::ops::RangeInclusive;
use std::sync::Arc;
use store::state::{KeyRow, State};

/// Threads at the most: with more of them the store's cache is what they wait for.
const THREADS_MAX: u64 = 4;

/// Rows that take about as long as it takes to start a thread and to hear of its end.
const ROWS_A_THREAD: u64 = 2_000;

/// Bundles by digest, and rows that were left for the caller.
type Read = (Vec<(Digest, Arc<Bundle>)>, Vec<KeyRow>);

/// The bundles of every row but those that `keep` keeps.
pub(super) fn read(
    state: &State,
    spent: &Spent,
    now: UnixMs,
    keep: impl Fn(&KeyRow) -> bool + Sync,
) -> Result<Read, KeyFault> {
    let last = state.last_key()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let threads = last.div_ceil(ROWS_A_THREAD).min(cores).clamp(1, THREADS_MAX);
    let each = last.div_ceil(threads).max(1);
    let keep = &keep;
    std::thread::scope(|scope| {
        let ranges = (0..threads).map(|n| {
            // Numbers given since `last` was read are those of the last range.
            let end = if n + 1 == threads { u64::MAX } else { (n + 1) * each };
            n * each + 1..=end
        });
        let work = |ids| move || read_range(state, spent, now, ids, keep);
        let started: Vec<_> = ranges.map(|ids| scope.spawn(work(ids))).collect();
        let mut all: Read = (Vec::new(), Vec::new());
        for thread in started {
            let (bundles, kept) = thread.join().map_err(|_| KeyFault::Died)??;
            all.0.extend(bundles);
            all.1.extend(kept);
        }
        Ok(all)
    })
}

fn read_range(
    state: &State,
    spent: &Spent,
    now: UnixMs,
    ids: RangeInclusive<u64>,
    keep: &impl Fn(&KeyRow) -> bool,
) -> Result<Read, KeyFault> {
    let (mut bundles, mut kept, mut fault) = (Vec::new(), Vec::new(), None);
    let mut place = Place::default();
    state.read_keys(ids, |row| {
        if keep(&row) {
            kept.push(row);
            return true;
        }
        let digest = row.digest;
        match row::bundle(row, spent, &mut place, now) {
            Ok(bundle) => bundles.push((digest, Arc::new(bundle))),
            Err(found) => fault = Some(found),
        }
        fault.is_none()
    })?;
    fault.map_or(Ok((bundles, kept)), Err)
}
