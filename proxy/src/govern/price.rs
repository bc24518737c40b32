//! What an exchange cost: which price counted, what the upstream takes, what the key pays.
//!
//! A price is found by the candidate's own names, before (`PriceList::lookup`); nothing here is
//! guessed from what the client wrote. What has no price costs nothing and says so in
//! [`PriceSource::Unpriced`], which is for an alarm; under a budget such a call was refused before
//! it was made.

use crate::exchange::money::PicoUsd;
use crate::exchange::price::{Mode, ModelPrice, MoneyTerms, PPM, PriceOrder};
use codec::usage::UsageEnvelope;

/// What a key pays for a call on the customer's own credential: a tenth.
const PLATFORM_FEE_PPM: u32 = PPM / 10;

/// Where an upstream cost comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriceSource {
    /// The price list.
    Catalogue,
    /// The upstream's own word.
    Hint,
    /// The configured fall-back price.
    Fallback,
    /// Nowhere: the cost is 0 because it is not known.
    Unpriced,
}

/// A priced exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bill {
    /// What the upstream takes.
    pub upstream: PicoUsd,
    /// Where that comes from.
    pub source: PriceSource,
    /// Who pays the upstream.
    pub mode: Mode,
    /// What was multiplied onto it, in parts in a million.
    pub ppm: u32,
    /// What the key pays.
    pub cost: PicoUsd,
}

impl PriceSource {
    /// Its name in records and docs.
    pub fn name(self) -> &'static str {
        match self {
            PriceSource::Catalogue => "catalogue",
            PriceSource::Hint => "hint",
            PriceSource::Fallback => "fallback",
            PriceSource::Unpriced => "unpriced",
        }
    }
}

/// The bill of an exchange. `hint` is the cost the upstream named, if it did.
pub fn bill(
    usage: &UsageEnvelope,
    price: Option<&ModelPrice>,
    hint: Option<PicoUsd>,
    mode: Mode,
    terms: &MoneyTerms,
) -> Bill {
    let listed = price.map(|price| (price.cost(usage), PriceSource::Catalogue));
    // Behind the list a hint of 0 says nothing; before it, it is a price.
    let hinted = hint.filter(|hint| terms.order == PriceOrder::HintFirst || hint.0 > 0);
    let hinted = hinted.map(|hint| (hint, PriceSource::Hint));
    let found = match terms.order {
        PriceOrder::CatalogueFirst => listed.or(hinted),
        PriceOrder::HintFirst => hinted.or(listed),
    };
    let fallback = || Some((terms.fallback.as_ref()?.cost(usage), PriceSource::Fallback));
    let (upstream, source) = found.or_else(fallback).unwrap_or((PicoUsd(0), PriceSource::Unpriced));
    Bill { upstream, source, mode, ppm: ppm(mode), cost: debit(mode, upstream) }
}

/// What the key pays for an upstream cost; rounded up to the next pico-dollar.
pub fn debit(mode: Mode, upstream: PicoUsd) -> PicoUsd {
    let ppm = u64::from(ppm(mode));
    // What a call costs fits 64 bits, whose division is cheaper; what does not is exact too.
    if let Some(product) = upstream.0.checked_mul(ppm) {
        return PicoUsd(product.div_ceil(u64::from(PPM)));
    }
    let product = u128::from(upstream.0) * u128::from(ppm);
    PicoUsd(u64::try_from(product.div_ceil(u128::from(PPM))).unwrap_or(u64::MAX))
}

/// What is multiplied onto the upstream's cost.
fn ppm(mode: Mode) -> u32 {
    match mode {
        Mode::Managed(markup) => markup.ppm(),
        Mode::PlatformFee => PLATFORM_FEE_PPM,
        Mode::None => 0,
    }
}

#[cfg(test)]
mod tests;
