//! The state store: keys, the node's identity, and the checkpoint of the log, in redb.
//!
//! The log is the truth for money; this is what it is replayed onto. Every commit is durable when
//! it returns. A lost state store is restored from the log and from wherever keys come from; a
//! log that ends below this checkpoint is an alarm (`appender.rs`).
//!
//! Bounds: redb's cache is [`CACHE_BYTES`]; rows are bounded by their own encoding (`key.rs`).
//! redb refuses a second opener, readers too: one process at a time, the one with the lock.

use crate::appender::{Changes, Checkpoint};
use crate::balance::{Account, Balances, Total};
use crate::error::{Error, Result};
use crate::frame::{SlabMark, Stated};
use crate::reader::Position;
use crate::wire::{Put, Take, Wire, encoded};
use redb::{ReadableTable, ReadableTableMetadata, Table, TableDefinition, TableError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

mod base;
pub mod key;
mod rows;

use base::Base;
pub use key::{Budget, KeyRow, KeyState, Limits, Period};

/// redb's default is a gigabyte; a hundred thousand keys are 20 MB.
pub const CACHE_BYTES: usize = 16 << 20;

/// Format of the tables.
const VERSION: u64 = 1;

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const CHECKPOINT: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("checkpoint");
const TOTALS: TableDefinition<'_, &[u8; 16], &[u8; 64]> = TableDefinition::new("totals");

const POSITION_BYTES: usize = <Position as Wire>::BYTES;
const TOTAL_BYTES: usize = <Total as Wire>::BYTES;
const _: () = assert!(TOTAL_BYTES <= 64 && <Account as Wire>::BYTES == 16);

/// The state store of a node.
#[derive(Debug)]
pub struct State {
    database: Base,
    node: u64,
}

/// A failure of redb, with what was attempted.
fn failed<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> Error {
    move |error| Error::State { what, message: error.to_string() }
}

/// Reads what may be damaged: redb stops at some of that with an assertion of its own.
fn sound<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    // Nothing that was touched is used again: whoever is told of damage gives the store up.
    catch_unwind(AssertUnwindSafe(read)).unwrap_or(Err(Error::StateDamaged))
}

/// A new number, above `floor`, never given before.
fn bump(meta: &mut Table<'_, &'static str, u64>, counter: &'static str, floor: u64) -> Result<u64> {
    let what = "counting";
    let last = meta.get(counter).map_err(failed(what))?.map_or(0, |row| row.value());
    let next = last.max(floor).checked_add(1).ok_or(Error::Row("meta: a counter"))?;
    meta.insert(counter, next).map_err(failed(what))?;
    Ok(next)
}

// === impl State ===

impl State {
    /// Opens the store, or makes it for a node whose identity `mint` gives.
    pub fn open(path: &Path, mint: impl FnOnce() -> u64) -> Result<State> {
        sound(|| State::opened(path, mint))
    }

    fn opened(path: &Path, mint: impl FnOnce() -> u64) -> Result<State> {
        let database = Base::open(path).map_err(failed("opening"))?;
        let what = "reading the node's identity";
        let write = database.begin_write().map_err(failed(what))?;
        let node = {
            let mut meta = write.open_table(META).map_err(failed(what))?;
            let version = meta.get("version").map_err(failed(what))?.map(|row| row.value());
            if version.is_some_and(|version| version != VERSION) {
                return Err(Error::Row("meta: made by another version"));
            }
            let known = meta.get("node").map_err(failed(what))?.map(|row| row.value());
            let node = known.unwrap_or_else(mint);
            meta.insert("version", VERSION).map_err(failed(what))?;
            meta.insert("node", node).map_err(failed(what))?;
            node
        };
        write.commit().map_err(failed(what))?;
        Ok(State { database, node })
    }

    /// The node's identity, minted once.
    pub fn node(&self) -> u64 {
        self.node
    }

    /// Counts a start: above every count before, in this store and in the log.
    pub fn start(&self, log_start_max: u32) -> Result<u32> {
        let what = "counting a start";
        let write = self.database.begin_write().map_err(failed(what))?;
        let next = {
            let mut meta = write.open_table(META).map_err(failed(what))?;
            bump(&mut meta, "start", log_start_max.into())?
        };
        write.commit().map_err(failed(what))?;
        u32::try_from(next).map_err(|_| Error::Row("meta: starts"))
    }

