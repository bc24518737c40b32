//! Opens the exchange: takes the slab slot its record lives in, and fills it. From here on there
//! is exactly one outcome.
//!
//! The call it gives is turned to one candidate at a time ([`aim`]): the name in the body, the
//! record and the charge that stands until there is a better one are always that candidate's.

use super::attribution::{self, Marks, Names};
use super::body::Received;
use super::held::{Held, Stage};
use super::leaving::Leaving;
use super::refuse::Origin;
use super::resolve::Plan;
use super::settle;
use crate::config::snapshot::Snapshot;
use crate::exchange::call::{Dialect, Route};
use crate::exchange::demand::Demand;
use crate::exchange::ids::REQUEST_ID_TEXT;
use crate::exchange::places::Places;
use crate::exchange::plan::Candidate;
use crate::exchange::price::{ModelPrice, PriceIx};
use crate::exchange::refusal::Refusal;
use crate::exchange::rules::{EndingRules, WhenFull};
use crate::exchange::time::{MonoNs, Now};
use crate::govern::{self, estimate};
use crate::io::Io;
use crate::shard::Shard;
use codec::json::{MODEL_BYTES_MAX, RequestSpans, Span, StringSpan, unescape_into, write_string};
use std::cell::Cell;
use std::time::Duration;
use store::record::{Attempt, Head, Settled, Window, flag};
use store::tail::Tail;
use store::text::Text;

/// Everything later stages need of an opened call.
pub(super) struct Call<'s> {
    /// Our id, as text.
    pub id: [u8; REQUEST_ID_TEXT],
    /// Who may serve it, best first.
    pub candidates: &'s [Candidate],
    /// The places among them that are left: what the route and the layers let pass.
    pub left: Places,
    /// Where draws among them are counted.
    pub group: Option<u32>,
    /// The request, whole.
    pub received: Received<'s>,
    /// What of the body is replaced by the sent model's name; `None`: it goes on as it came.
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
    /// What its ending means.
    pub endings: EndingRules,
    /// Who asked, for answers of our own.
    pub origin: Origin,
    /// The configuration it runs under.
    pub snapshot: &'s Snapshot,
    /// When the request was wholly here; later by what was waited since for upstreams, so that
    /// what has passed since then is ours.
    complete: MonoNs,
    /// It costs nothing: what comes back is no completion.
    pub is_free: bool,
    /// The candidate it is turned to.
    place: u8,
    /// The price where a candidate has none of its own: its name is the caller's.
    price: Option<PriceIx>,
    /// The model's value in the body.
    model: StringSpan,
    /// Estimated tokens of the input's text, and its images and files.
    input: (u64, u32),
    marks: Marks,
}

impl<'s> Call<'s> {
    /// The candidate at a place.
    pub(super) fn candidate(&self, place: u8) -> &'s Candidate {
        &self.candidates[usize::from(place)]
    }

    /// An attempt at the candidate it is turned to, as the record lists it.
    pub(super) fn attempt(&self) -> Attempt {
        Attempt {
            provider_id: self.current().provider.0,
            credential_id: self.current().credential.0,
            candidate: self.place,
            ..Attempt::default()
        }
    }

    /// The candidate it is turned to.
    pub(super) fn current(&self) -> &'s Candidate {
        self.candidate(self.place)
    }

    /// What that costs, if it is known.
    pub(super) fn price(&self) -> Option<PriceIx> {
        self.current().price.or(self.price)
    }

    /// Turns it to a candidate. `model` has the text of the name as it is sent.
    fn turn(&mut self, place: u8, held: &mut Held, model: &mut Vec<u8>) {
        self.place = place;
        // One that has no name of its own is sent the caller's, which is there since `slot`.
        if let Some(name) = &self.current().model {
            model.clear();
            write_string(name, model);
            held.record.served_model = Text::from(&**name);
        }
        // A name that is spelled with escapes is replaced too: the upstream must read the same
        // name that was checked here.
        let quoted = self.model.quoted();
        let unchanged = quoted.of(self.received.body()) == model.as_slice();
        self.edit = (!unchanged).then_some(quoted);
        let price = self.price().and_then(|index| self.snapshot.prices.at(index));
        let unpriced = ModelPrice::default();
        let price = price.or(self.snapshot.terms.fallback.as_ref()).unwrap_or(&unpriced);
        let (text, items) = self.input;
        let input = estimate::with_items(text, items, price);
        held.input_estimate = u32::try_from(input).unwrap_or(u32::MAX);
        let candidate = self.current();
        held.record.head.provider_id = candidate.provider.0;
        held.record.head.credential_id = candidate.credential.0;
        if !self.is_free {
            settle::expect(self, held);
        }
    }
}

