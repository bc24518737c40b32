//! What must hold for every input, as entries for the fuzz targets and for the test of their
//! corpora: no panic, an end, and what was read says again what it was read from.
//!
//! Checksums would turn nearly every input away, so each entry also makes them right ("mends")
//! and asks again. An entry answers whether anything sound was found: that keeps seeds honest.
//! Not used on the data path. Bound: a disk of [`DISK_BYTES`], a slab of 256 KiB.

use crate::disk::simulated::Simulated;
use crate::disk::{Disk, DiskFile};
use crate::frame::{self, Batch, Frame, FrameHead};
use crate::record::{self, RECORD_BYTES_MAX, Record, Settled, flag};
use crate::segment::{self, Header};
use crate::state::KeyRow;
use crate::wire::{Put, Take, Wire};

mod log;
mod slab;

pub use log::log;
pub use slab::slab;

/// The node whose log and slabs these are.
const NODE: u64 = 7;

/// More than any input becomes.
const DISK_BYTES: u64 = 8 << 20;

const CRC_BYTES: usize = 4;

/// A record: written again it is the same, but for what is over its bound and flagged.
pub fn record(data: &[u8]) -> bool {
    let Ok(record) = Record::decode(data) else { return false };
    let mut again = Vec::new();
    record.encode(RECORD_BYTES_MAX, &mut again);
    let bytes = record::PRELUDE_BYTES + record::HEAD_BYTES + record.tail.bytes();
    if bytes == data.len() && bytes <= RECORD_BYTES_MAX {
        assert_eq!(again, data, "a record written again");
    } else {
        let cut = Record::decode(&again).is_ok_and(|cut| cut.head.has(flag::TAIL_CUT));
        assert!(cut, "what is over its bound is cut and says so");
    }
    let settled = Settled::from(&record);
    assert!(record.tail.model_asked.starts_with(settled.model.as_str()));
    true
}

/// A frame, as it is and mended.
pub fn frame(data: &[u8]) -> bool {
    let mut mended = data.get(..data.len() & !7).unwrap_or_default().to_vec();
    if let Some(head) = FrameHead::take(&mut Take::new(&mended)) {
        let len = u32::try_from(mended.len()).unwrap_or(u32::MAX);
        let (magic, version) = (frame::MAGIC, frame::VERSION);
        FrameHead { magic, version, len, ..head }.put(&mut Put::new(&mut mended));
        sum_up(&mut mended);
    }
    read_frame(data) | read_frame(&mended)
}

/// Makes the checksum in the last four bytes right.
fn sum_up(bytes: &mut [u8]) {
    if let Some((covered, crc)) = bytes.split_last_chunk_mut::<CRC_BYTES>() {
        *crc = crc32fast::hash(covered).to_le_bytes();
    }
}

fn read_frame(data: &[u8]) -> bool {
    let Ok(frame) = Frame::read(data) else { return false };
    let head = frame.head;
    assert_eq!(FrameHead::read(data), Some(head));
    assert!(Frame::checked(data).is_some_and(|again| again.head == head));
    let (slabs, totals) = (frame.slabs().collect::<Vec<_>>(), frame.totals().collect::<Vec<_>>());
    assert_eq!((slabs.len(), totals.len()), (head.slabs.into(), head.totals.into()));
    assert_eq!(frame.records().count(), usize::from(head.records));
    assert_eq!(frame.records().last().map(|(seq, _)| seq + 1), Some(head.next_seq()));
    let mut batch = Batch::default();
    let mut whole = true;
    for (_, bytes) in frame.records() {
        whole &= batch.push(bytes);
        record(bytes);
    }
    if whole {
        let sealed = batch.seal(head.first_seq, &head.previous, &slabs, &totals);
        // One of an older version differs in that, and so in its checksum.
        let mut again = sealed.bytes().to_vec();
        head.put(&mut Put::new(&mut again));
        sum_up(&mut again);
        assert_eq!(again, data, "a frame sealed again");
    }
    true
}

/// The header of a segment, as it is and mended.
pub fn header(data: &[u8]) -> bool {
    let again = Header::take(&mut Take::new(data)).map(|header| mended(header).bytes());
    read_header(data) | read_header(&again.unwrap_or_default())
}

fn mended(header: Header) -> Header {
    Header { magic: segment::MAGIC, version: segment::VERSION, ..header }
}

fn read_header(data: &[u8]) -> bool {
    let claimed = Header::take(&mut Take::new(data));
    let (node, ordinal) = claimed.map_or((NODE, 1), |header| (header.node, header.ordinal));
    let disk = Simulated::new(DISK_BYTES, 1);
    let Ok(file) = disk.create("header") else { return false };
    assert!(file.write_all_at(data, 0).is_ok(), "the disk has room");
    assert!(Header::read(&file, node, ordinal ^ 1).is_err(), "another segment's");
    assert!(Header::read(&file, node ^ 1, ordinal).is_err(), "another node's");
    let Ok(header) = Header::read(&file, node, ordinal) else { return false };
    let len = <Header as Wire>::BYTES + CRC_BYTES;
    assert_eq!(header.bytes().get(..len), data.get(..len), "a header written again");
    true
}

/// The row of a key: what can be read can be written, and is the same.
pub fn key(data: &[u8]) -> bool {
    let Some(row) = KeyRow::decode(1, data) else { return false };
    assert_eq!(row.encode().ok().as_deref(), Some(data), "a row written again");
    true
}

#[cfg(test)]
mod tests;
