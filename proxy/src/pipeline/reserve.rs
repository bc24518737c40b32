//! What needs the plan. No layer holds anything in this landing; what is decided here is the one
//! edit the plan makes to the body.

use super::body::Received;
use super::resolve::Plan;
use crate::exchange::refusal::Refusal;
use codec::json::{Span, write_string};

/// A plan whose call may be made.
pub(super) struct Reserved<'a> {
    /// The plan.
    pub plan: Plan<'a>,
    /// What of the body is replaced by the sent model's name; `None`: it goes on as it came.
    pub edit: Option<Span>,
}

/// Decides the edit, writing its text into `model`. A name that is spelled with escapes is
/// replaced too: the upstream must read the same name that was checked here.
pub(super) fn funds<'a>(
    plan: Plan<'a>,
    received: &Received<'_>,
    model: &mut Vec<u8>,
) -> Result<Reserved<'a>, Refusal> {
    model.clear();
    write_string(plan.sent, model);
    let unchanged = plan.span.of(received.body()) == model.as_slice();
    let edit = (!unchanged).then_some(plan.span);
    Ok(Reserved { plan, edit })
}
