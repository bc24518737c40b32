//! Opens the exchange: from here on exactly one outcome. The record that will be settled is
//! filled with what is known; it lives in [`Held`], outside the future that a panic unwinds.

use super::body::Received;
use super::refuse::Origin;
use super::reserve::Reserved;
use crate::config::snapshot::Snapshot;
use crate::exchange::bundle::Principal;
use crate::exchange::ids::REQUEST_ID_TEXT;
use crate::exchange::plan::Candidate;
use crate::exchange::time::MonoNs;
use crate::io::Io;
use crate::shard::Shard;
use codec::json::Span;
use store::record::{Head, Settled};
use store::text::Text;

/// What a connection's task holds for the exchange under way.
#[derive(Default)]
pub(super) struct Held {
    /// The record, from `open` to `settle`.
    pub record: Settled,
    /// Whether an exchange is open.
    pub open: bool,
    /// Whether usage and price are in the record.
    pub priced: bool,
}

/// Everything later stages need of an opened call.
pub(super) struct Call<'s> {
    /// Our id, as text.
    pub id: [u8; REQUEST_ID_TEXT],
    /// Who pays.
    pub principal: Principal,
    /// Where it goes.
    pub candidate: Candidate,
    /// The request, whole.
    pub received: Received<'s>,
    /// What of the body is replaced by the sent model's name.
    pub edit: Option<Span>,
    /// The configuration it runs under.
    pub snapshot: &'s Snapshot,
    /// When the request was wholly here.
    pub complete: MonoNs,
}

/// Takes the record into use.
pub(super) fn slot<'s, I: Io>(
    shard: &Shard<I>,
    snapshot: &'s Snapshot,
    held: &mut Held,
    principal: Principal,
    received: Received<'s>,
    reserved: Reserved<'_>,
    origin: Origin,
) -> Call<'s> {
    let Reserved { plan, edit } = reserved;
    let now = shard.now();
    held.open = true;
    held.priced = false;
    held.record = Settled {
        head: Head {
            request_id: origin.id.0,
            key_id: principal.bundle.key.0,
            opened_unix_ms: now.wall.0,
            snapshot_version: snapshot.version,
            provider_id: plan.candidate.provider.0,
            price_version: snapshot.prices.version,
            ..Head::default()
        },
        model: Text::from(plan.asked),
        served_model: Text::from(plan.sent),
    };
    let candidate = plan.candidate;
    let (id, complete) = (origin.id.text(), now.mono);
    Call { id, principal, candidate, received, edit, snapshot, complete }
}
