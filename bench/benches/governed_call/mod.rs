//! A call under every limit that exists, none of which refuses it, and one under no limit.

use tollgate::exchange::bundle::Bundle;
use tollgate::exchange::call::Call;
use tollgate::exchange::demand::{Demand, Figure};
use tollgate::exchange::ids::KeyId;
use tollgate::exchange::limits::{Books, KeyLimits, Limits};
use tollgate::exchange::models::AllowList;
use tollgate::exchange::money::PicoUsd;
use tollgate::exchange::plan::{Offer, Plan};
use tollgate::exchange::price::{Markup, Mode, ModelPrice, MoneyTerms, Rates, Tier};
use tollgate::exchange::time::{MonoNs, Now, UnixMs};
use tollgate::exchange::words::{MONEY_LIMIT_MAX, MoneyLimit};
use tollgate::govern::layer::Layer;
use tollgate::govern::{Governance, Held};

/// An instant in the middle of November 2026.
pub(crate) const NOW: Now = Now { mono: MonoNs(1_000_000_000), wall: UnixMs(1_794_700_000_000) };

/// What a call costs in the end: a tenth of a cent.
pub(crate) const COST: PicoUsd = PicoUsd(1_000_000_000);

/// The counts of the 2 KB body with tools.
pub(crate) fn demand() -> Demand {
    Demand {
        ascii: 1_450,
        non_ascii: 4,
        max_completion_tokens: Figure::Whole(1_024),
        ..Demand::default()
    }
}

/// A price of two tiers.
pub(crate) fn price() -> ModelPrice {
    let rates = Rates { input: 250_000, cache_read: 25_000, output: 2_000_000, ..Rates::default() };
    let tier = |above_input| Tier { above_input, rates };
    ModelPrice { tiers: vec![tier(0), tier(200_000)], ..ModelPrice::default() }
}

/// A key without limits.
pub(crate) fn unlimited() -> Bundle {
    Bundle::new(KeyId(1), "bench")
}

/// A key with all of them: the model is the last of eight on its list.
pub(crate) fn limited() -> Bundle {
    let most = MoneyLimit::new(MONEY_LIMIT_MAX).ok();
    let models = [
        "gpt-4o",
        "gpt-4.1*",
        "claude-sonnet-4*",
        "claude-opus-4*",
        "gemini-2.5-pro",
        "o4-mini",
        "openai/gpt-5",
        "gpt-5-mini",
    ];
    let values = KeyLimits {
        requests_per_minute: Some(u32::MAX),
        concurrent: Some(u32::MAX),
        budget_total: most,
        budget_month: most,
        strict: false,
        expires: Some(UnixMs(u64::MAX)),
        models: AllowList::new(models).ok(),
    };
    Bundle::with_limits(KeyId(1), "bench", Limits::new(values, Books::default(), NOW.wall))
}

/// One call through all layers, from admission to settlement. Says whether it was let through.
pub(crate) fn govern(bundle: &Bundle, price: &ModelPrice, demand: Demand) -> bool {
    let layers = Governance::default();
    let terms = MoneyTerms::default();
    let mode = Mode::Managed(Markup::ONE);
    let offers = [Offer { provider: "openai", model: "gpt-5-mini", price: Some(price), mode }];
    let call = Call { bundle, demand };
    let mut plan = Plan::new("gpt-5-mini", &offers, &terms);
    let mut held = Held::default();
    let judged = layers
        .admit(&call, &mut held, NOW)
        .and_then(|()| layers.reserve(&call, &mut plan, &mut held, NOW));
    layers.settle(bundle, held, COST);
    judged.is_ok()
}
