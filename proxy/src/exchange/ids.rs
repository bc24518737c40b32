//! Names of things, as types.

use std::fmt;

/// A virtual key's number; shown as `key_<n>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyId(pub u64);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key_{}", self.0)
    }
}

/// A budget's number in the ledger; 0 is a budget that the ledger does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BudgetId(pub u32);

/// A provider's place in the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProviderId(pub u16);

/// A credential's place among those of its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialIx(pub u16);

/// Bytes of a request id as text: `tgr_` and 32 letters.
pub const REQUEST_ID_TEXT: usize = 36;

/// The idempotency key of an exchange: ours, never the caller's.
///
/// Unix milliseconds (6 bytes), node (3), shard (1), start count (2), counter (4). Its text has
/// letters only, since there is a client that retries on any text that contains certain digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RequestId(pub [u8; 16]);

/// Bytes of a node's name as text.
pub const NODE_TEXT: usize = 6;

/// A node's name as it stands in the ids that it mints.
pub fn node_text(node: [u8; 3]) -> [u8; NODE_TEXT] {
    let mut text = [0; NODE_TEXT];
    spell(&node, &mut text);
    text
}

/// Two letters of a–p a byte, high half first.
fn spell(bytes: &[u8], text: &mut [u8]) {
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair[0] = b'a' + (byte >> 4);
        pair[1] = b'a' + (byte & 15);
    }
}

impl RequestId {
    /// `tgr_` and two letters of a–p a byte, high half first.
    pub fn text(self) -> [u8; REQUEST_ID_TEXT] {
        let mut text = *b"tgr_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        spell(&self.0, &mut text[4..]);
        text
    }
}

impl RequestId {
    /// What a text stands for; `None` if it is no id.
    pub fn parse(text: &str) -> Option<RequestId> {
        let letters = text.strip_prefix("tgr_")?.as_bytes();
        if letters.len() != 32 || !letters.iter().all(|letter| (b'a'..=b'p').contains(letter)) {
            return None;
        }
        let mut id = [0; 16];
        for (byte, pair) in id.iter_mut().zip(letters.chunks_exact(2)) {
            *byte = (pair[0] - b'a') << 4 | (pair[1] - b'a');
        }
        Some(RequestId(id))
    }

    /// The node that minted it.
    pub fn node(self) -> [u8; 3] {
        let [_, _, _, _, _, _, a, b, c, ..] = self.0;
        [a, b, c]
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).unwrap_or_default())
    }
}

/// Mints the ids of one shard: gapless within a start of the process.
#[derive(Debug)]
pub struct IdMint {
    /// Three bytes that tell nodes apart.
    pub node: [u8; 3],
    /// The shard's number.
    pub shard: u8,
    /// How often this node has started.
    pub start: u16,
    counter: u32,
}

impl IdMint {
    /// A mint that has minted nothing.
    pub fn new(node: [u8; 3], shard: u8, start: u16) -> IdMint {
        IdMint { node, shard, start, counter: 0 }
    }

    /// The next id.
    pub fn mint(&mut self, unix_ms: u64) -> RequestId {
        let mut id = [0; 16];
        id[..6].copy_from_slice(&unix_ms.to_be_bytes()[2..]);
        id[6..9].copy_from_slice(&self.node);
        id[9] = self.shard;
        id[10..12].copy_from_slice(&self.start.to_be_bytes());
        id[12..].copy_from_slice(&self.counter.to_be_bytes());
        self.counter = self.counter.wrapping_add(1);
        RequestId(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_letters_only_and_keeps_every_bit() {
        let mut mint = IdMint::new([0xff, 0, 0x1f], 7, 0x0102);
        let first = mint.mint(0x0000_0192_3456_789a);
        let second = mint.mint(0x0000_0192_3456_789a);
        assert_eq!(first.to_string(), "tgr_abjcdefghijkppaabpahabacaaaaaaaa");
        assert_eq!(second.to_string(), "tgr_abjcdefghijkppaabpahabacaaaaaaab");
        assert_eq!(
            RequestId::parse(&first.to_string()).map(RequestId::node),
            Some([0xff, 0, 0x1f])
        );
        assert!(first.to_string().contains(str::from_utf8(&node_text([0xff, 0, 0x1f])).unwrap()));
        assert!(first.to_string().bytes().skip(4).all(|b| b.is_ascii_lowercase()));
    }
}
