//! What one request adds to a scenario: the model's name with its numbers, and the form asked for.

use super::ask::Form;
use super::scenario::Amount;

/// What the model name and the request add to the scenario.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Call<'a> {
    pub(super) model: &'a str,
    pub(super) form: Form,
    /// The numbers in the name of a family.
    pub(super) n: Option<u64>,
    pub(super) m: Option<u64>,
    /// Overrides of the scenario's own.
    pub(super) split: Option<usize>,
    pub(super) pace_ms: Option<u64>,
    /// The same for streams: content events, bytes of text in each, ms between writes, events of
    /// a write.
    pub(super) events: Option<u64>,
    pub(super) text: Option<u64>,
    pub(super) every_ms: Option<u64>,
    pub(super) batch: Option<u64>,
}

impl Call<'_> {
    /// Takes `key=n` behind the name of a scenario; `false` if there is no such key.
    pub(super) fn set(&mut self, key: &str, n: u64) -> bool {
        let place = match key {
            "pace" => &mut self.pace_ms,
            "events" => &mut self.events,
            "text" => &mut self.text,
            "every" => &mut self.every_ms,
            "batch" if n > 0 => &mut self.batch,
            "split" if n > 0 => {
                self.split = usize::try_from(n).ok();
                return true;
            }
            _ => return false,
        };
        *place = Some(n);
        true
    }
}

impl Amount {
    /// The number meant in a call.
    pub(super) fn value(&self, call: Call<'_>) -> Result<u64, String> {
        let missing = |name: &str| format!("uses {name} and has no {name} in its name");
        match self {
            Amount::Fixed(n) => Ok(*n),
            Amount::Named(name) if name == "{n}" => call.n.ok_or_else(|| missing("{n}")),
            Amount::Named(name) if name == "{m}" => call.m.ok_or_else(|| missing("{m}")),
            Amount::Named(other) => Err(format!("{other:?} is neither a number nor \"{{n}}\"")),
        }
    }
}
