//! Prices, as the snapshot holds them.

use super::money::PicoUsd;
use codec::usage::UsageEnvelope;
use std::collections::HashMap;

/// A price's place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceIx(pub u32);

/// Pico-dollars a token, a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Input not read from a cache.
    pub input: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache for five minutes.
    pub cache_write_5m: u64,
    /// Input written to a cache for an hour.
    pub cache_write_1h: u64,
    /// Output.
    pub output: u64,
    /// Audio in.
    pub audio_in: u64,
    /// Audio out.
    pub audio_out: u64,
}

impl Rates {
    /// The highest of them.
    pub fn dearest(&self) -> u64 {
        let rest = [
            self.cache_read,
            self.cache_write_5m,
            self.cache_write_1h,
            self.output,
            self.audio_in,
            self.audio_out,
        ];
        rest.into_iter().fold(self.input, u64::max)
    }
}

/// A tier: the rates that apply above a number of input tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Total input above which it applies; 0 for the first.
    pub above_input: u64,
    /// Its rates.
    pub rates: Rates,
}

/// The price of one model at one provider. Tiers rise by `above_input`; the first is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelPrice {
    /// Rising tiers, at least one.
    pub tiers: Vec<Tier>,
    /// The most output tokens the model gives, if that is known.
    pub output_max: Option<u64>,
    /// Tokens an image or a file counts for, if that is known.
    pub image_tokens: Option<u64>,
}

/// Output tokens a hold covers at most, unless it is strict: agents ask for far more than they
/// use, and a hold of their cap would end small budgets.
pub const HOLD_OUTPUT_MAX: u64 = 4_096;

/// How money is held and priced.
#[derive(Clone, Debug)]
pub struct MoneyTerms {
    /// Output tokens a hold covers at most, unless it is strict.
    pub hold_output_max: u64,
    /// What a model without a price costs; without it such a model has no price under a budget.
    pub fallback: Option<ModelPrice>,
    /// Which price counts first.
    pub order: PriceOrder,
}

impl Default for MoneyTerms {
    fn default() -> MoneyTerms {
        let order = PriceOrder::CatalogueFirst;
        MoneyTerms { hold_output_max: HOLD_OUTPUT_MAX, fallback: None, order }
    }
}

/// Whether the price list or the upstream's own word about the cost counts first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PriceOrder {
    /// The list.
    #[default]
    CatalogueFirst,
    /// The upstream.
    HintFirst,
}

/// Parts in a million.
pub const PPM: u32 = 1_000_000;

/// What is multiplied onto an upstream's cost; never below one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Markup(u32);

impl Markup {
    /// The cost as it is.
    pub const ONE: Markup = Markup(PPM);

    /// A markup in parts in a million; `None` below one.
    pub fn new(ppm: u32) -> Option<Markup> {
        (ppm >= PPM).then_some(Markup(ppm))
    }

    /// It, in parts in a million.
    pub fn ppm(self) -> u32 {
        self.0
    }
}

/// Who pays the provider, and what the key pays for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// We pay; the key pays the upstream's cost times the markup.
    Managed(Markup),
    /// The customer's own credential pays; the key pays a tenth as a fee.
    PlatformFee,
    /// Somebody else's money: recorded, never debited.
    None,
}

impl Default for Mode {
    fn default() -> Mode {
        Mode::Managed(Markup::ONE)
    }
}

/// Longest model name that is looked up in another spelling: no provider has one half as long.
const NAME_BYTES_MAX: usize = 256;

/// The versioned list.
#[derive(Clone, Debug, Default)]
pub struct PriceList {
    /// The catalogue's version, written into every record.
    pub version: u32,
    prices: Vec<ModelPrice>,
    by_name: HashMap<Box<str>, HashMap<Box<str>, PriceIx>>,
}

impl PriceList {
    /// An empty list of a version.
    pub fn new(version: u32) -> PriceList {
        PriceList { version, ..PriceList::default() }
    }

    /// Adds a price under a name; a name given twice keeps the later one.
    pub fn insert(&mut self, provider: &str, names: &[&str], price: ModelPrice) {
        let index = PriceIx(self.prices.len() as u32);
        self.prices.push(price);
        let models = self.by_name.entry(provider.into()).or_default();
        for name in names {
            models.insert((*name).into(), index);
        }
    }

