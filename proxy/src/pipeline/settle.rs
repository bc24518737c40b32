//! The only place where a cost is written, and the only end of an exchange.
//!
//! `expect` notes what the exchange is charged if the process dies; `price` runs before the last
//! bytes of an answer go out, so that whoever has the whole answer has a confirm; `close` adds how
//! it ended, and gives back or trues up what the layers took. A refusal of a known key goes
//! straight to its end, as a record of its own or counted. A call that costs nothing passes here
//! without any of it: only what the layers took is given back.

use super::held::{Held, Stage};
use super::open::Call;
use super::refuse::Origin;
use crate::exchange::call::Route;
use crate::exchange::codes;
use crate::exchange::money::PicoUsd;
use crate::exchange::outcome::{Ending, Outcome};
use crate::exchange::price::Mode;
use crate::exchange::refusal::Refusal;
use crate::exchange::rules::Unreported;
use crate::exchange::time::Now;
use crate::govern::layer::Layer;
use crate::govern::price::PriceSource;
use crate::govern::{self, Governance, Passing, estimate};
use crate::io::Io;
use crate::shard::Shard;
use crate::shard::refused::Trace;
use codec::usage::{Provenance, UsageEnvelope, UsageFlags};
use store::ending::{self, Release, StatusClass};
use store::record::{Head, flag};
use store::tail::Tail;

/// Bits that say where a price comes from.
const PRICE_FLAGS: u32 = flag::PRICED | flag::PRICE_FALLBACK | flag::PRICE_HINT;

/// Writes the charge that stands until there is a better one: the estimated input.
pub(super) fn expect(call: &Call<'_>, held: &mut Held) {
    let usage = UsageEnvelope {
        input_fresh: held.input_estimate,
        provenance: Provenance::Estimated,
        ..UsageEnvelope::default()
    };
    charge(call, held, &usage);
}

/// OPEN → SENT, before the first byte of an attempt leaves.
pub(super) fn sent<I: Io>(shard: &Shard<I>, held: &mut Held) {
    if !held.stage.is_opened() {
        return;
    }
    held.stage = Stage::Sent;
    // Until more is known: whoever finds it after a crash must not take it for free.
    held.record.attempt_ended(StatusClass::None, true);
    if let (Some(slab), Some(slot)) = (&shard.slab, &held.slot) {
        slab.borrow().sent(slot, &held.record.head);
    }
}

/// What is charged if the process dies now: usage and bytes of an answer as it passes.
pub(super) fn note<I: Io>(
    shard: &Shard<I>,
    call: &Call<'_>,
    held: &mut Held,
    usage: &UsageEnvelope,
) {
    if held.stage != Stage::Sent {
        return;
    }
    charge(call, held, usage);
    if let (Some(slab), Some(slot)) = (&shard.slab, &held.slot) {
        slab.borrow().sent(slot, &held.record.head);
    }
}

/// What is charged for an answer that does not say what it used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Estimate {
    /// Nothing: it is an error.
    Nothing,
    /// What was noted, else what its text counts.
    Passed,
    /// Nothing, because the rule of its ending says so.
    Released,
}

/// The usage an answer is charged for, of what could be read of it: what it reported, else by
/// `estimate`. Text that nobody could count counts as the bytes that were relayed.
pub(super) fn usage(
    held: &mut Held,
    (read, said): (UsageEnvelope, Option<(u64, u64)>),
    estimate: Estimate,
) -> UsageEnvelope {
    held.record.release = Release::None;
    if read.provenance == Provenance::Reported {
        return read;
    }
    let (ascii, other) = said.unwrap_or((held.record.relayed_bytes, 0));
    match estimate {
        Estimate::Nothing => read,
        Estimate::Passed => {
            let output = estimate::text_tokens(ascii, other);
            estimate::unreported(&read, u64::from(held.input_estimate), output)
        }
        Estimate::Released => {
            held.record.release = Release::Rule;
            UsageEnvelope { flags: read.flags, ..UsageEnvelope::default() }
        }
    }
}

/// SENT → PRICED: usage and cost, before the last bytes go out.
pub(super) fn price<I: Io>(
    shard: &Shard<I>,
    call: &Call<'_>,
    held: &mut Held,
    usage: &UsageEnvelope,
) {
    if !held.stage.is_opened() {
        return;
    }
    charge(call, held, usage);
    held.stage = Stage::Priced;
    if let (Some(slab), Some(slot)) = (&shard.slab, &held.slot) {
        slab.borrow().price(slot, &held.record.head);
    }
}

/// The same for an answer that is an error and says nothing of usage: it has used nothing.
pub(super) fn price_none<I: Io>(shard: &Shard<I>, call: &Call<'_>, held: &mut Held) {
    if held.stage != Stage::Priced {
        price(shard, call, held, &UsageEnvelope::default());
    }
}

