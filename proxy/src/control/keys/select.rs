//! How a person says which key is meant: `key_7`, `7`, the beginning of its text, its name, or
//! `sha256:` and its digest. What fits several keys is refused rather than guessed.
//!
//! Whoever has the whole text of a key can name it by that; the text itself goes no further than
//! [`Selector::read`].

use super::{KeyFault, KeyText};
use crate::exchange::keys::Digest;
use std::fmt::Write as _;
use store::state::{KeyRow, KeyState, State};

/// What the digest of a key is written behind.
const DIGEST_MARK: &str = "sha256:";

/// What every prefix begins with: shorter texts would fit every key.
const PREFIX_MARK: &str = "tg-";

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// By its digest.
    Digest(Digest),
    /// By number, prefix or name, whichever fits.
    Text(Box<str>),
}

// === impl Selector ===

impl Selector {
    /// Reads what a person wrote.
    pub fn read(text: &str) -> Result<Selector, KeyFault> {
        if let Some(key) = KeyText::read(text) {
            return Ok(Selector::Digest(key.digest()));
        }
        if let Some(hex) = text.strip_prefix(DIGEST_MARK) {
            let digest = digest(hex).ok_or_else(|| {
                KeyFault::Invalid("sha256: is followed by 64 hexadecimal digits".to_owned())
            });
            return digest.map(Selector::Digest);
        }
        if text.is_empty() {
            return Err(KeyFault::Invalid("a key is named by number, prefix or name".to_owned()));
        }
        Ok(Selector::Text(text.into()))
    }

    /// As it can be read again, by somebody who need not see a key's text.
    pub fn text(&self) -> String {
        match self {
            Selector::Digest(digest) => {
                let mut text = DIGEST_MARK.to_owned();
                for byte in digest {
                    // Writing to a String cannot fail.
                    let _ = write!(text, "{byte:02x}");
                }
                text
            }
            Selector::Text(text) => text.to_string(),
        }
    }

    /// The one key that is meant.
    pub(super) fn find(&self, state: &State) -> Result<KeyRow, KeyFault> {
        let text = match self {
            Selector::Digest(digest) => return state.key_of(digest)?.ok_or(KeyFault::NotFound),
            Selector::Text(text) => text,
        };
        let id = number(text.strip_prefix("key_").unwrap_or(text));
        let prefix =
            (text.starts_with(PREFIX_MARK) && text.len() > PREFIX_MARK.len()).then_some(text);
        let mut found: Vec<KeyRow> = Vec::new();
        state.keys_after(0, |row| {
            let begins = |prefix: &Box<str>| row.prefix.starts_with(&**prefix);
            if Some(row.id) == id || prefix.is_some_and(begins) || *row.name == **text {
                found.push(row);
            }
            true
        })?;
        if found.len() > 1 {
            // A name is free again once its key is revoked: then the other one is meant.
            let named = found.iter().all(|row| *row.name == **text);
            let left = found.iter().filter(|row| row.state != KeyState::Revoked).count();
            if named && left == 1 {
                found.retain(|row| row.state != KeyState::Revoked);
            }
        }
        if found.len() > 1 {
            return Err(KeyFault::Ambiguous(found.iter().map(|row| row.id).collect()));
        }
        found.pop().ok_or(KeyFault::NotFound)
    }
}

/// Digits alone.
fn number(digits: &str) -> Option<u64> {
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn digest(hex: &str) -> Option<Digest> {
    let mut digest = [0; 32];
    if hex.len() != 2 * digest.len() || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    for (n, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * n..2 * n + 2)?, 16).ok()?;
    }
    Some(digest)
}
