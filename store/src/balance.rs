//! The pure fold: records → balances. Every account a record touches, and by how much.
//!
//! No I/O, no clock. Sums are `u128`: 2^64 records of the dearest cost fit.

use crate::ending::Ending;
use crate::record::Head;
use crate::wire::wire_struct;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

wire_struct! {
    /// What a total is of.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct Account {
        /// [`Account::KEY`], [`Account::WINDOW`] or [`Account::REFUSALS`].
        pub kind: u32,
        /// The window of a budget; else 0.
        pub window_id: u32,
        /// Key or budget.
        pub id: u64,
    }
}

wire_struct! {
    /// What was settled on an account.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Total {
        /// Exchanges.
        pub exchanges: u64,
        /// Sum of what the upstream takes.
        pub upstream_cost_picousd: u128,
        /// Sum of what the key pays.
        pub cost_picousd: u128,
        /// Sum of what was booked above holds.
        pub overrun_picousd: u128,
    }
}

/// Hashing for tables of accounts.
type ByIds = BuildHasherDefault<IdHasher>;

/// Totals by account.
#[derive(Clone, Debug, Default)]
pub struct Balances {
    totals: HashMap<Account, Kept, ByIds>,
    epoch: u64,
}

/// A total, and the epoch it was last touched in: one look-up says what a commit has to state and
/// what a checkpoint has to write.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    total: Total,
    epoch: u64,
}

// === impl Account ===

impl Account {
    /// Everything a key ever settled.
    pub const KEY: u32 = 0;
    /// One window of one budget.
    pub const WINDOW: u32 = 1;
    /// What of a key's was refused; it is among what it settled, too.
    pub const REFUSALS: u32 = 2;

    /// Accounts that one record can touch.
    pub(crate) const OF_RECORD_MAX: usize = 2 + crate::record::WINDOWS_MAX;

    /// The account of a key.
    pub fn key(id: u64) -> Account {
        Account { kind: Account::KEY, window_id: 0, id }
    }

    /// The account of a budget's window.
    pub fn window(budget_id: u32, window_id: u32) -> Account {
        Account { kind: Account::WINDOW, window_id, id: budget_id.into() }
    }

    /// The account of a key's refusals.
    pub fn refusals(key_id: u64) -> Account {
        Account { kind: Account::REFUSALS, window_id: 0, id: key_id }
    }

    /// Whether it is one of refusals.
    pub(crate) fn is_refusals(&self) -> bool {
        self.kind == Account::REFUSALS
    }

    /// The accounts a record touches: its key, each window it drew on, and the key's refusals if
    /// it is one.
    pub fn of(head: &Head) -> impl Iterator<Item = Account> + '_ {
        let windows = head.windows.iter().filter(|window| window.budget_id != 0);
        let refused = (head.ending == Ending::Refused).then(|| Account::refusals(head.key_id));
        std::iter::once(Account::key(head.key_id))
            .chain(windows.map(|window| Account::window(window.budget_id, window.window_id)))
            .chain(refused)
    }
}

// === impl Total ===

impl Total {
    /// The sum of two.
    pub fn plus(&self, other: &Total) -> Total {
        Total {
            exchanges: self.exchanges.saturating_add(other.exchanges),
            upstream_cost_picousd: self
                .upstream_cost_picousd
                .saturating_add(other.upstream_cost_picousd),
            cost_picousd: self.cost_picousd.saturating_add(other.cost_picousd),
            overrun_picousd: self.overrun_picousd.saturating_add(other.overrun_picousd),
        }
    }

    /// Adds one record.
    pub fn add(&mut self, head: &Head) {
        self.exchanges = self.exchanges.saturating_add(head.count.into());
        let add = |sum: &mut u128, picousd: u64| *sum = sum.saturating_add(picousd.into());
        add(&mut self.upstream_cost_picousd, head.upstream_cost_picousd);
        add(&mut self.cost_picousd, head.cost_picousd);
        add(&mut self.overrun_picousd, head.overrun_picousd);
    }
}

// === impl Balances ===

impl Balances {
    /// Adds a record to every account it touches, and names those that are touched for the first
    /// time in this epoch.
    pub fn add(&mut self, head: &Head, mut touched: impl FnMut(Account)) {
        let epoch = self.epoch + 1;
        for account in Account::of(head) {
            let kept = self.totals.entry(account).or_default();
            kept.total.add(head);
            if kept.epoch != epoch {
                kept.epoch = epoch;
                touched(account);
            }
        }
    }

    /// Makes room for so many accounts more.
    pub fn reserve(&mut self, accounts: usize) {
        self.totals.reserve(accounts);
    }

    /// Ends the epoch: a commit.
    pub fn next_epoch(&mut self) {
        self.epoch += 1;
    }