fn charge(call: &Call<'_>, held: &mut Held, usage: &UsageEnvelope) {
    let snapshot = call.snapshot;
    let found = call.price().and_then(|index| snapshot.prices.at(index));
    let mode = snapshot.provider(call.current().provider).mode;
    let bill = govern::price::bill(usage, found, None, mode, &snapshot.terms);
    let head = &mut held.record.head;
    head.tokens = [
        usage.input_fresh,
        usage.input_cache_read,
        usage.input_cache_write_5m,
        usage.input_cache_write_1h,
        usage.output,
        usage.audio_in,
        usage.audio_out,
        usage.reasoning_of_output,
    ];
    head.provenance = match usage.provenance {
        Provenance::Reported => ending::Provenance::Reported,
        Provenance::Estimated => ending::Provenance::Estimated,
        Provenance::Missing => ending::Provenance::Missing,
    };
    head.mode = match bill.mode {
        Mode::Managed(_) => ending::Mode::Managed,
        Mode::PlatformFee => ending::Mode::PlatformFee,
        Mode::None => ending::Mode::None,
    };
    head.markup_ppm = bill.ppm;
    head.flags &= !(PRICE_FLAGS | flag::USAGE_AMBIGUOUS | flag::USAGE_IMPOSSIBLE);
    head.flags |= match bill.source {
        PriceSource::Catalogue => flag::PRICED,
        PriceSource::Fallback => flag::PRICED | flag::PRICE_FALLBACK,
        PriceSource::Hint => flag::PRICED | flag::PRICE_HINT,
        PriceSource::Unpriced => 0,
    };
    if usage.flags.contains(UsageFlags::AMBIGUOUS) {
        head.set(flag::USAGE_AMBIGUOUS);
    }
    if usage.flags.contains(UsageFlags::IMPOSSIBLE) {
        head.set(flag::USAGE_IMPOSSIBLE);
    }
    head.upstream_cost_picousd = bill.upstream.0;
    head.cost_picousd = bill.cost.0;
    head.overrun_picousd = govern::money(&held.layers).overrun(bill.cost).0;
}

/// Ends what is under way: exactly once, whatever happened. Without an exchange it gives back what
/// the layers took.
pub(super) fn close<I: Io>(shard: &Shard<I>, held: &mut Held, outcome: &Outcome) {
    let stage = std::mem::take(&mut held.stage);
    if stage.is_opened() {
        let now = shard.now();
        let ending = match outcome.ending {
            // Timers fired because the node ends, not because their time was over.
            Ending::Deadline | Ending::WriteStall if shard.cut.get() => Ending::Shutdown,
            ending => ending,
        };
        let outcome = Outcome { ending, ..*outcome };
        conclude(stage, &mut held.record.head, &outcome, now);
        count(shard, &held.record.head, ending);
        if let (Some(slab), Some(slot)) = (&shard.slab, held.slot.take()) {
            slab.borrow_mut().done(slot, &held.record.head);
        }
        tell(shard, held);
    }
    let cost = if stage.is_opened() { held.record.cost_picousd } else { 0 };
    let (layers, passing) = (std::mem::take(&mut held.layers), std::mem::take(&mut held.passing));
    if let Some(bundle) = held.bundle.take() {
        Governance::default().settle(&bundle, layers, PicoUsd(cost));
        Passing::default().settle(&bundle, passing, PicoUsd(0));
    }
}

/// Ends what never became an exchange.
pub(super) fn let_go<I: Io>(shard: &Shard<I>, held: &mut Held) {
    close(shard, held, &Outcome { ending: Ending::ClientLeft, status: 0 });
}

/// Ending, status and what becomes of the charge.
fn conclude(stage: Stage, head: &mut Head, outcome: &Outcome, now: Now) {
    head.ending = recorded(outcome.ending);
    head.status = outcome.status;
    head.closed_unix_ms = now.wall.0;
    let release = match (stage, outcome.ending) {
        (Stage::Priced, _) => return,
        (Stage::None | Stage::Free | Stage::Open, _) => Release::NeverSent,
        // Every attempt failed and nothing of an answer was received.
        (
            Stage::Sent,
            Ending::Exhausted | Ending::Deadline | Ending::UpstreamCut | Ending::Shutdown,
        ) => Release::NothingReceived,
        // Every attempt had failed when the client left.
        (Stage::Sent, Ending::ClientLeft) if !may_be_billed(head) => Release::NothingReceived,
        // It was sent, and may well be answered and billed by now: the estimate stands.
        (Stage::Sent, _) => return,
    };
    let_off(head, release);
}

