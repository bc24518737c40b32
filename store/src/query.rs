//! Questions to the log: the last records, the records of a key, sums. Each is a walk; the log has
//! no index and needs none at the sizes an operator asks about.

use crate::appender::Checkpoint;
use crate::balance::{Balances, Total};
use crate::disk::Disk;
use crate::error::{Damage, Error, Result};
use crate::reader::Reader;
use crate::record::{Head, Record};
use crate::refusals;
use std::collections::VecDeque;

/// Records a question may bring back at most: 24 MiB of the largest.
pub const ANSWER_MAX: usize = 100_000;

/// A record with its place in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its sequence.
    pub seq: u64,
    bytes: Box<[u8]>,
}

// === impl Entry ===

impl Entry {
    /// The record.
    pub fn record(&self) -> Result<Record<'_>> {
        Record::decode(&self.bytes).map_err(|_| Error::damaged(0, 0, Damage::Content))
    }
}

/// Calls `each` for every record from `from_seq` on, oldest first; it ends early on `false`.
/// Returns the sequence to ask for next.
pub fn scan<D: Disk>(
    disk: &D,
    node: u64,
    from_seq: u64,
    mut each: impl FnMut(u64, &[u8], &Record<'_>) -> bool,
) -> Result<u64> {
    let mut reader = Reader::from_seq(disk, node, from_seq)?;
    loop {
        let at = reader.position();
        let Some(frame) = reader.next()? else { return Ok(at.next_seq.max(from_seq)) };
        for (seq, bytes) in frame.records().filter(|(seq, _)| *seq >= from_seq) {
            let record = Record::decode(bytes)
                .map_err(|_| Error::damaged(at.segment, at.offset, Damage::Content))?;
            if !each(seq, bytes, &record) {
                return Ok(seq + 1);
            }
        }
    }
}

/// The last `count` records that `wanted` accepts, oldest first.
pub fn tail<D: Disk>(
    disk: &D,
    node: u64,
    count: usize,
    wanted: impl Fn(&Head) -> bool,
) -> Result<Vec<Entry>> {
    let count = count.min(ANSWER_MAX);
    let mut last = VecDeque::new();
    scan(disk, node, 1, |seq, bytes, record| {
        if count > 0 && wanted(&record.head) {
            if last.len() == count {
                last.pop_front();
            }
            last.push_back(Entry { seq, bytes: bytes.into() });
        }
        true
    })?;
    Ok(last.into())
}

/// The record of a request.
pub fn find<D: Disk>(disk: &D, node: u64, request_id: [u8; 16]) -> Result<Option<Entry>> {
    let mut found = None;
    scan(disk, node, 1, |seq, bytes, record| {
        if record.head.request_id == request_id {
            found = Some(Entry { seq, bytes: bytes.into() });
        }
        found.is_none()
    })?;
    Ok(found)
}

/// The sums of the records that `wanted` accepts.
pub fn sum<D: Disk>(disk: &D, node: u64, wanted: impl Fn(&Head) -> bool) -> Result<Total> {
    let mut sum = Total::default();
    scan(disk, node, 1, |_, _, record| {
        if wanted(&record.head) {
            sum.add(&record.head);
        }
        true
    })?;
    Ok(sum)
}

/// The totals at the end of the log, from a checkpoint on or from the beginning. Read-only: what
/// a start would find, without one.
pub fn balances<D: Disk>(disk: &D, node: u64, checkpoint: Option<&Checkpoint>) -> Result<Balances> {
    let mut balances = checkpoint.map(|known| known.balances.clone()).unwrap_or_default();
    let mut reader = match checkpoint {
        Some(known) => Reader::at(disk, node, known.position)?,
        None => Reader::first(disk, node)?,
    };
    while let Some(frame) = reader.next()? {
        for stated in frame.totals() {
            balances.set(stated.account, stated.total);
        }
    }
    refusals::complete(disk, node, checkpoint.map(|known| &known.balances), &mut balances)?;
    Ok(balances)
}
