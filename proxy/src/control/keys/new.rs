//! A key that is asked for: read from JSON, every fault a sentence.
//!
//! ```json
//! {"name": "ci", "project": 4, "models": ["gpt-4o*"], "requests_per_minute": 60,
//!  "concurrent": 4, "budget_total": "25.00", "budget_month": "5.00", "strict": true,
//!  "expires": "30d"}
//! ```
//!
//! Only `name` must be there. What is absent or null is no limit, 0 is a limit.

use super::KeyFault;
use super::row::set_limits;
use crate::config::{PRINTABLE_RULE, is_key_name, is_model_pattern};
use crate::exchange::keys::Digest;
use crate::exchange::limits::KeyLimits;
use crate::exchange::models::{AllowList, MODELS_MAX};
use crate::exchange::money::PicoUsd;
use crate::exchange::rfc3339;
use crate::exchange::time::UnixMs;
use crate::exchange::words::MoneyLimit;
use serde::{Deserialize, Serialize};
use store::state::KeyRow;

/// Milliseconds of an hour.
const HOUR_MS: u64 = 3_600_000;

/// A key to be made.
#[derive(Clone, Debug, Default)]
pub struct NewKey {
    /// Its name.
    pub name: String,
    /// Its project; 0 = none.
    pub project: u32,
    /// What it may do.
    pub limits: KeyLimits,
}

/// The same as it is asked for.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Asked {
    /// Its name.
    pub name: String,
    /// Its project.
    pub project: Option<u32>,
    /// Models it may use; absent is all, an empty list is none.
    pub models: Option<Vec<String>>,
    /// Requests a minute.
    pub requests_per_minute: Option<u32>,
    /// Calls in flight.
    pub concurrent: Option<u32>,
    /// Dollars, ever.
    pub budget_total: Option<String>,
    /// Dollars a month.
    pub budget_month: Option<String>,
    /// Holds cover the whole cap.
    pub strict: bool,
    /// An instant with its zone, or a span from now on: `30d`, `12h`.
    pub expires: Option<String>,
}

// === impl NewKey ===

impl NewKey {
    /// Reads JSON.
    pub fn parse(body: &[u8], now: UnixMs) -> Result<NewKey, KeyFault> {
        let asked: Asked = serde_json::from_slice(body)
            .map_err(|error| KeyFault::Invalid(format!("this is no key: {error}")))?;
        NewKey::read(&asked, now)
    }

    /// Reads what is asked for.
    pub fn read(asked: &Asked, now: UnixMs) -> Result<NewKey, KeyFault> {
        if !is_key_name(&asked.name) {
            return Err(KeyFault::Invalid(format!("the name {PRINTABLE_RULE}")));
        }
        let number = asked.name.strip_prefix("key_").unwrap_or(&asked.name);
        if number.bytes().all(|byte| byte.is_ascii_digit()) {
            let why = "the name must not look like a key's number: nobody could tell them apart";
            return Err(KeyFault::Invalid(why.to_owned()));
        }
        let limits = KeyLimits {
            requests_per_minute: asked.requests_per_minute,
            concurrent: asked.concurrent,
            budget_total: money("budget_total", asked.budget_total.as_deref())?,
            budget_month: money("budget_month", asked.budget_month.as_deref())?,
            strict: asked.strict,
            expires: asked.expires.as_deref().map(|text| expires(text, now)).transpose()?,
            models: asked.models.as_deref().map(models).transpose()?,
        };
        Ok(NewKey { name: asked.name.clone(), project: asked.project.unwrap_or(0), limits })
    }

    /// Its row, without a number yet.
    pub(super) fn row(&self, digest: Digest, prefix: &str, now: UnixMs) -> KeyRow {
        let mut row = KeyRow {
            digest,
            name: self.name.clone(),
            prefix: prefix.to_owned(),
            project_id: self.project,
            created_unix_ms: now.0,
            ..KeyRow::default()
        };
        set_limits(&mut row, &self.limits);
        row
    }
}

fn money(what: &str, text: Option<&str>) -> Result<Option<MoneyLimit>, KeyFault> {
    let Some(text) = text else { return Ok(None) };
    let amount = PicoUsd::from_decimal(text).map_err(|_| {
        KeyFault::Invalid(format!("{what} is dollars as a decimal, such as 1.00, without sign"))
    })?;
    let limit = MoneyLimit::new(amount);
    let limit = limit.map_err(|_| KeyFault::Invalid(format!("{what} is above 9 million dollars")));
    limit.map(Some)
}

/// Last instant that can be written as one: 9999-12-31T23:59:59.999Z.
const EXPIRES_MAX: UnixMs = UnixMs(253_402_300_799_999);

fn expires(text: &str, now: UnixMs) -> Result<UnixMs, KeyFault> {
    let at = rfc3339::parse(text).or_else(|| Some(UnixMs(now.0.checked_add(span_ms(text)?)?)));
    let at = at.ok_or_else(|| {
        let what =
            "expires is an instant with its zone (2027-01-31T12:00:00Z) or a span (30d, 12h)";
        KeyFault::Invalid(what.to_owned())
    })?;
    if at > EXPIRES_MAX {
        return Err(KeyFault::Invalid("expires: that is after the year 9999".to_owned()));
    }
    if at <= now {
        return Err(KeyFault::Invalid(format!("expires: {} is over", rfc3339::text(at))));
    }
    Ok(at)
}

/// `30d`, `12h`.
fn span_ms(text: &str) -> Option<u64> {
    let (digits, each) = match text.strip_suffix('d') {
        Some(digits) => (digits, 24 * HOUR_MS),
        None => (text.strip_suffix('h')?, HOUR_MS),
    };
    let count: u64 = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())??;
    count.checked_mul(each)
}

fn models(list: &[String]) -> Result<AllowList, KeyFault> {
    if let Some(wrong) = list.iter().find(|model| !is_model_pattern(model)) {
        let shown: String = wrong.chars().take(80).collect();
        let rule = "is no model's name, nor its beginning and one \"*\"";
        return Err(KeyFault::Invalid(format!("models: \"{}\" {rule}", shown.escape_debug())));
    }
    AllowList::new(list.iter().map(String::as_str))
        .map_err(|_| KeyFault::Invalid(format!("models: more than {MODELS_MAX} patterns")))
}
