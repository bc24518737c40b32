//! Where a call may go.

use super::ids::{CredentialIx, ProviderId};
use super::price::PriceIx;
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
