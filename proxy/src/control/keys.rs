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

mod bundles;
mod declare;
mod fault;
mod new;
mod row;
mod select;
mod shown;
mod spent;
mod text;

pub use declare::Declared;
pub use fault::KeyFault;
pub use new::{Asked, NewKey};
pub use select::Selector;
pub use text::{KEY_TEXT_BYTES, KeyText, PREFIX_BYTES};

use declare::Declaring;
use spent::{Place, Spent};

/// Keys that are listed at once: half a megabyte of JSON.
pub const PAGE_MAX: usize = 1_000;

/// The declared keys of a node without a ledger: numbered in the order of the file.
pub fn declared(keys: &[DeclaredKey], now: UnixMs) -> KeyTable {
    let bundles = keys.iter().zip(1..).map(|(key, id)| {
        let limits = Limits::new(key.limits.clone(), Books::default(), now);
        (key.digest, Arc::new(Bundle::with_limits(KeyId(id), &*key.name, limits)))
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

/// What was settled on a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfKey {
    /// All of it, refusals among it.
    pub all: Total,
    /// How many of them were refused.
    pub refusals: u64,
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
        let spent = Spent::of(balances, now);
        // Where the store was lost and the log was not, new keys must not inherit old totals.
        state.pass_numbers(spent.key_max, spent.budget_max)?;
        let mut declaring = Declaring::new(declared);
        let (mut bundles, kept) =
            bundles::read(&state, &spent, now, |row| declaring.concerns(row))?;
        let mut rows: Vec<KeyRow> =
            kept.into_iter().filter_map(|row| declaring.meet(row)).collect();
        let (told, written) = declaring.write(&state, now)?;
        rows.extend(written);
        for row in rows {
            bundles.push((
                row.digest,
                Arc::new(row::bundle(row, &spent, &mut Place::default(), now)?),
            ));
        }
        let table = Arc::new(KeyTable::of(bundles));
        Ok((Keys { state, table, settled: Settled::Kept }, told))
    }

    /// The keys of a node that does not run: nothing is written, and nothing is declared.
    pub fn resting(state: Arc<State>, balances: Balances, now: UnixMs) -> Result<Keys, KeyFault> {
        let spent = Spent::of(&balances, now);
        let (bundles, _) = bundles::read(&state, &spent, now, |_| false)?;
        let table = Arc::new(KeyTable::of(bundles));
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
        if let Settled::Told(balances) = &self.settled {
            // Where the store was lost and the log was not: no new key inherits an old one's sums.
            let spent = Spent::of(balances, now);
            self.state.pass_numbers(spent.key_max, spent.budget_max)?;
        }
        let mut row = new.row(digest, prefix, now);
        let namesake = self.state.add_key_unless(&mut row, |known| {
            known.name == new.name && known.state != KeyState::Revoked
        })?;
        if let Some(id) = namesake {
            let who = KeyId(id);
            return Err(KeyFault::Taken(format!("{who} has this name; revoke it or take another")));
        }
        let spent = Spent::default();
        let bundle = row::bundle(row.clone(), &spent, &mut Place::default(), now)?;
        let bundle = Arc::new(bundle);
        self.table.put(digest, bundle.clone());
        // Revoked before it stood in the table, it was nowhere to be found.
        let stored = self.state.key(row.id)?.ok_or(KeyFault::NotFound)?;
        if stored.state == KeyState::Revoked {
            bundle.revoke();
        }
        Ok(stored)
    }

    /// Ends a key for good: for shards at once, and durably before this returns well.
    pub fn revoke(&self, id: u64) -> Result<KeyRow, KeyFault> {
        let row = self.state.key(id)?.ok_or(KeyFault::NotFound)?;
        let refuse = || self.table.find(&row.digest).inspect(|bundle| bundle.revoke());
        refuse();
        let revoked = self.state.alter_key(id, |row| row.state = KeyState::Revoked);
        let revoked = revoked.map_err(|error| KeyFault::NotStored(error.to_string()))?;
        // It may have been put into the table meanwhile, by whoever was making it.
        refuse();
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
    pub fn settled(&self, id: u64) -> Result<OfKey, KeyFault> {
        let of = |account| match &self.settled {
            Settled::Kept => self.state.total(account),
            Settled::Told(balances) => Ok(balances.total(account)),
        };
        let (all, refused) = (of(Account::key(id))?, of(Account::refusals(id))?);
        Ok(OfKey { all, refusals: refused.exchanges })
    }

    /// Prepares the next window of every budget in time; for an hour at the least.
    pub fn prepare(&self, now: UnixMs) {
        self.table.each(|bundle| {
            bundle.limits.budgets.iter().for_each(|budget| budget.prepare(now));
        });
    }
}

#[cfg(test)]
mod tests;
