//! Chance by seed (splitmix64). A plan is drawn from one stream of numbers, so that the same seed
//! gives the same plan whatever the run makes of it.

use std::time::Duration;

/// A stream of numbers that depends on its seed alone.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// A stream of its own: what is drawn from it moves nothing that is drawn here later.
    pub(crate) fn fork(&mut self) -> Dice {
        Dice(self.draw())
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `bound`; 0 where that is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.draw() % bound }
    }

    /// From `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// From `low` to `high`, each power of two as likely as the next: small more often.
    pub(crate) fn log_between(&mut self, low: u64, high: u64) -> u64 {
        let (from, to) = (low.max(1).ilog2(), high.max(1).ilog2());
        let power = self.between(from.into(), to.into());
        let base = 1 << power;
        (base + self.below(base)).clamp(low, high)
    }

    pub(crate) fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.index(from.len())]
    }

    pub(crate) fn word(&mut self, from: &[&'static str]) -> &'static str {
        from[self.index(from.len())]
    }

    /// One of the values, by weight.
    pub(crate) fn weighted<T: Copy>(&mut self, from: &[(u64, T)]) -> T {
        let mut at = self.below(from.iter().map(|(weight, _)| weight).sum());
        for (weight, value) in from {
            if at < *weight {
                return *value;
            }
            at -= weight;
        }
        from[0].1
    }

    pub(crate) fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }

    /// Ascending places at which `len` bytes are cut, at most `most`.
    pub(crate) fn cuts(&mut self, len: usize, most: u64) -> Vec<usize> {
        if len < 2 {
            return Vec::new();
        }
        let count = self.below(most + 1);
        let mut cuts: Vec<usize> = (0..count).map(|_| 1 + self.index(len - 1)).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }

    /// Text of `len` bytes: mostly ASCII, some of it not, all of it as JSON may have it unescaped.
    pub(crate) fn text(&mut self, len: usize) -> String {
        const LETTERS: &[&str] = &["a", "e", "n", " ", "t", "0", ".", "q", "ß", "€", "語", "x"];
        let mut text = String::with_capacity(len + 4);
        while text.len() < len {
            text.push_str(self.word(LETTERS));
            if self.percent(30) {
                text.push_str("the quick brown tollgate ");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_bounds_hold() {
        let (mut one, mut other) = (Dice::new(7), Dice::new(7));
        for _ in 0..200 {
            assert_eq!(one.draw(), other.draw());
            assert!((3..=5).contains(&one.between(3, 5)));
            assert!((1..=900).contains(&one.log_between(1, 900)));
            let _ = (other.draw(), other.draw(), other.draw());
            let cuts = one.cuts(10, 4);
            assert!(cuts.windows(2).all(|two| two[0] < two[1]));
            assert!(cuts.iter().all(|cut| (1..10).contains(cut)));
            one = other.clone();
        }
    }
}
