//! The built-in prices, and what is no price file.

use super::*;
use codec::usage::UsageEnvelope;

fn cost(list: &PriceList, provider: &str, model: &str, usage: UsageEnvelope) -> u64 {
    list.at(list.lookup(provider, model).unwrap()).unwrap().cost(&usage).0
}

#[test]
fn the_built_in_prices_are_the_published_ones_to_the_pico_dollar() {
    let list = built_in().unwrap();
    assert_eq!(list.version, 20_261_130);
    let usage = UsageEnvelope {
        input_fresh: 200,
        input_cache_read: 800,
        output: 10,
        ..UsageEnvelope::default()
    };
    // Case use-openai-cached-subset: 200 × 2.50 + 800 × 1.25 + 10 × 10.00 micro-dollars.
    assert_eq!(cost(&list, "openai", "gpt-4o", usage), 1_600 * 1_000_000);
    assert_eq!(cost(&list, "openai", "gpt-4o-2024-11-20", usage), 1_600 * 1_000_000);
    // This snapshot has a price of its own, and none for reads from a cache: they cost input.
    assert_eq!(cost(&list, "openai", "gpt-4o-2024-05-13", usage), 5_150 * 1_000_000);
    assert_eq!(list.lookup("openai", "gpt-4o-mini-search-preview"), None);
    assert_eq!(list.lookup("azure", "gpt-4o"), None);
    let write = UsageEnvelope {
        input_cache_write_5m: 1_000,
        input_cache_write_1h: 1_000,
        ..UsageEnvelope::default()
    };
    assert_eq!(cost(&list, "anthropic", "claude-opus-4-20250514", write), 48_750 * 1_000_000);
    // A tier's rates apply to the whole call, from the first token above its beginning.
    let long = |n| UsageEnvelope { input_fresh: n, output: 1, ..UsageEnvelope::default() };
    let sonnet = "claude-sonnet-4-5-20250929";
    assert_eq!(cost(&list, "anthropic", sonnet, long(200_000)), 200_000 * 3_000_000 + 15_000_000);
    assert_eq!(cost(&list, "anthropic", sonnet, long(200_001)), 200_001 * 6_000_000 + 22_500_000);
}

/// Cells of the rows of the page about money that begin so, digits without their commas.
fn rows(begin: &str) -> Vec<Vec<String>> {
    let page = include_str!("../../../../docs/money.md");
    let rows = page.lines().filter(|line| line.starts_with(&format!("| {begin}")));
    let cells = |row: &str| {
        let cells = row.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().trim_matches('`').replace(',', "")).collect()
    };
    rows.map(cells).collect()
}

#[test]
fn the_example_of_the_page_about_money_costs_what_the_list_says() {
    let list = built_in().unwrap();
    let price = list.at(list.lookup("anthropic", "claude-sonnet-4-5").unwrap()).unwrap();
    let mut usage = UsageEnvelope::default();
    let mut sum = 0;
    for (kind, bucket, rate) in [
        ("`input_fresh`", &mut usage.input_fresh, price.tiers[0].rates.input),
        ("`cache_read`", &mut usage.input_cache_read, price.tiers[0].rates.cache_read),
        ("`cache_write_5m`", &mut usage.input_cache_write_5m, price.tiers[0].rates.cache_write_5m),
        ("`output`", &mut usage.output, price.tiers[0].rates.output),
    ] {
        let [row] = &rows(kind)[..] else { panic!("one row about {kind}") };
        let [tokens, each, all] = [1, 2, 3].map(|at| row[at].parse::<u64>().unwrap());
        assert_eq!((each, all), (rate, tokens * rate), "{kind}");
        *bucket = u32::try_from(tokens).unwrap();
        sum += all;
    }
    assert_eq!(rows("cost |")[0][3], sum.to_string());
    assert_eq!(price.cost(&usage).0, sum);
    // The strict hold counts input as its dearest kind.
    let dearest: Vec<String> = rows("input |").iter().map(|row| row[3].clone()).collect();
    let rates = price.tiers[0].rates;
    assert_eq!(dearest, [rates.input, rates.cache_write_1h].map(|rate| rate.to_string()));
}

