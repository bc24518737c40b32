//! What a key may cost and where that is written down: `[[key]]` limits, `[price]`, modes,
//! `state_dir` and `[ledger]`.

use super::super::outline::Outline;
use super::*;
use crate::exchange::money::PicoUsd;
use crate::exchange::price::{Markup, PriceOrder};
use crate::exchange::rules::{OrphanRule, WhenFull};
use crate::exchange::time::UnixMs;

/// `MINIMAL` and a key with these lines behind it.
fn key(lines: &str) -> String {
    let sha256 = "2123456789abcdef".repeat(4);
    format!("{MINIMAL}[[key]]\nname = \"k\"\nsha256 = \"{sha256}\"\n{lines}\n")
}

#[test]
fn limits_of_a_key_are_exact() {
    let config = good(FULL);
    let limits = &config.keys[2].limits;
    assert_eq!((limits.requests_per_minute, limits.concurrent), (Some(60), Some(0)));
    let money = |limit: Option<crate::exchange::words::MoneyLimit>| limit.map(|l| l.pico());
    assert_eq!(money(limits.budget_total), Some(PicoUsd(1_000_000_000_000)));
    assert_eq!(money(limits.budget_month), Some(PicoUsd(500_000_000_000)));
    assert_eq!(limits.expires, Some(UnixMs(1_798_761_600_000)));
    let models = limits.models.as_ref().unwrap();
    assert!(limits.strict && models.allows("gpt-x") && models.allows_at("OpenAI", "o3"));
    assert!(!models.allows_at("other", "o3"));
    let none = &config.keys[0].limits;
    assert!(none.models.is_none() && none.budget_total.is_none() && !none.strict);
    let zero = good(&key("budget_total = \"0\"\nmodels = []\nrequests_per_minute = 0"));
    let zero = &zero.keys[0].limits;
    assert_eq!(money(zero.budget_total), Some(PicoUsd(0)));
    assert_eq!(zero.requests_per_minute, Some(0));
    assert!(!zero.models.as_ref().unwrap().allows("anything"), "an empty list allows nothing");
}

#[test]
fn a_limit_that_cannot_be_meant_is_refused() {
    let many = format!("models = [{}]", "\"m\", ".repeat(257));
    for (line, wanted) in [
        ("requests_per_minute = -1", "11:23: \"requests_per_minute\" in [[key]] must be from 0 to"),
        ("requests_per_minute = \"60\"", "must be a whole number, not a text"),
        ("concurrent = 4294967296", "must be from 0 to 4294967295"),
        ("concurrent = 1.5", "must be a whole number, not a float"),
        ("budget_total = 1.00", "must be dollars as a text such as \"1.00\", not a float"),
        ("budget_total = 1", "must be dollars as a text such as \"1.00\", not a whole number"),
        ("budget_total = \"-1.00\"", "without sign or unit"),
        ("budget_total = \"$1\"", "without sign or unit"),
        ("budget_month = \"0.0000000000001\"", "has more than the twelve decimals"),
        ("budget_month = \"9000000.01\"", "is above 9 million dollars"),
        ("budget_month = \"99999999\"", "is more than any budget can be"),
        ("strict = 1", "must be true or false, not a whole number"),
        ("expires = 2027-01-01T00:00:00Z", "must be a text, not a date"),
        ("expires = \"2027-01-01\"", "must be an instant with its zone"),
        ("expires = \"30d\"", "must be an instant with its zone"),
        ("models = \"*\"", "must be a list of texts, not a text"),
        ("models = [\"*x\"]", "a pattern of models has one \"*\", at its end"),
        (&many, "has more than 256 patterns"),
        ("budget_day = \"1.00\"", "unknown key \"budget_day\" in [[key]]"),
    ] {
        let found = errors(&key(line));
        assert!(found.len() == 1 && found[0].contains(wanted), "{line}: {found:#?}");
        assert!(found[0].starts_with("tollgate.toml:11:"), "{found:?}");
    }
    assert!(errors(&key("budget_month = \"9000000.00\"")).is_empty());
}

