//! Segments: files of fixed size that the log is cut into.
//!
//! A segment is made under another name, filled with zeros ahead of time (or taken over from a
//! removed one), given its header, synced, and only then called `seg-<20 digits>.log`: a name of
//! that form always has a whole header. The digits are an ordinal. The header says where the
//! segment *before* it ends, so a segment that was given up after a failed write ends where its
//! successor says, whatever bytes follow there.
//!
//! A segment taken over keeps the frames of its earlier life behind the new ones; they never
//! continue the chain, and nothing here relies on their absence.

use crate::disk::{Disk, DiskFile};
use crate::error::{Damage, Error, Result};
use crate::frame::{FRAME_BYTES_MAX, Hash};
use crate::wire::{Take, Wire, encoded, wire_struct};
use std::io;

/// Size of a segment: rotation every few minutes at full load, and recovery reads at most one
/// second of it.
pub const SEGMENT_BYTES: u64 = 64 << 20;

/// Frames begin here: a page, so that the header is never in the same sector as a frame.
pub const FRAMES_FROM: u64 = 4096;

/// Segments that wait for their turn, filled or taken over.
pub const SPARES_MAX: usize = 4;

/// The largest frame has room in a segment of the usual size.
const _: () = assert!(FRAMES_FROM + FRAME_BYTES_MAX as u64 <= SEGMENT_BYTES);

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"TOLLSEG1");
pub(crate) const VERSION: u16 = 1;
const FILL_BYTES: usize = 1 << 20;
/// Filled and not synced: a commit of the log waits behind so much at most, not behind a segment.
const UNSYNCED_MAX: u64 = 4 << 20;
/// What writes past the cache are aligned to.
const PAGE: usize = 4096;
const SPARE: &str = "spare-";
const MAKING: &str = "making.tmp";
/// Not the same: another thread may be filling a spare at that moment.
const BEGINNING: &str = "beginning.tmp";

wire_struct! {
    /// What a segment says of itself.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Header {
        /// `TOLLSEG1`.
        pub magic: u64,
        /// Layout of the header.
        pub version: u16,
        /// Zero.
        pub reserved: [u16; 3],
        /// The node whose log it is.
        pub node: u64,
        /// Its place among the segments.
        pub ordinal: u64,
        /// Sequence of its first record.
        pub first_seq: u64,
        /// Where the segment before it ends; 0 if there is none.
        pub previous_end: u64,
        /// SHA-256 of the last frame before it.
        pub chain: Hash,
    }
}

const HEADER_BYTES: usize = <Header as Wire>::BYTES;

/// The file name of a segment.
pub fn name(ordinal: u64) -> String {
    format!("seg-{ordinal:020}.log")
}

