//! Bundles, calls and instants for the layers' tests.

use crate::exchange::bundle::Bundle;
use crate::exchange::call::Call;
use crate::exchange::demand::Demand;
use crate::exchange::ids::KeyId;
use crate::exchange::limits::{Books, KeyLimits, Limits};
use crate::exchange::money::PicoUsd;
use crate::exchange::price::{ModelPrice, Rates, Tier};
use crate::exchange::time::{MonoNs, Now, UnixMs};
use crate::exchange::words::MoneyLimit;

pub(crate) fn bundle(limits: KeyLimits) -> Bundle {
    let limits = Limits::new(limits, Books::default(), UnixMs(0));
    Bundle::with_limits(KeyId(1), "test", limits)
}

pub(crate) fn call(bundle: &Bundle) -> Call<'_> {
    Call { bundle, demand: Demand::default() }
}

pub(crate) fn at_wall(wall: u64) -> Now {
    Now { mono: MonoNs(0), wall: UnixMs(wall) }
}

pub(crate) fn money(pico: u64) -> Option<MoneyLimit> {
    MoneyLimit::new(PicoUsd(pico)).ok()
}

/// A model with one tier; cache and audio cost as the plain buckets.
pub(crate) fn flat(input: u64, output: u64) -> ModelPrice {
    let rates = Rates {
        input,
        cache_read: input,
        cache_write_5m: input,
        cache_write_1h: input,
        output,
        audio_in: input,
        audio_out: output,
    };
    ModelPrice { tiers: vec![Tier { above_input: 0, rates }], ..ModelPrice::default() }
}
