use super::*;
use crate::exchange::price::Markup;
use crate::govern::layers::world::flat;

fn managed(ppm: u32) -> Mode {
    Mode::Managed(Markup::new(ppm).unwrap())
}

#[test]
fn one_row_per_mode() {
    for (mode, upstream, cost) in [
        (Mode::default(), 1_000, 1_000),
        (managed(1_200_000), 1_000, 1_200),
        (managed(1_200_000), 1, 2),
        (managed(1_000_001), 999_999, 1_000_000),
        (managed(u32::MAX), u64::MAX, u64::MAX),
        (Mode::PlatformFee, 1_000, 100),
        (Mode::PlatformFee, 1, 1),
        (Mode::PlatformFee, 0, 0),
        (Mode::None, 1_000, 0),
    ] {
        assert_eq!(debit(mode, PicoUsd(upstream)), PicoUsd(cost), "{mode:?} {upstream}");
    }
    assert_eq!(Markup::new(999_999), None, "a markup is never below one");
}

#[test]
fn one_row_per_source() {
    use PriceOrder::{CatalogueFirst, HintFirst};
    use PriceSource::{Catalogue, Fallback, Hint, Unpriced};
    let usage = UsageEnvelope { output: 10, ..UsageEnvelope::default() };
    let (listed, fallback) = (flat(1, 5), flat(1, 7));
    for (order, has_price, hint, has_fallback, source, upstream) in [
        (CatalogueFirst, true, Some(9), true, Catalogue, 50),
        (CatalogueFirst, false, Some(9), true, Hint, 9),
        (CatalogueFirst, false, Some(0), true, Fallback, 70),
        (CatalogueFirst, false, None, true, Fallback, 70),
        (CatalogueFirst, false, Some(0), false, Unpriced, 0),
        (HintFirst, true, Some(9), true, Hint, 9),
        (HintFirst, true, Some(0), true, Hint, 0),
        (HintFirst, true, None, true, Catalogue, 50),
        (HintFirst, false, None, true, Fallback, 70),
        (HintFirst, false, None, false, Unpriced, 0),
    ] {
        let fallback = has_fallback.then(|| fallback.clone());
        let terms = MoneyTerms { order, fallback, ..MoneyTerms::default() };
        let price = has_price.then_some(&listed);
        let bill = bill(&usage, price, hint.map(PicoUsd), managed(2_000_000), &terms);
        assert_eq!((bill.source, bill.upstream), (source, PicoUsd(upstream)), "{order:?} {hint:?}");
        assert_eq!((bill.cost, bill.ppm), (PicoUsd(2 * upstream), 2_000_000));
    }
}
