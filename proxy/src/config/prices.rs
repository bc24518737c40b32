//! Reads a price file (DESIGN §16.6) into a [`PriceList`].
//!
//! Rates are whole pico-dollars a token; a float is refused, also `1.0`. A bucket without a rate
//! of its own costs what it would cost without the bucket: cache and audio input as input, audio
//! output as output; so nothing is free by omission. A file names each model once and has no
//! price with an end: changes by date need a clock and are not built yet.
//! Bounds: [`MODELS_MAX`], [`TIERS_MAX`], [`RATE_MAX`].

use super::findings::quoted;
use crate::exchange::price::{ModelPrice, PriceList, Rates, Tier};
use serde::Deserialize;
use std::collections::HashSet;

/// The catalogue this binary was built with.
const CATALOGUE: &str = include_str!("../../prices/catalogue.json");

/// Models of one file: ten times what all providers together publish.
const MODELS_MAX: usize = 50_000;

/// Tiers of one model; no provider has more than four.
const TIERS_MAX: usize = 16;

/// Dearest rate, one dollar a token: beyond it a unit was mistaken.
pub(super) const RATE_MAX: u64 = 1_000_000_000_000;

/// Longest name in a price file, as for models in the configuration.
const NAME_BYTES_MAX: usize = 256;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    version: u32,
    #[serde(default, rename = "generated")]
    _generated: String,
    #[serde(default, rename = "sources")]
    _sources: Vec<Source>,
    models: Vec<Model>,
}

/// Where the figures come from; for people.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "version")]
    _version: String,
    #[serde(rename = "licence")]
    _licence: String,
    #[serde(rename = "url")]
    _url: String,
}

/// Fields that begin with a line are the format's and have no reader yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    provider: String,
    model: String,
    #[serde(default)]
    aliases: Vec<String>,
    #[serde(default, rename = "from")]
    _from: Option<String>,
    #[serde(default)]
    until: Option<String>,
    tiers: Vec<TierEntry>,
    #[serde(default, rename = "context")]
    _context: Option<u64>,
    #[serde(default)]
    output_max: Option<u64>,
    #[serde(default)]
    image_tokens: Option<u64>,
    #[serde(default, rename = "capabilities")]
    _capabilities: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TierEntry {
    above_input: u64,
    input: u64,
    #[serde(default)]
    cache_read: Option<u64>,
    #[serde(default)]
    cache_write_5m: Option<u64>,
    #[serde(default)]
    cache_write_1h: Option<u64>,
    output: u64,
    #[serde(default)]
    audio_in: Option<u64>,
    #[serde(default)]
    audio_out: Option<u64>,
}

/// The built-in list.
pub fn built_in() -> Result<PriceList, String> {
    parse(CATALOGUE)
}

/// Reads a price file; an error says line and column, or the model.
pub fn parse(text: &str) -> Result<PriceList, String> {
    let file: Catalogue = serde_json::from_str(text).map_err(|error| hinted(&error))?;
    if file.version == 0 {
        return Err("the version must not be 0, which is that of no list".into());
    }
    if file.models.len() > MODELS_MAX {
        return Err(format!("there are more than {MODELS_MAX} models"));
    }
    let mut list = PriceList::new(file.version);
    let mut seen = HashSet::new();
    for model in &file.models {
        let who = format!("{} of {}", quoted(&model.model), quoted(&model.provider));
        let price = price(model).map_err(|why| format!("{who}: {why}"))?;
        let names: Vec<&str> =
            std::iter::once(&model.model).chain(&model.aliases).map(String::as_str).collect();
        for name in &names {
            if name.is_empty() || name.len() > NAME_BYTES_MAX {
                return Err(format!("{who}: a name is empty or longer than 256 bytes"));
            }
            if !seen.insert((model.provider.as_str(), *name)) {
                return Err(format!("{who}: the name {} has a price already", quoted(name)));
            }
        }
        list.insert(&model.provider, &names, price);
    }
    Ok(list)
}

/// With what a rate is, where one is a float.
fn hinted(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if text.contains("floating point") && text.contains("expected u64") {
        text += "; a rate is in whole pico-dollars a token: $0.20 a million tokens is 200000";
    }
    text
}

fn price(model: &Model) -> Result<ModelPrice, String> {
    if model.provider.is_empty() {
        return Err("the provider has no name".into());
    }
    if model.until.is_some() {
        return Err("\"until\": prices that end are not built yet".into());
    }
    if model.tiers.len() > TIERS_MAX {
        return Err(format!("there are more than {TIERS_MAX} tiers"));
    }
    if model.tiers.first().is_none_or(|tier| tier.above_input != 0) {
        return Err("the first tier must be above_input 0".into());
    }
    if !model.tiers.is_sorted_by(|a, b| a.above_input < b.above_input) {
        return Err("the tiers must rise by above_input".into());
    }
    let tiers: Vec<Tier> = model.tiers.iter().map(tier).collect();
    if tiers.iter().any(|tier| tier.rates.dearest() > RATE_MAX) {
        return Err(format!("a rate is above {RATE_MAX} pico-dollars a token"));
    }
    Ok(ModelPrice { tiers, output_max: model.output_max, image_tokens: model.image_tokens })
}

fn tier(entry: &TierEntry) -> Tier {
    let input = entry.input;
    let cache_write_5m = entry.cache_write_5m.unwrap_or(input);
    let rates = Rates {
        input,
        cache_read: entry.cache_read.unwrap_or(input),
        cache_write_5m,
        cache_write_1h: entry.cache_write_1h.unwrap_or(cache_write_5m),
        output: entry.output,
        audio_in: entry.audio_in.unwrap_or(input),
        audio_out: entry.audio_out.unwrap_or(entry.output),
    };
    Tier { above_input: entry.above_input, rates }
}

#[cfg(test)]
mod tests;
