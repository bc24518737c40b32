//! Where the next byte stands that a string cannot simply skip, for sixty-four bytes at once.
//!
//! The bytes of a window are compared together and packed into one bit each, so that finding the
//! end of a short string is a shift and a count, not a walk. Written as plain loops over arrays
//! of fixed size, which the compiler turns into vector code; no `unsafe`.

/// Bytes in a window: as many as there are bits in the mask.
const WINDOW: usize = 64;

/// Sums the eight bytes of a word into its highest byte.
const SUM_BYTES: u64 = 0x0101_0101_0101_0101;

/// The special bytes of the body in `base..base + 64` and in the sixty-four after, one bit each.
/// The second mask is made while the first is used: nothing waits for it, and that is what keeps
/// a body of short strings fast. A window describes one body at one length: a scan makes a new
/// one each time more of the body has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// A multiple of [`WINDOW`], or [`NOWHERE`].
    base: usize,
    mask: u64,
    next: u64,
}

/// No position is less than two windows away from here, wrapping included.
const NOWHERE: usize = usize::MAX - 2 * WINDOW;

impl Window {
    pub(super) fn new() -> Self {
        Self { base: NOWHERE, mask: 0, next: 0 }
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
        }
        self.advance(body, pos)
    }

    #[inline(never)]
    fn advance(&mut self, body: &[u8], pos: usize) -> usize {
        if pos.wrapping_sub(self.base) >= 2 * WINDOW {
            self.base = pos - pos % WINDOW;
            self.mask = mask_at(body, self.base);
            self.next = mask_at(body, self.base + WINDOW);
        }
        loop {
            // What lies behind the body is special, so this ends.
            let offset = pos.saturating_sub(self.base);
            if offset < WINDOW && self.mask >> offset != 0 {
                let skipped = (self.mask >> offset).trailing_zeros() as usize;
                return self.base + offset + skipped;
            }
            self.base += WINDOW;
            self.mask = self.next;
            self.next = mask_at(body, self.base + WINDOW);
        }
    }
}

/// The mask of the window at `base`; what lies behind the body counts as special.
#[inline(always)]
fn mask_at(body: &[u8], base: usize) -> u64 {
    match body.get(base..).and_then(|rest| rest.first_chunk::<WINDOW>()) {
        Some(chunk) => pack(&hits(chunk)),
        None => mask_of_tail(body.get(base..).unwrap_or_default()),
    }
}

#[inline(never)]
fn mask_of_tail(tail: &[u8]) -> u64 {
    let mut chunk = [0; WINDOW];
    if let Some(place) = chunk.get_mut(..tail.len()) {
        place.copy_from_slice(tail);
    }
    pack(&hits(&chunk))
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
fn pack(hits: &[u8; WINDOW]) -> u64 {
    let mut bytes = [0; WINDOW / 8];
    for (byte, word) in bytes.iter_mut().zip(hits.as_chunks::<8>().0) {
        *byte = u64::from_le_bytes(*word).wrapping_mul(SUM_BYTES) >> 56;
    }
    let [a, b, c, d, e, f, g, h] = bytes;
    let low = (a | b << 8) | (c << 16 | d << 24);
    let high = (e | f << 8) | (g << 16 | h << 24);
    low | high << 32
}

/// As a signed byte everything from 0x80 is negative: one comparison finds it and the controls.
#[inline(always)]
fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte.cast_signed() < 0x20)
}
