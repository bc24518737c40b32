//! What a call asks for, as far as money is concerned: how much text came in, how much may come
//! back.

/// A whole number as the caller wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Figure {
    /// Not there, or null.
    #[default]
    Absent,
    /// A whole number that is not negative.
    Whole(u64),
    /// Something else: what the upstream makes of it is not known here, so whatever rests on it
    /// takes the dearest reading.
    Unclear,
}

/// The counts of a request that its price depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Bytes of text content below 0x80.
    pub ascii: u64,
    /// Bytes of text content from 0x80.
    pub non_ascii: u64,
    /// Images and files.
    pub items: u32,
    /// `max_completion_tokens`.
    pub max_completion_tokens: Figure,
    /// `max_tokens`.
    pub max_tokens: Figure,
    /// `max_output_tokens`.
    pub max_output_tokens: Figure,
    /// `n`.
    pub answers: Figure,
}
