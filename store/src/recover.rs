//! Settles what a dead process left in its slabs: exactly once, without an index.
//!
//! | found | done with it |
//! |---|---|
//! | DONE at or below the log's mark for this slab | freed: the log has it |
//! | DONE above it | appended |
//! | PRICED | confirmed as priced, ending `unknown` |
//! | SENT | an orphan: charged by the caller's rule |
//! | OPEN | an orphan: released, nothing was sent |
//!
//! Every ending is written into the slab as DONE first, with the next settle sequence, and only
//! then appended. So a crash during recovery changes nothing: the next one finds DONE above the
//! mark. Slots are freed after they are durable, the file is removed when all are free.
//!
//! Slabs whose lock is held belong to a process that drains; they are collected, not recovered.

use crate::appender::Appender;
use crate::disk::Disk;
use crate::ending::{Ending, Release};
use crate::error::{Error, Result};
use crate::record::{Head, NotARecord, Record};
use crate::slab::{Dead, State};
use crate::tail::Tail;

/// What recovery did with a slab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Settled and in the log already.
    pub known: u64,
    /// Settled, and appended now.
    pub settled: u64,
    /// Priced: confirmed, ending unknown.
    pub confirmed: u64,
    /// Sent: charged by the rule.
    pub charged: u64,
    /// Opened only: released.
    pub released: u64,
}

/// Settles everything in a dead slab and removes it.
///
/// `charge` prices an exchange that had been sent: it gets the head with the usage noted so far
/// and sets usage, provenance, cost and flags. It must give the same answer when it is asked again
/// about its own answer: after a crash it may be.
pub fn recover<D: Disk + Clone>(
    dead: Dead,
    appender: &mut Appender<D>,
    now_unix_ms: u64,
    charge: impl FnMut(&mut Head, &Tail<'_>),
) -> Result<Recovered> {
    let slab = dead.id().number();
    let (mut recovered, waiting) = settle(&dead, appender.settled(slab), now_unix_ms, charge)?;
    for chunk in waiting.chunks(crate::frame::RECORDS_MAX) {
        append(&dead, appender, chunk)?;
    }
    recovered.settled =
        waiting.len() as u64 - recovered.confirmed - recovered.charged - recovered.released;
    dead.remove()?;
    // Not before the file is gone: its records would be taken for new ones.
    appender.retire_slab(slab);
    Ok(recovered)
}

/// First half: every slot is DONE afterwards, or free. Returns what is to be appended, in order.
pub(crate) fn settle(
    dead: &Dead,
    mark: u64,
    now_unix_ms: u64,
    mut charge: impl FnMut(&mut Head, &Tail<'_>),
) -> Result<(Recovered, Vec<(u64, u32)>)> {
    let (mut recovered, mut done, mut alive) = (Recovered::default(), Vec::new(), Vec::new());
    // Damaged memory: a record whose tail nobody can read would be a log nobody can read.
    let mut broken = Vec::new();
    dead.each(|index, _, head| {
        if matches!(Record::decode(&dead.record(index)), Err(NotARecord::Tail)) {
            broken.push((index, head));
        }
    })?;
    broken.iter().for_each(|(index, head)| dead.cut_tail(*index, head));
    dead.each(|index, state, head| match state {
        State::Done => done.push((head.settle_sequence, index)),
        State::Free | State::Open | State::Sent | State::Priced => alive.push((index, state)),
    })?;
    done.sort_unstable();
    done.retain(|(sequence, index)| {
        let known = *sequence <= mark;
        if known {
            dead.free(*index);
            recovered.known += 1;
        }
        !known
    });
    let mut next = mark;
    for (sequence, index) in &done {
        next = after(next)?;
        if *sequence != next {
            return Err(Error::Slab("its settle sequences have a gap"));
        }
        check_settled(dead, *index)?;
    }
    if dead.published() > next {
        return Err(Error::Slab("settled records are missing from it"));
    }
    for (index, state) in alive {
        let bytes = dead.record(index);
        let record = Record::decode(&bytes).map_err(|_| Error::Slab("a slot without a record"))?;
        let mut head = record.head;
        end(&mut head, &record.tail, state, &mut charge);
        match state {
            State::Priced => recovered.confirmed += 1,
            State::Sent => recovered.charged += 1,
            State::Open | State::Free | State::Done => recovered.released += 1,
        }
        next = after(next)?;
        head.closed_unix_ms = now_unix_ms;
        head.slab = dead.id().number();
        head.settle_sequence = next;
        dead.settle(index, &head);
        done.push((next, index));
    }
    Ok((recovered, done))
}

fn after(sequence: u64) -> Result<u64> {
    sequence.checked_add(1).ok_or(Error::Slab("its settle sequences are used up"))
}

/// Whether a settled slot can go into the log as it is: there it could never be made right.
fn check_settled(dead: &Dead, index: u32) -> Result<()> {
    let bytes = dead.record(index);
    let record = Record::decode(&bytes).map_err(|_| Error::Slab("a slot without a record"))?;
    if record.head.slab != dead.id().number() {
        return Err(Error::Slab("a settled slot of another slab"));
    }
    if record.head.ending == Ending::None {
        return Err(Error::Slab("a settled slot without an ending"));
    }
    Ok(())
}

/// Gives an exchange the ending that its state stands for.
fn end(
    head: &mut Head,
    tail: &Tail<'_>,
    state: State,
    charge: &mut impl FnMut(&mut Head, &Tail<'_>),
) {
    match state {
        State::Priced => head.ending = Ending::Unknown,
        State::Sent => {
            head.ending = Ending::Orphaned;
            charge(head, tail);
        }
        State::Open | State::Free | State::Done => {
            head.ending = Ending::Orphaned;
            head.release = Release::NeverSent;
            head.upstream_cost_picousd = 0;
            head.cost_picousd = 0;
            head.overrun_picousd = 0;
        }
    }
}

/// Second half: into the log, then free.
fn append<D: Disk + Clone>(
    dead: &Dead,
    appender: &mut Appender<D>,
    waiting: &[(u64, u32)],
) -> Result<()> {
    for (_, index) in waiting {
        let bytes = dead.record(*index);
        if !appender.push(&bytes, 0)? {
            appender.commit()?;
            if !appender.push(&bytes, 0)? {
                return Err(Error::Slab("a batch that is full when it is empty"));
            }
        }
    }
    appender.commit()?;
    for (_, index) in waiting {
        dead.free(*index);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
