//! Keys, as the control thread makes them: what a configuration declares becomes a bundle.

use crate::config::DeclaredKey;
use crate::exchange::bundle::Bundle;
use crate::exchange::ids::KeyId;
use crate::exchange::keys::KeyTable;
use crate::exchange::limits::{Books, Limits};
use crate::exchange::time::UnixMs;
use std::sync::Arc;

/// The declared keys of a node without a ledger: numbered in the order of the file.
pub fn declared(keys: &[DeclaredKey], now: UnixMs) -> KeyTable {
    let bundles = keys.iter().zip(1..).map(|(key, id)| {
        let limits = Limits::new(key.limits.clone(), Books::default(), now);
        (key.digest, Arc::new(Bundle::with_limits(KeyId(id), &key.name, limits)))
    });
    KeyTable::of(bundles)
}
