//! The credential in the head → who calls. Before a body byte is read.
//!
//! A connection remembers the last credential that was good, so that a client that sends the same
//! one with every call is hashed and looked up once. Only the key's state is read every time.

use super::client::Client;
use crate::exchange::bundle::{Bundle, Principal};
use crate::exchange::keys::{Digest, KeyTable};
use crate::exchange::refusal::Refusal;
use ring::digest::{SHA256, digest};
use std::sync::Arc;

/// What a connection's client has shown. Not printable: it holds credentials.
#[derive(Default)]
pub(super) struct Caller {
    /// The credential of the request at hand; empty if it has none.
    presented: Vec<u8>,
    /// The last one that was good, and what it stands for.
    known: Vec<u8>,
    bundle: Option<Arc<Bundle>>,
    /// The version of the table in which it was found.
    version: u64,
}

/// Who calls.
pub(super) fn identify<S>(client: &mut Client<S>, keys: &KeyTable) -> Result<Principal, Refusal> {
    client.caller.identify(keys)
}

impl Caller {
    /// Takes the credential of a request.
    pub(super) fn present(&mut self, credential: &[u8]) {
        self.presented.clear();
        self.presented.extend_from_slice(credential);
    }

    /// Who calls. Unknown credentials are not told from missing ones.
    pub(super) fn identify(&mut self, keys: &KeyTable) -> Result<Principal, Refusal> {
        if self.presented.is_empty() {
            return Err(Refusal::InvalidApiKey);
        }
        let bundle = match &self.bundle {
            Some(bundle) if self.is_known(keys) => bundle.clone(),
            _ => self.look_up(keys)?,
        };
        bundle.standing()?;
        Ok(Principal { bundle })
    }

    /// Compares with what this same connection has sent before: the time it takes tells the
    /// client nothing that it did not say itself.
    fn is_known(&self, keys: &KeyTable) -> bool {
        self.version == keys.version() && self.known == self.presented
    }

    #[inline(never)]
    fn look_up(&mut self, keys: &KeyTable) -> Result<Arc<Bundle>, Refusal> {
        self.bundle = None;
        // Before the look-up: a change in between costs one more, and is not missed.
        self.version = keys.version();
        let bundle = keys.find(&sha256(&self.presented)).ok_or(Refusal::InvalidApiKey)?;
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
    use crate::exchange::ids::KeyId;

    #[test]
    fn what_is_remembered_holds_only_for_the_same_text_and_the_same_keys() {
        let (first, second) =
            (Arc::new(Bundle::new(KeyId(1), "a")), Arc::new(Bundle::new(KeyId(2), "b")));
        let digests = [sha256(b"one"), sha256(b"two")];
        let keys = KeyTable::of(digests.into_iter().zip([first, second.clone()]));
        let mut caller = Caller::default();
        let mut who = |text: &str| {
            caller.present(text.as_bytes());
            caller.identify(&keys).map(|who| who.bundle.key.0)
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
