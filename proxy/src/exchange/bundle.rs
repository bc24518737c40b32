//! All that holds for one key.

use super::ids::KeyId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// States of a key, as the state word spells them.
const ACTIVE: u32 = 0;
const REVOKED: u32 = 1;

/// Who calls: what the credential in the head stands for.
#[derive(Clone, Debug)]
pub struct Principal {
    /// The key's bundle, shared node-wide.
    pub bundle: Arc<Bundle>,
}

/// Everything that holds for one key.
#[derive(Debug)]
pub struct Bundle {
    /// The key's number.
    pub key: KeyId,
    /// Its name, for people.
    pub name: Box<str>,
    /// One store here is seen by every shard at once.
    state: AtomicU32,
}

impl Bundle {
    /// An active key.
    pub fn new(key: KeyId, name: &str) -> Bundle {
        Bundle { key, name: name.into(), state: AtomicU32::new(ACTIVE) }
    }

    /// Whether calls are let through; read at authentication and before every attempt.
    pub fn is_active(&self) -> bool {
        self.state.load(Ordering::Relaxed) == ACTIVE
    }

    /// Ends the key, at once and for good.
    pub fn revoke(&self) {
        self.state.store(REVOKED, Ordering::Relaxed);
    }
}
