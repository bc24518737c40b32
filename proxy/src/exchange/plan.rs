//! Where a call may go.

use super::breaker::{Breaker, CredentialHealth};
use super::ids::{CredentialIx, ProviderId};
use super::places::Places;
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
    /// Which candidates are tried first: those with the lowest number.
    pub priority: u16,
    /// Its share of the calls among those of its priority; at least one.
    pub weight: u32,
    /// How the host does that it is on.
    pub host: Arc<Breaker>,
    /// How its credential does.
    pub health: Arc<CredentialHealth>,
}

/// The candidates of a name.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// Best priority first.
    pub candidates: Box<[Candidate]>,
    /// Where draws among them are counted, if there is more than one.
    pub group: Option<u32>,
}

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
    left: Places,
}

impl<'p> Plan<'p> {
    /// A plan of all these offers; those beyond
    /// [`CANDIDATES_MAX`](super::places::CANDIDATES_MAX) are left out.
    pub fn new(asked: &'p str, offers: &'p [Offer<'p>], terms: &'p MoneyTerms) -> Plan<'p> {
        Plan { asked, terms, offers, left: Places::first(offers.len()) }
    }

    /// The same plan with these places of it at most.
    pub fn only(mut self, places: Places) -> Plan<'p> {
        for place in self.left.iter().filter(|place| !places.has(*place)) {
            self.left.remove(place);
        }
        self
    }

    /// The offers that are left, with their places.
    pub fn left(&self) -> impl Iterator<Item = (u8, &'p Offer<'p>)> + use<'p> {
        let offers = self.offers;
        self.left.iter().filter_map(move |place| Some((place, offers.get(usize::from(place))?)))
    }

    /// The places that are left.
    pub fn places(&self) -> Places {
        self.left
    }

    /// Strikes an offer.
    pub fn strike(&mut self, place: u8) {
        debug_assert!(
            usize::from(place) < self.offers.len(),
            "an offer is struck that is not there"
        );
        self.left.remove(place);
    }

    /// Whether an offer is left.
    pub fn is_open(&self) -> bool {
        !self.left.is_empty()
    }
}
