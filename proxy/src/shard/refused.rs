//! Which refusals leave a record of their own: the first few of a key in a second. Those beyond
//! are only counted, by key and code, and become one record each when the second is over.
//!
//! Bounds: [`ROWS_MAX`] keys and codes a second; what is beyond is in the metrics alone.

use std::collections::HashMap;

/// Refusals of one key and second that leave a record each, on all shards together (DESIGN §4).
const RECORDS_A_SECOND: u32 = 10;

/// Keys, and pairs of key and code, that are kept apart in one second: more than a shard can
/// refuse in it but for a flood, whose keys are few.
const ROWS_MAX: usize = 4096;

/// What is done with a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    /// It has a record of its own.
    Record,
    /// It will be in a counted one.
    Counted,
    /// There is no room to count it.
    Lost,
}

/// Refusals of one key, code and second beyond those with a record each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub refusals: u32,
    /// The status of the first: a code has one in each dialect.
    pub status: u16,
}

/// The refusals of the second at hand.
#[derive(Debug)]
pub struct RefusedBook {
    /// Records a key has here in a second.
    share: u32,
    second: u64,
    recorded: HashMap<u64, u32>,
    counted: HashMap<(u64, u16), Count>,
}

impl RefusedBook {
    /// For one of so many shards, which share a key's records.
    pub fn new(shards: usize) -> RefusedBook {
        let shards = u32::try_from(shards).unwrap_or(u32::MAX).max(1);
        RefusedBook {
            share: (RECORDS_A_SECOND / shards).max(1),
            second: 0,
            recorded: HashMap::new(),
            counted: HashMap::new(),
        }
    }

    /// A key is refused with the code of this number and this status.
    pub fn note(&mut self, key: u64, code: u16, status: u16) -> Trace {
        if self.recorded.len() < ROWS_MAX || self.recorded.contains_key(&key) {
            let recorded = self.recorded.entry(key).or_default();
            if *recorded < self.share {
                *recorded += 1;
                return Trace::Record;
            }
        }
        if self.counted.len() < ROWS_MAX || self.counted.contains_key(&(key, code)) {
            let count = self.counted.entry((key, code)).or_insert(Count { refusals: 0, status });
            count.refusals = count.refusals.saturating_add(1);
            return Trace::Counted;
        }
        Trace::Lost
    }

    /// Ends the second that is over, and hands out its counts, by key and code.
    pub fn turn(&mut self, second: u64, mut each: impl FnMut(u64, u16, Count)) {
        if second == self.second {
            return;
        }
        self.second = second;
        self.recorded.clear();
        for ((key, code), count) in self.counted.drain() {
            each(key, code, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turned(book: &mut RefusedBook, second: u64) -> Vec<(u64, u16, u32, u16)> {
        let mut rows = Vec::new();
        book.turn(second, |key, code, of| rows.push((key, code, of.refusals, of.status)));
        rows.sort_unstable();
        rows
    }

    #[test]
    fn ten_have_records_and_the_rest_is_counted_by_reason() {
        let mut book = RefusedBook::new(1);
        let traces: Vec<Trace> = (0..13).map(|n| book.note(7, 1 + n % 2, 400 + n % 2)).collect();
        assert!(traces[..10].iter().all(|trace| *trace == Trace::Record));
        assert!(traces[10..].iter().all(|trace| *trace == Trace::Counted));
        assert_eq!(book.note(8, 1, 400), Trace::Record, "another key");
        assert_eq!(turned(&mut book, 1), [(7, 1, 2, 400), (7, 2, 1, 401)]);
        assert_eq!(book.note(7, 1, 400), Trace::Record, "another second");
        assert_eq!(turned(&mut book, 1), [], "the same second");
        assert_eq!(turned(&mut book, 2), []);
    }

    #[test]
    fn shards_share_and_rows_are_bounded() {
        let mut book = RefusedBook::new(4);
        assert_eq!(
            [0; 3].map(|_| book.note(1, 1, 400)),
            [Trace::Record, Trace::Record, Trace::Counted]
        );
        assert_eq!(RefusedBook::new(64).share, 1);
        let mut book = RefusedBook::new(1);
        let traces: Vec<Trace> =
            (0..2 * ROWS_MAX as u64 + 1).map(|key| book.note(key, 1, 400)).collect();
        assert_eq!(traces[ROWS_MAX - 1], Trace::Record);
        assert_eq!(traces[ROWS_MAX], Trace::Counted);
        assert_eq!(traces[2 * ROWS_MAX], Trace::Lost);
        assert_eq!(turned(&mut book, 1).len(), ROWS_MAX);
    }
}
