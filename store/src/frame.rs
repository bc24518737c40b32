//! One commit in the log: records verbatim, what they did to the totals, and the chain.
//!
//! ```text
//! head 56 B │ n × { length u16, record } │ slabs × 16 B │ totals × 72 B │ 0–7 zero │ CRC u32
//! ```
//!
//! The head names the sequence of the first record and the SHA-256 of the frame before, so a
//! frame of an earlier life of a recycled segment never passes for the next one; the CRC-32 covers
//! all that precedes it. The slab table says how far each incarnation's settle sequence has come:
//! that is exactly-once without an index. Length is a multiple of 8, hence frames are aligned.
//!
//! Bound: [`FRAME_BYTES_MAX`]. Nothing here knows of files.

use crate::balance::{Account, Total};
use crate::record::RECORD_BYTES_MAX;
use crate::wire::{Put, Take, Wire, wire_struct};
use ring::digest::{SHA256, digest};

/// "TLF1" in a hex dump.
pub const MAGIC: u32 = u32::from_le_bytes(*b"TLF1");

/// The version of this layout, and of what its totals are: from 2 on refusals are stated apart.
pub const VERSION: u16 = 2;

/// The oldest version that is read.
const VERSION_OLDEST: u16 = 1;

/// Fixed part before the records.
pub const HEAD_BYTES: usize = 56;

/// Records of a frame. A commit takes 4,096 at most (see `commit.rs`).
pub const RECORDS_MAX: usize = 4096;

/// Bytes of records that make a commit due; the last one may go beyond.
pub const RECORD_BYTES_DUE: usize = 1 << 20;

/// Slab incarnations in a frame: one a shard, twice during an upgrade.
pub const SLABS_MAX: usize = 1024;

const ACCOUNTS_MAX: usize = RECORDS_MAX * Account::OF_RECORD_MAX;
const CRC_BYTES: usize = 4;

/// No frame is longer: a length beyond it is damage and is not allocated.
pub const FRAME_BYTES_MAX: usize = HEAD_BYTES
    + RECORD_BYTES_DUE
    + RECORD_BYTES_MAX
    + 2 * RECORDS_MAX
    + SLABS_MAX * <SlabMark as Wire>::BYTES
    + ACCOUNTS_MAX * <Stated as Wire>::BYTES
    + 7
    + CRC_BYTES;

/// SHA-256 of a frame.
pub type Hash = [u8; 32];

wire_struct! {
    /// How far a slab's settle sequence has come.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SlabMark {
        /// The incarnation, by shard and start.
        pub slab: u64,
        /// The highest settle sequence in the log up to and with this frame.
        pub settle_sequence: u64,
    }
}

wire_struct! {
    /// An account's absolute total after this frame.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Stated {
        /// Which.
        pub account: Account,
        /// How much.
        pub total: Total,
    }
}

wire_struct! {
    /// The fixed part.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FrameHead {
        /// [`MAGIC`].
        pub magic: u32,
        /// [`VERSION`], or an older one.
        pub version: u16,
        /// How many records.
        pub records: u16,
        /// Length of the whole frame.
        pub len: u32,
        /// How many slabs.
        pub slabs: u16,
        /// How many totals.
        pub totals: u16,
        /// Sequence of the first record, from 1.
        pub first_seq: u64,
        /// SHA-256 of the frame before; zero before the first.
        pub previous: Hash,
    }
}

const _: () = assert!(<FrameHead as Wire>::BYTES == HEAD_BYTES);

/// A frame being put together. Records are copied in as they come; the rest is added at the end.
#[derive(Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    records: u16,
}

/// A frame as read, checked by itself; whether it continues the chain is the reader's question.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'b> {
    /// The fixed part.
    pub head: FrameHead,
    records: &'b [u8],
    slabs: &'b [u8],
    totals: &'b [u8],
}

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAFrame {
    /// The head is not one.
    Head,
    /// Bytes are missing.
    Short,
    /// The checksum does not match.
    Checksum,
    /// The counts do not match the length.
    Content,
}

