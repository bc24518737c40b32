//! Walks the whole log and proves what can be proved from it: every frame and the chain (the
//! reader does), every record readable, every slab's settle sequence gapless — no exchange settled
//! twice, none missing in between —, every stated total the sum of its records, and the totals of
//! the state store's checkpoint the sum of all before it.
//!
//! Frames of version 1 do not state refusals; from the first that does, their totals have to be the
//! sum of all before too. Changes nothing. Where old segments have been retired, the first total of
//! an account is taken as stated. Integrity is proved up to the last frame, and that this is the
//! last only by a checkpoint or an anchor kept elsewhere.

use crate::balance::{Account, Balances, Total};
use crate::disk::Disk;
use crate::ending::Ending;
use crate::error::{Damage, Error, Place, Result};
use crate::frame::{self, Frame, Hash};
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
    /// Whether the totals of a checkpoint were compared too.
    pub checkpoint_totals: bool,
}

/// What is known of a log from elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'k> {
    /// A position it has reached.
    pub position: Option<Position>,
    /// The totals there.
    pub balances: Option<&'k Balances>,
    /// The first record that must still be there; 0 if that is not known.
    pub first_seq: u64,
}

/// Verifies a log, up to and against a position it is known to have reached.
pub fn verify<D: Disk>(disk: &D, node: u64, known: Option<Position>) -> Result<Report> {
    let mut report = Report::default();
    let known = Known { position: known, ..Known::default() };
    examine(disk, node, known, &mut report).map(|()| report)
}

/// As [`verify`], and against totals. After an error the report says what holds up to there: the
/// first record that is not vouched for is the one behind its last.
pub fn examine<D: Disk>(disk: &D, node: u64, known: Known<'_>, report: &mut Report) -> Result<()> {
    let mut reader = Reader::first(disk, node)?;
    let complete = reader.headers().first().is_none_or(|header| header.first_seq == 1);
    let mut fold = Fold { complete, ..Fold::default() };
    report.segments = reader.headers().len() as u64;
    if let Some(first) = reader.headers().first()
        && known.first_seq > 0
        && first.first_seq > known.first_seq
    {
        return Err(Error::damaged(first.ordinal.saturating_sub(1), 0, Damage::MissingSegment));
    }
    let known_at = known.position.filter(|position| position.next_seq > 1);
    let mut seen_known = known_at.is_none();
    loop {
        let at = reader.position();
        let is_known = |known: Position| (known.next_seq, known.chain) == (at.next_seq, at.chain);
        if !seen_known && known_at.is_some_and(is_known) {
            seen_known = true;
            if known.balances.is_some_and(|balances| !fold.agrees(balances)) {
                return Err(Error::damaged(at.segment, at.offset, Damage::Checkpoint));
            }
            report.checkpoint_totals = known.balances.is_some();
        }
        let Some(frame) = reader.next()? else { break };
        let (first, last) = (frame.head.first_seq, frame.head.next_seq() - 1);
        let (segment, offset) = (at.segment, at.offset);
        fold.frame(&frame, report).map_err(|damage| Error::damaged(segment, offset, damage))?;
        if report.first_seq == 0 {
            report.first_seq = first;
        }
        report.last_seq = last;
        report.frames += 1;
    }
    let Position { segment, offset, chain, .. } = reader.position();
    report.chain = chain;
    report.torn = (reader.end() == Some(End::Torn)).then_some(Place { segment, offset });
    match known_at.filter(|_| !seen_known) {
        Some(known) => {
            let checkpoint = known.next_seq - 1;
            Err(Error::BelowCheckpoint { log: report.last_seq, checkpoint })
        }
        None => Ok(()),
    }
}

#[derive(Default)]
struct Fold {
    complete: bool,
    /// A frame was met that states refusals.
    refusals: bool,
    slabs: BTreeMap<u64, u64>,
    balances: Balances,
}

impl Fold {
    /// Whether totals kept elsewhere are those of the records up to here. Where old segments have
    /// been retired, accounts that were not met since are taken as stated.
    fn agrees(&self, kept: &Balances) -> bool {
        let stated = kept.iter().all(|(account, total)| match self.balances.knows(account) {
            true => self.balances.total(account) == total,
            false => !self.complete,
        });
        // A checkpoint of before refusals were stated has none.
        let due = |account: &Account| self.refusals || !account.is_refusals();
        let mut met = self.balances.iter().map(|(account, _)| account).filter(due);
        stated && met.all(|account| kept.knows(account))
    }

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
        self.refusals |= frame.head.version >= frame::VERSION;
        if !self.refusals {
            stated += self.note_refusals(delta);
        }
        if stated == delta.len() { Ok(()) } else { Err(Damage::Totals) }
    }

    /// Adds the refusals of a frame that does not state them; how many accounts they are of.
    fn note_refusals(&mut self, delta: &Balances) -> usize {
        let mut accounts = 0;
        for (account, added) in delta.iter().filter(|(account, _)| account.is_refusals()) {
            accounts += 1;
            // Else nobody knows how many there were before.
            if self.complete {
                self.balances.set(account, self.balances.total(account).plus(&added));
            }
        }
        accounts
    }
}
