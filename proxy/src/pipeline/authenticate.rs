//! The credential in the head → who calls. Before a body byte is read.
//!
//! A connection remembers the last credential that was good, so that a client that sends the same
//! one with every call is hashed and looked up once. Only the key's state is read every time.

use super::client::Client;
use crate::config::snapshot::Snapshot;
use crate::exchange::bundle::{Bundle, Principal};
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
    /// The configuration in which it was found.
    version: u64,
}

/// Who calls.
pub(super) fn identify<S>(
    client: &mut Client<S>,
    snapshot: &Snapshot,
) -> Result<Principal, Refusal> {
    client.caller.identify(snapshot)
}

impl Caller {
    /// Takes the credential of a request.
    pub(super) fn present(&mut self, credential: &[u8]) {
        self.presented.clear();
        self.presented.extend_from_slice(credential);
    }

    /// Who calls. Unknown credentials are not told from missing ones.
    pub(super) fn identify(&mut self, snapshot: &Snapshot) -> Result<Principal, Refusal> {
        if self.presented.is_empty() {
            return Err(Refusal::InvalidApiKey);
        }
        let bundle = match &self.bundle {
            Some(bundle) if self.is_known(snapshot) => bundle.clone(),
            _ => self.look_up(snapshot)?,
        };
        if !bundle.is_active() {
            return Err(Refusal::KeyRevoked);
        }
        Ok(Principal { bundle })
    }

    /// Compares with what this same connection has sent before: the time it takes tells the
    /// client nothing that it did not say itself.
    fn is_known(&self, snapshot: &Snapshot) -> bool {
        self.version == snapshot.version && self.known == self.presented
    }

    #[inline(never)]
    fn look_up(&mut self, snapshot: &Snapshot) -> Result<Arc<Bundle>, Refusal> {
        self.bundle = None;
        let key = sha256(&self.presented);
        let bundle = snapshot.keys.get(&key).ok_or(Refusal::InvalidApiKey)?.clone();
        self.known.clone_from(&self.presented);
        self.version = snapshot.version;
        self.bundle = Some(bundle.clone());
        Ok(bundle)
    }
}

/// SHA-256, the form in which keys are known.
fn sha256(text: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, text).as_ref());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::ids::KeyId;
    use std::collections::HashMap;

    fn snapshot(version: u64, keys: &[(&str, &Arc<Bundle>)]) -> Snapshot {
        let keys = keys.iter().map(|(text, b)| (sha256(text.as_bytes()), Arc::clone(b)));
        Snapshot {
            version,
            providers: Box::new([]),
            models: HashMap::new(),
            aliases: HashMap::new(),
            keys: keys.collect(),
            prices: Default::default(),
            deadlines: Default::default(),
            bounds: Default::default(),
        }
    }

    #[test]
    fn what_is_remembered_holds_only_for_the_same_text_and_the_same_configuration() {
        let (first, second) =
            (Arc::new(Bundle::new(KeyId(1), "a")), Arc::new(Bundle::new(KeyId(2), "b")));
        let old = snapshot(1, &[("one", &first), ("two", &second)]);
        let new = snapshot(2, &[("two", &second)]);
        let mut caller = Caller::default();
        let mut who = |snapshot: &Snapshot, text: &str| {
            caller.present(text.as_bytes());
            caller.identify(snapshot).map(|who| who.bundle.key.0)
        };
        assert_eq!(who(&old, ""), Err(Refusal::InvalidApiKey));
        assert_eq!(who(&old, "one"), Ok(1));
        assert_eq!(who(&old, "one"), Ok(1));
        assert_eq!(who(&old, "two"), Ok(2));
        assert_eq!(who(&old, "three"), Err(Refusal::InvalidApiKey));
        assert_eq!(who(&old, "one"), Ok(1));
        assert_eq!(who(&new, "one"), Err(Refusal::InvalidApiKey), "gone from the configuration");
        assert_eq!(who(&new, ""), Err(Refusal::InvalidApiKey));
        assert_eq!(who(&new, "two"), Ok(2));
        second.revoke();
        assert_eq!(who(&new, "two"), Err(Refusal::KeyRevoked), "seen at once");
    }
}
