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

/// Writes what differs, as one unit; nothing if nothing does.
pub(super) fn declare(
    state: &State,
    keys: &[DeclaredKey],
    now: UnixMs,
) -> Result<Declared, KeyFault> {
    let mut missing: HashMap<_, _> = keys.iter().map(|key| (key.digest, key)).collect();
    let (mut told, mut rows) = (Declared::default(), Vec::new());
    state.keys_after(0, |row| {
        let declared = missing.remove(&row.digest);
        if declared.is_some() && row.state == KeyState::Revoked {
            told.revoked.push(row.name.as_str().into());
        }
        let known = row.clone();
        let row = followed(row, declared);
        if row != known {
            let list = if declared.is_some() { &mut told.changed } else { &mut told.disabled };
            list.push(row.name.as_str().into());
            rows.push(row);
        }
        true
    })?;
    // In the order of the file: so are the numbers.
    for key in keys.iter().filter(|key| missing.contains_key(&key.digest)) {
        told.added.push(key.name.clone());
        let row = KeyRow { digest: key.digest, created_unix_ms: now.0, ..KeyRow::default() };
        rows.push(followed(row, Some(key)));
    }
    if !rows.is_empty() {
        state.write_keys(&mut rows)?;
    }
    Ok(told)
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