    /// Remembers where the log is and what changed, as one unit.
    pub fn save(&self, changes: &Changes) -> Result<()> {
        let what = "writing a checkpoint";
        let write = self.database.begin_write().map_err(failed(what))?;
        {
            let mut table = write.open_table(CHECKPOINT).map_err(failed(what))?;
            let position = encoded::<Position, POSITION_BYTES>(&changes.position);
            table.insert("position", &position[..]).map_err(failed(what))?;
            let mut slabs = vec![0; changes.slabs.len() * SlabMark::BYTES];
            let mut put = Put::new(&mut slabs);
            changes.slabs.iter().for_each(|mark| mark.put(&mut put));
            table.insert("slabs", &slabs[..]).map_err(failed(what))?;
            let mut totals = write.open_table(TOTALS).map_err(failed(what))?;
            for Stated { account, total } in &changes.totals {
                let mut bytes = [0; 64];
                total.put(&mut Put::new(&mut bytes));
                totals.insert(&encoded::<Account, 16>(account), &bytes).map_err(failed(what))?;
            }
        }
        write.commit().map_err(failed(what))
    }

    /// The last checkpoint; `None` if there is none.
    pub fn checkpoint(&self) -> Result<Option<Checkpoint>> {
        sound(|| self.read_checkpoint())
    }

    fn read_checkpoint(&self) -> Result<Option<Checkpoint>> {
        let what = "reading the checkpoint";
        let read = self.database.begin_read().map_err(failed(what))?;
        let table = match read.open_table(CHECKPOINT) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(failed(what)(error)),
        };
        let Some(position) = table.get("position").map_err(failed(what))? else {
            return Ok(None);
        };
        let position = Position::take(&mut Take::new(position.value()));
        let position = position.ok_or(Error::Row("checkpoint"))?;
        let mut slabs = Vec::new();
        if let Some(row) = table.get("slabs").map_err(failed(what))? {
            let mut take = Take::new(row.value());
            slabs.extend(std::iter::from_fn(|| SlabMark::take(&mut take)));
        }
        let mut balances = Balances::default();
        let totals = read.open_table(TOTALS).map_err(failed(what))?;
        let accounts = totals.len().map_err(failed(what))?;
        balances.reserve(usize::try_from(accounts).unwrap_or(0));
        for row in totals.iter().map_err(failed(what))? {
            let (account, total) = row.map_err(failed(what))?;
            let account = Account::take(&mut Take::new(account.value()));
            let total = Total::take(&mut Take::new(total.value()));
            let (Some(account), Some(total)) = (account, total) else {
                return Err(Error::Row("totals"));
            };
            balances.set(account, total);
        }
        Ok(Some(Checkpoint { position, slabs, balances }))
    }

    /// Up to where the last checkpoint goes; `None` if there is none.
    pub fn position(&self) -> Result<Option<Position>> {
        let what = "reading the checkpoint";
        let read = self.database.begin_read().map_err(failed(what))?;
        let table = match read.open_table(CHECKPOINT) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(failed(what)(error)),
        };
        let row = table.get("position").map_err(failed(what))?;
        let position = row.map(|row| Position::take(&mut Take::new(row.value())));
        position.map(|position| position.ok_or(Error::Row("checkpoint"))).transpose()
    }

    /// The total of an account as of the last checkpoint; nothing settled is zero.
    pub fn total(&self, account: Account) -> Result<Total> {
        let what = "reading a total";
        let read = self.database.begin_read().map_err(failed(what))?;
        let table = match read.open_table(TOTALS) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => return Ok(Total::default()),
            Err(error) => return Err(failed(what)(error)),
        };
        let row = table.get(&encoded::<Account, 16>(&account)).map_err(failed(what))?;
        let total = row.map(|row| Total::take(&mut Take::new(row.value())));
        total.map_or_else(|| Ok(Total::default()), |total| total.ok_or(Error::Row("totals")))
    }
}

#[cfg(test)]
mod tests;
