//! The model's name → where the call may go: alias → configured model → explicit
//! `provider/model` → a provider that says it serves the name.
//!
//! Three names are kept apart: what the client asked for, the public name that leads to, and what
//! each candidate is sent, which is its own. Candidates that do not take the route's dialect as
//! it comes are left out: translation comes later.

use super::body::Received;
use crate::config::snapshot::Snapshot;
use crate::exchange::call::Dialect;
use crate::exchange::models::plain;
use crate::exchange::places::Places;
use crate::exchange::plan::{Candidate, Choices};
use crate::exchange::price::PriceIx;
use crate::exchange::refusal::Refusal;
use codec::json::{MODEL_BYTES_MAX, RequestSpans, StringSpan, unescape_into};

/// Room for the model's name as asked for, unescaped.
pub(super) struct Asked([u8; MODEL_BYTES_MAX]);

impl Default for Asked {
    fn default() -> Asked {
        Asked([0; MODEL_BYTES_MAX])
    }
}

/// Where a name leads.
#[derive(Clone, Copy)]
pub(super) struct Found<'s, 'a> {
    /// Who may serve it, best first.
    pub choices: &'s Choices,
    /// Those of them that can serve the route.
    pub left: Places,
    /// What candidates without a name of their own are sent.
    pub unnamed: &'a str,
    /// What it costs there.
    pub price: Option<PriceIx>,
}

/// The plan of a call. Borrows the names; gone before the first wait.
pub(super) struct Plan<'s, 'a> {
    /// Where it may go; at least one is left.
    pub found: Found<'s, 'a>,
    /// The model as asked for.
    pub asked: &'a str,
    /// The model's value in the body.
    pub span: StringSpan,
}

/// The plan of a call on a route of this dialect.
pub(super) fn plan<'s: 'a, 'a>(
    snapshot: &'s Snapshot,
    received: &Received<'_>,
    spans: &RequestSpans,
    dialect: Dialect,
    room: &'a mut Asked,
) -> Result<Plan<'s, 'a>, Refusal> {
    let raw = spans.model.text.of(received.body());
    let asked: &'a str = unescape_into(raw, &mut room.0).map_err(|_| {
        let why = "model holds characters no model name has";
        Refusal::InvalidRequest { param: Some("model"), why }
    })?;
    // What some clients add to say how much context they want is no part of a name.
    let found = find(snapshot, plain(asked), Some(dialect))?;
    if found.left.is_empty() {
        return Err(Refusal::ModelUnavailable);
    }
    Ok(Plan { found, asked, span: spans.model })
}

/// Where a model's name leads, on the routes of a dialect or on all of them.
pub(super) fn find<'s: 'a, 'a>(
    snapshot: &'s Snapshot,
    asked: &'a str,
    dialect: Option<Dialect>,
) -> Result<Found<'s, 'a>, Refusal> {
    let public = snapshot.aliases.get(asked).map_or(asked, |target| target);
    let found = match snapshot.models.get(public) {
        Some(choices) => Found { choices, left: Places::NONE, unnamed: public, price: None },
        None => find_unconfigured(snapshot, public, dialect)?,
    };
    Ok(Found { left: native(snapshot, found.choices, dialect), ..found })
}

/// `provider/model`, else a provider that says it serves the bare name: one that takes the
/// dialect, if there is one.
fn find_unconfigured<'s: 'a, 'a>(
    snapshot: &'s Snapshot,
    name: &'a str,
    dialect: Option<Dialect>,
) -> Result<Found<'s, 'a>, Refusal> {
    let explicit = name.split_once('/').filter(|(_, model)| !model.is_empty());
    let explicit = explicit.and_then(|(provider, model)| {
        Some((snapshot.provider(snapshot.provider_named(provider)?), model))
    });
    let (provider, unnamed) = match explicit {
        Some(found) => found,
        None => {
            let mut serving = snapshot.providers.iter().filter(|provider| provider.serves(name));
            let native = serving.clone().find(|p| takes(p.kind.dialect(), dialect));
            (native.or_else(|| serving.next()).ok_or(Refusal::ModelNotFound)?, name)
        }
    };
    let price = snapshot.prices.lookup(&provider.name, unnamed);
    Ok(Found { choices: &provider.choices, left: Places::NONE, unnamed, price })
}

/// Those that take a dialect as it comes.
fn native(snapshot: &Snapshot, choices: &Choices, dialect: Option<Dialect>) -> Places {
    let mut left = Places::first(choices.candidates.len());
    for (place, candidate) in (0..).zip(&choices.candidates) {
        if !takes(snapshot.provider(candidate.provider).kind.dialect(), dialect) {
            left.remove(place);
        }
    }
    left
}

fn takes(spoken: Dialect, wanted: Option<Dialect>) -> bool {
    wanted.is_none_or(|wanted| wanted == spoken)
}

impl<'s: 'a, 'a> Found<'s, 'a> {
    /// The name a candidate is sent.
    pub(super) fn sent(&self, candidate: &'s Candidate) -> &'a str {
        candidate.model.as_deref().unwrap_or(self.unnamed)
    }

    /// What a candidate costs, if that is known.
    pub(super) fn price(&self, candidate: &Candidate) -> Option<PriceIx> {
        candidate.price.or(self.price)
    }

    /// The candidates that are left, with their places.
    pub(super) fn left(&self) -> impl Iterator<Item = (u8, &'s Candidate)> + use<'s, 'a> {
        let candidates = &self.choices.candidates;
        self.left.iter().filter_map(|place| Some((place, candidates.get(usize::from(place))?)))
    }
}
