//! The credential in the head → who calls. Before a body byte is read.

use super::parse::Request;
use crate::config::snapshot::Snapshot;
use crate::exchange::bundle::Principal;
use crate::exchange::refusal::Refusal;

/// Who calls. Unknown credentials are not told from missing ones.
pub(super) fn identify(snapshot: &Snapshot, request: &Request) -> Result<Principal, Refusal> {
    let key = request.key.ok_or(Refusal::InvalidApiKey)?;
    let bundle = snapshot.keys.get(&key).ok_or(Refusal::InvalidApiKey)?;
    if !bundle.is_active() {
        return Err(Refusal::KeyRevoked);
    }
    Ok(Principal { bundle: bundle.clone() })
}
