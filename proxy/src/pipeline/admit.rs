//! What needs no plan. No layer exists in this landing; what is refused here is what the node
//! cannot do now, or not yet.

use crate::exchange::refusal::Refusal;
use crate::io::Io;
use crate::shard::Shard;
use codec::json::RequestSpans;

/// Lets a call in.
pub(super) fn gate<I: Io>(shard: &Shard<I>, spans: &RequestSpans) -> Result<(), Refusal> {
    if shard.draining.get() {
        return Err(Refusal::ShuttingDown);
    }
    if spans.stream == Some(true) {
        return Err(Refusal::StreamNotServed);
    }
    Ok(())
}
