//! How arriving bytes are cut into reads. TCP promises no boundaries; this is where a test says
//! which ones it wants to see.

use super::seed::Seed;

/// The rule by which one direction of a connection is cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Chop {
    /// A read returns all that is there and fits.
    #[default]
    Whole,
    /// A read returns at most so many bytes (at least one); 1 is byte by byte.
    AtMost(usize),
    /// No read crosses one of these positions, counted from the start of the stream. Need not
    /// be sorted; positions already passed are without effect.
    Cuts(Vec<u64>),
    /// A read returns between one and so many bytes, by the world's seed.
    Random(usize),
}

impl Chop {
    /// How many of `there` bytes a read at `position` may return. At least one if `there` is.
    pub(super) fn limit(&self, position: u64, there: usize, seed: &Seed) -> usize {
        match self {
            Chop::Whole => there,
            Chop::AtMost(most) => there.min((*most).max(1)),
            Chop::Cuts(cuts) => {
                let next = cuts.iter().filter(|cut| **cut > position).min();
                next.map_or(there, |cut| there.min((cut - position) as usize))
            }
            Chop::Random(most) => there.min(1 + seed.below(*most)),
        }
    }
}
