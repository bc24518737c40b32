//! Where the next byte stands that a string cannot simply skip, for sixty-four bytes at once.
//!
//! The bytes of a window are compared together and packed into one bit each, so that finding the
//! end of a short string is a shift and a count, not a walk. Written as plain loops over arrays
//! of fixed size, which the compiler turns into vector code; no `unsafe`.

/// Bytes in a window: as many as there are bits in the mask.
const WINDOW: usize = 64;

/// Sums the eight bytes of a word into its highest byte.
const SUM_BYTES: u64 = 0x0101_0101_0101_0101;

/// The special bytes of the body in `base..base + 64`, one bit each. It describes one body at
/// one length: a scan makes a new one each time more of the body has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    base: usize,
    mask: u64,
}

impl Window {
    pub(super) fn new() -> Self {
        // No position is less than a window's length away from here, wrapping included.
        Self { base: usize::MAX - WINDOW, mask: 0 }
    }

    /// The first position from `pos` on that is a quote, a backslash, a control character or not
    /// ASCII; the length of the body if there is none.
    #[inline(always)]
    pub(super) fn next_special(&mut self, body: &[u8], pos: usize) -> usize {
        let offset = pos.wrapping_sub(self.base);
        if offset < WINDOW {
            let rest = self.mask >> offset;
            if rest != 0 {
                return pos + rest.trailing_zeros() as usize;
            }
            return self.refill(body, self.base + WINDOW);
        }
        self.refill(body, pos)
    }

    #[inline(never)]
    fn refill(&mut self, body: &[u8], mut pos: usize) -> usize {
        while let Some(chunk) = body.get(pos..).and_then(|rest| rest.first_chunk::<WINDOW>()) {
            let hits = hits(chunk);
            if any(&hits) {
                self.base = pos;
                self.mask = pack(&hits);
                return pos + self.mask.trailing_zeros() as usize;
            }
            pos += WINDOW;
        }
        self.refill_tail(body, pos)
    }

    /// The last bytes of the body. What lies behind them counts as special, so the search ends
    /// at the body's length.
    fn refill_tail(&mut self, body: &[u8], pos: usize) -> usize {
        let tail = body.get(pos..).unwrap_or_default();
        let mut chunk = [0; WINDOW];
        if let Some(place) = chunk.get_mut(..tail.len()) {
            place.copy_from_slice(tail);
        }
        self.base = pos;
        self.mask = pack(&hits(&chunk));
        (pos + self.mask.trailing_zeros() as usize).min(body.len())
    }
}

/// For each special byte the bit of its place in its word of eight.
#[inline(always)]
fn hits(chunk: &[u8; WINDOW]) -> [u8; WINDOW] {
    let mut hits = [0; WINDOW];
    for (index, (hit, &byte)) in hits.iter_mut().zip(chunk).enumerate() {
        *hit = if is_special(byte) { 1 << (index % 8) } else { 0 };
    }
    hits
}

#[inline(always)]
fn any(hits: &[u8; WINDOW]) -> bool {
    let mut words = 0;
    for word in hits.as_chunks::<16>().0 {
        words |= u128::from_ne_bytes(*word);
    }
    words != 0
}

#[inline(always)]
fn pack(hits: &[u8; WINDOW]) -> u64 {
    let mut mask = 0;
    for (index, word) in hits.as_chunks::<8>().0.iter().enumerate() {
        mask |= (u64::from_le_bytes(*word).wrapping_mul(SUM_BYTES) >> 56) << (8 * index);
    }
    mask
}

/// As a signed byte everything from 0x80 is negative: one comparison finds it and the controls.
#[inline(always)]
fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte.cast_signed() < 0x20)
}
