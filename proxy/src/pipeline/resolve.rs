//! The model's name → where the call may go: alias → configured model → explicit
//! `provider/model` → a provider that says it serves the name.
//!
//! One candidate in this landing; failover brings the rest of the plan.

use super::body::Received;
use crate::config::snapshot::{ProviderKind, Snapshot};
use crate::exchange::ids::{CredentialIx, ProviderId};
use crate::exchange::models::plain;
use crate::exchange::plan::Candidate;
use crate::exchange::refusal::Refusal;
use codec::json::{MODEL_BYTES_MAX, RequestSpans, Span, unescape_into};
use std::sync::Arc;

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

/// The plan of a call.
pub(super) fn plan<'a>(
    snapshot: &'a Snapshot,
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
    let (candidate, sent) = find(snapshot, plain(asked))?;
    let span = spans.model.quoted();
    Ok(Plan { candidate, asked, sent, span })
}

/// The candidate for a model's name, and the name it is sent as.
pub(super) fn find<'a>(
    snapshot: &'a Snapshot,
    asked: &'a str,
) -> Result<(Candidate, &'a str), Refusal> {
    let name = snapshot.aliases.get(asked).map_or(asked, |target| target);
    let Some(candidates) = snapshot.models.get(name) else {
        return find_unconfigured(snapshot, name);
    };
    let candidate = candidates.first().ok_or(Refusal::ModelUnavailable)?;
    let sent = candidate.model.as_deref().unwrap_or(name);
    usable(snapshot, candidate.clone()).map(|candidate| (candidate, sent))
}

/// `provider/model`, else a provider that says it serves the bare name.
fn find_unconfigured<'a>(
    snapshot: &Snapshot,
    name: &'a str,
) -> Result<(Candidate, &'a str), Refusal> {
    let explicit = name.split_once('/').filter(|(_, model)| !model.is_empty());
    let explicit = explicit.and_then(|(provider, model)| {
        snapshot.provider_named(provider).map(|provider| (provider, model))
    });
    let (provider, model) = match explicit {
        Some(found) => found,
        None => {
            let at = snapshot.providers.iter().position(|p| p.serves(name));
            (ProviderId(at.ok_or(Refusal::ModelNotFound)? as u16), name)
        }
    };
    let price = snapshot.prices.lookup(&snapshot.provider(provider).name, model);
    let candidate = Candidate {
        provider,
        credential: CredentialIx(0),
        model: None,
        price,
        priority: 1,
        weight: 1,
        host: Arc::default(),
        health: Arc::default(),
    };
    Ok((usable(snapshot, candidate)?, model))
}

/// A candidate this landing can serve: the chat dialect goes out as it came in.
fn usable(snapshot: &Snapshot, candidate: Candidate) -> Result<Candidate, Refusal> {
    match snapshot.provider(candidate.provider).kind {
        ProviderKind::OpenAi => Ok(candidate),
        ProviderKind::Anthropic => Err(Refusal::ModelUnavailable),
    }
}
