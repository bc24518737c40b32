//! Keys, as the control thread keeps them: rows of the state store, and the bundles that shards
//! read, in one table.
//!
//! The store is the truth and the table follows it: a new key is durable before anybody can use
//! it. The other way round where that is safer: a revoked key is refused from the next call on,
//! whatever the disk does, and only called revoked once the store has it. Of a key's text only the
//! digest and the first letters are kept, and nobody can ask for it again.
//!
//! Keys that a configuration declares are rows like the others; the file rules over their name and
//! limits at every start. What it does not do: read a clock, change limits of a running node.
//! Bounds: those of the rows (`store::state::key`), [`PAGE_MAX`].

use crate::config::DeclaredKey;
use crate::exchange::bundle::Bundle;
use crate::exchange::ids::KeyId;
use crate::exchange::keys::{Digest, KeyTable};
use crate::exchange::limits::{Books, Limits};
use crate::exchange::time::UnixMs;
use std::sync::Arc;
use store::balance::{Account, Balances, Total};
use store::state::{KeyRow, KeyState, State};

mod declare;
mod fault;
mod new;
mod row;
mod select;
mod shown;
mod text;

pub use declare::Declared;
pub use fault::KeyFault;
pub use new::{Asked, NewKey};
pub use select::Selector;
pub use text::{KEY_TEXT_BYTES, KeyText, PREFIX_BYTES};

/// Keys that are listed at once: half a megabyte of JSON.
pub const PAGE_MAX: usize = 1_000;

/// The declared keys of a node without a ledger: numbered in the order of the file.
pub fn declared(keys: &[DeclaredKey], now: UnixMs) -> KeyTable {
    let bundles = keys.iter().zip(1..).map(|(key, id)| {
        let limits = Limits::new(key.limits.clone(), Books::default(), now);
        (key.digest, Arc::new(Bundle::with_limits(KeyId(id), &key.name, limits)))
    });
    KeyTable::of(bundles)
}

/// The keys of a node.
pub struct Keys {
    state: Arc<State>,
    table: Arc<KeyTable>,
    settled: Settled,
}

/// Where the sums of a key are found.
enum Settled {
    /// In the state store, whose checkpoint the ledger's thread keeps up to the second.
    Kept,
    /// Nobody keeps it up: what the log says.
    Told(Balances),
}

// === impl Keys ===

impl Keys {
    /// The keys of a node that starts: what its configuration declares is brought into the store
    /// first. `balances` is what was settled up to now.
    pub fn load(
        state: Arc<State>,
        balances: &Balances,
        declared: &[DeclaredKey],
        now: UnixMs,
    ) -> Result<(Keys, Declared), KeyFault> {
        // Where the store was lost and the log was not, new keys must not inherit old totals.
        let (mut key, mut budget) = (0, 0);
        for (account, _) in balances.iter() {
            let highest = if account.kind == Account::KEY { &mut key } else { &mut budget };
            *highest = account.id.max(*highest);
        }
        state.pass_numbers(key, budget)?;
        let told = declare::declare(&state, declared, now)?;
        let table = Arc::new(table_of(&state, balances, now)?);
        Ok((Keys { state, table, settled: Settled::Kept }, told))
    }

    /// The keys of a node that does not run: nothing is written, and nothing is declared.
    pub fn resting(state: Arc<State>, balances: Balances, now: UnixMs) -> Result<Keys, KeyFault> {
        let table = Arc::new(table_of(&state, &balances, now)?);
        Ok(Keys { state, table, settled: Settled::Told(balances) })
    }

    /// What shards look keys up in.
    pub fn table(&self) -> &Arc<KeyTable> {
        &self.table
    }

    /// Makes a key. Its text is in the answer and nowhere else.
    pub fn create(&self, new: &NewKey, now: UnixMs) -> Result<(KeyRow, KeyText), KeyFault> {
        let text = KeyText::mint()?;
        let row = self.insert(new, text.digest(), text.prefix(), now)?;
        Ok((row, text))
    }

    /// Makes a key of a text that somebody else has, by its digest.
    pub fn insert(
        &self,
        new: &NewKey,
        digest: Digest,
        prefix: &str,
        now: UnixMs,
    ) -> Result<KeyRow, KeyFault> {
        if self.state.key_of(&digest)?.is_some() {
            return Err(KeyFault::Taken("another key has this digest".to_owned()));
        }
        let mut namesake = None;
        self.state.keys_after(0, |row| {
            let taken = row.name == new.name && row.state != KeyState::Revoked;
            namesake = taken.then_some(row.id);
            !taken
        })?;
        if let Some(id) = namesake {
            let who = KeyId(id);
            return Err(KeyFault::Taken(format!("{who} has this name; revoke it or take another")));
        }
        let mut row = new.row(digest, prefix, now);
        self.state.add_key(&mut row)?;
        let bundle = row::bundle(&row, &Balances::default(), now)?;
        self.table.put(digest, Arc::new(bundle));
        Ok(row)
    }

    /// Ends a key for good: for shards at once, and durably before this returns well.
    pub fn revoke(&self, id: u64) -> Result<KeyRow, KeyFault> {
        let row = self.state.key(id)?.ok_or(KeyFault::NotFound)?;
        if let Some(bundle) = self.table.find(&row.digest) {
            bundle.revoke();
        }
        let revoked = self.state.alter_key(id, |row| row.state = KeyState::Revoked);
        let revoked = revoked.map_err(|error| KeyFault::NotStored(error.to_string()))?;
        revoked.ok_or(KeyFault::NotFound)
    }

    /// The key that a selector means.
    pub fn find(&self, selector: &Selector) -> Result<KeyRow, KeyFault> {
        selector.find(&self.state)
    }

    /// At most `count` keys with numbers above `after`, and the number to ask on from.
    pub fn page(&self, after: u64, count: usize) -> Result<(Vec<KeyRow>, Option<u64>), KeyFault> {
        let count = count.clamp(1, PAGE_MAX);
        let mut rows: Vec<KeyRow> = Vec::new();
        let mut more = false;
        self.state.keys_after(after, |row| {
            more = rows.len() == count;
            if !more {
                rows.push(row);
            }
            !more
        })?;
        let next = rows.last().map(|row| row.id).filter(|_| more);
        Ok((rows, next))
    }

    /// The number and name of every key.
    pub fn names(&self) -> Vec<(u64, Box<str>)> {
        let mut names = Vec::with_capacity(self.table.len());
        self.table.each(|bundle| names.push((bundle.key.0, bundle.name.clone())));
        names
    }

    /// What was settled on a key, as of the last second.
    pub fn settled(&self, id: u64) -> Result<Total, KeyFault> {
        Ok(match &self.settled {
            Settled::Kept => self.state.total(Account::key(id))?,
            Settled::Told(balances) => balances.total(Account::key(id)),
        })
    }

    /// Prepares the next window of every budget in time; for an hour at the least.
    pub fn prepare(&self, now: UnixMs) {
        self.table.each(|bundle| {
            bundle.limits.budgets.iter().for_each(|budget| budget.prepare(now));
        });
    }
}

fn table_of(state: &State, balances: &Balances, now: UnixMs) -> Result<KeyTable, KeyFault> {
    let (mut bundles, mut fault) = (Vec::new(), None);
    state.keys_after(0, |row| match row::bundle(&row, balances, now) {
        Ok(bundle) => {
            bundles.push((row.digest, Arc::new(bundle)));
            true
        }
        Err(found) => {
            fault = Some(found);
            false
        }
    })?;
    fault.map_or_else(|| Ok(KeyTable::of(bundles)), Err)
}

#[cfg(test)]
mod tests;