    /// The price of exactly this model at this provider; never a neighbour's.
    pub fn find(&self, provider: &str, model: &str) -> Option<PriceIx> {
        self.by_name.get(provider)?.get(model).copied()
    }

    /// The price of a candidate: its name exactly, else in lower case, else without the date of
    /// a snapshot (`-2025-08-07`, `-20250807`). Never a neighbour by prefix.
    pub fn lookup(&self, provider: &str, model: &str) -> Option<PriceIx> {
        self.find(provider, model).or_else(|| {
            let mut room = [0; NAME_BYTES_MAX];
            let lower = room.get_mut(..model.len())?;
            lower.copy_from_slice(model.as_bytes());
            lower.make_ascii_lowercase();
            let lower = std::str::from_utf8(lower).ok()?;
            self.find(provider, lower).or_else(|| self.find(provider, undated(lower)?))
        })
    }

    /// The names that have a price at a provider, in no order.
    pub fn names(&self, provider: &str) -> impl Iterator<Item = &str> {
        self.by_name.get(provider).into_iter().flat_map(|models| models.keys().map(|name| &**name))
    }

    /// The price at a place of this list.
    pub fn at(&self, index: PriceIx) -> Option<&ModelPrice> {
        self.prices.get(index.0 as usize)
    }
}

impl ModelPrice {
    /// The rates that apply to a call with this much input.
    pub fn rates(&self, input: u64) -> Option<&Rates> {
        let applies = |tier: &&Tier| input > tier.above_input || tier.above_input == 0;
        self.tiers.iter().rev().find(applies).map(|tier| &tier.rates)
    }

    /// What these tokens cost. Each token is in one bucket, so the price is a dot product; the
    /// tier is chosen by the total input.
    pub fn cost(&self, usage: &UsageEnvelope) -> PicoUsd {
        let Some(rates) = self.rates(usage.input_total()) else { return PicoUsd(0) };
        let terms = [
            (usage.input_fresh, rates.input),
            (usage.input_cache_read, rates.cache_read),
            (usage.input_cache_write_5m, rates.cache_write_5m),
            (usage.input_cache_write_1h, rates.cache_write_1h),
            (usage.output, rates.output),
            (usage.audio_in, rates.audio_in),
            (usage.audio_out, rates.audio_out),
        ];
        let sum: u128 = terms.iter().map(|&(n, rate)| u128::from(n) * u128::from(rate)).sum();
        PicoUsd(u64::try_from(sum).unwrap_or(u64::MAX))
    }
}

/// A model's name without the date of its snapshot, if it ends in one.
fn undated(model: &str) -> Option<&str> {
    for shape in ["-dddd-dd-dd", "-dddddddd"] {
        let Some(at) = model.len().checked_sub(shape.len()) else { continue };
        let Some((stem, date)) = model.split_at_checked(at) else { continue };
        let fits = |(b, s): (u8, u8)| if s == b'd' { b.is_ascii_digit() } else { b == s };
        if !stem.is_empty() && date.bytes().zip(shape.bytes()).all(fits) {
            return Some(stem);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_found_by_name_or_dated_name_and_never_by_prefix() {
        let mut list = PriceList::new(1);
        for model in ["gpt-4o", "gpt-4o-mini", "glm-4", "gpt-4o-2024-05-13"] {
            list.insert("openai", &[model], ModelPrice::default());
        }
        for (asked, found) in [
            ("gpt-4o", Some(0)),
            ("gpt-4o-mini", Some(1)),
            ("gpt-4o-mini-2024-07-18", Some(1)),
            ("gpt-4o-mini-20240718", Some(1)),
            ("gpt-4o-2024-05-13", Some(3)),
            ("gpt-4o-2024-08-06", Some(0)),
            ("GPT-4o", Some(0)),
            ("glm-4.7", None),
            ("gpt-4orange", None),
            ("gpt-4o-2024-8-06", None),
            ("gpt-4o-preview", None),
            ("-2024-08-06", None),
            ("ß-2024-08-06", None),
            ("", None),
        ] {
            assert_eq!(list.lookup("openai", asked), found.map(PriceIx), "{asked}");
        }
        assert_eq!(list.lookup("other", "gpt-4o"), None);
    }
}
