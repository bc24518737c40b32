//! The only place a price is applied, and the only end of an opened exchange.
//!
//! `price` runs before the last bytes of an answer go out, so that whoever has the whole answer
//! has a record; `close` adds how it ended. In this landing the record is handed to whoever
//! prints it; the slab and the ledger take its place.

use super::open::{Call, Held};
use crate::exchange::outcome::{Ending, Outcome};
use crate::exchange::refusal::Refusal;
use crate::io::Io;
use crate::shard::Shard;
use codec::usage::{Provenance, UsageEnvelope};
use store::ending;
use store::record::flag;

/// Writes usage and cost into the record. Called at most once per exchange.
pub(super) fn price(call: &Call<'_>, held: &mut Held, usage: &UsageEnvelope) {
    let prices = &call.snapshot.prices;
    let found = call.candidate.price.and_then(|index| prices.at(index));
    let record = &mut held.record;
    record.tokens = [
        usage.input_fresh,
        usage.input_cache_read,
        usage.input_cache_write_5m,
        usage.input_cache_write_1h,
        usage.output,
        usage.audio_in,
        usage.audio_out,
        usage.reasoning_of_output,
    ];
    record.provenance = match usage.provenance {
        Provenance::Reported => ending::Provenance::Reported,
        Provenance::Estimated => ending::Provenance::Estimated,
        Provenance::Missing => ending::Provenance::Missing,
    };
    record.price_version = prices.version;
    if found.is_some() {
        record.set(flag::PRICED);
    }
    record.upstream_cost_picousd = found.map_or(0, |price| price.cost(usage).0);
    record.cost_picousd = record.upstream_cost_picousd;
    held.priced = true;
}

/// Ends the exchange: exactly once, whatever happened.
pub(super) fn close<I: Io>(shard: &Shard<I>, held: &mut Held, outcome: &Outcome) {
    debug_assert!(held.open, "an exchange is closed once");
    held.open = false;
    held.record.ending = recorded(outcome.ending);
    held.record.status = outcome.status;
    held.record.closed_unix_ms = shard.now().wall.0;
    if held.record.provenance == ending::Provenance::Missing && outcome.ending == Ending::Succeeded
    {
        shard.counters.usage_missing.increment();
    }
    shard.counters.records.increment();
    if let Some(records) = &shard.records
        && records.push(held.record).is_err()
    {
        shard.counters.records_lost.increment();
    }
}

/// The ending's fixed number in the records.
fn recorded(ending: Ending) -> ending::Ending {
    match ending {
        Ending::Succeeded => ending::Ending::Succeeded,
        Ending::UpstreamError => ending::Ending::UpstreamError,
        Ending::Exhausted => ending::Ending::Exhausted,
        Ending::UpstreamCut => ending::Ending::UpstreamCut,
        Ending::Deadline => ending::Ending::Deadline,
        Ending::WriteStall => ending::Ending::WriteStall,
        Ending::ClientLeft => ending::Ending::ClientLeft,
        Ending::Shutdown => ending::Ending::Shutdown,
        Ending::Internal => ending::Ending::Internal,
    }
}

/// The outcome of an exchange that ended in a refusal of ours.
pub(super) fn refused(refusal: Refusal) -> Outcome {
    let ending = match refusal {
        Refusal::UpstreamTimeout => Ending::Deadline,
        Refusal::ShuttingDown => Ending::Shutdown,
        _ => Ending::Exhausted,
    };
    Outcome { ending, status: refusal.face().status }
}