impl Call<'_> {
    /// The time since then was not ours: an attempt that has failed, a pause.
    pub(super) fn waited(&mut self, since: MonoNs, now: MonoNs) {
        self.complete.0 = self.complete.0.saturating_add(now.since(since));
    }

    /// Microseconds of ours up to now, `waiting` nanoseconds of an attempt under way left out.
    pub(super) fn own_us(&self, waiting: u64, now: MonoNs) -> u32 {
        let own = now.since(self.complete).saturating_sub(waiting);
        u32::try_from(own / 1_000).unwrap_or(u32::MAX)
    }

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
    (received, spans): (Received<'s>, &RequestSpans),
    (plan, demand): (&Plan<'s, '_>, &Demand),
    (origin, now): (Origin, Now),
    (model, session): (&mut Vec<u8>, &[u8]),
) -> Result<Call<'s>, Refusal> {
    let found = plan.found;
    let is_free = origin.route.is_some_and(Route::is_free);
    model.clear();
    write_string(found.unnamed, model);
    held.record = Settled {
        head: if is_free { Head::default() } else { head(snapshot, held, &received, origin, now) },
        model: Text::from(plan.asked),
        served_model: Text::from(found.unnamed),
        trace_id: held.record.trace_id,
    };
    let text = estimate::text_tokens(demand.ascii, demand.non_ascii);
    let place = found.left.lowest().ok_or(Refusal::ModelUnavailable)?;
    let stream = spans.is_stream();
    // Only chat reports the usage of a stream when asked alone.
    let asks = stream && origin.dialect == Dialect::Chat;
    let mut call = Call {
        id: origin.id.text(),
        candidates: &found.choices.candidates,
        left: found.left,
        group: found.choices.group,
        received,
        edit: None,
        usage_edit: if asks { spans.usage_edit() } else { None },
        stream,
        hide_usage: asks && !spans.asks_for_usage(),
        begun: false,
        leaving: None,
        drains: &shard.drains,
        endings: *snapshot.endings.of(origin.dialect),
        origin,
        snapshot,
        complete: now.mono,
        is_free,
        place,
        price: found.price,
        model: plan.span,
        input: (text, demand.items),
        marks: Marks::of(spans),
    };
    call.turn(place, held, model);
    // Until there is an attempt: whose names and charge the record has.
    held.record.head.candidate = place;
    if is_free {
        held.stage = Stage::Free;
        return Ok(call);
    }
    let mut names = Names::default();
    let models = (plan.asked, found.sent(call.current()));
    let body = (call.received.body(), session);
    let tail = attribution::tail(models, body, &call.marks, &mut names);
    let tail = Tail { trace_id: held.record.trace_id, ..tail };
    take(shard, snapshot.when_full, held, &tail)?;
    held.stage = Stage::Open;
    Ok(call)
}

/// Turns the call and its record to another candidate, before an attempt at it. The body must be
/// at home.
#[inline(never)]
pub(super) fn aim<I: Io>(
    shard: &Shard<I>,
    call: &mut Call<'_>,
    held: &mut Held,
    (model, session): (&mut Vec<u8>, &[u8]),
    place: u8,
) {
    if place == call.place {
        return;
    }
    let before = call.current().model.as_deref();
    call.turn(place, held, model);
    let sent = call.current().model.as_deref();
    if let (Some(slab), Some(slot), Some(sent)) = (&shard.slab, &mut held.slot, sent)
        && before != Some(sent)
    {
        let (body, mut room, mut names) =
            (call.received.body(), [0; MODEL_BYTES_MAX], Names::default());
        let asked = unescape_into(call.model.text.of(body), &mut room).unwrap_or_default();
        let tail = attribution::tail((asked, sent), (body, session), &call.marks, &mut names);
        let tail = Tail { trace_id: held.record.trace_id, ..tail };
        slab.borrow_mut().attribute(slot, &tail);
    }
}

fn head(
    snapshot: &Snapshot,
    held: &Held,
    received: &Received<'_>,
    origin: Origin,
    now: Now,
) -> Head {
    let mut head = Head {
        request_id: origin.id.0,
        route_id: origin.route.map_or(0, Route::number),
        dialect: origin.dialect.number(),
        opened_unix_ms: now.wall.0,
        snapshot_version: snapshot.version,
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
