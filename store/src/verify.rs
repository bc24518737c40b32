//! Walks the whole log and proves what can be proved from it: every frame and the chain (the
//! reader does), every record readable, every slab's settle sequence gapless — no exchange settled
//! twice, none missing in between —, every stated total the sum of its records.
//!
//! Changes nothing. Where old segments have been retired, the first total of an account is taken
//! as stated. Integrity is proved up to the last frame, and that this is the last only by a
//! checkpoint or an anchor kept elsewhere.

use crate::balance::{Balances, Total};
use crate::disk::Disk;
use crate::ending::Ending;
use crate::error::{Damage, Error, Place, Result};
use crate::frame::{Frame, Hash};
use crate::reader::{End, Position, Reader};
use crate::record::Record;
use std::collections::BTreeMap;

/// What a log says that holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Segments walked.
    pub segments: u64,
    /// Frames walked.
    pub frames: u64,
    /// Sequence of the first record; 0 if there is none.
    pub first_seq: u64,
    /// Sequence of the last record; 0 if there is none.
    pub last_seq: u64,
    /// Sums over all records.
    pub sum: Total,
    /// Records by how they ended, by [`Ending::number`].
    pub endings: BTreeMap<u8, u64>,
    /// SHA-256 of the last frame: what an anchor keeps.
    pub chain: Hash,
    /// Where an unfinished frame follows the last whole one.
    pub torn: Option<Place>,
}

/// Verifies a log, up to and against a position it is known to have reached.
pub fn verify<D: Disk>(disk: &D, node: u64, known: Option<Position>) -> Result<Report> {
    let mut reader = Reader::first(disk, node)?;
    let complete = reader.headers().first().is_none_or(|header| header.first_seq == 1);
    let mut fold = Fold { complete, ..Fold::default() };
    let mut report = Report { segments: reader.headers().len() as u64, ..Report::default() };
    let mut seen_known = known.is_none_or(|known| known.next_seq <= 1);
    loop {
        let at = reader.position();
        if known.is_some_and(|known| known.next_seq == at.next_seq && known.chain == at.chain) {
            seen_known = true;
        }
        let Some(frame) = reader.next()? else { break };
        if report.first_seq == 0 {
            report.first_seq = frame.head.first_seq;
        }
        report.last_seq = frame.head.next_seq() - 1;
        report.frames += 1;
        let (segment, offset) = (at.segment, at.offset);
        fold.frame(&frame, &mut report)
            .map_err(|damage| Error::damaged(segment, offset, damage))?;
    }
    if let (false, Some(known)) = (seen_known, known) {
        let checkpoint = known.next_seq - 1;
        return Err(Error::BelowCheckpoint { log: report.last_seq, checkpoint });
    }
    let Position { segment, offset, chain, .. } = reader.position();
    report.chain = chain;
    report.torn = (reader.end() == Some(End::Torn)).then_some(Place { segment, offset });
    Ok(report)
}

#[derive(Default)]
struct Fold {
    complete: bool,
    slabs: BTreeMap<u64, u64>,
    balances: Balances,
}

impl Fold {
    fn frame(&mut self, frame: &Frame<'_>, report: &mut Report) -> std::result::Result<(), Damage> {
        let mut delta = Balances::default();
        for (_, bytes) in frame.records() {
            let record = Record::decode(bytes).map_err(|_| Damage::Content)?;
            self.settled(record.head.slab, record.head.settle_sequence)?;
            if record.head.ending == Ending::None {
                return Err(Damage::Content);
            }
            report.sum.add(&record.head);
            *report.endings.entry(record.head.ending.number()).or_default() += 1;
            delta.add(&record.head, |_| {});
        }
        self.totals(frame, &delta)?;
        for mark in frame.slabs() {
            let reached = self.slabs.entry(mark.slab).or_insert(mark.settle_sequence);
            if *reached != mark.settle_sequence {
                return Err(Damage::SettleSequence);
            }
        }
        Ok(())
    }

    fn settled(&mut self, slab: u64, sequence: u64) -> std::result::Result<(), Damage> {
        // Where the log does not begin at its beginning, a slab may be met on its way.
        let first = if self.complete { 1 } else { sequence };
        let next = self.slabs.get(&slab).map_or(first, |last| last.saturating_add(1));
        if sequence != next {
            return Err(Damage::SettleSequence);
        }
        self.slabs.insert(slab, sequence);
        Ok(())
    }

    fn totals(&mut self, frame: &Frame<'_>, delta: &Balances) -> std::result::Result<(), Damage> {
        let mut stated = 0;
        for total in frame.totals() {
            stated += 1;
            let added = delta.total(total.account);
            let expected = match self.balances.knows(total.account) {
                true => self.balances.total(total.account).plus(&added),
                // A window forgotten after its end cannot be met again; a key is never forgotten.
                false if self.complete => added,
                false => total.total,
            };
            if expected != total.total || !delta.knows(total.account) {
                return Err(Damage::Totals);
            }
            self.balances.set(total.account, total.total);
        }
        if stated == delta.len() { Ok(()) } else { Err(Damage::Totals) }
    }
}
