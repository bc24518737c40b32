//! What keys of the file say that nothing here gives: budgets where nothing has a price, models
//! that nobody serves. Both are allowed, and probably not meant.
//!
//! It deliberately judges less strictly than the layers do: what may be meant is not told. Bounds:
//! those of the file; the names are sorted once.

use super::file::File;
use super::findings::{Findings, Text, quoted};
use super::routing::Routing;
use crate::exchange::models::AllowList;
use crate::exchange::price::{Mode, MoneyTerms, PriceList};
use std::collections::BTreeSet;
use std::ops::Bound;

/// Warns of both.
pub(super) fn warn(
    file: &File,
    routing: &Routing,
    (prices, terms): (&PriceList, &MoneyTerms),
    findings: &mut Findings<'_>,
) {
    if !is_priced(routing, prices, terms) {
        for key in &file.keys {
            for (name, budget) in
                [("budget_total", &key.budget_total), ("budget_month", &key.budget_month)]
            {
                let Some(budget) = budget else { continue };
                let why = "no model here has a price: every call of this key will be refused, \
                           unless [price] has a fallback";
                findings.warn(budget.at, format!("\"{name}\" in [[key]]: {why}"));
            }
        }
    }
    let mut asked = file.keys.iter().filter_map(|key| key.models.as_ref()).flatten().peekable();
    if asked.peek().is_none() {
        return;
    }
    let names = names(routing);
    for written in asked.filter(|written| !is_served(written, &names, routing)) {
        let why = "no model, alias or provider here has such a name";
        findings.warn(
            written.at,
            format!("{} in \"models\" of [[key]]: {why}", quoted(&written.value)),
        );
    }
}

/// Whether a call under a budget can be made at all. Providers are also called by explicit names,
/// so that a price of any of their models is one.
fn is_priced(routing: &Routing, prices: &PriceList, terms: &MoneyTerms) -> bool {
    let mut providers = routing.providers.iter();
    terms.fallback.is_some()
        || providers.any(|p| p.mode == Mode::None || prices.names(&p.name).next().is_some())
}

/// Names that calls can ask for or lead to, in lower case: aliases, models, what is sent for them.
fn names(routing: &Routing) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    names.extend(routing.aliases.keys().map(|name| name.to_ascii_lowercase()));
    for (public, choices) in &routing.models {
        names.insert(public.to_ascii_lowercase());
        for candidate in &choices.candidates {
            let sent = candidate.model.as_deref().unwrap_or(public).to_ascii_lowercase();
            names.insert(sent);
        }
    }
    names
}

/// Whether a pattern may be met by a call.
fn is_served(written: &Text, names: &BTreeSet<String>, routing: &Routing) -> bool {
    let list = AllowList::new([&*written.value]);
    // In lower case and without a client's suffix, as it is compared.
    let Some(pattern) = list.ok().and_then(|list| list.patterns().next()) else { return true };
    let (text, is_open) = match pattern.strip_suffix('*') {
        Some(beginning) => (beginning, true),
        None => (&*pattern, false),
    };
    let mut from = names.range::<str, _>((Bound::Included(text), Bound::Unbounded));
    if from.next().is_some_and(|name| name == text || (is_open && name.starts_with(text))) {
        return true;
    }
    routing.providers.iter().any(|provider| {
        let before = format!("{}/", provider.name.to_ascii_lowercase());
        // Who lists nothing may serve anything, by an explicit name.
        text.starts_with(&before)
            || (is_open && before.starts_with(text))
            || provider.serves.is_empty()
            || provider.serves.iter().any(|served| overlaps(text, is_open, served))
    })
}

/// Whether a name can meet both.
fn overlaps(text: &str, is_open: bool, served: &str) -> bool {
    let served = served.to_ascii_lowercase();
    match served.strip_suffix('*') {
        Some(stem) => text.starts_with(stem) || (is_open && stem.starts_with(text)),
        None => served == text || (is_open && served.starts_with(text)),
    }
}
