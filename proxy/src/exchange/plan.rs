//! Where a call may go.

use super::ids::{CredentialIx, ProviderId};
use super::price::{Mode, ModelPrice, MoneyTerms, PriceIx};
use std::sync::Arc;

/// One place that may serve a call.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Who serves it.
    pub provider: ProviderId,
    /// With which credential.
    pub credential: CredentialIx,
    /// The model's name as the provider knows it; `None` sends the caller's own text after the
    /// provider prefix (`provider/model`).
    pub model: Option<Arc<str>>,
    /// What it costs, if that is known.
    pub price: Option<PriceIx>,
}

/// Candidates of one plan: as many as a bit set has bits.
pub const OFFERS_MAX: usize = 64;

/// A candidate as the layers judge it: names and prices instead of places in the snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'p> {
    /// The provider's name.
    pub provider: &'p str,
    /// The model's name as it is sent.
    pub model: &'p str,
    /// What it costs, if that is known.
    pub price: Option<&'p ModelPrice>,
    /// Who pays the provider.
    pub mode: Mode,
}

/// The plan as the layers judge it. Offers can be struck, never added.
#[derive(Debug)]
pub struct Plan<'p> {
    /// The model as asked for.
    pub asked: &'p str,
    /// How money is held and priced.
    pub terms: &'p MoneyTerms,
    offers: &'p [Offer<'p>],
    struck: u64,
}

impl<'p> Plan<'p> {
    /// A plan of all these offers; those beyond [`OFFERS_MAX`] are left out.
    pub fn new(asked: &'p str, offers: &'p [Offer<'p>], terms: &'p MoneyTerms) -> Plan<'p> {
        let offers = offers.get(..OFFERS_MAX).unwrap_or(offers);
        Plan { asked, terms, offers, struck: 0 }
    }

    /// The offers that are left, with their places.
    pub fn left(&self) -> impl Iterator<Item = (usize, &'p Offer<'p>)> + use<'p> {
        let struck = self.struck;
        self.offers.iter().enumerate().filter(move |(at, _)| struck >> at & 1 == 0)
    }

    /// Strikes an offer.
    pub fn strike(&mut self, at: usize) {
        debug_assert!(at < self.offers.len(), "an offer is struck that is not there");
        self.struck |= 1 << (at % OFFERS_MAX);
    }

    /// Whether an offer is left.
    pub fn is_open(&self) -> bool {
        self.left().next().is_some()
    }
}
