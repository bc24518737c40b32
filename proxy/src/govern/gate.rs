//! What the walk asks about breakers and cool-downs, and what they are told.

use super::fault::Health;
use crate::exchange::time::MonoNs;

/// The moment of a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct At {
    /// Now.
    pub mono: MonoNs,
    /// Any number: what is drawn by chance is drawn from it.
    pub chance: u32,
}

/// How a candidate stands with breakers and cool-downs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It takes calls.
    Ready,
    /// It would take this one too, but is spared while others are ready.
    Spared,
    /// It takes none.
    Resting,
}

/// What an attempt may be beside an attempt: the probe of an open breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Of the host's.
    pub host: bool,
    /// Of the credential's.
    pub credential: bool,
}

/// The breakers, as the walk sees them.
pub trait Gate {
    /// How a candidate stands. Changes nothing.
    fn standing(&self, place: u8) -> Standing;

    /// How long a candidate that takes no calls will take none, in milliseconds. Changes nothing.
    fn rests_ms(&self, place: u8) -> u64;

    /// Begins an attempt; `None` if it rests, or somebody else has become its probe.
    fn enter(&mut self, place: u8) -> Option<Pass>;
}

/// What the breaker's words are told of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Which one.
    pub place: u8,
    /// What it was the probe of.
    pub pass: Pass,
    /// Of its host.
    pub host: Health,
    /// Of its credential.
    pub credential: Health,
    /// How long its credential is not to be asked; 0: it may. Whoever writes it bounds it.
    pub cool_ms: u64,
}
