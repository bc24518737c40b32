//! Governance asks nothing of the allocator, with every limit on.

#[path = "../benches/governed_call/mod.rs"]
mod governed_call;

use bench::alloc::{Counting, Counts, count};
use tollgate::exchange::price::MoneyTerms;
use tollgate::govern::estimate;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_call_through_all_layers_allocates_nothing() {
    let price = governed_call::price();
    let demand = governed_call::demand();
    for bundle in [governed_call::limited(), governed_call::unlimited()] {
        let (counts, passed) =
            count(|| (0..100).all(|_| governed_call::govern(&bundle, &price, demand)));
        assert_eq!((counts, passed), (Counts::default(), true));
    }
    let (counts, held) = count(|| estimate::hold(&demand, &price, false, &MoneyTerms::default()));
    assert_eq!((counts, held.0), (Counts::default(), 365 * 250_000 + 1_024 * 2_000_000));
}
