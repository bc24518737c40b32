//! The one writer of the log: batch → frame → write → sync → acknowledged. A state machine
//! without a thread and without a clock; the ledger thread gives it both.
//!
//! Promise: what [`Appender::commit`] has answered is on the disk, once, in this order. After a
//! failed write or sync nothing is known about the segment's tail: it is closed for ever, the
//! next segment says where the log really ends, and the same records go there under the same
//! sequences. A full disk is such a failure and a reported state; committing again later, when
//! there is room, goes on by itself.
//!
//! What it does not do: free slots, write checkpoints, retire segments. Bounds: one batch
//! (`frame.rs`), one account table (`balance.rs`).

use crate::balance::{Account, Balances};
use crate::commit::{self, Due};
use crate::disk::{Disk, DiskFile};
use crate::error::{Damage, Error, Result};
use crate::frame::{Batch, SLABS_MAX, SlabMark, Stated};
use crate::reader::{End, Position, Reader, start_of};
use crate::record::Record;
use crate::refusals;
use crate::segment::{self, Header};
use crate::slab::SlabId;
use std::collections::BTreeMap;

/// What the state store remembers of the log, and what recovery starts from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// Up to where.
    pub position: Position,
    /// The slabs' settle sequences there.
    pub slabs: Vec<SlabMark>,
    /// The totals there.
    pub balances: Balances,
}

/// What a checkpoint has to write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Up to where.
    pub position: Position,
    /// The slabs' settle sequences there: all.
    pub slabs: Vec<SlabMark>,
    /// The totals that changed.
    pub totals: Vec<Stated>,
}

/// What is fixed for a log.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The node whose log it is.
    pub node: u64,
    /// Size of a segment; one frame that is larger gets a segment of its size.
    pub segment_bytes: u64,
}

/// What opening found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Records beyond the checkpoint.
    pub replayed: u64,
    /// What followed the last whole frame.
    pub end: End,
}

/// Whether the log takes records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Good,
    /// The disk has no room; it will when there is.
    Full,
    /// The disk fails.
    Failing,
}

/// What a commit made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Sequence of the first record; 0 if there was none.
    pub first_seq: u64,
    /// How many.
    pub records: u64,
    /// Bytes of the frame.
    pub bytes: u64,
}

/// The writer.
#[derive(Debug)]
pub struct Appender<D: Disk> {
    disk: D,
    options: Options,
    /// `None` before the first segment and after a failure.
    segment: Option<Open<D::File>>,
    /// Highest ordinal ever given out.
    ordinal: u64,
    position: Position,
    batch: Batch,
    first_pending_ns: Option<u64>,
    /// Accounts of the batch, in the order it touches them.
    touched: Vec<Account>,
    /// The balances' epoch at the last checkpoint.
    saved: u64,
    start_max: u32,
    slabs: BTreeMap<u64, u64>,
    balances: Balances,
    health: Health,
}

#[derive(Debug)]
struct Open<F> {
    file: F,
    capacity: u64,
}

// === impl Appender ===

impl<D: Disk + Clone> Appender<D> {
    /// Opens the log, from a checkpoint or from its beginning. Frames beyond the checkpoint are
    /// replayed and written once more: after a failed sync the cache may show frames that never
    /// reached the disk, and what is accepted here must be durable.
    pub fn open(
        disk: D,
        options: Options,
        checkpoint: Option<&Checkpoint>,
    ) -> Result<(Appender<D>, Opened)> {
        let mut appender = Appender {
            disk: disk.clone(),
            options,
            segment: None,
            ordinal: 0,
            position: Position { next_seq: 1, ..Position::default() },
            batch: Batch::default(),
            first_pending_ns: None,
            touched: Vec::new(),
            saved: 0,
            start_max: 0,
            slabs: BTreeMap::new(),
            balances: Balances::default(),
            health: Health::Good,
        };
        let mut reader = match checkpoint {
            Some(known) => {
                appender.slabs =
                    known.slabs.iter().map(|mark| (mark.slab, mark.settle_sequence)).collect();
                appender.balances = known.balances.clone();
                // What the checkpoint says need not be written again.
                appender.balances.next_epoch();
                appender.saved = appender.balances.epoch();
                Reader::at(&disk, options.node, known.position)?
            }
            None => Reader::first(&disk, options.node)?,
        };
        let from = reader.position();
        let opened = appender.replay(&mut reader, checkpoint)?;
        appender.resume(from)?;
        Ok((appender, opened))
    }

