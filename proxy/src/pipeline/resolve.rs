//! The model's name → where the call may go: alias → configured model → explicit
//! `provider/model` → a provider that says it serves the name.
//!
//! One candidate in this landing; failover brings the rest of the plan.

use super::body::Received;
use crate::config::snapshot::Snapshot;
use crate::exchange::call::Dialect;
use crate::exchange::ids::{CredentialIx, ProviderId};
use crate::exchange::models::plain;
use crate::exchange::plan::Candidate;
use crate::exchange::refusal::Refusal;
use codec::json::{MODEL_BYTES_MAX, RequestSpans, Span, unescape_into};

/// Room for the model's name as asked for, unescaped.
pub(super) struct Asked([u8; MODEL_BYTES_MAX]);

impl Default for Asked {
    fn default() -> Asked {
        Asked([0; MODEL_BYTES_MAX])
    }
}

/// Where a call may go. Borrows the names; gone before the first wait.
pub(super) struct Plan<'a> {
    /// Who serves it.
    pub candidate: Candidate,
    /// The model as asked for.
    pub asked: &'a str,
    /// The model as it is sent.
    pub sent: &'a str,
    /// The model's value in the body, with its quotes.
    pub span: Span,
}

/// The plan of a call in a dialect.
pub(super) fn plan<'a>(
    snapshot: &'a Snapshot,
    dialect: Dialect,
    received: &Received<'_>,
    spans: &RequestSpans,
    room: &'a mut Asked,
) -> Result<Plan<'a>, Refusal> {
    let raw = spans.model.text.of(received.body());
    let asked: &'a str = unescape_into(raw, &mut room.0).map_err(|_| {
        let why = "model holds characters no model name has";
        Refusal::InvalidRequest { param: Some("model"), why }
    })?;
    // What some clients add to say how much context they want is no part of a name.
    let (candidate, sent) = find(snapshot, plain(asked), dialect)?;
    let span = spans.model.quoted();
    Ok(Plan { candidate, asked, sent, span })
}

/// The candidate for a model's name, and the name it is sent as: one whose provider takes the
/// dialect as it came.
pub(super) fn find<'a>(
    snapshot: &'a Snapshot,
    asked: &'a str,
    dialect: Dialect,
) -> Result<(Candidate, &'a str), Refusal> {
    let name = snapshot.aliases.get(asked).map_or(asked, |target| target);
    let Some(candidates) = snapshot.models.get(name) else {
        return find_unconfigured(snapshot, name, dialect);
    };
    let takes = |c: &&Candidate| snapshot.provider(c.provider).kind.dialect() == dialect;
    let candidate = candidates.iter().find(takes).ok_or(Refusal::ModelUnavailable)?;
    let sent = candidate.model.as_deref().unwrap_or(name);
    Ok((candidate.clone(), sent))
}

/// `provider/model`, else a provider that says it serves the bare name.
fn find_unconfigured<'a>(
    snapshot: &Snapshot,
    name: &'a str,
    dialect: Dialect,
) -> Result<(Candidate, &'a str), Refusal> {
    let explicit = name.split_once('/').filter(|(_, model)| !model.is_empty());
    let explicit = explicit.and_then(|(provider, model)| {
        snapshot.provider_named(provider).map(|provider| (provider, model))
    });
    let (provider, model) = match explicit {
        Some(found) => found,
        None => (serving(snapshot, name, dialect)?, name),
    };
    let found = snapshot.provider(provider);
    if found.kind.dialect() != dialect {
        return Err(Refusal::ModelUnavailable);
    }
    let price = snapshot.prices.lookup(&found.name, model);
    Ok((Candidate { provider, credential: CredentialIx(0), model: None, price }, model))
}

/// The first provider that says it serves the name: one that takes the dialect, if there is.
fn serving(snapshot: &Snapshot, name: &str, dialect: Dialect) -> Result<ProviderId, Refusal> {
    let serving = snapshot.providers.iter().enumerate().filter(|(_, p)| p.serves(name));
    // Of equals the first.
    let best = serving.min_by_key(|(_, p)| p.kind.dialect() != dialect);
    best.map(|(at, _)| ProviderId(at as u16)).ok_or(Refusal::ModelNotFound)
}