// === impl Batch ===

impl Default for Batch {
    fn default() -> Batch {
        Batch { bytes: vec![0; HEAD_BYTES], records: 0 }
    }
}

impl Batch {
    /// Adds a record. `false`: it is longer than a record may be, or the batch is full.
    pub fn push(&mut self, record: &[u8]) -> bool {
        let Ok(len) = u16::try_from(record.len()) else { return false };
        if self.is_full() || record.len() > RECORD_BYTES_MAX {
            return false;
        }
        self.bytes.extend_from_slice(&len.to_le_bytes());
        self.bytes.extend_from_slice(record);
        self.records += 1;
        true
    }

    /// Records so far.
    pub fn records(&self) -> u16 {
        self.records
    }

    /// Whether it must be committed before another record comes in.
    pub fn is_full(&self) -> bool {
        usize::from(self.records) >= RECORDS_MAX || self.record_bytes() >= RECORD_BYTES_DUE
    }

    /// Bytes of records so far, without their lengths.
    pub fn record_bytes(&self) -> usize {
        self.bytes.len() - HEAD_BYTES - 2 * usize::from(self.records)
    }

    /// The whole frame. The records stay in the batch until [`Batch::clear`]: a failed write is
    /// tried again elsewhere with the same bytes.
    pub fn seal(
        &mut self,
        first_seq: u64,
        previous: &Hash,
        slabs: &[SlabMark],
        totals: &[Stated],
    ) -> Sealed<'_> {
        let records_end = self.bytes.len();
        let body = slabs.len() * SlabMark::BYTES + totals.len() * Stated::BYTES;
        let len = (records_end + body + CRC_BYTES).next_multiple_of(8);
        self.bytes.resize(len - CRC_BYTES, 0);
        let head = FrameHead {
            magic: MAGIC,
            version: VERSION,
            records: self.records,
            // Bounded by FRAME_BYTES_MAX, SLABS_MAX, ACCOUNTS_MAX.
            len: u32::try_from(len).unwrap_or(u32::MAX),
            slabs: u16::try_from(slabs.len()).unwrap_or(u16::MAX),
            totals: u16::try_from(totals.len()).unwrap_or(u16::MAX),
            first_seq,
            previous: *previous,
        };
        head.put(&mut Put::new(&mut self.bytes));
        let (_, tables) = self.bytes.split_at_mut(records_end);
        let mut put = Put::new(tables);
        slabs.iter().for_each(|mark| mark.put(&mut put));
        totals.iter().for_each(|stated| stated.put(&mut put));
        debug_assert!(put.is_whole(), "the frame was sized for its tables");
        let crc = crc32fast::hash(&self.bytes);
        self.bytes.extend_from_slice(&crc.to_le_bytes());
        Sealed { batch: self, records_end }
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEAD_BYTES);
        self.records = 0;
    }
}

/// A batch with everything of a frame around it; dropping it leaves the records alone.
#[derive(Debug)]
pub struct Sealed<'b> {
    batch: &'b mut Batch,
    records_end: usize,
}

// === impl Sealed ===

impl Sealed<'_> {
    /// The frame.
    pub fn bytes(&self) -> &[u8] {
        &self.batch.bytes
    }

    /// What the next frame calls the previous one.
    pub fn hash(&self) -> Hash {
        hash(&self.batch.bytes)
    }
}

impl Drop for Sealed<'_> {
    fn drop(&mut self) {
        self.batch.bytes.truncate(self.records_end);
    }
}

/// SHA-256 of a whole frame.
pub fn hash(frame: &[u8]) -> Hash {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, frame).as_ref());
    hash
}

// === impl FrameHead ===