#[test]
fn what_has_no_rate_of_its_own_is_not_free() {
    let list = parse(
        r#"{"version": 1, "models": [{"provider": "p", "model": "m",
            "tiers": [{"above_input": 0, "input": 3, "cache_write_5m": 4, "output": 5}]}]}"#,
    );
    let list = list.unwrap();
    let rates = list.at(list.find("p", "m").unwrap()).unwrap().tiers[0].rates;
    let wanted = Rates {
        input: 3,
        cache_read: 3,
        cache_write_5m: 4,
        cache_write_1h: 4,
        output: 5,
        audio_in: 3,
        audio_out: 5,
    };
    assert_eq!(rates, wanted);
}

#[test]
fn a_faulty_price_file_is_refused_with_its_place() {
    let model = |rest: &str| {
        format!(
            "{{\"version\": 1, \"models\": [{{\"provider\": \"p\", \"model\": \"m\", {rest}}}]}}"
        )
    };
    let tier = "\"tiers\": [{\"above_input\": 0, \"input\": 1, \"output\": 1}]";
    let twice = model(tier).replace("}]}]}", "}]}, {\"provider\": \"p\", \"model\": \"n\", ")
        + "\"aliases\": [\"m\"], "
        + tier
        + "}]}";
    let tiers = |list: &str| model(&format!("\"tiers\": [{list}]"));
    let many = vec!["{\"above_input\": 0, \"input\": 1, \"output\": 1}"; 17].join(",");
    for (text, why) in [
        ("".to_owned(), "line 1 column 0"),
        ("{\n \"version\": 1.0,\n \"models\": []}".to_owned(), "line 2 column 15"),
        ("{\"version\": 1, \"models\": [], \"x\": 1}".to_owned(), "unknown field `x`"),
        ("{\"version\": 1, \"version\": 2, \"models\": []}".to_owned(), "duplicate field"),
        ("{\"version\": 0, \"models\": []}".to_owned(), "version must not be 0"),
        ("{\"version\": -1, \"models\": []}".to_owned(), "line 1 column 14"),
        ("{\"version\": 1, \"models\": []} x".to_owned(), "trailing characters"),
        (tiers(""), "\"m\" of \"p\": the first tier must be above_input 0"),
        (tiers("{\"above_input\": 5, \"input\": 1, \"output\": 1}"), "the first tier must be"),
        (tiers("{\"above_input\": 0, \"input\": 2.5, \"output\": 1}"), "floating point `2.5`"),
        (
            tiers("{\"above_input\": 0, \"input\": 1, \"output\": 0.20}"),
            "; a rate is in whole pico-dollars a token: $0.20 a million tokens is 200000",
        ),
        (tiers("{\"above_input\": 0, \"input\": \"2\", \"output\": 1}"), "expected u64"),
        (tiers("{\"above_input\": 0, \"output\": 1}"), "missing field `input`"),
        (tiers("{\"above_input\": 0, \"input\": 1, \"outptu\": 1}"), "unknown field `outptu`"),
        (tiers("{\"above_input\": 0, \"input\": 1, \"output\": 1000000000001}"), "a rate is above"),
        (tiers(&many), "more than 16 tiers"),
        (tiers(&many[..2 * 44 - 1]), "the tiers must rise"),
        (model(&format!("\"until\": \"2030-01-01\", {tier}")), "prices that end"),
        (model(&format!("\"aliases\": [\"\"], {tier}")), "a name is empty"),
        (model(&format!("\"aliases\": [\"m\"], {tier}")), "the name \"m\" has a price already"),
        (model(tier).replace("\"p\"", "\"\""), "the provider has no name"),
        (twice, "\"n\" of \"p\": the name \"m\" has a price already"),
    ] {
        let error = parse(&text).map(|list| list.version).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
}