#[test]
fn terms_and_modes_come_from_the_file() {
    let price = "[price]\norder = \"hint_first\"\nmarkup = \"1.5\"\n\
                 fallback = { input = 3, output = 7, cache_write_5m = 4 }\n";
    let config = good(&(FULL.to_owned() + price));
    let terms = &config.snapshot.terms;
    assert_eq!((terms.order, terms.hold_output_max), (PriceOrder::HintFirst, 512));
    let rates = terms.fallback.as_ref().unwrap().tiers[0].rates;
    assert_eq!((rates.input, rates.cache_read, rates.cache_write_1h), (3, 3, 4));
    assert_eq!((rates.output, rates.audio_out), (7, 7));
    let mode = |n| config.snapshot.provider(ProviderId(n)).mode;
    assert_eq!(mode(0), Mode::Managed(Markup::new(1_200_000).unwrap()), "its own");
    assert_eq!(mode(1), Mode::PlatformFee);
    let config = good(&format!("{MINIMAL}mode = \"managed\"\n{price}"));
    let kept = config.snapshot.provider(ProviderId(0)).mode;
    assert_eq!(kept, Mode::Managed(Markup::new(1_500_000).unwrap()), "that of [price]");
}

#[test]
fn terms_that_lose_money_by_mistake_are_refused() {
    for (lines, wanted) in [
        ("markup = \"0.9\"", "\"markup\" in [price] is below 1"),
        ("markup = \"0\"", "is below 1"),
        ("markup = 1.2", "must be a text, not a float"),
        ("markup = \"20%\"", "must be a decimal text such as \"1.2\""),
        ("markup = \"1.0000001\"", "has more than six decimals"),
        ("markup = \"120\"", "is above 100"),
        ("markup = \"99999999\"", "is above 100"),
        ("mode = \"none\"\nmarkup = \"1.2\"", "has an effect in mode managed only"),
        ("mode = \"manged\"", "platform_fee or none; did you mean \"managed\"?"),
        ("order = \"hint\"", "\"order\" in [price] must be catalogue_first or hint_first"),
        ("fallback = { input = 1 }", "fallback of [price] lacks \"output\""),
        ("fallback = { input = 1, output = -1 }", "in whole pico-dollars a token, at least 0"),
        (
            "fallback = { input = 1, output = 0.20 }",
            "must be whole pico-dollars a token ($0.20 a million tokens is 200000), not a float",
        ),
        ("fallback = { input = 1, output = 1000000000001 }", "a rate is above 1000000000000"),
        ("[limits]\nhold_output_max = 0", "must be from 1 to 10000000 tokens"),
        ("[ledger]\nsegment_bytes = \"1KiB\"", "must be between 1MiB and 4GiB"),
        ("[ledger]\nwhen_full = \"serve\"", "must be refuse or serve_unrecorded"),
        ("[ledger]\norphans = \"charge\"", "charge_noted, release or charge_hold"),
        ("[ledger]\nslab_dir = \"\"", "\"slab_dir\" in [ledger] must be a path"),
        ("[ledger]\nenabled = \"no\"", "must be true or false, not a text"),
    ] {
        let found = errors(&format!("{MINIMAL}[price]\n{lines}\n"));
        assert!(found.len() == 1 && found[0].contains(wanted), "{lines}: {found:#?}");
    }
}

