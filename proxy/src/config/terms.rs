//! How money is held and priced: `[price]` beside its file, `hold_output_max`, and the mode of
//! each provider.

use super::file::{self, Fallback, File};
use super::findings::{At, Findings, Text};
use super::names::choice;
use super::prices::RATE_MAX;
use crate::exchange::money::{NotMoney, PICO_PER_USD, PicoUsd};
use crate::exchange::price::{
    HOLD_OUTPUT_MAX, Markup, Mode, ModelPrice, MoneyTerms, PPM, PriceOrder, Rates, Tier,
};

/// Largest cap that holds can be asked to cover: more than any model gives, so that a mistyped
/// number shows.
const HOLD_OUTPUT_LIMIT: u64 = 10_000_000;

/// Largest markup, a hundred times: beyond it a percentage was meant.
const MARKUP_MAX: u32 = 100 * PPM;

/// The modes by name; the markup of the first comes from another key.
const MODES: [(&str, Mode); 3] = [
    ("managed", Mode::Managed(Markup::ONE)),
    ("platform_fee", Mode::PlatformFee),
    ("none", Mode::None),
];

const ORDERS: [(&str, PriceOrder); 2] =
    [("catalogue_first", PriceOrder::CatalogueFirst), ("hint_first", PriceOrder::HintFirst)];

/// Compiles the terms of all calls.
pub(super) fn terms(file: &File, findings: &mut Findings<'_>) -> MoneyTerms {
    let order = file.price.order.as_ref();
    let order = order.and_then(|text| choice(text, "\"order\" in [price]", &ORDERS, findings));
    let most = file.limits.hold_output_max.as_ref();
    if let Some(most) = most
        && !(1..=HOLD_OUTPUT_LIMIT).contains(&most.value)
    {
        let what = format!("must be from 1 to {HOLD_OUTPUT_LIMIT} tokens");
        findings.error(most.at, format!("\"hold_output_max\" in [limits] {what}"));
    }
    MoneyTerms {
        hold_output_max: most.map_or(HOLD_OUTPUT_MAX, |most| most.value),
        fallback: file.price.fallback.as_ref().and_then(|rates| fallback(rates, findings)),
        order: order.unwrap_or_default(),
    }
}

/// The mode of providers that have none of their own.
pub(super) fn default_mode(price: &file::Price, findings: &mut Findings<'_>) -> Mode {
    mode(price.mode.as_ref(), price.markup.as_ref(), Mode::default(), "[price]", findings)
}

/// The mode of a provider.
pub(super) fn provider_mode(
    provider: &file::Provider,
    default: Mode,
    findings: &mut Findings<'_>,
) -> Mode {
    let (mode_text, markup) = (provider.mode.as_ref(), provider.markup.as_ref());
    mode(mode_text, markup, default, "[[provider]]", findings)
}

fn mode(
    written: Option<&Text>,
    markup: Option<&Text>,
    default: Mode,
    label: &str,
    findings: &mut Findings<'_>,
) -> Mode {
    let what = format!("\"mode\" in {label}");
    let chosen = written.and_then(|text| choice(text, &what, &MODES, findings));
    let kept = match (chosen, default) {
        // `managed` again keeps the markup that holds for all.
        (None | Some(Mode::Managed(_)), Mode::Managed(_)) => default,
        (chosen, _) => chosen.unwrap_or(default),
    };
    let Some(text) = markup else { return kept };
    match (kept, markup_of(text, label, findings)) {
        (Mode::Managed(_), Some(markup)) => Mode::Managed(markup),
        (Mode::Managed(_), None) => kept,
        (Mode::PlatformFee | Mode::None, _) => {
            let why = "has an effect in mode managed only";
            findings.error(text.at, format!("\"markup\" in {label} {why}"));
            kept
        }
    }
}

fn markup_of(text: &Text, label: &str, findings: &mut Findings<'_>) -> Option<Markup> {
    let markup = parts(&text.value);
    markup.map_err(|why| findings.error(text.at, format!("\"markup\" in {label} {why}"))).ok()
}

/// `"1.2"` → 1,200,000 parts in a million.
fn parts(text: &str) -> Result<Markup, &'static str> {
    const FORM: &str = "must be a decimal text such as \"1.2\"";
    const FINE: &str = "has more than six decimals";
    const MUCH: &str = "is above 100, a hundred times the upstream's cost";
    const LOW: &str = "is below 1: a key never pays less than the upstream takes";
    // A decimal of dollars is a decimal; a part in a million is so many pico-dollars of one.
    let part = PICO_PER_USD / u64::from(PPM);
    let decimal = PicoUsd::from_decimal(text).map_err(|why| match why {
        NotMoney::Form => FORM,
        NotMoney::TooFine => FINE,
        NotMoney::TooMuch => MUCH,
    })?;
    if !decimal.0.is_multiple_of(part) {
        return Err(FINE);
    }
    let ppm = u32::try_from(decimal.0 / part).ok().filter(|ppm| *ppm <= MARKUP_MAX).ok_or(MUCH)?;
    Markup::new(ppm).ok_or(LOW)
}

/// A price of one tier; what it leaves out is not free, as in a price file.
fn fallback(written: &Fallback, findings: &mut Findings<'_>) -> Option<ModelPrice> {
    let value = |rate: &Option<At<u64>>| rate.as_ref().map(|rate| rate.value);
    let (input, output) = (value(&written.input)?, value(&written.output)?);
    let cache_write_5m = value(&written.cache_write_5m).unwrap_or(input);
    let rates = Rates {
        input,
        cache_read: value(&written.cache_read).unwrap_or(input),
        cache_write_5m,
        cache_write_1h: value(&written.cache_write_1h).unwrap_or(cache_write_5m),
        output,
        audio_in: value(&written.audio_in).unwrap_or(input),
        audio_out: value(&written.audio_out).unwrap_or(output),
    };
    if rates.dearest() > RATE_MAX {
        let what = format!("a rate is above {RATE_MAX} pico-dollars a token");
        findings.error(written.at, format!("\"fallback\" in [price]: {what}"));
    }
    let tiers = vec![Tier { above_input: 0, rates }];
    Some(ModelPrice { tiers, output_max: None, image_tokens: None })
}
