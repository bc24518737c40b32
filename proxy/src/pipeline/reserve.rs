//! The layers that need the plan: the models a key may use, and the money a call holds. Beside
//! them, the one edit the plan makes to the body.

use super::body::Received;
use super::held::Held;
use super::resolve::Plan;
use crate::config::snapshot::Snapshot;
use crate::exchange::call::{Call, Route};
use crate::exchange::plan::{self, Offer};
use crate::exchange::refusal::Refusal;
use crate::exchange::time::Now;
use crate::govern::layer::Layer;
use crate::govern::{Governance, Passing, estimate};
use codec::json::{Span, write_string};

/// A plan whose call may be made.
pub(super) struct Reserved<'a> {
    /// The plan.
    pub plan: Plan<'a>,
    /// What of the body is replaced by the sent model's name; `None`: it goes on as it came.
    pub edit: Option<Span>,
}

/// Holds what the call may cost.
pub(super) fn funds(
    route: Route,
    call: &Call<'_>,
    snapshot: &Snapshot,
    plan: &Plan<'_>,
    held: &mut Held,
    now: Now,
) -> Result<(), Refusal> {
    let provider = snapshot.provider(plan.candidate.provider);
    let price = plan.candidate.price.and_then(|index| snapshot.prices.at(index));
    let offer = Offer { provider: &provider.name, model: plan.sent, price, mode: provider.mode };
    let offers = [offer];
    let mut judged = plan::Plan::new(plan.asked, &offers, &snapshot.terms);
    if route.is_free() {
        return Passing::default().reserve(call, &mut judged, &mut held.passing, now);
    }
    Governance::default().reserve(call, &mut judged, &mut held.layers, now)?;
    let input = price.or(snapshot.terms.fallback.as_ref());
    let input = input.map_or(0, |price| estimate::input_tokens(&call.demand, price));
    held.input_estimate = u32::try_from(input).unwrap_or(u32::MAX);
    Ok(())
}

/// Decides the edit, writing its text into `model`. A name that is spelled with escapes is
/// replaced too: the upstream must read the same name that was checked here.
pub(super) fn edit<'a>(
    plan: Plan<'a>,
    received: &Received<'_>,
    model: &mut Vec<u8>,
) -> Reserved<'a> {
    model.clear();
    write_string(plan.sent, model);
    let unchanged = plan.span.of(received.body()) == model.as_slice();
    let edit = (!unchanged).then_some(plan.span);
    Reserved { plan, edit }
}
