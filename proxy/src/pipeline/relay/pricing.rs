//! What an answer is charged for, and what its record says of the attempt that brought it.

use super::Reply;
use crate::exchange::outcome::Ending;
use crate::exchange::refusal::Refusal;
use crate::exchange::time::MonoNs;
use crate::io::Io;
use crate::pipeline::answer::{AnswerHead, Coding};
use crate::pipeline::held::{Held, Stage};
use crate::pipeline::open::Call;
use crate::pipeline::{Unserved, settle};
use crate::shard::Shard;
use codec::usage::Provenance;
use store::ending::StatusClass;
use store::record::flag;

/// Prices an answer by what it said it used, else by the rule of its ending. Once an answer.
pub(super) fn answer<I: Io>(
    shard: &Shard<I>,
    call: &Call<'_>,
    held: &mut Held,
    reply: &Reply,
    (head, begun): (&AnswerHead, MonoNs),
) {
    if held.stage == Stage::Priced {
        return;
    }
    let since = shard.mono().since(begun);
    held.record.upstream_us = u32::try_from(since / 1000).unwrap_or(u32::MAX);
    let success = status_ending(head.status) == Ending::Succeeded;
    held.record.attempt_ended(status_class(head.status), success);
    if head.coding == Coding::Unknown {
        held.record.set(flag::USAGE_UNREADABLE);
    }
    let usage = settle::usage(held, reply.usage(), success);
    settle::price(shard, call, held, &usage);
}

/// Notes what has passed of an answer that goes on.
pub(super) fn passing<I: Io>(
    shard: &Shard<I>,
    call: &Call<'_>,
    held: &mut Held,
    reply: &Reply,
    status: u16,
) {
    let success = status_ending(status) == Ending::Succeeded;
    let usage = settle::usage(held, reply.usage(), success);
    settle::note(shard, call, held, &usage);
}

/// An answer of which nothing is passed on: what it used counts if it said so, else it is one more
/// attempt that brought nothing.
pub(super) fn unsent<I: Io>(
    shard: &Shard<I>,
    call: &Call<'_>,
    held: &mut Held,
    reply: &Reply,
    (status, why): (u16, &Unserved),
) {
    held.record.attempt_ended(class_unsent(status, why), true);
    let usage = reply.usage();
    if usage.provenance == Provenance::Reported {
        settle::price(shard, call, held, &usage);
    }
}

fn class_unsent(status: u16, why: &Unserved) -> StatusClass {
    match why {
        Unserved::Refused(Refusal::UpstreamTimeout, _) => StatusClass::Timeout,
        Unserved::Refused(Refusal::UpstreamCut, _) => StatusClass::Cut,
        Unserved::Refused(Refusal::UpstreamAuth, _) => StatusClass::Account,
        Unserved::Refused(..) => StatusClass::Invalid,
        Unserved::ClientGone => status_class(status),
    }
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
