//! Whose turn it is among equal candidates, as this shard counts it. Each shard counts for
//! itself: no line is shared, and each gives every candidate its weight over a period of its own.
//!
//! Bound: one number a group of the configuration; it grows when a group is used first.

use std::cell::RefCell;

/// One count a group.
#[derive(Debug, Default)]
pub struct Turns(RefCell<Vec<u64>>);

impl Turns {
    /// The number of the turn that begins; 0 where nothing has to be counted.
    pub fn next(&self, group: Option<u32>) -> u64 {
        let Some(at) = group.and_then(|group| usize::try_from(group).ok()) else { return 0 };
        let mut turns = self.0.borrow_mut();
        if turns.len() <= at {
            turns.resize(at + 1, 0);
        }
        let turn = turns[at];
        turns[at] = turn.wrapping_add(1);
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_counts_for_itself() {
        let turns = Turns::default();
        let taken: Vec<u64> =
            [Some(7), Some(0), Some(7), None, Some(7), None].map(|group| turns.next(group)).into();
        assert_eq!(taken, [0, 0, 1, 0, 2, 0]);
    }
}
