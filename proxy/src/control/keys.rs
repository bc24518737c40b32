//! Keys, as the control thread makes them: what a configuration declares becomes a bundle.

use crate::config::DeclaredKey;
use crate::exchange::bundle::Bundle;
use crate::exchange::ids::KeyId;
use crate::exchange::keys::KeyTable;
use crate::exchange::limits::{Books, Limits};
use crate::exchange::time::UnixMs;
use std::sync::Arc;

/// The declared keys of a node without a ledger: numbered in the order of the file.
pub fn declared(keys: &[DeclaredKey], now: UnixMs) -> KeyTable {
    let bundles = keys.iter().zip(1..).map(|(key, id)| {
        let limits = Limits::new(key.limits.clone(), Books::default(), now);
        (key.digest, Arc::new(Bundle::with_limits(KeyId(id), &key.name, limits)))
    });
    KeyTable::of(bundles)
}

/// Keys of the state store, as bundles in a table.
pub struct Keys {
    table: Arc<KeyTable>,
}

/// Why they could not be read or written.
pub type KeysError = store::error::Error;

impl Keys {
    /// Declared keys with the numbers and budgets the store has for them.
    pub fn load(
        state: Arc<store::state::State>,
        balances: &store::balance::Balances,
        declared: &[DeclaredKey],
        now: UnixMs,
    ) -> Result<Keys, KeysError> {
        use crate::exchange::ids::BudgetId;
        use crate::exchange::limits::Book;
        use crate::exchange::money::PicoUsd;
        use store::balance::Account;
        let mut known = std::collections::HashMap::new();
        state.keys(|row| drop(known.insert(row.digest, row)))?;
        let mut bundles = Vec::new();
        for key in declared {
            let mut row = known.remove(&key.digest).unwrap_or_default();
            if row.id == 0 {
                row.digest = key.digest;
                row.name = key.name.to_string();
                row.budgets = vec![store::state::Budget::default(); 2];
                state.add_key(&mut row)?;
            }
            let spent = |id: u32, window: u32| {
                let total = balances.total(Account::window(id, window)).cost_picousd;
                Book { id: BudgetId(id), spent: PicoUsd(total as u64) }
            };
            let month = crate::exchange::window::Period::Month.window(now).id.0;
            let books = Books {
                total: spent(row.budgets[0].budget_id, 0),
                month: spent(row.budgets[1].budget_id, month),
            };
            let limits = Limits::new(key.limits.clone(), books, now);
            let bundle = Bundle::with_limits(KeyId(row.id), &key.name, limits);
            bundles.push((key.digest, Arc::new(bundle)));
        }
        Ok(Keys { table: Arc::new(KeyTable::of(bundles)) })
    }

    /// The table the shards ask.
    pub fn table(&self) -> Arc<KeyTable> {
        self.table.clone()
    }
}
