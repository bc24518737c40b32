//! What an answer is charged for, and what its record says of the attempt that brought it.

use super::Incoming;
use crate::exchange::outcome::Ending;
use crate::exchange::rules::Unreported;
use crate::io::Io;
use crate::pipeline::held::{Held, Stage};
use crate::pipeline::open::Call;
use crate::pipeline::settle::{self, Estimate};
use crate::shard::Shard;
use codec::usage::UsageEnvelope;
use store::ending::StatusClass;
use store::record::flag;

/// What could be read of an answer: its usage, and the bytes of text in it if they were counted.
pub(super) type Read = (UsageEnvelope, Option<(u64, u64)>);

/// Notes in the record whether the usage of a success could be read at all.
pub(super) fn unreadable(held: &mut Held, status: u16, unread: bool) {
    if unread && status_ending(status) == Ending::Succeeded {
        held.record.set(flag::USAGE_UNREADABLE);
    }
}

/// Prices an answer by what it said it used, else by the rule of its ending. Once an answer.
pub(super) fn answer<I: Io>(
    call: &Call<'_>,
    held: &mut Held,
    incoming: &Incoming<'_, I>,
    read: Read,
    ending: Ending,
) {
    if held.stage == Stage::Priced {
        return;
    }
    let shard = incoming.shard;
    let head = &incoming.head;
    let since = shard.mono().since(incoming.begun);
    held.record.upstream_us = u32::try_from(since / 1000).unwrap_or(u32::MAX);
    held.record.attempt_ended(status_class(head.status), head.is_success());
    let estimate = estimate(call, head.status, ending);
    let usage = settle::usage(held, read, estimate);
    settle::price(shard, call, held, &usage);
}

/// What an answer is charged for that does not say what it used.
fn estimate(call: &Call<'_>, status: u16, ending: Ending) -> Estimate {
    if status_ending(status) != Ending::Succeeded {
        // An error has used nothing, unless it says so.
        return Estimate::Nothing;
    }
    match call.endings.unreported(ending) {
        Unreported::Charge => Estimate::Passed,
        Unreported::Release => Estimate::Released,
    }
}

/// Notes what has passed of an answer that goes on.
pub(super) fn passing<I: Io>(
    shard: &Shard<I>,
    call: &Call<'_>,
    held: &mut Held,
    read: Read,
    status: u16,
) {
    let usage = settle::usage(held, read, estimate(call, status, Ending::UpstreamCut));
    settle::note(shard, call, held, &usage);
}

/// An answer's status, as a record lists attempts.
fn status_class(status: u16) -> StatusClass {
    match status {
        200..=299 => StatusClass::Success,
        401..=403 => StatusClass::Account,
        405 | 501 => StatusClass::Capability,
        429 => StatusClass::Limited,
        400..=499 => StatusClass::Client,
        500.. => StatusClass::Server,
        _ => StatusClass::Invalid,
    }
}

/// How an answer of this status ends that is delivered whole.
pub(super) fn status_ending(status: u16) -> Ending {
    if (200..300).contains(&status) { Ending::Succeeded } else { Ending::UpstreamError }
}
