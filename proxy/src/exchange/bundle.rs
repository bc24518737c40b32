//! All that holds for one key.

use super::ids::KeyId;
use super::limits::Limits;
use super::refusal::Refusal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// States of a key, as the state word spells them. Only a disabled key can become active again.
const ACTIVE: u32 = 0;
const REVOKED: u32 = 1;
const DISABLED: u32 = 2;

/// What a key's state word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// Calls are let through.
    Active,
    /// Ended for good.
    Revoked,
    /// Switched off for now.
    Disabled,
}

/// Everything that holds for one key.
#[derive(Debug)]
pub struct Bundle {
    /// The key's number.
    pub key: KeyId,
    /// Its name, for people.
    pub name: Box<str>,
    /// Its project; 0 is none.
    pub project: u32,
    /// Its limits.
    pub limits: Limits,
    /// One store here is seen by every shard at once, by whichever bundle of the key.
    state: Arc<AtomicU32>,
}

impl Bundle {
    /// An active key without limits.
    pub fn new(key: KeyId, name: &str) -> Bundle {
        Bundle::with_limits(key, name, Limits::default())
    }

    /// An active key.
    pub fn with_limits(key: KeyId, name: &str, limits: Limits) -> Bundle {
        let state = Arc::new(AtomicU32::new(ACTIVE));
        Bundle { key, name: name.into(), project: 0, limits, state }
    }

    /// The same key with other limits: the state word stays one.
    pub fn changed(&self, limits: Limits) -> Bundle {
        Bundle {
            key: self.key,
            name: self.name.clone(),
            project: self.project,
            limits,
            state: self.state.clone(),
        }
    }

    /// What the state word says now.
    pub fn state(&self) -> KeyState {
        match self.state.load(Ordering::Relaxed) {
            ACTIVE => KeyState::Active,
            DISABLED => KeyState::Disabled,
            _ => KeyState::Revoked,
        }
    }

    /// Whether calls are let through; read at authentication and before every attempt.
    pub fn is_active(&self) -> bool {
        self.state() == KeyState::Active
    }

    /// As [`Bundle::is_active`], with what to tell the caller if not.
    pub fn standing(&self) -> Result<(), Refusal> {
        match self.state() {
            KeyState::Active => Ok(()),
            KeyState::Revoked => Err(Refusal::KeyRevoked),
            KeyState::Disabled => Err(Refusal::KeyDisabled),
        }
    }

    /// Ends the key, at once and for good.
    pub fn revoke(&self) {
        self.state.store(REVOKED, Ordering::Relaxed);
    }

    /// Switches an active key off, at once.
    pub fn disable(&self) {
        self.turn(ACTIVE, DISABLED);
    }

    /// Switches a disabled key on again. A revoked key stays revoked.
    pub fn enable(&self) {
        self.turn(DISABLED, ACTIVE);
    }

    fn turn(&self, from: u32, to: u32) {
        // Another state than `from` is one this change is not for.
        let _ = self.state.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disabled_key_comes_back_and_a_revoked_one_does_not() {
        let bundle = Bundle::new(KeyId(1), "ci");
        assert_eq!(bundle.standing(), Ok(()));
        bundle.disable();
        assert_eq!(bundle.standing(), Err(Refusal::KeyDisabled));
        bundle.enable();
        assert!(bundle.is_active());
        bundle.disable();
        bundle.revoke();
        bundle.enable();
        bundle.disable();
        assert_eq!(bundle.standing(), Err(Refusal::KeyRevoked));
        assert_eq!(bundle.changed(Limits::default()).standing(), Err(Refusal::KeyRevoked));
    }
}