    fn replay(
        &mut self,
        reader: &mut Reader<'_, D>,
        checkpoint: Option<&Checkpoint>,
    ) -> Result<Opened> {
        self.ordinal = reader.headers().last().map_or(0, |header| header.ordinal);
        if let Some(known) = checkpoint.map(|known| known.position).filter(|at| at.next_seq > 1) {
            // Cut below the checkpoint, the log would look like one that just ends there.
            let gone = self.ordinal < known.segment || !reader.stands()?;
            if gone {
                let log = last_seq(&self.disk, self.options.node)?;
                return Err(Error::BelowCheckpoint { log, checkpoint: known.next_seq - 1 });
            }
        }
        let mut replayed = 0;
        while let Some(frame) = reader.next()? {
            replayed += u64::from(frame.head.records);
            // A frame's table is whole: slabs that are not in it are gone.
            self.slabs = frame.slabs().map(|mark| (mark.slab, mark.settle_sequence)).collect();
            for stated in frame.totals() {
                self.balances.set(stated.account, stated.total);
            }
            let starts = frame.slabs().filter_map(|mark| SlabId::from_number(mark.slab));
            self.start_max = starts.map(|id| id.start).fold(self.start_max, u32::max);
        }
        let known = checkpoint.map(|known| &known.balances);
        refusals::complete(&self.disk, self.options.node, known, &mut self.balances)?;
        // The first batch touches anew what the replay has stated.
        self.balances.next_epoch();
        self.position = reader.position();
        Ok(Opened { replayed, end: reader.end().unwrap_or(End::Clean) })
    }

    /// Takes the last segment up again, its frames beyond `from` written anew.
    fn resume(&mut self, from: Position) -> Result<()> {
        if self.ordinal == 0 {
            return Ok(());
        }
        let what = "writing the log's tail once more";
        let file = self.disk.open(&segment::name(self.ordinal)).map_err(Error::io(what))?;
        let mut offset = match from.segment == self.ordinal {
            true => from.offset,
            false => segment::FRAMES_FROM,
        };
        let mut piece = vec![0; REWRITE_BYTES];
        while offset < self.position.offset {
            let left = usize::try_from(self.position.offset - offset).unwrap_or(usize::MAX);
            let len = left.min(REWRITE_BYTES);
            let piece = piece.get_mut(..len).unwrap_or_default();
            file.read_full_at(piece, offset).map_err(Error::io(what))?;
            file.write_all_at(piece, offset).map_err(Error::io(what))?;
            offset += len as u64;
        }
        file.sync().map_err(Error::io(what))?;
        // Its name may be one that a failed sync left in the cache only.
        self.disk.sync_names().map_err(Error::io(what))?;
        let capacity = file.len().map_err(Error::io(what))?;
        self.segment = Some(Open { file, capacity });
        Ok(())
    }

    /// Takes a settled record into the batch. `false`: the batch is full, commit first. A record
    /// that cannot be read is refused as damage of the slab it comes from.
    pub fn push(&mut self, record: &[u8], now_ns: u64) -> Result<bool> {
        if self.batch.is_full() {
            return Ok(false);
        }
        // Whole: in the log a tail that cannot be read would stop every reader.
        let read = Record::decode(record).map_err(|_| Error::Slab("a record is not one"))?;
        let head = read.head;
        if self.slabs.len() >= SLABS_MAX && !self.slabs.contains_key(&head.slab) {
            return Err(Error::Slab("more incarnations than a frame can carry"));
        }
        if !self.batch.push(record) {
            return Err(Error::Slab("a record is too long"));
        }
        self.first_pending_ns.get_or_insert(now_ns);
        let touched = &mut self.touched;
        self.balances.add(&head, |account| touched.push(account));
        if let Some(id) = SlabId::from_number(head.slab) {
            self.start_max = self.start_max.max(id.start);
        }
        let mark = self.slabs.entry(head.slab).or_default();
        *mark = (*mark).max(head.settle_sequence);
        Ok(true)
    }

    /// When the batch should be committed.
    pub fn due(&self, now_ns: u64) -> Due {
        let records = usize::from(self.batch.records());
        commit::due(self.first_pending_ns, records, self.batch.record_bytes(), now_ns)
    }

    /// Records taken but not committed.
    pub fn pending(&self) -> u16 {
        self.batch.records()
    }

    /// Makes the batch durable. After an error the batch is as it was: commit again, at leisure.
    pub fn commit(&mut self) -> Result<Committed> {
        if self.batch.records() == 0 {
            return Ok(Committed { first_seq: 0, records: 0, bytes: 0 });
        }
        let committed = self.try_commit();
        match &committed {
            Ok(_) => self.health = Health::Good,
            Err(error) => {
                self.segment = None;
                self.health = if error.is_full() { Health::Full } else { Health::Failing };
            }
        }
        committed
    }

