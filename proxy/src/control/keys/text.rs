//! The text of a key: `tg-` and 32 letters and digits of base 32, 160 random bits.
//!
//! Full entropy, so the store keeps a plain SHA-256: a slow hash would only help whoever wants
//! the node to be slow. The text is not printable by accident and shown to one person, once.

use super::KeyFault;
use crate::exchange::keys::Digest;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;

/// Random bytes of a key.
const RANDOM_BYTES: usize = 20;

/// What every key begins with.
const MARK: &str = "tg-";

/// Length of a key's text.
pub const KEY_TEXT_BYTES: usize = 35;

/// Length of the part that is kept to recognise a key by: the mark and 30 random bits.
pub const PREFIX_BYTES: usize = 9;

const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A key's text, whole.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText(String);

// === impl KeyText ===

impl KeyText {
    /// A new one.
    pub fn mint() -> Result<KeyText, KeyFault> {
        let mut bytes = [0; RANDOM_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| KeyFault::Random)?;
        Ok(KeyText::of(bytes))
    }

    fn of(bytes: [u8; RANDOM_BYTES]) -> KeyText {
        let mut text = String::with_capacity(KEY_TEXT_BYTES);
        text.push_str(MARK);
        for five in bytes.chunks_exact(5) {
            let bits = five.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
            // Five bits at a time: every value of them has its letter.
            let letter = |at: u32| char::from(LETTERS[(bits >> (5 * at) & 31) as usize]);
            text.extend((0..8).rev().map(letter));
        }
        KeyText(text)
    }

    /// What has the form of a whole key; a key that is declared may have another.
    pub fn read(text: &str) -> Option<KeyText> {
        let letters = text.strip_prefix(MARK)?;
        let fits = text.len() == KEY_TEXT_BYTES && letters.bytes().all(|b| LETTERS.contains(&b));
        fits.then(|| KeyText(text.to_owned()))
    }

    /// For the one answer that shows it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is kept of it to find it.
    pub fn digest(&self) -> Digest {
        let mut out = [0; 32];
        out.copy_from_slice(digest(&SHA256, self.0.as_bytes()).as_ref());
        out
    }

    /// What is kept of it to recognise it.
    pub fn prefix(&self) -> &str {
        self.0.get(..PREFIX_BYTES).unwrap_or_default()
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_is_in_the_text_and_it_reads_back() {
        assert_eq!(KeyText::of([0; 20]).reveal(), "tg-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        assert_eq!(KeyText::of([255; 20]).reveal(), "tg-77777777777777777777777777777777");
        let mut one = [0; 20];
        for bit in 0..160 {
            one.fill(0);
            one[bit / 8] = 1 << (bit % 8);
            let text = KeyText::of(one);
            assert_ne!(text, KeyText::of([0; 20]), "{bit}");
            assert_eq!(KeyText::read(text.reveal()), Some(text));
        }
        let (first, second) = (KeyText::mint().unwrap(), KeyText::mint().unwrap());
        assert_ne!(first, second);
        assert_eq!((first.prefix().len(), &first.prefix()[..3]), (9, "tg-"));
        assert_eq!(format!("{first:?}"), "[key]");
    }

    #[test]
    fn what_is_no_key_is_none() {
        let good = KeyText::of([7; 20]);
        for text in [
            "",
            "tg-",
            &good.reveal()[..34],
            &format!("{}a", good.reveal()),
            &good.reveal().to_uppercase(),
            &good.reveal().replace("tg-", "sk-"),
            "tg-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1",
            "tg-éaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ] {
            assert_eq!(KeyText::read(text), None, "{text}");
        }
    }
}
