//! The settlement record: what one exchange was, and what it cost. Units are in the names.
//!
//! Plain integers and bytes only: on disk this is what it says. Bound: a fixed size.

use crate::text::Text;

/// Bytes kept of a model's name; longer ones are cut and flagged.
pub const MODEL_BYTES: usize = 128;

/// One exchange, settled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    /// The idempotency key.
    pub request_id: [u8; 16],
    /// The key that pays.
    pub key_id: u64,
    /// When the slot was taken.
    pub opened_unix_ms: u64,
    /// When the ending was known.
    pub closed_unix_ms: u64,
    /// Configuration it ran under.
    pub snapshot_version: u64,
    /// Price list its costs come from.
    pub price_version: u32,
    /// Place of the provider in the configuration.
    pub provider_id: u16,
    /// Status the client got; 0 if none.
    pub status: u16,
    /// Attempts begun.
    pub attempts: u8,
    /// Disjoint: input fresh, cache read, cache write 5 m and 1 h, output, audio in and out,
    /// and (informative) the reasoning part of the output.
    pub tokens: [u32; 8],
    /// 0 reported, 1 estimated, 2 missing.
    pub provenance: u8,
    /// Whether a price was known.
    pub priced: bool,
    /// What the upstream takes.
    pub upstream_cost_picousd: u64,
    /// What the key pays.
    pub cost_picousd: u64,
    /// Parts per million on top of the upstream's cost.
    pub markup_ppm: u32,
    /// Time inside this gateway: request and answer, without the upstream.
    pub overhead_us: u32,
    /// How it ended: a name of `docs/reference/endings.md`.
    pub ending: Text<16>,
    /// The model as asked for.
    pub model: Text<MODEL_BYTES>,
    /// The model as sent upstream.
    pub served_model: Text<MODEL_BYTES>,
}