    fn try_commit(&mut self) -> Result<Committed> {
        let slabs = self.marks();
        let balances = &self.balances;
        let state = |account| Stated { account, total: balances.total(account) };
        let totals: Vec<Stated> = self.touched.iter().copied().map(state).collect();
        let records = u64::from(self.batch.records());
        let Position { next_seq: first_seq, chain, .. } = self.position;
        let used_up = || Error::damaged(self.position.segment, 0, Damage::Header);
        let next_seq = first_seq.checked_add(records).ok_or_else(used_up)?;
        let sealed = self.batch.seal(first_seq, &chain, &slabs, &totals);
        let bytes = sealed.bytes().len() as u64;
        let offset = self.position.offset;
        let fits = |open: &Open<D::File>| offset + bytes <= open.capacity;
        if !self.segment.as_ref().is_some_and(fits) {
            let size = self.options.segment_bytes.max(segment::FRAMES_FROM + bytes);
            let previous_end = self.position.offset;
            let ordinal = self.ordinal.checked_add(1).ok_or_else(used_up)?;
            self.ordinal = ordinal;
            let header =
                Header::new(self.options.node, self.ordinal, first_seq, previous_end, chain);
            let begun = segment::begin(&self.disk, &header, size);
            let name = segment::name(self.ordinal);
            // A failure leaves no name behind, or one with a whole header and no frames, which
            // the next segment then continues.
            if begun.is_ok() || self.disk.names().is_ok_and(|names| names.contains(&name)) {
                self.position = start_of(&header);
            } else {
                self.ordinal -= 1;
            }
            self.segment = Some(Open { file: begun?, capacity: size });
        }
        let Some(open) = &self.segment else { return Err(Error::Slab("no segment")) };
        let at = self.position.offset;
        open.file.write_all_at(sealed.bytes(), at).map_err(Error::io("writing a frame"))?;
        open.file.sync().map_err(Error::io("syncing a frame"))?;
        self.position.offset = at + bytes;
        self.position.frame_bytes = bytes;
        self.position.next_seq = next_seq;
        self.position.chain = sealed.hash();
        drop(sealed);
        self.batch.clear();
        self.touched.clear();
        self.balances.next_epoch();
        self.first_pending_ns = None;
        Ok(Committed { first_seq, records, bytes })
    }

    /// Whether the log takes records.
    pub fn health(&self) -> Health {
        self.health
    }

    /// Where the log ends, as far as it is acknowledged.
    pub fn position(&self) -> Position {
        self.position
    }

    /// How far a slab's settle sequence has come, counting what is pending.
    pub fn settled(&self, slab: u64) -> u64 {
        self.slabs.get(&slab).copied().unwrap_or(0)
    }

    /// The totals, counting what is pending.
    pub fn balances(&self) -> &Balances {
        &self.balances
    }

    /// Drops the account of a window that is over, unless it is not in the state store yet. No
    /// exchange may settle on it any more: a total that began anew would not add up.
    pub fn forget(&mut self, account: Account) {
        self.balances.forget(account, self.saved);
    }

    /// The highest start count met in the log: the node's next start must be above it even if the
    /// state store was lost, or a new slab would be taken for one that the log already has.
    pub fn start_max(&self) -> u32 {
        self.start_max
    }

    /// Drops a slab whose file is gone: not before, or its records would be taken for new ones.
    pub fn retire_slab(&mut self, slab: u64) {
        self.slabs.remove(&slab);
    }

    /// What the state store is to remember now: everything; `None` while records are pending.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let changes = self.changes()?;
        let balances = self.balances.clone();
        Some(Checkpoint { position: changes.position, slabs: changes.slabs, balances })
    }

    /// What changed since [`Appender::saved`]; `None` while records are pending.
    pub fn changes(&self) -> Option<Changes> {
        if self.batch.records() > 0 {
            return None;
        }
        let changed = self.balances.since(self.saved);
        let totals = changed.map(|(account, total)| Stated { account, total }).collect();
        Some(Changes { position: self.position, slabs: self.marks(), totals })
    }

    /// The changes are in the state store.
    pub fn saved(&mut self) {
        self.saved = self.balances.epoch();
    }

    fn marks(&self) -> Vec<SlabMark> {
        let mark =
            |(slab, sequence): (&u64, &u64)| SlabMark { slab: *slab, settle_sequence: *sequence };
        self.slabs.iter().map(mark).collect()
    }
}

/// Bytes rewritten at a time when a log is opened.
const REWRITE_BYTES: usize = 1 << 20;

fn last_seq<D: Disk>(disk: &D, node: u64) -> Result<u64> {
    let mut reader = Reader::first(disk, node)?;
    while reader.next()?.is_some() {}
    Ok(reader.position().next_seq - 1)
}

#[cfg(test)]
mod tests;
