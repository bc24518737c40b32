//! A folder of segments made of fuzzed bytes: what `verify` calls sound can be scanned, summed up
//! and gone on with; what it does not is an error and never a panic.
//!
//! Input: flags, the first ordinal, a checkpoint's position, then up to four segments, each with
//! its length: header and frames without the page between them.

use super::{CRC_BYTES, DISK_BYTES, NODE, mended, sum_up};
use crate::appender::{Appender, Checkpoint, Options};
use crate::disk::simulated::Simulated;
use crate::disk::{Disk, DiskFile};
use crate::ending::Ending;
use crate::frame::{self, FrameHead};
use crate::query;
use crate::reader::{Position, Reader, start_of};
use crate::record::{Head, RECORD_BYTES_MAX, Record};
use crate::segment::{self, FRAMES_FROM, Header};
use crate::tail::Tail;
use crate::verify::{self, Known, Report};
use crate::wire::{Put, Take, Wire};
use std::collections::BTreeSet;

/// Bits of the first byte: what is made right before it is read.
pub(super) mod mend {
    /// Magic, version, node, ordinal and checksum of each header.
    pub(crate) const HEADERS: u8 = 1;
    /// The checksum of each frame.
    pub(crate) const SUMS: u8 = 2;
    /// Sequence and chain of each frame, and of each header but the first.
    pub(crate) const CHAIN: u8 = 4;
}

/// Enough for a middle between a first and a last.
const SEGMENTS_MAX: usize = 4;

const OPTIONS: Options = Options { node: NODE, segment_bytes: 16 << 10 };

struct Script<'d> {
    flags: u8,
    first: u64,
    position: Position,
    segments: Vec<&'d [u8]>,
}

/// A log. Answers whether it is sound and not empty.
pub fn log(data: &[u8]) -> bool {
    let Some(script) = Script::of(data) else { return false };
    let disk = script.lay_out();
    let mut report = Report::default();
    let sound = verify::examine(&disk, NODE, Known::default(), &mut report).is_ok();
    let mut records = 0_u64;
    let scanned = query::scan(&disk, NODE, 1, |_, _, _| {
        records += 1;
        true
    });
    let sum = query::sum(&disk, NODE, |_| true).ok();
    let last = query::tail(&disk, NODE, 1, |_| true);
    let balances = query::balances(&disk, NODE, None);
    let found = query::find(&disk, NODE, [0; 16]);
    if sound {
        assert!(scanned.is_ok() && balances.is_ok() && found.is_ok(), "sound and not readable");
        assert_eq!(report.endings.values().sum::<u64>(), records);
        assert_eq!(sum, Some(report.sum));
        let last = last.map(|last| last.first().map_or(0, |entry| entry.seq));
        assert_eq!(last.ok(), Some(report.last_seq));
        let expected = if records > 0 { report.last_seq - report.first_seq + 1 } else { 0 };
        assert_eq!(records, expected);
    }
    go_on(&disk, sound, &report);
    let checkpoint = Checkpoint { position: script.position, ..Checkpoint::default() };
    beyond(&script.lay_out(), &checkpoint);
    sound && records > 0
}

/// Opens the log and appends a record: a sound log stays sound.
fn go_on(disk: &Simulated, sound: bool, report: &Report) {
    let opened = Appender::open(disk, OPTIONS, None);
    assert!(!sound || opened.is_ok(), "a sound log can be opened");
    let Ok((mut appender, _)) = opened else { return };
    let Some(slab) = unmet(disk) else { return };
    let pushed = appender.push(&settled(slab), 0);
    assert!(!sound || pushed.is_ok(), "a sound log takes a record");
    let committed = appender.commit();
    if sound && committed.is_ok() {
        let again = verify::verify(disk, NODE, Some(appender.position()));
        let last = again.as_ref().map(|again| again.last_seq).ok();
        assert_eq!(last, Some(appender.position().next_seq - 1), "{again:?}");
        assert!(report.last_seq == 0 || last == Some(report.last_seq + 1));
    }
}

