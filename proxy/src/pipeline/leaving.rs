//! A client that leaves before its answer is over. What the upstream has been asked for is mostly
//! paid for already, so the answer may be read on for a while, for its usage alone.
//!
//! Bounds: the time and bytes that the ending's rule grants; [`DRAINS_MAX`] answers at once a
//! shard: beyond that the upstream is cut at once.

use super::client::Client;
use super::held::Held;
use super::open::Call;
use crate::exchange::rules::ClientLeft;
use crate::govern::layer::Layer;
use crate::govern::{Governance, Passing};
use crate::io::{Io, Stream, TICK};
use crate::shard::Shard;
use std::cell::Cell;
use std::time::Duration;

/// Answers that a shard reads on for nobody: each keeps a buffer and an upstream connection, and a
/// fleet that is stopped leaves all at once.
pub(super) const DRAINS_MAX: usize = 256;

/// Longest time that an answer is read to its end for nobody: the longest answers of models take
/// minutes.
const DRAIN_LONGEST: Duration = Duration::from_secs(600);

/// What is still read of an answer nobody waits for.
pub(super) struct Leaving<'s> {
    places: &'s Cell<usize>,
    until: u64,
    bytes: u64,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.places.set(self.places.get() - 1);
    }
}

/// The client is seen gone: gives back what only a present client takes up, and decides whether
/// the answer is read on. False: it is not.
pub(super) fn left<I: Io>(
    shard: &Shard<I>,
    client: &Client<I::Stream>,
    call: &mut Call<'_>,
    held: &mut Held,
) -> bool {
    client.stream.shutdown();
    if let Some(bundle) = &held.bundle {
        Governance::default().leave(bundle, &mut held.layers);
        Passing::default().leave(bundle, &mut held.passing);
    }
    let rules = call.endings;
    let places = call.drains;
    if places.get() >= DRAINS_MAX || shard.cut.get() || call.is_free {
        return false;
    }
    let (ticks, bytes) = match rules.client_left {
        ClientLeft::Abort => return false,
        ClientLeft::DrainShort => {
            (ticks(Duration::from_millis(rules.drain_ms.into())), rules.drain_bytes)
        }
        // No total on a live stream: what bounds it are the upstream's own deadlines, and the node.
        ClientLeft::Drain => (ticks(DRAIN_LONGEST), u64::MAX),
    };
    places.set(places.get() + 1);
    shard.counters.drains.increment();
    call.leaving = Some(Leaving { places, until: client.timer.tick() + ticks, bytes });
    true
}

/// A span in ticks of a shard, rounded up.
pub(super) fn ticks(span: Duration) -> u64 {
    span.as_millis().div_ceil(TICK.as_millis()) as u64
}

/// So many ticks.
pub(super) fn span(ticks: u64) -> Duration {
    TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))
}

impl Leaving<'_> {
    /// How long it may still take; nothing when its time is over.
    pub(super) fn rest(&self, tick: u64) -> Option<Duration> {
        let ticks = self.until.checked_sub(tick).filter(|ticks| *ticks > 0)?;
        Some(span(ticks))
    }

    /// Takes bytes that were read for nobody; false when they were too many.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let left = self.bytes.checked_sub(bytes as u64);
        self.bytes = left.unwrap_or(0);
        left.is_some()
    }
}
