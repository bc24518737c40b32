//! Reads the log, frame by frame, beside a writer or without one.
//!
//! Every frame is checked by itself and against the one before: sequence and chain. So frames of
//! an earlier life of a recycled segment are never served. A segment ends where its successor
//! says; in the last one the log ends at the last whole frame, unless an intact later frame
//! proves that this is no end but a hole: then it is damage, named by segment and offset.
//!
//! Read-only. What it does not do: repair, follow (call [`Reader::refresh`]), judge content
//! (`verify.rs`). Bound: one frame in memory.

use crate::disk::{Disk, DiskFile};
use crate::error::{Damage, Error, Result};
use crate::frame::{FRAME_BYTES_MAX, Frame, FrameHead, HEAD_BYTES, Hash, MAGIC};
use crate::segment::{self, FRAMES_FROM, Header};
use crate::wire::wire_struct;

wire_struct! {
    /// A place between two frames: all that is needed to go on from there.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Position {
        /// Ordinal of the segment.
        pub segment: u64,
        /// Byte in it.
        pub offset: u64,
        /// Sequence of the next record.
        pub next_seq: u64,
        /// SHA-256 of the frame before.
        pub chain: Hash,
        /// Length of the frame before, if it is in this segment; else 0.
        pub frame_bytes: u64,
    }
}

/// What follows the last whole frame of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing, or old frames of a recycled segment.
    Clean,
    /// The beginning of a frame that did not become whole: a write that a crash cut short, or a
    /// damaged last frame. Only the checkpoint can tell which.
    Torn,
}

/// A walk over the log.
#[derive(Debug)]
pub struct Reader<'d, D: Disk> {
    disk: &'d D,
    node: u64,
    headers: Vec<Header>,
    open: Option<(u64, D::File)>,
    at: Position,
    frame: Vec<u8>,
    end: Option<End>,
}

// === impl Reader ===