/// A slab that the log has not met: its settle sequence begins at 1.
fn unmet(disk: &Simulated) -> Option<u64> {
    let mut met = BTreeSet::new();
    let mut reader = Reader::first(disk, NODE).ok()?;
    while let Ok(Some(frame)) = reader.next() {
        met.extend(frame.slabs().map(|mark| mark.slab));
        let records = frame.records().filter_map(|(_, bytes)| Record::decode(bytes).ok());
        met.extend(records.map(|record| record.head.slab));
    }
    (1..u64::MAX).find(|slab| !met.contains(slab))
}

/// From a checkpoint that may be of any log: an answer, whatever it is.
fn beyond(disk: &Simulated, checkpoint: &Checkpoint) {
    let known = Known {
        position: Some(checkpoint.position),
        balances: Some(&checkpoint.balances),
        first_seq: 1,
    };
    let _ = verify::examine(disk, NODE, known, &mut Report::default());
    let _ = query::balances(disk, NODE, Some(checkpoint));
    let Ok((mut appender, _)) = Appender::open(disk, OPTIONS, Some(checkpoint)) else { return };
    let _ = appender.push(&settled(1), 0);
    let _ = appender.commit();
}

fn settled(slab: u64) -> Vec<u8> {
    let ending = Ending::Succeeded;
    let head = Head { slab, settle_sequence: 1, ending, cost_picousd: 5, ..Head::default() };
    let mut bytes = Vec::new();
    Record { head, tail: Tail::default() }.encode(RECORD_BYTES_MAX, &mut bytes);
    bytes
}

// === impl Script ===

impl<'d> Script<'d> {
    fn of(data: &'d [u8]) -> Option<Script<'d>> {
        let mut take = Take::new(data);
        let flags = u8::take(&mut take)?;
        let first = u64::take(&mut take)?;
        let position = Position::take(&mut take)?;
        let mut segments = Vec::new();
        while segments.len() < SEGMENTS_MAX
            && let Some(len) = u16::take(&mut take)
        {
            segments.push(take.slice(take.left().min(len.into()))?);
        }
        Some(Script { flags, first, position, segments })
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn lay_out(&self) -> Simulated {
        let disk = Simulated::new(DISK_BYTES, 1);
        let mut at = Position { next_seq: 1, ..Position::default() };
        for (index, segment) in self.segments.iter().enumerate() {
            let Some(ordinal) = self.first.checked_add(index as u64) else { break };
            let (head, frames) =
                segment.split_at(segment.len().min(<Header as Wire>::BYTES + CRC_BYTES));
            let mut bytes = head.to_vec();
            if let Some(header) = Header::take(&mut Take::new(head)) {
                let header = self.mend_header(header, index, ordinal, &at);
                if self.has(mend::HEADERS) {
                    bytes = header.bytes();
                }
                at = start_of(&header);
            }
            bytes.resize(usize::try_from(FRAMES_FROM).unwrap_or(0), 0);
            let mut frames = frames.to_vec();
            at.offset = FRAMES_FROM + self.mend_frames(&mut frames, &mut at) as u64;
            bytes.extend(frames);
            let file = disk.create(&segment::name(ordinal));
            let written = file.and_then(|file| file.write_all_at(&bytes, 0));
            assert!(written.is_ok(), "the disk has room");
        }
        disk
    }

    fn mend_header(&self, header: Header, index: usize, ordinal: u64, at: &Position) -> Header {
        let mut header = Header { node: NODE, ordinal, ..mended(header) };
        if index > 0 && self.has(mend::CHAIN) {
            header.first_seq = at.next_seq;
            header.previous_end = at.offset;
            header.chain = at.chain;
        }
        header
    }

    /// How far frames of a plausible length reach.
    fn mend_frames(&self, frames: &mut [u8], at: &mut Position) -> usize {
        let mut from = 0;
        while let Some(rest) = frames.get_mut(from..)
            && let Some(mut head) = FrameHead::take(&mut Take::new(rest))
            && let Some(frame) = rest.get_mut(..head.bytes())
            && frame.len() >= frame::HEAD_BYTES + CRC_BYTES
        {
            if self.has(mend::CHAIN) {
                (head.first_seq, head.previous) = (at.next_seq, at.chain);
                head.put(&mut Put::new(frame));
            }
            if self.has(mend::SUMS) {
                sum_up(frame);
            }
            (at.next_seq, at.chain) = (head.next_seq(), frame::hash(frame));
            from += frame.len();
        }
        from
    }
}
