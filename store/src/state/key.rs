//! A virtual key as it is stored. The store keeps what policy says and does not read it.
//!
//! Bounds: names of [`NAME_BYTES_MAX`] bytes, [`MODELS_MAX`] models, [`BUDGETS_MAX`] budgets.

use crate::error::{Error, Result};
use crate::wire::{Put, Take, Wire, wire_enum, wire_struct};

/// Bytes of a name, a prefix, a model.
pub const NAME_BYTES_MAX: usize = 256;
/// Models of an allow-list.
pub const MODELS_MAX: usize = 256;
/// Budgets of one key: as many as a record has windows.
pub const BUDGETS_MAX: usize = crate::record::WINDOWS_MAX;

const VERSION: u8 = 1;

/// Bits of the byte of yes and no.
const DECLARED: u8 = 1;
const STRICT: u8 = 2;

wire_enum! {
    /// Whether a key may be used.
    pub enum KeyState {
        /// It may.
        Active = 0 "active",
        /// Not now.
        Disabled = 1 "disabled",
        /// Never again.
        Revoked = 2 "revoked",
    }
}

wire_enum! {
    /// How often a budget begins anew.
    pub enum Period {
        /// Never.
        Total = 0 "total",
        /// Each day, UTC.
        Day = 1 "day",
        /// Each week, UTC.
        Week = 2 "week",
        /// Each month, UTC.
        Month = 3 "month",
    }
}

wire_struct! {
    /// A budget of a key.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Budget {
        /// Its id, as windows in records have it.
        pub budget_id: u32,
        /// How often it begins anew.
        pub period: Period,
        /// The most that may be spent in a window, or [`Budget::NONE`].
        pub limit_picousd: u64,
    }
}

impl Budget {
    /// The limit of a budget that is not in force: its number and what was spent are kept for
    /// when it is again.
    pub const NONE: u64 = u64::MAX;
}

/// Limits; `None` is unlimited, 0 is none at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests a minute.
    pub requests_per_minute: Option<u32>,
    /// Requests a day.
    pub requests_per_day: Option<u32>,
    /// Tokens a minute.
    pub tokens_per_minute: Option<u32>,
    /// Exchanges at once.
    pub concurrent: Option<u32>,
}

/// A virtual key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRow {
    /// Its id; given by the store.
    pub id: u64,
    /// SHA-256 of the key's text; the text itself is nowhere.
    pub digest: [u8; 32],
    /// What an operator calls it.
    pub name: String,
    /// The beginning of its text, to recognise it by.
    pub prefix: String,
    /// Its project; 0 = none.
    pub project_id: u32,
    /// Its team; 0 = none.
    pub team_id: u32,
    /// Whether it may be used.
    pub state: KeyState,
    /// Whether a configuration declares it, and rules over its name and limits.
    pub declared: bool,
    /// Whether holds cover the whole cap of a call.
    pub strict: bool,
    /// When it was made.
    pub created_unix_ms: u64,
    /// From when on it may not be used any more; `None` = never.
    pub expires_unix_ms: Option<u64>,
    /// Its limits.
    pub limits: Limits,
    /// Its budgets.
    pub budgets: Vec<Budget>,
    /// Models it may use, with `*`; `None` = all, an empty list = none.
    pub models: Option<Vec<String>>,
}

// === impl KeyRow ===

impl KeyRow {
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let models = self.models.as_deref().unwrap_or_default();
        if !self.is_within_bounds() {
            return Err(Error::Row("keys: longer than a key may be"));
        }
        let flags = (u8::from(self.declared) * DECLARED) | (u8::from(self.strict) * STRICT);
        let mut out = vec![VERSION, self.state.number(), flags];
        out.extend(self.digest);
        text(&mut out, &self.name);
        text(&mut out, &self.prefix);
        out.extend(self.project_id.to_le_bytes());
        out.extend(self.team_id.to_le_bytes());
        out.extend(self.created_unix_ms.to_le_bytes());
        option(&mut out, self.expires_unix_ms);
        let Limits { requests_per_minute, requests_per_day, tokens_per_minute, concurrent } =
            self.limits;
        for limit in [requests_per_minute, requests_per_day, tokens_per_minute, concurrent] {
            option(&mut out, limit.map(u64::from));
        }
        // Both counts are bounded above.
        out.push(u8::try_from(self.budgets.len()).unwrap_or(u8::MAX));
        for budget in &self.budgets {
            let mut bytes = [0; Budget::BYTES];
            budget.put(&mut Put::new(&mut bytes));
            out.extend(bytes);
        }
        option(&mut out, self.models.as_ref().map(|models| models.len() as u64));
        models.iter().for_each(|model| text(&mut out, model));
        Ok(out)
    }

    pub(crate) fn decode(id: u64, bytes: &[u8]) -> Option<KeyRow> {
        let mut take = Take::new(bytes);
        if u8::take(&mut take)? != VERSION {
            return None;
        }
        let state = KeyState::take(&mut take)?;
        let flags = u8::take(&mut take).filter(|flags| flags & !(DECLARED | STRICT) == 0)?;
        let digest = take.bytes()?;
        let name = take_text(&mut take)?;
        let prefix = take_text(&mut take)?;
        let project_id = u32::take(&mut take)?;
        let team_id = u32::take(&mut take)?;
        let created_unix_ms = u64::take(&mut take)?;
        let expires_unix_ms = take_option(&mut take)?;
        let mut limit =
            || take_option(&mut take)?.map_or(Some(None), |n| u32::try_from(n).ok().map(Some));
        let limits = Limits {
            requests_per_minute: limit()?,
            requests_per_day: limit()?,
            tokens_per_minute: limit()?,
            concurrent: limit()?,
        };
        let count = u8::take(&mut take)?;
        let budgets = (0..count).map(|_| Budget::take(&mut take)).collect::<Option<Vec<_>>>()?;
        let models = match take_option(&mut take)? {
            Some(count) if count > MODELS_MAX as u64 => return None,
            Some(count) => {
                Some((0..count).map(|_| take_text(&mut take)).collect::<Option<Vec<_>>>()?)
            }
            None => None,
        };
        let row = KeyRow {
            id,
            digest,
            name,
            prefix,
            project_id,
            team_id,
            state,
            declared: flags & DECLARED != 0,
            strict: flags & STRICT != 0,
            created_unix_ms,
            expires_unix_ms,
            limits,
            budgets,
            models,
        };
        (take.left() == 0 && row.is_within_bounds()).then_some(row)
    }

    fn is_within_bounds(&self) -> bool {
        let models = self.models.as_deref().unwrap_or_default();
        self.name.len().max(self.prefix.len()) <= NAME_BYTES_MAX
            && models.len() <= MODELS_MAX
            && models.iter().all(|model| model.len() <= NAME_BYTES_MAX)
            && self.budgets.len() <= BUDGETS_MAX
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    // Bounded by NAME_BYTES_MAX.
    out.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend(text.as_bytes());
}

fn take_text(take: &mut Take<'_>) -> Option<String> {
    let len = u16::take(take)?;
    String::from_utf8(take.slice(len.into())?.to_vec()).ok()
}

fn option(out: &mut Vec<u8>, value: Option<u64>) {
    out.push(u8::from(value.is_some()));
    out.extend(value.unwrap_or(0).to_le_bytes());
}

fn take_option(take: &mut Take<'_>) -> Option<Option<u64>> {
    let there = u8::take(take)?;
    let value = u64::take(take)?;
    match (there, value) {
        (0, 0) => Some(None),
        (1, value) => Some(Some(value)),
        _ => None,
    }
}
