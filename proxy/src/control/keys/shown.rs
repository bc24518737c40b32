//! A key as JSON: what is stored, and how its limits stand at this moment. The digest is not in
//! it: nobody needs it to say which key is meant.

use super::{KeyFault, Keys, OfKey};
use crate::exchange::budget::Budget;
use crate::exchange::bundle::Bundle;
use crate::exchange::ids::KeyId;
use crate::exchange::money::PicoUsd;
use crate::exchange::rfc3339;
use crate::exchange::time::{Now, UnixMs};
use crate::exchange::window::NEVER;
use serde_json::{Value, json};
use store::state::KeyRow;

impl Keys {
    /// A key with everything about it.
    pub fn show(&self, row: &KeyRow, now: Now) -> Result<Value, KeyFault> {
        let of_key = self.settled(row.id)?;
        let mut shown = self.list_entry(row, now);
        if let Some(object) = shown.as_object_mut() {
            object.insert("settled".to_owned(), settled(&of_key));
        }
        Ok(shown)
    }

    /// A key as a list shows it.
    pub fn list_entry(&self, row: &KeyRow, now: Now) -> Value {
        let bundle = self.table.find(&row.digest);
        let bundle = bundle.as_deref();
        let instant = |ms: Option<u64>| ms.map(|ms| rfc3339::text(UnixMs(ms)));
        let limits = bundle.map(|bundle| &bundle.limits);
        let budgets = limits.map(|limits| &*limits.budgets).unwrap_or_default();
        json!({
            "id": row.id,
            "key": KeyId(row.id).to_string(),
            "name": row.name,
            "prefix": (!row.prefix.is_empty()).then_some(&row.prefix),
            "state": state(row, now.wall),
            "declared": row.declared,
            "project": (row.project_id != 0).then_some(row.project_id),
            "created": instant(Some(row.created_unix_ms)),
            "expires": instant(row.expires_unix_ms),
            "models": row.models,
            "strict": row.strict,
            "requests_per_minute": row.limits.requests_per_minute,
            "requests_left": bundle.and_then(|bundle| requests_left(bundle, now)),
            "concurrent": row.limits.concurrent,
            "in_flight": limits.and_then(|limits| limits.concurrent.as_ref())
                .map(|limit| limit.inside.inside()),
            "budgets": budgets.iter().map(|budget| budget_json(budget, now.wall))
                .collect::<Vec<Value>>(),
        })
    }
}

/// The state of a row, and `expired` for one that is active and over.
fn state(row: &KeyRow, now: UnixMs) -> &'static str {
    let over = row.expires_unix_ms.is_some_and(|expires| expires <= now.0);
    let active = row.state == store::state::KeyState::Active;
    if active && over { "expired" } else { row.state.name() }
}

fn requests_left(bundle: &Bundle, now: Now) -> Option<u32> {
    bundle.limits.requests.as_ref().map(|rate| rate.left(now.mono))
}

/// How a budget stands. Read word by word beside calls under way: what is held can be a call off.
fn budget_json(budget: &Budget, now: UnixMs) -> Value {
    let window = budget.current(now);
    let (limit, spent, remaining) = (window.limit().pico(), window.spent(), window.remaining());
    let held = i128::from(limit.0) - i128::from(spent.0) - i128::from(remaining);
    let held = PicoUsd(u64::try_from(held).unwrap_or(0));
    let left = PicoUsd(u64::try_from(remaining).unwrap_or(0));
    json!({
        "period": budget.period.name(),
        "limit": limit.to_string(),
        "limit_picousd": limit.0,
        "spent": spent.to_string(),
        "spent_picousd": spent.0,
        "held": held.to_string(),
        "held_picousd": held.0,
        "remaining": left.to_string(),
        "remaining_picousd": remaining,
        "resets": (window.end() != NEVER).then(|| rfc3339::text(window.end())),
    })
}

/// Sums of settled calls, and how many were refused and are not among them. They can be above what
/// a number of JSON holds: texts beside them.
fn settled(OfKey { all: total, refusals }: &OfKey) -> Value {
    let money = |pico: u128| {
        u64::try_from(pico)
            .map_or_else(|_| format!("{pico} pico-dollars"), |p| PicoUsd(p).to_string())
    };
    json!({
        "exchanges": total.exchanges.saturating_sub(*refusals),
        "refusals": refusals,
        "cost": money(total.cost_picousd),
        "cost_picousd": total.cost_picousd.to_string(),
        "upstream_cost": money(total.upstream_cost_picousd),
        "upstream_cost_picousd": total.upstream_cost_picousd.to_string(),
        "overrun": money(total.overrun_picousd),
        "overrun_picousd": total.overrun_picousd.to_string(),
    })
}
