//! gzip of stored blocks: nothing here needs it smaller, only compressed in name. Every block ends
//! at a byte, so that what was written so far can always be read.

/// Most bytes of one stored block.
const BLOCK_MAX: usize = 0xffff;

/// One member, written piece by piece.
#[derive(Debug, Default)]
pub(super) struct Member {
    begun: bool,
    sum: crc32fast::Hasher,
    length: u64,
}

impl Member {
    /// The next bytes, to be read without what comes later.
    pub(super) fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.head(out);
        self.sum.update(bytes);
        self.length += bytes.len() as u64;
        for block in bytes.chunks(BLOCK_MAX) {
            stored(block, false, out);
        }
    }

    /// The end: a last block, the sum and the length.
    pub(super) fn end(mut self, last: &[u8], out: &mut Vec<u8>) {
        let (before, block) = last.split_at(last.len().saturating_sub(1) / BLOCK_MAX * BLOCK_MAX);
        self.write(before, out);
        self.sum.update(block);
        self.length += block.len() as u64;
        stored(block, true, out);
        out.extend_from_slice(&self.sum.finalize().to_le_bytes());
        out.extend_from_slice(&((self.length & 0xffff_ffff) as u32).to_le_bytes());
    }

    fn head(&mut self, out: &mut Vec<u8>) {
        if !self.begun {
            self.begun = true;
            out.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
        }
    }
}

/// A whole member around `bytes`.
pub(super) fn whole(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 64);
    Member::default().end(bytes, &mut out);
    out
}

fn stored(block: &[u8], last: bool, out: &mut Vec<u8>) {
    let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
    out.push(u8::from(last));
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(block);
}
