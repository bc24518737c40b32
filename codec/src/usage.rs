//! Token usage in disjoint buckets.

/// Where a usage figure comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provenance {
    /// The provider said so.
    Reported,
    /// Counted from the bytes.
    Estimated,
    /// Nobody said anything.
    #[default]
    Missing,
}

/// Disjoint buckets: a token is counted in exactly one, so pricing is a dot product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageEnvelope {
    /// Input not read from a cache.
    pub input_fresh: u32,
    /// Input read from a cache.
    pub input_cache_read: u32,
    /// Input written to a cache for five minutes.
    pub input_cache_write_5m: u32,
    /// Input written to a cache for an hour.
    pub input_cache_write_1h: u32,
    /// Output, reasoning included.
    pub output: u32,
    /// Audio in.
    pub audio_in: u32,
    /// Audio out.
    pub audio_out: u32,
    /// Informative, never priced.
    pub reasoning_of_output: u32,
    /// Where the figures come from.
    pub provenance: Provenance,
}

impl UsageEnvelope {
    /// All input, whatever its price.
    pub fn total_input(&self) -> u64 {
        u64::from(self.input_fresh)
            + u64::from(self.input_cache_read)
            + u64::from(self.input_cache_write_5m)
            + u64::from(self.input_cache_write_1h)
            + u64::from(self.audio_in)
    }
}