#[test]
fn state_lies_where_the_file_or_else_the_environment_says() {
    let config = good(FULL);
    let ledger = config.ledger.unwrap();
    assert_eq!(ledger.state_dir, Path::new("/etc/tollgate/state"), "from the file's folder on");
    assert_eq!(ledger.slab_dir.as_deref(), Some(Path::new("/dev/shm/slabs")));
    assert_eq!(ledger.segment_bytes, 16 << 20);
    assert_eq!(ledger.orphans, OrphanRule::ChargeHold);
    assert_eq!(ledger.when_full, WhenFull::ServeUnrecorded);
    assert_eq!(config.snapshot.when_full, WhenFull::ServeUnrecorded);
    for (variables, state_dir, runtime_dir) in [
        (&[("HOME", "/h")][..], Some("/h/.local/state/tollgate"), None),
        (&[("HOME", "/h"), ("XDG_STATE_HOME", "/x")], Some("/x/tollgate"), None),
        (&[("HOME", "/h"), ("XDG_STATE_HOME", "x")], Some("/h/.local/state/tollgate"), None),
        (
            &[("STATE_DIRECTORY", "/s:/t"), ("HOME", "/h"), ("RUNTIME_DIRECTORY", "/run/t:/u")],
            Some("/s"),
            Some("/run/t"),
        ),
        (&[], None, None),
    ] {
        let mut world = World::usual();
        world.variables.remove("HOME");
        world.variables.extend(variables.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let outline = Outline::without_file(&world);
        let path = |text: Option<&str>| text.map(Into::into);
        assert_eq!(outline.state_dir, path(state_dir));
        match parse("t", MINIMAL, &world) {
            Ok(config) => {
                let ledger = config.ledger.unwrap();
                assert_eq!(Some(ledger.state_dir), path(state_dir));
                assert_eq!((ledger.runtime_dir, ledger.slab_dir), (path(runtime_dir), None));
            }
            Err(errors) => {
                assert_eq!(state_dir, None);
                assert!(errors.to_string().contains("no \"state_dir\""), "{errors}");
            }
        }
    }
}

#[test]
fn a_node_without_a_ledger_says_what_that_means() {
    let mut world = World::usual();
    world.variables.remove("HOME");
    let text = format!("{MINIMAL}[ledger]\nenabled = false\n");
    let config = parse("t", &text, &world).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(config.ledger.is_none());
    let warnings: Vec<String> = config.warnings.iter().map(|w| w.located("t")).collect();
    assert_eq!(warnings[0], "t:1:1: there is no [[key]]: every call will be refused");
    assert!(warnings[1].starts_with("t:9:11: no record is kept"), "{warnings:?}");
    assert!(check::report(&config).contains("ledger     none"));
}

#[test]
fn an_outline_needs_no_secret_and_no_sound_routes() {
    let mut world = World::usual();
    world.variables.remove("OPENAI_API_KEY");
    world.files.insert("/t.toml", FULL.replace("\"fast\"\nold", "\"nowhere\"\nold"));
    let outline = Outline::load(Path::new("/t.toml"), &world).unwrap();
    assert_eq!(outline.state_dir.as_deref(), Some(Path::new("/state")));
    let names: Vec<&str> = outline.providers.iter().map(|name| &**name).collect();
    assert_eq!(names, ["openai", "claude"]);
    world.files.insert("/bad.toml", "state_dir = 3\n".to_owned());
    let refused = Outline::load(Path::new("/bad.toml"), &world).unwrap_err();
    assert!(refused.to_string().contains("must be a text"), "{refused}");
    world.files.insert("/worse.toml", "state_dir = \n".to_owned());
    assert!(Outline::load(Path::new("/worse.toml"), &world).is_err());
    assert!(Outline::load(Path::new("/absent.toml"), &world).is_err());
}

#[test]
fn a_name_that_nothing_serves_gets_the_one_that_was_probably_meant() {
    let exact = FULL.replace("\"o3\"]\nmarkup", "\"o3\", \"o4-mini\"]\nmarkup");
    for (target, near) in [
        ("fsat", "did you mean \"fast\"?"),
        ("opnai/gpt-4o", "did you mean \"openai/gpt-4o\"?"),
        ("o4-min", "did you mean \"o4-mini\"?"),
        ("something-else-entirely", "which nothing serves"),
    ] {
        let text = exact.replace("default = \"fast\"", &format!("default = \"{target}\""));
        let found = errors(&text);
        assert!(found.len() == 1 && found[0].ends_with(near), "{target}: {found:?}");
    }
    let text = FULL.replace("model = \"gpt-4o-mini\"", "model = \"gpt-4o-mni\"");
    let warnings = good(&text).warnings;
    assert!(
        warnings.iter().any(|w| w.text.ends_with("did you mean \"gpt-4o-mini\"?")),
        "{warnings:?}"
    );
}

#[test]
fn an_openai_url_without_a_path_is_worth_a_warning() {
    let text = MINIMAL.replace(":9000/v1", ":9000");
    let warnings = good(&text).warnings;
    assert!(warnings[0].text.starts_with("base_url has no path"), "{warnings:?}");
    assert_eq!((warnings.len(), warnings[0].line), (1, 5));
}

#[test]
fn a_budget_that_nothing_has_a_price_for_is_a_warning() {
    let key = format!("[[key]]\nname = \"k\"\nsha256 = \"{}\"\n", "ab".repeat(32));
    let local = MINIMAL.replace("name = \"openai\"", "name = \"local\"");
    assert_ne!(local, MINIMAL);
    let unpriced = "no model here has a price";
    for (text, more, told) in [
        (local.clone(), "budget_total = \"1.00\"", true),
        (local.clone(), "budget_month = \"1.00\"", true),
        (local.clone(), "concurrent = 1", false),
        (local.clone(), "budget_total = \"1.00\"\n[price]\nmode = \"none\"", false),
        (
            local.clone(),
            "budget_total = \"1.00\"\n[price]\nfallback = { input = 1, output = 1 }",
            false,
        ),
        (MINIMAL.to_owned(), "budget_total = \"1.00\"", false),
    ] {
        let config = good(&format!("{text}{key}{more}\n"));
        let warned = config.warnings.iter().any(|warning| warning.text.contains(unpriced));
        assert_eq!(warned, told, "{more}: {:?}", config.warnings);
    }
}

#[test]
fn a_model_of_a_key_that_nothing_here_serves_is_a_warning() {
    let listed = "models = [\"gpt-*\"]\n";
    let base = MINIMAL.replace(listed, "models = [\"gpt-*\", \"o3\"]\n");
    let tables = "[[model]]\nname = \"Fast\"\ncandidates = [{ provider = \"openai\", model = \
                  \"small-1\" }]\n[alias]\nquick = \"Fast\"\n";
    let digest = "ab".repeat(32);
    for (pattern, served) in [
        ("gpt-5", true),
        ("GPT-5[1m]", true),
        ("gp*", true),
        ("gpt-5*", true),
        ("o3", true),
        ("o3-mini", false),
        ("o*", true),
        ("fast", true),
        ("fas", false),
        ("fas*", true),
        ("quick", true),
        ("small-*", true),
        ("claude-*", false),
        ("openai/anything", true),
        ("open*", true),
        ("azure/*", false),
        ("*", true),
    ] {
        let key =
            format!("[[key]]\nname = \"k\"\nsha256 = \"{digest}\"\nmodels = [\"{pattern}\"]\n");
        let config = good(&format!("{base}{key}{tables}"));
        let told: Vec<&str> = config.warnings.iter().map(|warning| &*warning.text).collect();
        let wanted = format!("\"{pattern}\" in \"models\" of [[key]]: no model, alias or provider");
        let is_told = told.iter().any(|text| text.starts_with(&wanted));
        assert_eq!(is_told, !served, "{pattern}: {told:?}");
    }
    // Whoever lists nothing may serve it by an explicit name.
    let key = format!("[[key]]\nname = \"k\"\nsha256 = \"{digest}\"\nmodels = [\"o3\"]\n");
    let silent = MINIMAL.replace(listed, "");
    assert!(good(&format!("{silent}{key}")).warnings.is_empty());
    assert_eq!(good(&format!("{MINIMAL}{key}")).warnings.len(), 1);
}
