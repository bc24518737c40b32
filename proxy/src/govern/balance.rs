//! Which of several equals is next, by weight: smooth and exact, without a lock or a table.
//!
//! Draws are numbered. With weights that sum to `n`, draw `t` is of the ticket `t × step mod n`,
//! where `step` has no factor in common with `n` and lies near `n` times the golden section;
//! each candidate holds as many tickets as its weight. Over any `n` draws in a row every ticket is
//! drawn once, so each candidate gets exactly its weight; and the section spreads them evenly.

use crate::exchange::places::Places;
use crate::exchange::weights::{WEIGHT_MAX, common_divisor};

/// The golden section as parts of a thousand: fine enough, since the step is rounded anyway.
const SECTION_PER_MILLE: u64 = 618;

/// The place that is drawn; `None` if there is none. Weights count as 1 to [`WEIGHT_MAX`].
pub fn pick(places: Places, weight: impl Fn(u8) -> u32, draw: u64) -> Option<u8> {
    let lowest = places.lowest()?;
    let mut behind = places;
    behind.remove(lowest);
    if behind.is_empty() {
        return Some(lowest);
    }
    let tickets = |place| weight(place).clamp(1, WEIGHT_MAX);
    // At most 128 times the largest weight, which fits.
    let sum: u32 = places.iter().map(tickets).sum();
    let ticket = draw % u64::from(sum) * u64::from(step(sum)) % u64::from(sum);
    let mut ticket = ticket as u32;
    for place in places.iter() {
        match ticket.checked_sub(tickets(place)) {
            Some(rest) => ticket = rest,
            None => return Some(place),
        }
    }
    Some(lowest)
}

/// The number nearest to the golden section of `sum`, from there on, that shares no factor with
/// it.
fn step(sum: u32) -> u32 {
    let from = (u64::from(sum) * SECTION_PER_MILLE / 1_000).max(1) as u32;
    (from..sum.max(2)).find(|step| common_divisor(*step, sum) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn(weights: &[u32], from: u64, draws: u64) -> Vec<u32> {
        let mut counts = vec![0; weights.len()];
        for draw in from..from + draws {
            let places = Places::first(weights.len());
            let place = pick(places, |place| weights[usize::from(place)], draw).unwrap();
            counts[usize::from(place)] += 1;
        }
        counts
    }

    #[test]
    fn the_heavy_one_is_spread_over_the_period() {
        let weight = |place: u8| if place == 0 { 5 } else { 1 };
        let order: Vec<u8> =
            (0..7).map(|draw| pick(Places::first(3), weight, draw).unwrap()).collect();
        assert_eq!(order, [0, 0, 0, 1, 0, 2, 0]);
        let halves: Vec<u8> =
            (0..6).map(|draw| pick(Places::first(2), |_| 1, draw).unwrap()).collect();
        assert_eq!(halves, [0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn none_and_one() {
        assert_eq!(pick(Places::NONE, |_| 1, 3), None);
        let mut one = Places::NONE;
        one.insert(77);
        assert_eq!(pick(one, |_| 0, u64::MAX), Some(77));
    }

    proptest! {
        #[test]
        fn over_any_window_of_a_period_each_gets_its_weight(
            weights in proptest::collection::vec(1_u32..60, 1..20),
            from in 0_u64..1_000_000,
        ) {
            let sum = u64::from(weights.iter().sum::<u32>());
            prop_assert_eq!(drawn(&weights, from, sum), weights);
        }

        #[test]
        fn whoever_is_struck_is_never_drawn(
            bits in any::<u128>(),
            weights in proptest::collection::vec(0_u32..5, 128),
            draw in any::<u64>(),
        ) {
            let mut places = Places::NONE;
            (0..128_u8).filter(|at| bits >> at & 1 == 1).for_each(|at| places.insert(at));
            let place = pick(places, |place| weights[usize::from(place)], draw);
            prop_assert_eq!(place.is_some(), bits != 0);
            prop_assert!(place.is_none_or(|place| places.has(place)));
        }
    }
}