impl<'d, D: Disk> Reader<'d, D> {
    /// At the first frame there is. A log without segments is empty.
    pub fn first(disk: &'d D, node: u64) -> Result<Reader<'d, D>> {
        let mut reader = Reader::new(disk, node)?;
        if let Some(first) = reader.headers.first() {
            reader.at = start_of(first);
        }
        Ok(reader)
    }

    /// At a position, as a checkpoint remembers one.
    pub fn at(disk: &'d D, node: u64, position: Position) -> Result<Reader<'d, D>> {
        let mut reader = Reader::first(disk, node)?;
        // The position of a log that had no segment yet is its beginning.
        if position.segment > 0 {
            reader.at = position;
        }
        Ok(reader)
    }

    /// At the beginning of the segment that has this record, or where the log ends.
    pub fn from_seq(disk: &'d D, node: u64, seq: u64) -> Result<Reader<'d, D>> {
        let mut reader = Reader::first(disk, node)?;
        if let Some(header) = reader.headers.iter().rev().find(|header| header.first_seq <= seq) {
            reader.at = start_of(header);
        }
        Ok(reader)
    }

    fn new(disk: &'d D, node: u64) -> Result<Reader<'d, D>> {
        let at = Position { next_seq: 1, ..Position::default() };
        let frame = vec![0; HEAD_BYTES];
        let mut reader =
            Reader { disk, node, headers: Vec::new(), open: None, at, frame, end: None };
        reader.refresh()?;
        Ok(reader)
    }

    /// Looks for segments that came since; the walk goes on where it stopped.
    pub fn refresh(&mut self) -> Result<()> {
        let known = self.headers.last().map_or(0, |header| header.ordinal);
        for ordinal in segment::ordinals(self.disk)? {
            if ordinal > known {
                let file = self.disk.open_to_read(&segment::name(ordinal));
                let file = file.map_err(Error::io("opening a segment"))?;
                self.headers.push(Header::read(&file, self.node, ordinal)?);
            }
        }
        if known == 0
            && self.at.segment == 0
            && let Some(first) = self.headers.first()
        {
            self.at = start_of(first);
        }
        self.end = None;
        Ok(())
    }

    /// The headers of the segments, oldest first.
    pub fn headers(&self) -> &[Header] {
        &self.headers
    }

    /// Where the next frame is, or would be.
    pub fn position(&self) -> Position {
        self.at
    }

    /// How the log ends, once [`Reader::next`] has answered `None`.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// The next frame; `None` at the end of the log.
    #[expect(clippy::should_implement_trait, reason = "it lends its buffer, an iterator cannot")]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>> {
        let Some(limit) = self.segment_limit()? else {
            return Ok(None);
        };
        match self.load(limit)? {
            Loaded::Frame => {}
            Loaded::Bad(damage) if limit.is_some() => return Err(self.damaged(damage)),
            Loaded::Bad(damage) => {
                let end = self.judge_end(damage);
                // Beside a writer the frame may have become whole meanwhile, and a later one with
                // it: no hole. What is whole now is the next frame.
                if end.is_ok() || !matches!(self.load(limit)?, Loaded::Frame) {
                    self.end = Some(end?);
                    return Ok(None);
                }
            }
        }
        let frame = Frame::checked(&self.frame).ok_or_else(|| self.damaged(Damage::Content))?;
        self.at.frame_bytes = self.frame.len() as u64;
        self.at.offset += self.at.frame_bytes;
        self.at.next_seq = frame.head.next_seq();
        self.at.chain = crate::frame::hash(&self.frame);
        Ok(Some(frame))
    }

    /// Steps to the segment the next frame is in; where that ends: `Some(None)` if it is the last,
    /// `None` if there is no segment at all.
    fn segment_limit(&mut self) -> Result<Option<Option<u64>>> {
        loop {
            let index = self.headers.iter().position(|header| header.ordinal == self.at.segment);
            let Some(index) = index else {
                // A checkpoint into a segment that is gone, or an empty log.
                return match self.headers.is_empty() && self.at.segment == 0 {
                    true => {
                        self.end = Some(End::Clean);
                        Ok(None)
                    }
                    false => Err(self.damaged(Damage::MissingSegment)),
                };
            };
            let Some(after) = self.headers.get(index + 1) else { return Ok(Some(None)) };
            if self.at.offset < after.previous_end {
                return Ok(Some(Some(after.previous_end)));
            }
            let continues = after.previous_end == self.at.offset
                && after.first_seq == self.at.next_seq
                && after.chain == self.at.chain;
            if !continues {
                return Err(Error::damaged(after.ordinal, 0, Damage::Discontinued));
            }
            self.at = start_of(after);
        }
    }

    /// Whether the frame that ends at the position is still there, whole. A position at the
    /// beginning of a segment rests on that segment's header.
    pub(crate) fn stands(&mut self) -> Result<bool> {
        let at = self.at;
        let Some(header) = self.headers.iter().find(|header| header.ordinal == at.segment) else {
            return Ok(false);
        };
        if at.frame_bytes == 0 {
            return Ok(start_of(header) == at);
        }
        let mut frame = vec![0; FRAME_BYTES_MAX.min(usize::try_from(at.frame_bytes).unwrap_or(0))];
        let from = at.offset.saturating_sub(at.frame_bytes);
        let file = self.file()?;
        let read = file.read_full_at(&mut frame, from).map_err(Error::io("reading the log"))?;
        Ok(read == frame.len() && crate::frame::hash(&frame) == at.chain)
    }

    /// Loads the frame at the position and checks that it is the next one.
    fn load(&mut self, limit: Option<u64>) -> Result<Loaded> {
        let mut head = [0; HEAD_BYTES];
        let offset = self.at.offset;
        let file = self.file()?;
        let read = file.read_full_at(&mut head, offset).map_err(Error::io("reading the log"))?;
        let known = FrameHead::read(&head).filter(|_| read == HEAD_BYTES);
        let Some(known) = known else { return Ok(Loaded::Bad(Damage::Frame)) };
        let beyond = |limit| offset.saturating_add(u64::from(known.len)) > limit;
        if limit.is_some_and(beyond) {
            return Ok(Loaded::Bad(Damage::Frame));
        }
        if known.first_seq != self.at.next_seq || known.previous != self.at.chain {
            return Ok(Loaded::Bad(Damage::Chain));
        }
        let mut frame = std::mem::take(&mut self.frame);
        frame.resize(known.bytes(), 0);
        let read = self.file()?.read_full_at(&mut frame, offset);
        self.frame = frame;
        let whole = read.map_err(Error::io("reading the log"))? == self.frame.len();
        match Frame::read(&self.frame) {
            Ok(_) if whole => Ok(Loaded::Frame),
            _ => Ok(Loaded::Bad(Damage::Frame)),
        }
    }

    /// In the last segment: whether what does not check out is the end of the log or a hole in it.
    fn judge_end(&mut self, damage: Damage) -> Result<End> {
        let mut page = vec![0; SEARCH_BYTES + HEAD_BYTES];
        let mut from = self.at.offset;
        let mut end = End::Clean;
        loop {
            let file = self.file()?;
            let read = file.read_full_at(&mut page, from).map_err(Error::io("reading the log"))?;
            let bytes = page.get(..read).unwrap_or_default();
            if from == self.at.offset && self.resembles_the_next(bytes) {
                end = End::Torn;
            }
            for step in (0..read.min(SEARCH_BYTES)).step_by(8) {
                let from_here = bytes.get(step..).unwrap_or_default();
                if !from_here.starts_with(&MAGIC.to_le_bytes()) {
                    continue;
                }
                let head = FrameHead::read(from_here);
                // Old frames have lower sequences, the broken one itself the next.
                if head.is_some_and(|head| head.first_seq > self.at.next_seq)
                    && self.is_intact(from + step as u64)?
                {
                    return Err(self.damaged(damage));
                }
            }
            if read <= SEARCH_BYTES {
                return Ok(end);
            }
            from += SEARCH_BYTES as u64;
        }
    }

    /// Whether these bytes were meant to be the next frame: one damaged bit spoils only one of
    /// the marks.
    fn resembles_the_next(&self, bytes: &[u8]) -> bool {
        let at = |from: usize, len: usize| bytes.get(from..from + len).unwrap_or_default();
        let seq = at(16, 8) == self.at.next_seq.to_le_bytes();
        // Before the first frame the chain is zeros, as an empty segment is.
        let chain = at(24, 32) == self.at.chain && self.at.chain != [0; 32];
        let magic = at(0, 4) == MAGIC.to_le_bytes();
        chain || seq && (magic || self.at.chain == [0; 32])
    }

    fn is_intact(&mut self, offset: u64) -> Result<bool> {
        let mut head = [0; HEAD_BYTES];
        let file = self.file()?;
        file.read_full_at(&mut head, offset).map_err(Error::io("reading the log"))?;
        let Some(head) = FrameHead::read(&head) else { return Ok(false) };
        let mut frame = vec![0; head.bytes().min(FRAME_BYTES_MAX)];
        let read = file.read_full_at(&mut frame, offset).map_err(Error::io("reading the log"))?;
        Ok(read == frame.len() && Frame::read(&frame).is_ok())
    }

    fn file(&mut self) -> Result<&D::File> {
        let at = self.at.segment;
        if self.open.as_ref().is_none_or(|(ordinal, _)| *ordinal != at) {
            let file = self.disk.open_to_read(&segment::name(at));
            self.open = Some((at, file.map_err(Error::io("opening a segment"))?));
        }
        let open = self.open.as_ref().map(|(_, file)| file);
        open.ok_or_else(|| Error::damaged(at, 0, Damage::MissingSegment))
    }

    fn damaged(&self, damage: Damage) -> Error {
        Error::damaged(self.at.segment, self.at.offset, damage)
    }
}

enum Loaded {
    Frame,
    Bad(Damage),
}

/// Bytes searched at a time for an intact frame behind a broken one.
const SEARCH_BYTES: usize = 1 << 20;

/// The first frame's place in a segment.
pub(crate) fn start_of(header: &Header) -> Position {
    Position {
        segment: header.ordinal,
        offset: FRAMES_FROM,
        next_seq: header.first_seq,
        chain: header.chain,
        frame_bytes: 0,
    }
}

#[cfg(test)]
mod tests;
