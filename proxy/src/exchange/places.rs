//! A set of places in a plan: one bit a candidate, so that it is copied and never allocated.

/// Candidates of one plan: as many as a set has bits.
pub const CANDIDATES_MAX: usize = 128;

/// Some of the candidates of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places(u128);

impl Places {
    /// None of them.
    pub const NONE: Places = Places(0);

    /// The first `count`; those beyond [`CANDIDATES_MAX`] have no place.
    pub fn first(count: usize) -> Places {
        let gone = CANDIDATES_MAX.saturating_sub(count);
        Places(u128::MAX.checked_shr(u32::try_from(gone).unwrap_or(u32::MAX)).unwrap_or(0))
    }

    /// Whether a place is in it.
    pub fn has(self, place: u8) -> bool {
        self.0 & Self::bit(place) != 0
    }

    /// Puts a place in.
    pub fn insert(&mut self, place: u8) {
        self.0 |= Self::bit(place);
    }

    /// Takes a place out.
    pub fn remove(&mut self, place: u8) {
        self.0 &= !Self::bit(place);
    }

    /// Whether nothing is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// The lowest.
    pub fn lowest(self) -> Option<u8> {
        (!self.is_empty()).then(|| self.0.trailing_zeros() as u8)
    }

    /// From the lowest on.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let place = rest.lowest()?;
            rest.remove(place);
            Some(place)
        })
    }

    fn bit(place: u8) -> u128 {
        1_u128.checked_shl(u32::from(place)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_what_was_put_in_and_not_taken_out() {
        for (count, wanted) in [(0, 0), (1, 1), (127, 127), (128, 128), (129, 128), (9_999, 128)] {
            let set = Places::first(count);
            assert_eq!(set.count(), wanted, "{count}");
            assert!(set.iter().map(u32::from).eq(0..wanted));
        }
        let mut set = Places::NONE;
        assert_eq!((set.lowest(), set.is_empty()), (None, true));
        for place in [127, 3, 64, 3, 128, 255] {
            set.insert(place);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 64, 127]);
        set.remove(3);
        set.remove(200);
        assert!(!set.has(3) && set.has(127) && !set.has(128));
        assert_eq!(set.lowest(), Some(64));
    }
}