    /// Epochs that have ended.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Accounts touched after so many epochs had ended.
    pub fn since(&self, epoch: u64) -> impl Iterator<Item = (Account, Total)> + '_ {
        let touched = self.totals.iter().filter(move |(_, kept)| kept.epoch > epoch);
        touched.map(|(account, kept)| (*account, kept.total))
    }

    /// States an account's total, as a frame or a checkpoint does.
    pub fn set(&mut self, account: Account, total: Total) {
        self.totals.insert(account, Kept { total, epoch: self.epoch + 1 });
    }

    /// The total of an account; nothing settled is zero.
    pub fn total(&self, account: Account) -> Total {
        self.totals.get(&account).map(|kept| kept.total).unwrap_or_default()
    }

    /// Whether anything was ever settled or stated on it.
    pub fn knows(&self, account: Account) -> bool {
        self.totals.contains_key(&account)
    }

    /// Drops an account untouched since so many epochs had ended.
    pub fn forget(&mut self, account: Account, epoch: u64) {
        if self.totals.get(&account).is_some_and(|kept| kept.epoch <= epoch) {
            self.totals.remove(&account);
        }
    }

    /// Every account, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Account, Total)> + '_ {
        self.totals.iter().map(|(account, kept)| (*account, kept.total))
    }

    /// How many accounts there are.
    pub fn len(&self) -> usize {
        self.totals.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.totals.is_empty()
    }
}

impl PartialEq for Balances {
    fn eq(&self, other: &Balances) -> bool {
        self.len() == other.len()
            && self
                .iter()
                .all(|(account, total)| other.knows(account) && other.total(account) == total)
    }
}

/// Hashes ids that we hand out ourselves: no caller can choose them to collide, so a multiply and
/// a fold are enough (the default hasher costs the ledger thread as much as the record itself).
#[derive(Clone, Copy, Debug, Default)]
struct IdHasher(u64);

impl IdHasher {
    /// An odd number without pattern: the golden ratio in 64 bits.
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word).wrapping_mul(Self::SPREAD.into());
        let [low, high] = [product & u128::from(u64::MAX), product >> 64];
        self.0 = u64::try_from(low ^ high).unwrap_or_default().rotate_left(23);
    }
}

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0.wrapping_mul(Self::SPREAD)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.mix((*byte).into()));
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Window;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn head(key_id: u64, budget_id: u32, cost: u64) -> Head {
        let mut head = Head {
            key_id,
            cost_picousd: cost,
            upstream_cost_picousd: cost / 2,
            overrun_picousd: cost / 3,
            ..Head::default()
        };
        head.windows[0] = Window { budget_id, window_id: 3 };
        head
    }

    #[test]
    fn sums_go_beyond_what_one_record_can_say() {
        let mut balances = Balances::default();
        for _ in 0..3 {
            balances.add(&head(1, 9, u64::MAX), |_| {});
        }
        let total = balances.total(Account::window(9, 3));
        assert_eq!(total.cost_picousd, 3 * u128::from(u64::MAX));
        assert_eq!(balances.total(Account::key(1)), total);
        assert_eq!(balances.total(Account::key(2)), Total::default());
        assert!(!balances.knows(Account::key(2)));
    }

    #[test]
    fn a_keys_refusals_are_counted_apart_and_among_all() {
        let mut balances = Balances::default();
        balances.add(&head(1, 0, 5), |_| {});
        balances.add(&Head { count: 3, ending: Ending::Refused, ..head(1, 0, 0) }, |_| {});
        assert_eq!(balances.total(Account::key(1)).exchanges, 4);
        assert_eq!(balances.total(Account::refusals(1)).exchanges, 3);
        let all = Head {
            ending: Ending::Refused,
            windows: [Window { budget_id: 1, window_id: 1 }; 6],
            ..head(1, 1, 0)
        };
        assert_eq!(Account::of(&all).count(), Account::OF_RECORD_MAX);
    }

    #[test]
    fn a_counted_record_stands_for_several() {
        let mut balances = Balances::default();
        balances.add(&Head { count: 12, ..head(1, 0, 0) }, |account| {
            assert_eq!(account, Account::key(1), "no window in place 0");
        });
        assert_eq!(balances.total(Account::key(1)).exchanges, 12);
        balances.forget(Account::key(1), 0);
        assert!(balances.knows(Account::key(1)), "touched since");
        assert_eq!(balances.since(0).count(), 1);
        balances.next_epoch();
        assert_eq!(balances.since(balances.epoch()).count(), 0);
        balances.forget(Account::key(1), balances.epoch());
        assert!(balances.is_empty());
    }

    proptest! {
        #[test]
        fn the_fold_is_the_sum_in_any_order(
            records in prop::collection::vec((0_u64..4, 0_u32..3, any::<u64>()), 0..40),
        ) {
            let mut balances = Balances::default();
            let mut expected: BTreeMap<u64, u128> = BTreeMap::new();
            for (key, budget, cost) in records.iter().rev() {
                balances.add(&head(*key, *budget, *cost), |_| {});
            }
            for (key, _, cost) in &records {
                *expected.entry(*key).or_default() += u128::from(*cost);
            }
            for (key, sum) in expected {
                prop_assert_eq!(balances.total(Account::key(key)).cost_picousd, sum);
            }
        }
    }
}
