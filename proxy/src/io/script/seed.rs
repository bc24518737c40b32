//! Chance by seed (splitmix64): the same seed gives the same run. Not for secrets.

use std::cell::Cell;

/// A stream of numbers that depends on its seed alone.
#[derive(Debug)]
pub(super) struct Seed(Cell<u64>);

impl Seed {
    pub(super) fn new(seed: u64) -> Seed {
        Seed(Cell::new(seed))
    }

    /// The next number.
    pub(super) fn draw(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.0.set(state);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 when `bound` is 0.
    pub(super) fn below(&self, bound: usize) -> usize {
        match bound {
            0 => 0,
            // The slight bias of the remainder is of no consequence to a schedule.
            _ => (self.draw() % bound as u64) as usize,
        }
    }
}
