//! Opens the exchange: takes the slab slot its record lives in, and fills it. From here on there
//! is exactly one outcome.

use super::attribution::{self, Names};
use super::body::Received;
use super::held::{Held, Stage};
use super::leaving::Leaving;
use super::refuse::Origin;
use super::reserve::Reserved;
use super::settle;
use crate::config::snapshot::Snapshot;
use crate::exchange::call::{Dialect, Route};
use crate::exchange::endings::Endings;
use crate::exchange::ids::REQUEST_ID_TEXT;
use crate::exchange::plan::Candidate;
use crate::exchange::refusal::Refusal;
use crate::exchange::rules::WhenFull;
use crate::exchange::time::{MonoNs, Now};
use crate::govern;
use crate::io::Io;
use crate::shard::Shard;
use codec::json::{RequestSpans, Span};
use std::cell::Cell;
use std::time::Duration;
use store::record::{Head, Settled, Window, flag};
use store::tail::Tail;
use store::text::Text;

/// Everything later stages need of an opened call.
pub(super) struct Call<'s> {
    /// Our id, as text.
    pub id: [u8; REQUEST_ID_TEXT],
    /// Where it goes.
    pub candidate: Candidate,
    /// The request, whole.
    pub received: Received<'s>,
    /// What of the body is replaced by the sent model's name.
    pub edit: Option<Span>,
    /// What is put where, so that a stream reports its usage.
    pub usage_edit: Option<(Span, &'static [u8])>,
    /// A stream is asked for.
    pub stream: bool,
    /// The client did not ask for the chunk that reports usage.
    pub hide_usage: bool,
    /// The client has a head: whatever happens is told inside a stream.
    pub begun: bool,
    /// The client is gone, and the answer is read on for its usage.
    pub leaving: Option<Leaving<'s>>,
    /// Answers that the shard reads on for nobody.
    pub drains: &'s Cell<usize>,
    /// What its ending costs.
    pub endings: Endings,
    /// Who asked, for answers of our own.
    pub origin: Origin,
    /// The configuration it runs under.
    pub snapshot: &'s Snapshot,
    /// When the request was wholly here.
    pub complete: MonoNs,
    /// It costs nothing: what comes back is no completion.
    pub is_free: bool,
}

impl Call<'_> {
    /// How long its answer may still be read on for nobody.
    pub(super) fn rest(&self, tick: u64) -> Duration {
        self.leaving.as_ref().and_then(|leaving| leaving.rest(tick)).unwrap_or_default()
    }
}

/// Takes the slot. A call that costs nothing has none.
pub(super) fn slot<'s, I: Io>(
    shard: &'s Shard<I>,
    snapshot: &'s Snapshot,
    held: &mut Held,
    (received, spans, session): (Received<'s>, &RequestSpans, &[u8]),
    reserved: Reserved<'_>,
    origin: Origin,
    now: Now,
) -> Result<Call<'s>, Refusal> {
    let Reserved { plan, edit } = reserved;
    let is_free = origin.route.is_some_and(Route::is_free);
    if is_free {
        held.record = Settled { head: Head::default(), ..held.record };
        held.stage = Stage::Free;
    } else {
        held.record = Settled {
            head: head(snapshot, held, &plan.candidate, &received, origin, now),
            model: Text::from(plan.asked),
            served_model: Text::from(plan.sent),
        };
        settle::expect(snapshot, &plan.candidate, held);
        let mut names = Names::default();
        let models = (plan.asked, plan.sent);
        let tail = attribution::tail(models, (received.body(), session), spans, &mut names);
        take(shard, snapshot.when_full, held, &tail)?;
        held.stage = Stage::Open;
    }
    let candidate = plan.candidate;
    let stream = spans.is_stream();
    // Only chat reports the usage of a stream when asked alone.
    let asks = stream && origin.dialect == Dialect::Chat;
    Ok(Call {
        id: origin.id.text(),
        candidate,
        received,
        edit,
        usage_edit: if asks { spans.usage_edit() } else { None },
        stream,
        hide_usage: asks && !spans.asks_for_usage(),
        begun: false,
        leaving: None,
        drains: &shard.drains,
        endings: snapshot.endings,
        origin,
        snapshot,
        complete: now.mono,
        is_free,
    })
}

fn head(
    snapshot: &Snapshot,
    held: &Held,
    candidate: &Candidate,
    received: &Received<'_>,
    origin: Origin,
    now: Now,
) -> Head {
    let mut head = Head {
        request_id: origin.id.0,
        dialect: origin.dialect.number(),
        opened_unix_ms: now.wall.0,
        snapshot_version: snapshot.version,
        provider_id: candidate.provider.0,
        price_version: snapshot.prices.version,
        request_bytes: received.body().len() as u64,
        ..Head::default()
    };
    let Some(bundle) = &held.bundle else { return head };
    head.key_id = bundle.key.0;
    head.project_id = bundle.project;
    let hold = govern::money(&held.layers);
    head.hold_picousd = hold.amount().0;
    if bundle.limits.strict {
        head.set(flag::STRICT);
    }
    let budgets = hold.windows().iter().zip(&bundle.limits.budgets);
    for (place, (window, budget)) in head.windows.iter_mut().zip(budgets) {
        *place = Window { budget_id: budget.id.0, window_id: window.0 };
    }
    head
}

/// FREE → OPEN, or what is done without.
fn take<I: Io>(
    shard: &Shard<I>,
    when_full: WhenFull,
    held: &mut Held,
    tail: &Tail<'_>,
) -> Result<(), Refusal> {
    let Some(slab) = &shard.slab else { return Ok(()) };
    held.slot =
        if shard.ledger.is_good() { slab.borrow_mut().open(&held.record.head, tail) } else { None };
    match (&held.slot, when_full) {
        (Some(_), _) => Ok(()),
        (None, WhenFull::Refuse) => Err(Refusal::LedgerBusy),
        (None, WhenFull::ServeUnrecorded) => {
            shard.counters.unrecorded.increment();
            Ok(())
        }
    }
}