impl FrameHead {
    /// Reads a head whose own fields make sense; `None` otherwise.
    pub fn read(bytes: &[u8]) -> Option<FrameHead> {
        let head = FrameHead::take(&mut Take::new(bytes))?;
        let len = usize::try_from(head.len).ok()?;
        let fits = (HEAD_BYTES + CRC_BYTES..=FRAME_BYTES_MAX).contains(&len);
        let version = (VERSION_OLDEST..=VERSION).contains(&head.version);
        let known = head.magic == MAGIC && version && head.records > 0;
        let bounded = usize::from(head.records) <= RECORDS_MAX
            && usize::from(head.slabs) <= SLABS_MAX
            && usize::from(head.totals) <= ACCOUNTS_MAX;
        let numbered =
            head.first_seq > 0 && head.first_seq.checked_add(head.records.into()).is_some();
        (known && fits && len.is_multiple_of(8) && bounded && numbered).then_some(head)
    }

    /// Length of the frame.
    pub fn bytes(&self) -> usize {
        usize::try_from(self.len).unwrap_or(usize::MAX)
    }

    /// Sequence of the record after the last.
    pub fn next_seq(&self) -> u64 {
        self.first_seq.saturating_add(self.records.into())
    }
}

// === impl Frame ===

impl<'b> Frame<'b> {
    /// Reads the frame that is exactly `bytes`.
    pub fn read(bytes: &'b [u8]) -> Result<Frame<'b>, NotAFrame> {
        let head = FrameHead::read(bytes).ok_or(NotAFrame::Head)?;
        let Some((covered, crc)) = bytes.split_last_chunk::<CRC_BYTES>() else {
            return Err(NotAFrame::Short);
        };
        if bytes.len() != head.bytes() {
            return Err(NotAFrame::Short);
        }
        if crc32fast::hash(covered) != u32::from_le_bytes(*crc) {
            return Err(NotAFrame::Checksum);
        }
        Frame::content(head, covered).ok_or(NotAFrame::Content)
    }

    /// Reads a frame that [`Frame::read`] has accepted, without the checksum.
    pub(crate) fn checked(bytes: &'b [u8]) -> Option<Frame<'b>> {
        let (covered, _) = bytes.split_last_chunk::<CRC_BYTES>()?;
        Frame::content(FrameHead::read(bytes)?, covered)
    }

    fn content(head: FrameHead, covered: &'b [u8]) -> Option<Frame<'b>> {
        let body = covered.get(HEAD_BYTES..)?;
        let mut take = Take::new(body);
        for _ in 0..head.records {
            let len = u16::take(&mut take)?;
            take.slice(len.into())?;
        }
        let records = body.get(..body.len() - take.left())?;
        let slabs = take.slice(usize::from(head.slabs) * SlabMark::BYTES)?;
        let totals = take.slice(usize::from(head.totals) * Stated::BYTES)?;
        let padding = take.slice(take.left())?;
        let whole = padding.len() < 8 && padding.iter().all(|byte| *byte == 0);
        whole.then_some(Frame { head, records, slabs, totals })
    }

    /// The records, each with its sequence.
    pub fn records(&self) -> impl Iterator<Item = (u64, &'b [u8])> + use<'b> {
        let mut take = Take::new(self.records);
        let records = std::iter::from_fn(move || {
            let len = u16::take(&mut take)?;
            take.slice(len.into())
        });
        // The records first: a sequence beyond the last one need not exist.
        records.zip(self.head.first_seq..).map(|(record, seq)| (seq, record))
    }

    /// The slab table.
    pub fn slabs(&self) -> impl Iterator<Item = SlabMark> + use<'b> {
        let mut take = Take::new(self.slabs);
        std::iter::from_fn(move || SlabMark::take(&mut take))
    }

    /// The totals.
    pub fn totals(&self) -> impl Iterator<Item = Stated> + use<'b> {
        let mut take = Take::new(self.totals);
        std::iter::from_fn(move || Stated::take(&mut take))
    }
}

#[cfg(test)]
pub(crate) mod tests;