/// Whether an upstream may bill something of it. Of attempts beyond those listed nobody knows.
fn may_be_billed(head: &Head) -> bool {
    let attempts = usize::from(head.attempts);
    let mut listed = head.listed.iter().take(attempts);
    attempts > head.listed.len() || listed.any(|attempt| attempt.possibly_billed != 0)
}

fn count<I: Io>(shard: &Shard<I>, head: &Head, ending: Ending) {
    let counters = &shard.counters;
    counters.records.increment();
    if ending == Ending::Succeeded && head.provenance != ending::Provenance::Reported {
        counters.usage_missing.increment();
    }
    if ending == Ending::Succeeded && !head.has(flag::PRICED) {
        counters.price_missing.increment();
    }
    counters.held_picousd.add(head.hold_picousd);
    counters.overrun_picousd.add(head.overrun_picousd);
}

/// The client left before there was an answer: what stands is the estimate, unless the rule lets
/// off who left.
pub(super) fn left_unheard(call: &Call<'_>, held: &mut Held) {
    if held.stage == Stage::Sent && call.endings.left_unreported == Unreported::Release {
        let_off(&mut held.record.head, Release::Rule);
    }
}

/// Charges nothing.
fn let_off(head: &mut Head, release: Release) {
    head.release = release;
    head.tokens = [0; 8];
    head.provenance = ending::Provenance::Missing;
    head.upstream_cost_picousd = 0;
    head.cost_picousd = 0;
    head.overrun_picousd = 0;
}

/// Hands a copy to whoever listens.
fn tell<I: Io>(shard: &Shard<I>, held: &Held) {
    if let Some(records) = &shard.records
        && !records.tell(&held.record)
    {
        shard.counters.records_lost.increment();
    }
}

/// Ends in a refusal. An opened exchange gets its outcome; of one that was not, a key that is
/// known gets a trace.
pub(super) fn refused<I: Io>(shard: &Shard<I>, held: &mut Held, refusal: Refusal, to: &Origin) {
    let face = refusal.face_in(to.dialect);
    let code = codes::number(face.code);
    if held.stage.is_opened() {
        held.record.error_code = code;
        let ending = refused_ending(refusal);
        return close(shard, held, &Outcome { ending, status: face.status });
    }
    if let Some(bundle) = held.bundle.as_ref().filter(|_| held.stage == Stage::None) {
        let (key, project) = (bundle.key.0, bundle.project);
        let trace = shard.refused.borrow_mut().note(key, code, face.status);
        if trace == Trace::Record {
            let now = shard.now();
            held.record.head = Head {
                request_id: to.id.0,
                key_id: key,
                project_id: project,
                route_id: to.route.map_or(0, Route::number),
                dialect: to.dialect.number(),
                status: face.status,
                hold_picousd: govern::money(&held.layers).wanted().0,
                ..refusal_head(code, now)
            };
            record_refusal(shard, held);
        }
    }
    close(shard, held, &Outcome { ending: Ending::Exhausted, status: face.status });
}

/// How an opened exchange ends that is told this.
pub(super) fn refused_ending(refusal: Refusal) -> Ending {
    match refusal {
        Refusal::UpstreamTimeout => Ending::Deadline,
        Refusal::ShuttingDown => Ending::Shutdown,
        _ => Ending::Exhausted,
    }
}

fn refusal_head(code: u16, now: Now) -> Head {
    Head {
        error_code: code,
        ending: ending::Ending::Refused,
        release: Release::Refused,
        opened_unix_ms: now.wall.0,
        closed_unix_ms: now.wall.0,
        ..Head::default()
    }
}

/// FREE → DONE, if a slot is free.
fn record_refusal<I: Io>(shard: &Shard<I>, held: &Held) {
    let (model_asked, trace_id) = (held.record.model.as_str(), held.record.trace_id);
    let tail = Tail { model_asked, trace_id, ..Tail::default() };
    let kept =
        shard.slab.as_ref().is_none_or(|slab| slab.borrow_mut().refuse(&held.record.head, &tail));
    if kept {
        shard.counters.refusal_records.increment();
        tell(shard, held);
    } else {
        shard.counters.refusals_unrecorded.increment();
    }
}

/// Makes records of the refusals that were only counted in the second before.
pub(crate) fn record_counted<I: Io>(shard: &Shard<I>, second: u64) {
    let now = shard.now();
    shard.refused.borrow_mut().turn(second, |key, code, count| {
        let mut held = Held::default();
        held.record.head = Head {
            request_id: shard.mint.borrow_mut().mint(now.wall.0).0,
            key_id: key,
            status: count.status,
            count: count.refusals,
            flags: flag::COUNTED,
            ..refusal_head(code, now)
        };
        record_refusal(shard, &held);
    });
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