/// The ordinal in a file name.
pub fn ordinal(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("seg-")?.strip_suffix(".log")?;
    let plain = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

// === impl Header ===

impl Header {
    pub(crate) fn new(node: u64, ordinal: u64, first_seq: u64, end: u64, chain: Hash) -> Header {
        let (magic, version, reserved) = (MAGIC, VERSION, [0; 3]);
        Header { magic, version, reserved, node, ordinal, first_seq, previous_end: end, chain }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = encoded::<Header, HEADER_BYTES>(self).to_vec();
        let crc = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        // The rest of the page too: a segment taken over has an older header there.
        bytes.resize(usize::try_from(FRAMES_FROM).unwrap_or(HEADER_BYTES), 0);
        bytes
    }

    /// Reads the header of a segment and checks that it is this one.
    pub(crate) fn read(file: &impl DiskFile, node: u64, ordinal: u64) -> Result<Header> {
        let mut bytes = [0; HEADER_BYTES + 4];
        file.read_full_at(&mut bytes, 0).map_err(Error::io("reading a segment's header"))?;
        let damaged = |damage| Error::damaged(ordinal, 0, damage);
        let mut take = Take::new(&bytes);
        let header = Header::take(&mut take).ok_or_else(|| damaged(Damage::Header))?;
        let crc = u32::take(&mut take).unwrap_or_default();
        let covered = bytes.split_last_chunk::<4>().map_or(0, |(rest, _)| crc32fast::hash(rest));
        if header.magic != MAGIC || header.version != VERSION || crc != covered {
            return Err(damaged(Damage::Header));
        }
        if header.ordinal != ordinal || header.first_seq == 0 {
            return Err(damaged(Damage::Header));
        }
        if header.node != node {
            return Err(damaged(Damage::ForeignNode));
        }
        Ok(header)
    }
}

/// The ordinals there are, in order. A gap is damage: a segment in the middle is gone.
pub(crate) fn ordinals(disk: &impl Disk) -> Result<Vec<u64>> {
    let names = disk.names().map_err(Error::io("listing the ledger"))?;
    let mut ordinals: Vec<u64> = names.iter().filter_map(|name| ordinal(name)).collect();
    ordinals.sort_unstable();
    for (index, pair) in ordinals.iter().zip(ordinals.iter().skip(1)) {
        if index + 1 != *pair {
            return Err(Error::damaged(index + 1, 0, Damage::MissingSegment));
        }
    }
    Ok(ordinals)
}

/// Makes a spare segment, filled with zeros and synced, unless there is one. Takes its time
/// (64 MiB): not for the thread that commits.
pub fn prepare(disk: &impl Disk, bytes: u64) -> Result<()> {
    if !spares(disk)?.is_empty() {
        return Ok(());
    }
    let made = make_spare(disk, bytes);
    if made.is_err() {
        // A half-made file must not take the room that the disk is short of.
        let _ = disk.remove(MAKING);
    }
    made
}

fn make_spare(disk: &impl Disk, bytes: u64) -> Result<()> {
    let _ = disk.remove(MAKING);
    let file = disk.create(MAKING).map_err(Error::io("making a segment"))?;
    file.allocate(bytes).map_err(Error::io("reserving a segment"))?;
    // Past the cache it takes a tenth of the CPU: nobody reads these zeros, and the kernel need
    // not find a page for each 4 KiB of them.
    let past_cache = disk.open_past_cache(MAKING);
    if past_cache.and_then(|past| fill(&past, bytes, u64::MAX)).is_err() {
        fill(&file, bytes, UNSYNCED_MAX).map_err(Error::io("filling a segment"))?;
    }
    file.sync().map_err(Error::io("syncing a new segment"))?;
    disk.rename(MAKING, &format!("{SPARE}{:020}", 0)).map_err(Error::io("naming a segment"))
}

fn fill(file: &impl DiskFile, bytes: u64, unsynced_max: u64) -> io::Result<()> {
    let memory = vec![0; FILL_BYTES + PAGE];
    let from = memory.as_ptr().align_offset(PAGE).min(PAGE);
    let zeros = memory.get(from..from + FILL_BYTES).unwrap_or_default();
    let mut offset = 0;
    while offset < bytes && !zeros.is_empty() {
        let left = usize::try_from(bytes - offset).unwrap_or(usize::MAX);
        let part = zeros.get(..left.min(FILL_BYTES)).unwrap_or_default();
        file.write_all_at(part, offset)?;
        offset += part.len() as u64;
        if offset.is_multiple_of(unsynced_max) {
            file.sync()?;
        }
    }
    Ok(())
}

/// Turns segments nobody needs any more into spares, or removes them: all up to and with
/// `ordinal`. The caller has seen to it that exporters and checkpoints are past them.
pub fn retire(disk: &impl Disk, upto: u64) -> Result<usize> {
    let mut spare = spares(disk)?.len();
    let mut retired = 0;
    let ordinals = ordinals(disk)?;
    // Oldest first, so that what is left has no gap whenever this ends; the last one never goes.
    for at in ordinals.iter().take(ordinals.len().saturating_sub(1)).filter(|at| **at <= upto) {
        let from = name(*at);
        let gone = if spare < SPARES_MAX {
            spare += 1;
            disk.rename(&from, &format!("{SPARE}{at:020}"))
        } else {
            disk.remove(&from)
        };
        gone.map_err(Error::io("retiring a segment"))?;
        disk.sync_names().map_err(Error::io("syncing names"))?;
        retired += 1;
    }
    Ok(retired)
}

fn spares(disk: &impl Disk) -> Result<Vec<String>> {
    let names = disk.names().map_err(Error::io("listing the ledger"))?;
    Ok(names.into_iter().filter(|name| name.starts_with(SPARE)).collect())
}

/// Begins a segment: takes a spare or makes a file, writes the header, syncs, names it.
pub(crate) fn begin<D: Disk>(disk: &D, header: &Header, bytes: u64) -> Result<D::File> {
    let spare = spares(disk)?.into_iter().next();
    let from = match spare {
        Some(name) => {
            // While its old name can come back with a power cut, its old header must stay.
            disk.sync_names().map_err(Error::io("syncing names"))?;
            name
        }
        None => {
            // No spare in time: reserved without filling, slower syncs instead of a stall.
            let _ = disk.remove(BEGINNING);
            let file = disk.create(BEGINNING).map_err(Error::io("making a segment"))?;
            if let Err(error) = file.allocate(bytes) {
                let _ = disk.remove(BEGINNING);
                return Err(Error::io("reserving a segment")(error));
            }
            BEGINNING.to_owned()
        }
    };
    let file = disk.open(&from).map_err(Error::io("opening a segment"))?;
    // A spare of an earlier configuration may be smaller.
    file.allocate(bytes).map_err(Error::io("reserving a segment"))?;
    file.write_all_at(&header.bytes(), 0).map_err(Error::io("writing a segment's header"))?;
    file.sync().map_err(Error::io("syncing a segment's header"))?;
    disk.rename(&from, &name(header.ordinal)).map_err(Error::io("naming a segment"))?;
    disk.sync_names().map_err(Error::io("syncing names"))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Folder;
    use crate::disk::simulated::Simulated;
    use crate::frame::tests::hex;

    fn header(ordinal: u64) -> Header {
        Header::new(7, ordinal, 100, 4096, [9; 32])
    }

    #[test]
    fn names_are_ordinals_and_nothing_else() {
        assert_eq!(name(7), "seg-00000000000000000007.log");
        assert_eq!(ordinal(&name(u64::MAX)), Some(u64::MAX));
        for name in ["seg-7.log", "seg-+0000000000000000007.log", "spare-1", "lock"] {
            assert_eq!(ordinal(name), None, "{name}");
        }
    }

    #[test]
    fn version_1_is_what_it_was() {
        let chain = std::array::from_fn(|n| 0xA0 + u8::try_from(n).unwrap());
        let header = Header::new(0x1111_0001, 0x2222_0002, 0x3333_0003, 0x4444_0004, chain);
        let bytes = header.bytes();
        let (header, rest) = bytes.split_at(HEADER_BYTES + 4);
        let golden = include_str!("../tests/golden/segment-v1.hex");
        assert_eq!(hex(header), golden, "a change of the layout is a new version");
        assert!(rest.iter().all(|byte| *byte == 0));
        assert_eq!((bytes.len() as u64, FRAMES_FROM), (4096, 4096), "frames begin at a page");
    }

    #[test]
    fn a_header_says_whose_it_is() {
        let disk = Simulated::new(1 << 20, 1);
        let file = begin(&disk, &header(3), 8192).unwrap();
        assert_eq!(Header::read(&file, 7, 3).unwrap(), header(3));
        let damage = |node, ordinal| match Header::read(&file, node, ordinal) {
            Err(Error::Damaged { damage, .. }) => damage,
            other => panic!("{other:?}"),
        };
        assert_eq!(damage(8, 3), Damage::ForeignNode);
        let numbered = |first_seq| Header { first_seq, ..header(5) };
        let file = begin(&disk, &numbered(0), 8192).unwrap();
        assert!(Header::read(&file, 7, 5).is_err(), "records are counted from 1");
        assert_eq!(damage(7, 4), Damage::Header);
        disk.damage(&name(3), |bytes| bytes[40] ^= 1);
        assert_eq!(damage(7, 3), Damage::Header);
    }

    #[test]
    fn retired_segments_are_taken_over_and_a_gap_is_damage() {
        let disk = Simulated::new(1 << 20, 1);
        for at in 1..=3 {
            begin(&disk, &header(at), 8192).unwrap();
        }
        assert_eq!(retire(&disk, 99).unwrap(), 2, "the last one stays");
        assert_eq!(ordinals(&disk).unwrap(), [3]);
        begin(&disk, &header(4), 8192).unwrap();
        let mut names = disk.names().unwrap();
        names.sort();
        assert_eq!(names, [name(3), name(4), format!("spare-{:020}", 2)]);
        begin(&disk, &header(6), 8192).unwrap();
        assert!(matches!(ordinals(&disk), Err(Error::Damaged { place, .. }) if place.segment == 5));
    }

    #[test]
    fn a_segment_is_filled_ahead_and_leaves_nothing_where_there_is_no_room() {
        let disk = Simulated::new(10_000, 1);
        prepare(&disk, 8192).unwrap();
        prepare(&disk, 8192).unwrap();
        assert_eq!(disk.names().unwrap().len(), 1);
        disk.remove(&format!("spare-{:020}", 0)).unwrap();
        disk.sync_names().unwrap();
        assert!(prepare(&disk, 20_000).unwrap_err().is_full());
        assert!(disk.names().unwrap().is_empty());
    }

    /// Past the cache where the length and the file system allow it, else through it.
    #[test]
    fn a_spare_of_a_real_disk_has_its_blocks_and_only_zeros() {
        let name = format!("store-segment-test-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let disk = Folder::make(&path).unwrap();
        for bytes in [2 << 20, (1 << 20) + 8192, (1 << 20) + 512] {
            prepare(&disk, bytes).unwrap();
            let [spare] = &disk.names().unwrap()[..] else { panic!("one spare") };
            let content = std::fs::read(path.join(spare)).unwrap();
            assert_eq!(content.len() as u64, bytes);
            assert!(content.iter().all(|byte| *byte == 0));
            begin(&disk, &header(1), bytes).unwrap();
            disk.remove(&super::name(1)).unwrap();
        }
        std::fs::remove_dir_all(path).unwrap();
    }
}
