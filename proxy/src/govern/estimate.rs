//! What a call will cost, before it is made; and what it used, if the upstream does not say.
//!
//! Text counts a token for four bytes, or for two bytes that are not ASCII; an image or a file
//! counts the catalogue's tokens. Whole numbers, rounded up, saturating. It knows no tokenizer:
//! a hold needs an upper neighbour of the truth in nanoseconds, and the true cost is booked later.
//!
//! A likely hold covers the estimated input and the cap up to `hold_output_max`. A strict hold
//! covers the whole cap, at the dearest rates that can apply: its excess is only an estimation
//! error.

use crate::exchange::demand::{Demand, Figure};
use crate::exchange::money::PicoUsd;
use crate::exchange::price::{ModelPrice, MoneyTerms, Rates};
use codec::usage::{Provenance, UsageEnvelope, UsageFlags};

/// ASCII bytes of a token, by rule of thumb.
const ASCII_PER_TOKEN: u64 = 4;

/// Other bytes of a token: scripts beyond ASCII take more tokens for fewer letters.
const OTHER_PER_TOKEN: u64 = 2;

/// Tokens of an image or a file whose model does not say.
pub const ITEM_TOKENS: u64 = 1_000;

/// Output of a call without a cap.
pub const OUTPUT_DEFAULT: u64 = 1_000;

/// Output of a strict call without a cap, of a model whose maximum is not known: the largest that
/// any model publishes.
pub const OUTPUT_MOST: u64 = 128_000;

/// Answers of a call whose `n` cannot be read: the most that any provider takes.
pub const ANSWERS_MOST: u64 = 128;

/// The upstream's cost of a call, as it is held.
pub fn hold(demand: &Demand, price: &ModelPrice, strict: bool, terms: &MoneyTerms) -> PicoUsd {
    let input = input_tokens(demand, price);
    let Some(rates) = price.rates(input) else { return PicoUsd(0) };
    let (output, rates) = if strict {
        (strict_output(demand, price), dearest(rates))
    } else {
        (likely_output(demand, terms), (rates.input, rates.output))
    };
    let cost = u128::from(input) * u128::from(rates.0) + u128::from(output) * u128::from(rates.1);
    let cost = cost.saturating_mul(u128::from(answers(demand)));
    PicoUsd(u64::try_from(cost).unwrap_or(u64::MAX))
}

/// Tokens the input will count.
pub fn input_tokens(demand: &Demand, price: &ModelPrice) -> u64 {
    with_items(text_tokens(demand.ascii, demand.non_ascii), demand.items, price)
}

/// Tokens of a text with its images and files.
pub fn with_items(text: u64, items: u32, price: &ModelPrice) -> u64 {
    let each = price.image_tokens.unwrap_or(ITEM_TOKENS);
    text.saturating_add(u64::from(items).saturating_mul(each))
}

/// Tokens a text counts.
pub fn text_tokens(ascii: u64, non_ascii: u64) -> u64 {
    ascii.div_ceil(ASCII_PER_TOKEN).saturating_add(non_ascii.div_ceil(OTHER_PER_TOKEN))
}

/// The usage an exchange is charged for when the final count was not seen: input as noted on the
/// way, else estimated; output the larger of what was noted and what the relayed text counts.
pub fn unreported(noted: &UsageEnvelope, input: u64, relayed: u64) -> UsageEnvelope {
    let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let mut usage = *noted;
    // Of an input that cannot be its parts may be all that was noted.
    let doubtful = UsageFlags::IMPOSSIBLE;
    let partly = noted.flags.contains(doubtful) && noted.flags.contains(UsageFlags::INPUT_MISSING);
    if noted.input_total() == 0 || partly {
        let missing = input.saturating_sub(noted.input_total());
        usage.input_fresh = usage.input_fresh.saturating_add(narrow(missing));
    }
    usage.output = usage.output.max(narrow(relayed));
    usage.provenance = Provenance::Estimated;
    usage
}

/// The cap, as far as a likely hold covers it.
fn likely_output(demand: &Demand, terms: &MoneyTerms) -> u64 {
    let caps = [demand.max_completion_tokens, demand.max_tokens, demand.max_output_tokens];
    let cap = match caps.into_iter().find(|cap| *cap != Figure::Absent) {
        Some(Figure::Whole(cap)) => cap,
        Some(Figure::Unclear) => u64::MAX,
        Some(Figure::Absent) | None => OUTPUT_DEFAULT,
    };
    cap.min(terms.hold_output_max)
}

/// The largest cap there is: a provider may know only one of the spellings.
fn strict_output(demand: &Demand, price: &ModelPrice) -> u64 {
    let most = price.output_max.unwrap_or(OUTPUT_MOST);
    let caps = [demand.max_completion_tokens, demand.max_tokens, demand.max_output_tokens];
    let caps = caps.into_iter().filter_map(|cap| match cap {
        Figure::Whole(cap) => Some(cap),
        Figure::Unclear => Some(most),
        Figure::Absent => None,
    });
    caps.max().unwrap_or(most)
}

fn answers(demand: &Demand) -> u64 {
    match demand.answers {
        Figure::Absent => 1,
        Figure::Whole(n) => n.max(1),
        Figure::Unclear => ANSWERS_MOST,
    }
}

/// The dearest rates of input and output: what is written to a cache, or is audio, is not known
/// before.
fn dearest(rates: &Rates) -> (u64, u64) {
    let input = [rates.cache_read, rates.cache_write_5m, rates.cache_write_1h, rates.audio_in];
    (input.into_iter().fold(rates.input, u64::max), rates.output.max(rates.audio_out))
}

#[cfg(test)]
mod tests;
