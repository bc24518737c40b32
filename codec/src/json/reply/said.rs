//! How much text a model said, for the estimate of an output nobody reported.
//!
//! Escapes count as they are written, like in the estimate of a request. It makes no tokens of
//! bytes: that is a rule of the money, not of JSON.

/// Bytes of what a model said: text, reasoning, arguments of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaidText {
    /// Bytes below 0x80.
    pub ascii: u64,
    /// Bytes from 0x80.
    pub non_ascii: u64,
}

impl SaidText {
    /// Counts the bytes of a text.
    #[inline(always)]
    pub(super) fn add(&mut self, text: &[u8]) {
        if text.is_ascii() {
            self.ascii += text.len() as u64;
        } else {
            self.add_mixed(text);
        }
    }

    #[inline(never)]
    fn add_mixed(&mut self, text: &[u8]) {
        // Sums of bytes are what the compiler counts many of at a time; 64 fit into one.
        let block = |block: &[u8]| u64::from(block.iter().map(|byte| byte >> 7).sum::<u8>());
        let non_ascii = text.chunks(64).map(block).sum::<u64>();
        self.non_ascii += non_ascii;
        self.ascii += text.len() as u64 - non_ascii;
    }

    /// Both counts together with those of `other`.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self { ascii: self.ascii + other.ascii, non_ascii: self.non_ascii + other.non_ascii }
    }
}
