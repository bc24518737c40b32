//! What a configuration declares, brought into the store: at every start, before anybody calls.
//!
//! | in the store | in the file | becomes |
//! |---|---|---|
//! | – | yes | a new row |
//! | active or disabled | yes | active, declared, with the file's name and limits |
//! | revoked | yes | revoked, with the file's name and limits: a warning |
//! | declared | no | disabled, unless it is revoked |
//! | made by hand | no | as it is |

use super::KeyFault;
use super::row::set_limits;
use crate::config::DeclaredKey;
use crate::exchange::keys::Digest;
use crate::exchange::time::UnixMs;
use std::collections::HashMap;
use store::state::{KeyRow, KeyState, State};

/// What came of the declared keys, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// New in the store.
    pub added: Vec<Box<str>>,
    /// Known, and another name, limit or state now.
    pub changed: Vec<Box<str>>,
    /// No longer in the file: switched off.
    pub disabled: Vec<Box<str>>,
    /// In the file, and revoked all the same.
    pub revoked: Vec<Box<str>>,
}

/// Brings the file's keys into the store while the store's keys are walked through.
pub(super) struct Declaring<'d> {
    keys: &'d [DeclaredKey],
    missing: HashMap<Digest, &'d DeclaredKey>,
    told: Declared,
    rows: Vec<KeyRow>,
}

// === impl Declaring ===

impl<'d> Declaring<'d> {
    pub(super) fn new(keys: &'d [DeclaredKey]) -> Declaring<'d> {
        let missing = keys.iter().map(|key| (key.digest, key)).collect();
        Declaring { keys, missing, told: Declared::default(), rows: Vec::new() }
    }

    /// Whether the file has a say about a row.
    pub(super) fn concerns(&self, row: &KeyRow) -> bool {
        row.declared || self.missing.contains_key(&row.digest)
    }

    /// A row that the file has a say about, if it is as the file wants it; else it is kept to be
    /// written.
    pub(super) fn meet(&mut self, row: KeyRow) -> Option<KeyRow> {
        let declared = self.missing.remove(&row.digest);
        if declared.is_some() && row.state == KeyState::Revoked {
            self.told.revoked.push(row.name.as_str().into());
        }
        let wanted = followed(row.clone(), declared);
        if wanted == row {
            return Some(row);
        }
        let told = &mut self.told;
        let list = if declared.is_some() { &mut told.changed } else { &mut told.disabled };
        list.push(wanted.name.as_str().into());
        self.rows.push(wanted);
        None
    }

    /// Writes what differs and what is new, as one unit: these rows.
    pub(super) fn write(
        mut self,
        state: &State,
        now: UnixMs,
    ) -> Result<(Declared, Vec<KeyRow>), KeyFault> {
        // In the order of the file: so are the numbers.
        for key in self.keys.iter().filter(|key| self.missing.contains_key(&key.digest)) {
            self.told.added.push(key.name.clone());
            let row = KeyRow { digest: key.digest, created_unix_ms: now.0, ..KeyRow::default() };
            self.rows.push(followed(row, Some(key)));
        }
        if !self.rows.is_empty() {
            state.write_keys(&mut self.rows)?;
        }
        Ok((self.told, self.rows))
    }
}

/// A row as the file wants it.
fn followed(mut row: KeyRow, declared: Option<&DeclaredKey>) -> KeyRow {
    match declared {
        Some(key) => {
            row.declared = true;
            row.name = key.name.to_string();
            set_limits(&mut row, &key.limits);
            if row.state == KeyState::Disabled {
                row.state = KeyState::Active;
            }
        }
        None if row.declared && row.state == KeyState::Active => row.state = KeyState::Disabled,
        None => {}
    }
    row
}
