//! The credential in the head → who calls. Before a body byte is read.
//!
//! A connection remembers the last credential that was good, so that a client that sends the same
//! one with every call is hashed and looked up once. Only the key's state is read every time. The
//! count of a remembered bundle is this thread's: shards that serve one key share no count.

use super::client::Client;
use super::held::{Held, Payer};
use crate::exchange::keys::{Digest, KeyTable};
use crate::exchange::refusal::Refusal;
use ring::digest::{SHA256, digest};
use std::rc::Rc;

/// What a connection's client has shown. Not printable: it holds credentials.
#[derive(Default)]
pub(super) struct Caller {
    /// The credential of the request at hand; empty if it has none.
    presented: Vec<u8>,
    /// The last one that was good, and what it stands for.
    known: Vec<u8>,
    bundle: Option<Payer>,
    /// The version of the table in which it was found.
    version: u64,
}

/// Who calls. Whose key is known is noted in `held` even where the key is not good any more: the
/// refusal leaves a record.
pub(super) fn identify<S>(
    client: &mut Client<S>,
    keys: &KeyTable,
    held: &mut Held,
) -> Result<Payer, Refusal> {
    let bundle = client.caller.identify(keys)?;
    held.bundle = Some(bundle.clone());
    bundle.standing()?;
    Ok(bundle)
}

impl Caller {
    /// Takes the credential of a request.
    pub(super) fn present(&mut self, credential: &[u8]) {
        self.presented.clear();
        self.presented.extend_from_slice(credential);
    }

    /// Who calls. Unknown credentials are not told from missing ones.
    pub(super) fn identify(&mut self, keys: &KeyTable) -> Result<Payer, Refusal> {
        if self.presented.is_empty() {
            return Err(Refusal::InvalidApiKey);
        }
        match &self.bundle {
            Some(bundle) if self.is_known(keys) => Ok(bundle.clone()),
            _ => self.look_up(keys),
        }
    }

    /// Compares with what this same connection has sent before: the time it takes tells the
    /// client nothing that it did not say itself.
    fn is_known(&self, keys: &KeyTable) -> bool {
        self.version == keys.version() && self.known == self.presented
    }

    #[inline(never)]
    fn look_up(&mut self, keys: &KeyTable) -> Result<Payer, Refusal> {
        self.bundle = None;
        // Before the look-up: a change in between costs one more, and is not missed.
        self.version = keys.version();
        let bundle = keys.find(&sha256(&self.presented)).ok_or(Refusal::InvalidApiKey)?;
        let bundle = Rc::new(bundle);
        self.known.clone_from(&self.presented);
        self.bundle = Some(bundle.clone());
        Ok(bundle)
    }
}

/// SHA-256, the form in which keys are known.
fn sha256(text: &[u8]) -> Digest {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, text).as_ref());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::bundle::Bundle;
    use crate::exchange::ids::KeyId;
    use std::sync::Arc;

    #[test]
    fn what_is_remembered_holds_only_for_the_same_text_and_the_same_keys() {
        let (first, second) =
            (Arc::new(Bundle::new(KeyId(1), "a")), Arc::new(Bundle::new(KeyId(2), "b")));
        let digests = [sha256(b"one"), sha256(b"two")];
        let keys = KeyTable::of(digests.into_iter().zip([first, second.clone()]));
        let mut caller = Caller::default();
        let mut who = |text: &str| {
            caller.present(text.as_bytes());
            let bundle = caller.identify(&keys)?;
            bundle.standing().map(|()| bundle.key.0)
        };
        assert_eq!(who(""), Err(Refusal::InvalidApiKey));
        assert_eq!((who("one"), who("one"), who("two")), (Ok(1), Ok(1), Ok(2)));
        assert_eq!(who("three"), Err(Refusal::InvalidApiKey));
        assert_eq!(who("one"), Ok(1));
        keys.put(sha256(b"one"), Arc::new(Bundle::new(KeyId(3), "c")));
        assert_eq!((who("one"), who("")), (Ok(3), Err(Refusal::InvalidApiKey)));
        assert_eq!(who("two"), Ok(2));
        second.revoke();
        assert_eq!(who("two"), Err(Refusal::KeyRevoked), "seen at once");
    }
}
