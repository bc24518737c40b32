//! The rows of keys: found by number and by digest, written as one unit.
//!
//! Numbers of keys and budgets are given here and never twice. A digest belongs to one key for
//! ever. Bound: none of its own; who pages through keys says how many at a time.

use super::key::KeyRow;
use super::{META, State, bump, failed};
use crate::error::{Error, Result};
use redb::{ReadableDatabase, ReadableTable, Table, TableDefinition, TableError};
use std::ops::RangeInclusive;

const KEYS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("keys");
const DIGESTS: TableDefinition<'_, [u8; 32], u64> = TableDefinition::new("digests");

/// The counters of numbers given.
const KEY: &str = "key";
const BUDGET: &str = "budget";

impl State {
    /// Adds a key: `row` gets the next number. A digest that is there already is refused.
    pub fn add_key(&self, row: &mut KeyRow) -> Result<()> {
        if row.id != 0 {
            return Err(Error::Row("keys: a new key with a number"));
        }
        self.write_keys(std::slice::from_mut(row))
    }

    /// Writes keys as one unit: those with number 0 are new and get one, the others change what
    /// is there and keep their digest. Budgets with number 0 get one too.
    pub fn write_keys(&self, rows: &mut [KeyRow]) -> Result<()> {
        let what = "writing keys";
        let write = self.database.begin_write().map_err(failed(what))?;
        {
            let mut meta = write.open_table(META).map_err(failed(what))?;
            let mut digests = write.open_table(DIGESTS).map_err(failed(what))?;
            let mut keys = write.open_table(KEYS).map_err(failed(what))?;
            for row in rows {
                write_key(row, &mut meta, &mut digests, &mut keys)?;
            }
        }
        write.commit().map_err(failed(what))
    }

    /// Changes a key as one unit with reading it; the changed row, or `None` if there is none.
    pub fn alter_key(&self, id: u64, alter: impl FnOnce(&mut KeyRow)) -> Result<Option<KeyRow>> {
        let what = "changing a key";
        let write = self.database.begin_write().map_err(failed(what))?;
        let row = {
            let mut meta = write.open_table(META).map_err(failed(what))?;
            let mut digests = write.open_table(DIGESTS).map_err(failed(what))?;
            let mut keys = write.open_table(KEYS).map_err(failed(what))?;
            let known = keys.get(id).map_err(failed(what))?;
            let known = known.map(|row| KeyRow::decode(id, row.value()));
            let Some(row) = known else { return Ok(None) };
            let mut row = row.ok_or(Error::Row("keys"))?;
            alter(&mut row);
            row.id = id;
            write_key(&mut row, &mut meta, &mut digests, &mut keys)?;
            row
        };
        write.commit().map_err(failed(what))?;
        Ok(Some(row))
    }

    /// No number up to these is given any more: where the store was lost and the log was not, its
    /// totals are not those of new keys and budgets.
    pub fn pass_numbers(&self, key: u64, budget: u64) -> Result<()> {
        let what = "passing numbers";
        let read = self.database.begin_read().map_err(failed(what))?;
        let meta = read.open_table(META).map_err(failed(what))?;
        let last = |counter| -> Result<u64> {
            Ok(meta.get(counter).map_err(failed(what))?.map_or(0, |row| row.value()))
        };
        if last(KEY)? >= key && last(BUDGET)? >= budget {
            return Ok(());
        }
        let write = self.database.begin_write().map_err(failed(what))?;
        {
            let mut meta = write.open_table(META).map_err(failed(what))?;
            for (counter, floor) in [(KEY, key), (BUDGET, budget)] {
                let last = meta.get(counter).map_err(failed(what))?.map_or(0, |row| row.value());
                meta.insert(counter, last.max(floor)).map_err(failed(what))?;
            }
        }
        write.commit().map_err(failed(what))
    }

    /// A key by its number.
    pub fn key(&self, id: u64) -> Result<Option<KeyRow>> {
        let mut found = None;
        self.read_keys(id..=id, |row| {
            found = Some(row);
            false
        })?;
        Ok(found)
    }

    /// A key by the digest of its text.
    pub fn key_of(&self, digest: &[u8; 32]) -> Result<Option<KeyRow>> {
        let what = "looking a key up";
        let read = self.database.begin_read().map_err(failed(what))?;
        let digests = match read.open_table(DIGESTS) {
            Ok(digests) => digests,
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(failed(what)(error)),
        };
        let id = digests.get(digest).map_err(failed(what))?.map(|id| id.value());
        id.map_or(Ok(None), |id| self.key(id))
    }

    /// Every key, by number.
    pub fn keys(&self, mut each: impl FnMut(KeyRow)) -> Result<()> {
        self.read_keys(0..=u64::MAX, |row| {
            each(row);
            true
        })
    }

    /// Keys with a number above `after`, by number, until `each` answers `false`.
    pub fn keys_after(&self, after: u64, each: impl FnMut(KeyRow) -> bool) -> Result<()> {
        let Some(first) = after.checked_add(1) else { return Ok(()) };
        self.read_keys(first..=u64::MAX, each)
    }

    fn read_keys(
        &self,
        ids: RangeInclusive<u64>,
        mut each: impl FnMut(KeyRow) -> bool,
    ) -> Result<()> {
        let what = "reading keys";
        let read = self.database.begin_read().map_err(failed(what))?;
        let keys = match read.open_table(KEYS) {
            Ok(keys) => keys,
            Err(TableError::TableDoesNotExist(_)) => return Ok(()),
            Err(error) => return Err(failed(what)(error)),
        };
        for row in keys.range(ids).map_err(failed(what))? {
            let (id, row) = row.map_err(failed(what))?;
            if !each(KeyRow::decode(id.value(), row.value()).ok_or(Error::Row("keys"))?) {
                break;
            }
        }
        Ok(())
    }
}

fn write_key(
    row: &mut KeyRow,
    meta: &mut Table<'_, &'static str, u64>,
    digests: &mut Table<'_, [u8; 32], u64>,
    keys: &mut Table<'_, u64, &'static [u8]>,
) -> Result<()> {
    let what = "writing a key";
    let holder = digests.get(row.digest).map_err(failed(what))?.map(|holder| holder.value());
    // A new digest is nobody's; a changed row keeps its own.
    if holder != (row.id != 0).then_some(row.id) {
        return Err(Error::Row("keys: the digest is another key's"));
    }
    if row.id == 0 {
        row.id = bump(meta, KEY, 0)?;
        digests.insert(row.digest, row.id).map_err(failed(what))?;
    }
    for budget in row.budgets.iter_mut().filter(|budget| budget.budget_id == 0) {
        let id = u32::try_from(bump(meta, BUDGET, 0)?);
        budget.budget_id = id.map_err(|_| Error::Row("meta: budgets"))?;
    }
    keys.insert(row.id, &row.encode()?[..]).map_err(failed(what))?;
    Ok(())
}
