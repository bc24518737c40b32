//! Every key of a node, by the SHA-256 of its text: what a shard asks when a connection shows a
//! credential it has not shown before.
//!
//! The table is cut into stripes by the digest's first byte. A stripe is a sorted slice that is
//! replaced whole, so a look-up waits for nobody; changing a key copies one stripe. One number
//! counts the changes: whoever remembers a bundle remembers the number with it.
//!
//! Bounds: none of its own; a stripe of a hundred thousand keys has four hundred.

use super::bundle::Bundle;
use arc_swap::ArcSwap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// SHA-256 of a key's text.
pub type Digest = [u8; 32];

/// One for each value of a digest's first byte.
const STRIPES: usize = 256;

type Stripe = Box<[(Digest, Arc<Bundle>)]>;

/// The keys of a node.
pub struct KeyTable {
    stripes: Box<[ArcSwap<Stripe>]>,
    /// How often something was changed.
    version: AtomicU64,
}

impl KeyTable {
    /// A table of these keys. Of two with the same digest the later one counts.
    pub fn of(keys: impl IntoIterator<Item = (Digest, Arc<Bundle>)>) -> KeyTable {
        let mut stripes: Vec<Vec<(Digest, Arc<Bundle>)>> = vec![Vec::new(); STRIPES];
        for (digest, bundle) in keys {
            stripes[usize::from(digest[0])].push((digest, bundle));
        }
        let sorted = stripes.into_iter().map(|mut stripe| {
            // Stable, and the last of equals is kept: the later one counts.
            stripe.reverse();
            stripe.sort_by_key(|(digest, _)| *digest);
            stripe.dedup_by_key(|(digest, _)| *digest);
            ArcSwap::from_pointee(stripe.into_boxed_slice())
        });
        KeyTable { stripes: sorted.collect(), version: AtomicU64::new(1) }
    }

    /// The bundle of a key, if it is known.
    pub fn find(&self, digest: &Digest) -> Option<Arc<Bundle>> {
        let stripe = self.stripes[usize::from(digest[0])].load();
        let at = stripe.binary_search_by_key(digest, |(digest, _)| *digest).ok()?;
        stripe.get(at).map(|(_, bundle)| bundle.clone())
    }

    /// Adds a key, or gives a known one another bundle. For the control thread.
    pub fn put(&self, digest: Digest, bundle: Arc<Bundle>) {
        // Made anew if another change got ahead.
        self.stripes[usize::from(digest[0])].rcu(|stripe| {
            let mut keys = stripe.to_vec();
            match keys.binary_search_by_key(&digest, |(digest, _)| *digest) {
                Ok(at) => keys[at].1 = bundle.clone(),
                Err(at) => keys.insert(at, (digest, bundle.clone())),
            }
            keys.into_boxed_slice()
        });
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Changes with every change of the table.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Every bundle, in no order. For the control thread.
    pub fn each(&self, mut each: impl FnMut(&Arc<Bundle>)) {
        for stripe in &self.stripes {
            stripe.load().iter().for_each(|(_, bundle)| each(bundle));
        }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.stripes.iter().map(|stripe| stripe.load().len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for KeyTable {
    fn default() -> KeyTable {
        KeyTable::of([])
    }
}

impl fmt::Debug for KeyTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyTable").field("keys", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::ids::KeyId;

    fn bundle(id: u64) -> Arc<Bundle> {
        Arc::new(Bundle::new(KeyId(id), "k"))
    }

    fn digest(first: u8, last: u8) -> Digest {
        let mut digest = [7; 32];
        (digest[0], digest[31]) = (first, last);
        digest
    }

    #[test]
    fn a_key_is_found_by_its_whole_digest() {
        let places = [(0, 0), (0, 1), (9, 200), (255, 255), (9, 3)];
        let keys = places.iter().zip(1..).map(|(at, id)| (digest(at.0, at.1), bundle(id)));
        let table = KeyTable::of(keys);
        for (at, id) in places.iter().zip(1..) {
            assert_eq!(table.find(&digest(at.0, at.1)).map(|b| b.key.0), Some(id));
        }
        assert!(table.find(&digest(9, 4)).is_none() && table.find(&digest(1, 0)).is_none());
        assert_eq!(table.len(), 5);
    }

    #[test]
    fn a_change_is_seen_and_counted() {
        let table = KeyTable::of([(digest(1, 1), bundle(1)), (digest(1, 1), bundle(2))]);
        assert_eq!(table.find(&digest(1, 1)).map(|b| b.key.0), Some(2), "the later one");
        let before = table.version();
        table.put(digest(1, 0), bundle(3));
        table.put(digest(1, 1), bundle(4));
        assert_ne!(table.version(), before);
        assert_eq!(table.find(&digest(1, 0)).map(|b| b.key.0), Some(3));
        assert_eq!(table.find(&digest(1, 1)).map(|b| b.key.0), Some(4));
        let mut seen = 0;
        table.each(|_| seen += 1);
        assert_eq!((seen, table.is_empty()), (2, false));
        assert!(KeyTable::default().is_empty());
    }
}
