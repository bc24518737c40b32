//! Numbers by chance, for waits that are not to coincide: quick, repeatable from a seed, and good
//! for no secret.

use std::cell::Cell;

/// A shard's source of such numbers.
#[derive(Debug)]
pub struct Chance(Cell<u64>);

impl Chance {
    /// Numbers from a seed.
    pub fn new(seed: u64) -> Chance {
        Chance(Cell::new(seed))
    }

    /// The next one.
    pub fn next(&self) -> u32 {
        (self.wide() >> 32) as u32
    }

    /// The same with all its bits.
    pub fn wide(&self) -> u64 {
        // splitmix64: every seed gives a full period.
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_and_they_spread() {
        let numbers = |seed| {
            let chance = Chance::new(seed);
            (0..1_000).map(|_| chance.next()).collect::<Vec<u32>>()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        for seed in [0, 1, u64::MAX] {
            let low = numbers(seed).iter().filter(|number| **number < 1 << 31).count();
            assert!((400..600).contains(&low), "{seed}: {low}");
        }
    }
}
