//! Which models the key may use.
//!
//! The name as asked for decides alone if the list has it: an alias that is allowed may lead
//! anywhere. Otherwise each offer is judged by what would be sent, bare or behind its provider, and
//! offers that are not allowed are struck.

use crate::exchange::call::Call;
use crate::exchange::plan::Plan;
use crate::exchange::refusal::Refusal;
use crate::exchange::time::Now;
use crate::govern::layer::Layer;

/// Holds a key to its list of models.
#[derive(Clone, Copy, Debug, Default)]
pub struct Models;

impl Layer for Models {
    type Hold = ();

    const NAME: &'static str = "models";

    fn reserve(
        &self,
        call: &Call<'_>,
        plan: &mut Plan<'_>,
        (): &mut (),
        _now: Now,
    ) -> Result<(), Refusal> {
        let Some(list) = &call.bundle.limits.models else { return Ok(()) };
        if list.allows(plan.asked) {
            return Ok(());
        }
        for (at, offer) in plan.left() {
            if !list.allows_at(offer.provider, offer.model) {
                plan.strike(at);
            }
        }
        if plan.is_open() { Ok(()) } else { Err(Refusal::ModelNotAllowed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::limits::KeyLimits;
    use crate::exchange::models::AllowList;
    use crate::exchange::plan::Offer;
    use crate::exchange::price::{Mode, MoneyTerms};
    use crate::govern::layers::world::{bundle, call};

    #[test]
    fn either_spelling_is_enough_and_what_is_not_allowed_is_struck() {
        let offer = |provider, model| Offer { provider, model, price: None, mode: Mode::default() };
        let offers = [offer("openai", "gpt-4o"), offer("azure", "gpt-4o-eu")];
        let terms = MoneyTerms::default();
        for (list, asked, left) in [
            (None, "any", Some(vec![0, 1])),
            (Some(&["fast"][..]), "FAST", Some(vec![0, 1])),
            (Some(&["gpt-4o"]), "fast", Some(vec![0])),
            (Some(&["azure/*"]), "fast", Some(vec![1])),
            (Some(&["GPT-4O*"]), "fast", Some(vec![0, 1])),
            (Some(&["gpt-4"]), "fast", None),
            (Some(&["gpt-4"]), "gpt-4[1m]", Some(vec![0, 1])),
            (Some(&[]), "gpt-4o", None),
        ] {
            let models = list.map(|list| AllowList::new(list.iter().copied()).unwrap());
            let bundle = bundle(KeyLimits { models, ..KeyLimits::default() });
            let mut plan = Plan::new(asked, &offers, &terms);
            let judged = Models.reserve(&call(&bundle), &mut plan, &mut (), Now::default());
            let found = judged.map(|()| plan.left().map(|(at, _)| at).collect::<Vec<_>>());
            assert_eq!(found, left.ok_or(Refusal::ModelNotAllowed), "{list:?} {asked}");
        }
    }
}
