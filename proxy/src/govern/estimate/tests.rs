use super::*;
use crate::exchange::price::{Markup, Mode, Tier};
use crate::govern::layers::world::flat;
use crate::govern::price::debit;
use Figure::{Absent, Unclear, Whole};

fn of(caps: [Figure; 3], answers: Figure) -> Demand {
    let [max_completion_tokens, max_tokens, max_output_tokens] = caps;
    Demand { max_completion_tokens, max_tokens, max_output_tokens, answers, ..Demand::default() }
}

#[test]
fn one_row_per_cap() {
    // A pico-dollar a token of output, none for input: the hold is the covered output.
    let price = ModelPrice { output_max: Some(64_000), ..flat(0, 1) };
    let terms = MoneyTerms::default();
    for (caps, answers, likely, strict) in [
        ([Absent, Absent, Absent], Absent, 1_000, 64_000),
        ([Whole(10), Absent, Absent], Absent, 10, 10),
        ([Absent, Whole(20), Absent], Absent, 20, 20),
        ([Absent, Absent, Whole(30)], Absent, 30, 30),
        ([Whole(10), Whole(20), Whole(30)], Absent, 10, 30),
        ([Absent, Whole(20), Whole(30)], Absent, 20, 30),
        ([Whole(0), Absent, Absent], Absent, 0, 0),
        ([Whole(128_000), Absent, Absent], Absent, 4_096, 128_000),
        ([Unclear, Absent, Absent], Absent, 4_096, 64_000),
        ([Unclear, Whole(20), Absent], Absent, 4_096, 64_000),
        ([Whole(10), Absent, Absent], Whole(3), 30, 30),
        ([Whole(10), Absent, Absent], Whole(0), 10, 10),
        ([Whole(10), Absent, Absent], Unclear, 1_280, 1_280),
        ([Whole(u64::MAX), Absent, Absent], Whole(u64::MAX), u64::MAX, u64::MAX),
    ] {
        let demand = of(caps, answers);
        let found = [false, true].map(|strict| hold(&demand, &price, strict, &terms).0);
        assert_eq!(found, [likely, strict], "{caps:?} × {answers:?}");
    }
    let unknown = flat(0, 1);
    assert_eq!(hold(&Demand::default(), &unknown, true, &terms), PicoUsd(OUTPUT_MOST));
}

#[test]
fn one_row_per_input() {
    for (ascii, non_ascii, items, image_tokens, tokens) in [
        (0, 0, 0, None, 0),
        (1, 0, 0, None, 1),
        (4, 0, 0, None, 1),
        (5, 1, 0, None, 3),
        (0, 4, 0, None, 2),
        (0, 0, 2, None, 2_000),
        (4, 0, 2, Some(85), 171),
        (u64::MAX, u64::MAX, u32::MAX, Some(u64::MAX), u64::MAX),
    ] {
        let demand = Demand { ascii, non_ascii, items, ..Demand::default() };
        let price = ModelPrice { image_tokens, ..flat(1, 1) };
        assert_eq!(input_tokens(&demand, &price), tokens, "{demand:?}");
    }
}

#[test]
fn a_hold_is_input_and_output_for_each_answer() {
    let mut demand = of([Whole(100), Absent, Absent], Whole(2));
    demand.ascii = 400;
    let terms = MoneyTerms::default();
    assert_eq!(hold(&demand, &flat(3, 5), false, &terms), PicoUsd(2 * (100 * 3 + 100 * 5)));
    // More than a u64 of pico-dollars is more than any limit.
    demand.ascii = u64::MAX;
    assert_eq!(hold(&demand, &flat(u64::MAX, 5), false, &terms), PicoUsd(u64::MAX));
}

