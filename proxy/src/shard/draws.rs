//! Draws among equal candidates, as this shard counts them. Each shard counts for itself: no line
//! is shared, and each gives every candidate its weight over a period of its own.
//!
//! Bound: one number a group of the configuration; it grows when a group is used first.

use std::cell::RefCell;

/// One count a group.
#[derive(Debug, Default)]
pub struct Draws(RefCell<Vec<u64>>);

impl Draws {
    /// The number of the next draw; 0 where there is nothing to draw among.
    pub fn next(&self, group: Option<u32>) -> u64 {
        let Some(at) = group.and_then(|group| usize::try_from(group).ok()) else { return 0 };
        let mut draws = self.0.borrow_mut();
        if draws.len() <= at {
            draws.resize(at + 1, 0);
        }
        let draw = draws[at];
        draws[at] = draw.wrapping_add(1);
        draw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_counts_for_itself() {
        let draws = Draws::default();
        let taken: Vec<u64> =
            [Some(7), Some(0), Some(7), None, Some(7), None].map(|group| draws.next(group)).into();
        assert_eq!(taken, [0, 0, 1, 0, 2, 0]);
    }
}
