//! The layers that need the plan: the models a key may use, and the money a call holds. What they
//! strike is not left any more when the walk begins.

use super::held::Held;
use super::resolve::Plan;
use crate::config::snapshot::Snapshot;
use crate::exchange::call::{Call, Route};
use crate::exchange::places::{CANDIDATES_MAX, Places};
use crate::exchange::plan::{self, Offer};
use crate::exchange::price::Mode;
use crate::exchange::refusal::Refusal;
use crate::exchange::time::Now;
use crate::govern::layer::Layer;
use crate::govern::{Governance, Passing};

/// Candidates that nearly every plan gets by with: room for more is not cleared for each call.
const FEW: usize = 8;

/// Holds what the call may cost, at the dearest candidate left.
pub(super) fn funds(
    route: Route,
    call: &Call<'_>,
    snapshot: &Snapshot,
    plan: &mut Plan<'_, '_>,
    held: &mut Held,
    now: Now,
) -> Result<(), Refusal> {
    let few = plan.found.choices.candidates.len() <= FEW;
    let judge = if few { judge::<FEW> } else { judge::<CANDIDATES_MAX> };
    plan.found.left = judge(route, call, snapshot, plan, held, now)?;
    Ok(())
}

#[inline(never)]
fn judge<const ROOM: usize>(
    route: Route,
    call: &Call<'_>,
    snapshot: &Snapshot,
    plan: &Plan<'_, '_>,
    held: &mut Held,
    now: Now,
) -> Result<Places, Refusal> {
    let found = &plan.found;
    let mut offers = [Offer { provider: "", model: "", price: None, mode: Mode::None }; ROOM];
    let candidates = &found.choices.candidates;
    for (offer, candidate) in offers.iter_mut().zip(candidates) {
        let provider = snapshot.provider(candidate.provider);
        *offer = Offer {
            provider: &provider.name,
            model: found.sent(candidate),
            price: found.price(candidate).and_then(|index| snapshot.prices.at(index)),
            mode: provider.mode,
        };
    }
    let offers = offers.get(..candidates.len()).unwrap_or(&offers);
    let mut judged = plan::Plan::new(plan.asked, offers, &snapshot.terms).only(found.left);
    if route.is_free() {
        Passing::default().reserve(call, &mut judged, &mut held.passing, now)?;
        return Ok(judged.places());
    }
    Governance::default().reserve(call, &mut judged, &mut held.layers, now)?;
    Ok(judged.places())
}