#[test]
fn a_strict_hold_takes_the_dearest_rates_and_every_hold_its_tier() {
    let mut price = flat(1, 2);
    price.tiers[0].rates.cache_write_1h = 6;
    price.tiers[0].rates.audio_out = 9;
    let long = Tier { above_input: 100, rates: flat(10, 20).tiers[0].rates };
    price.tiers.push(long);
    let terms = MoneyTerms::default();
    let mut demand = of([Whole(7), Absent, Absent], Absent);
    for (ascii, likely, strict) in
        [(400, 100 + 7 * 2, 100 * 6 + 7 * 9), (401, 101 * 10 + 7 * 20, 101 * 10 + 7 * 20)]
    {
        demand.ascii = ascii;
        assert_eq!(hold(&demand, &price, false, &terms), PicoUsd(likely), "{ascii}");
        assert_eq!(hold(&demand, &price, true, &terms), PicoUsd(strict), "{ascii}");
    }
}

#[test]
fn what_was_not_reported_is_the_larger_of_noted_and_relayed() {
    let noted = |input_fresh, input_cache_read, output| UsageEnvelope {
        input_fresh,
        input_cache_read,
        output,
        ..UsageEnvelope::default()
    };
    for (seen, input, relayed, wanted) in [
        (noted(0, 0, 0), 50, 7, noted(50, 0, 7)),
        (noted(9, 0, 0), 50, 7, noted(9, 0, 7)),
        (noted(0, 9, 3), 50, 2, noted(0, 9, 3)),
        (noted(0, 0, 3), 0, u64::MAX, noted(0, 0, u32::MAX)),
    ] {
        let wanted = UsageEnvelope { provenance: Provenance::Estimated, ..wanted };
        assert_eq!(unreported(&seen, input, relayed), wanted);
    }
}

/// Numbers of the page about money, from the rows that begin so.
fn numbers(begin: &str) -> Vec<Vec<u64>> {
    let page = include_str!("../../../../docs/money.md");
    let rows = page.lines().filter(|line| line.starts_with(&format!("| {begin} |")));
    let cells = |row: &str| {
        let cells = row.split('|').map(|cell| cell.trim().replace(',', ""));
        cells.filter_map(|cell| cell.parse().ok()).collect()
    };
    rows.map(cells).collect()
}

#[test]
fn the_example_of_the_page_about_money_is_held_as_it_says() {
    let (input, output) = (numbers("input"), numbers("output"));
    let rates = Rates {
        input: input[0][1],
        cache_write_1h: input[1][1],
        output: output[0][1],
        ..Rates::default()
    };
    let price = ModelPrice { tiers: vec![Tier { above_input: 0, rates }], ..ModelPrice::default() };
    let demand =
        Demand { ascii: 12_000, non_ascii: 1_000, max_tokens: Whole(8_192), ..Demand::default() };
    let terms = MoneyTerms::default();
    for (at, row) in ["hold", "strict hold"].into_iter().enumerate() {
        for part in [&input[at], &output[at]] {
            assert_eq!(part[0] * part[1], part[2], "{row}");
        }
        assert_eq!(input[at][0], input_tokens(&demand, &price));
        let held = hold(&demand, &price, at == 1, &terms).0;
        assert_eq!((held, input[at][2] + output[at][2]), (numbers(row)[0][0], held), "{row}");
    }
    let page = include_str!("../../../../docs/money.md").replace(',', "");
    let says = |amount: PicoUsd| assert!(page.contains(&amount.0.to_string()), "{amount}");
    let (held, cost) = (numbers("hold")[0][0], numbers("cost")[0][0]);
    let marked_up = Mode::Managed(Markup::new(1_200_000).unwrap());
    for amount in [held, cost] {
        says(debit(marked_up, PicoUsd(amount)));
    }
    // The same with 6,000 tokens of output.
    let long = cost + (6_000 - 1_250) * rates.output;
    says(PicoUsd(long));
    says(PicoUsd(long - held));
    assert!(page.contains(&format!("{} of the hold come back", PicoUsd(held - cost))));
    assert!(page.contains(&format!("pays {};", PicoUsd(cost))));
}
