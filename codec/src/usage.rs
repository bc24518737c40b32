//! Usage: what a provider reported, and the disjoint buckets it is priced by.
//!
//! [`ReportedUsage`] holds the counts as they stood in an answer, one per spelling; several
//! reports of one stream are laid over each other, because all providers send running totals.
//! [`UsageEnvelope`] puts each token into exactly one bucket, so that pricing is a dot product.
//! The shape is told by the fields themselves, never by who sent them (DESIGN §5.5); a shape that
//! can be read two ways takes the cheaper reading and says so in its flags.
//!
//! It knows no prices and makes no estimates. Bounds: a count is at most [`COUNT_MAX`], else it is
//! none and the report with it; a bucket is a `u32`, more is cut, flagged.

mod shape;
#[cfg(test)]
mod tests;

pub use shape::{anthropic, chat, envelope, gemini, responses};

/// Spellings of counts, each in its place of the usage object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageField {
    /// `prompt_tokens`.
    Prompt,
    /// `completion_tokens`.
    Completion,
    /// `input_tokens`.
    Input,
    /// `output_tokens`.
    Output,
    /// `total_tokens` or `totalTokenCount`.
    Total,
    /// `cached_tokens`, in the details or beside them.
    Cached,
    /// `prompt_tokens_details.audio_tokens`.
    AudioIn,
    /// `completion_tokens_details.audio_tokens`.
    AudioOut,
    /// `reasoning_tokens` in the output's details.
    Reasoning,
    /// `cache_read_input_tokens`.
    CacheRead,
    /// `cache_creation_input_tokens`.
    CacheWrite,
    /// `cache_creation.ephemeral_5m_input_tokens`.
    CacheWrite5m,
    /// `cache_creation.ephemeral_1h_input_tokens`.
    CacheWrite1h,
    /// `promptTokenCount`.
    GeminiPrompt,
    /// `cachedContentTokenCount`.
    GeminiCached,
    /// `candidatesTokenCount`.
    GeminiCandidates,
    /// `thoughtsTokenCount`.
    GeminiThoughts,
    /// `toolUsePromptTokenCount`.
    GeminiToolUse,
}

const FIELDS: usize = UsageField::GeminiToolUse as usize + 1;

/// The most tokens that any one count of an answer can be: ten times the largest context that a
/// model is sold with. What is beyond it was never used, and charging it would empty a budget.
pub const COUNT_MAX: u64 = 100_000_000;

/// Stands in the place of a count that cannot be.
const IMPOSSIBLE: u64 = u64::MAX;

/// Counts as reported. A field that was absent or null is not there, which is not 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportedUsage {
    /// 0 where nothing was reported, [`IMPOSSIBLE`] where it was no count.
    counts: [u64; FIELDS],
    /// Fields that were reported, one bit each.
    reported: u32,
    /// Doubts that arose while reading.
    pub flags: UsageFlags,
}

/// Where the figures of an envelope come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provenance {
    /// The provider said so.
    Reported,
    /// We estimated.
    Estimated,
    /// Nobody said.
    #[default]
    Missing,
}

/// Disjoint buckets: a token is counted in exactly one, so pricing is a dot product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageEnvelope {
    /// Input at the full rate.
    pub input_fresh: u32,
    /// Input read from a cache.
    pub input_cache_read: u32,
    /// Input written to a cache for five minutes.
    pub input_cache_write_5m: u32,
    /// Input written to a cache for an hour.
    pub input_cache_write_1h: u32,
    /// Output, reasoning included.
    pub output: u32,
    /// Audio input.
    pub audio_in: u32,
    /// Audio output.
    pub audio_out: u32,
    /// Part of `output`; informative, never priced.
    pub reasoning_of_output: u32,
    /// Where the figures come from.
    pub provenance: Provenance,
    /// What is doubtful about them.
    pub flags: UsageFlags,
}

/// Doubts about usage, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageFlags(u16);

impl UsageFlags {
    /// A count was negative; not taken.
    pub const NEGATIVE: Self = Self(1);
    /// A count had a fraction; not taken.
    pub const FRACTION: Self = Self(1 << 1);
    /// A count was neither a number nor null; not taken.
    pub const NOT_A_NUMBER: Self = Self(1 << 2);
    /// A count was beyond [`COUNT_MAX`], and not taken; or a sum beyond its bucket, and cut.
    pub const TOO_LARGE: Self = Self(1 << 3);
    /// Parts of the input exceed the input; the input was kept, the parts cut.
    pub const PARTS_EXCEED_INPUT: Self = Self(1 << 4);
    /// Parts of the output exceed the output; the parts were cut.
    pub const PARTS_EXCEED_OUTPUT: Self = Self(1 << 5);
    /// The split of cache writes exceeds their sum; the split was taken.
    pub const SPLIT_EXCEEDS_WRITES: Self = Self(1 << 6);
    /// The reported total is not the sum of input and output.
    pub const TOTAL_MISMATCH: Self = Self(1 << 7);
    /// Fields of two conventions stand side by side; the cheaper reading was taken.
    pub const AMBIGUOUS: Self = Self(1 << 8);
    /// Output was reported as 0 although content was seen.
    pub const ZERO_WITH_CONTENT: Self = Self(1 << 9);
    /// Input was not reported.
    pub const INPUT_MISSING: Self = Self(1 << 10);
    /// Output was not reported.
    pub const OUTPUT_MISSING: Self = Self(1 << 11);
    /// The answer ended inside the report: what came of it is not what was used.
    pub const UNFINISHED: Self = Self(1 << 12);
    /// A count that is priced was none that can be: the report is none.
    pub const IMPOSSIBLE: Self = Self(1 << 13);

    /// Counts that were not taken.
    const ODD: Self =
        Self(Self::NEGATIVE.0 | Self::FRACTION.0 | Self::NOT_A_NUMBER.0 | Self::TOO_LARGE.0);

    /// Whether nothing is doubtful.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of `other` is in the set.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` is in the set.
    fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Adds `other`.
    pub fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Takes `other` out.
    pub fn remove(&mut self, other: Self) {
        self.0 &= !other.0;
    }

    /// The set as a number, for a record.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.0
    }
}

impl ReportedUsage {
    /// The count of a field, if one was reported.
    #[must_use]
    pub fn count(&self, field: UsageField) -> Option<u64> {
        let count = self.counts.get(field as usize).copied();
        count.filter(|_| self.reported & field.bit() != 0)
    }

    /// Takes a count; a later one of the same field replaces it.
    pub fn set(&mut self, field: UsageField, count: u64) {
        if count > COUNT_MAX {
            return self.refuse(field, UsageFlags::TOO_LARGE);
        }
        if let Some(place) = self.counts.get_mut(field as usize) {
            *place = count;
            self.reported |= field.bit();
        }
    }

    /// Notes that what stands in the place of a count cannot be one.
    pub(crate) fn refuse(&mut self, field: UsageField, why: UsageFlags) {
        self.flags.insert(why);
        if let Some(place) = self.counts.get_mut(field as usize) {
            *place = IMPOSSIBLE;
            self.reported &= !field.bit();
        }
    }

    /// Whether nothing was reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.reported == 0 && !self.flags.intersects(UsageFlags::ODD)
    }

    /// What is doubtful about the counts as they stand.
    #[must_use]
    pub fn doubts(&self) -> UsageFlags {
        let mut flags = self.flags;
        if flags.intersects(UsageFlags::ODD) {
            let unpriced = UsageField::Total.bit() | UsageField::Reasoning.bit();
            let counts = self.counts.iter().enumerate();
            let mut priced = counts.filter(|(index, _)| unpriced & 1 << index == 0);
            if priced.any(|(_, count)| *count == IMPOSSIBLE) {
                flags.insert(UsageFlags::IMPOSSIBLE);
            }
        }
        flags
    }

    /// Reads a number as it stands in JSON and takes it, if it is one that a count can be. A
    /// fraction of 0 is none.
    pub fn read(&mut self, field: UsageField, number: &[u8]) {
        match small(number) {
            Some(count) => self.set(field, count),
            None => self.read_odd(field, std::str::from_utf8(number).unwrap_or_default()),
        }
    }

    #[cold]
    fn read_odd(&mut self, field: UsageField, text: &str) {
        let why = match text.parse::<f64>() {
            Ok(value) if value < 0.0 => UsageFlags::NEGATIVE,
            Ok(value) if value > COUNT_MAX as f64 => UsageFlags::TOO_LARGE,
            Ok(value) if value.fract() == 0.0 => return self.set(field, whole(value)),
            Ok(value) if !value.is_nan() => UsageFlags::FRACTION,
            Ok(_) | Err(_) => UsageFlags::NOT_A_NUMBER,
        };
        self.refuse(field, why);
    }

    /// Lays a later report of the same answer over this one: counts are running totals, and an
    /// absent field says nothing.
    pub fn update(&mut self, later: &Self) {
        for (index, (count, newer)) in self.counts.iter_mut().zip(later.counts).enumerate() {
            if later.reported & 1 << index != 0 {
                *count = newer;
            } else if newer == IMPOSSIBLE {
                *count = newer;
                self.reported &= !(1 << index);
            }
        }
        self.reported |= later.reported;
        self.flags.insert(later.flags);
    }
}

impl UsageField {
    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// Digits of a count that is read without looking for an overflow.
const SMALL_DIGITS: usize = 18;

/// The number, if it is as plain as nearly all are: a few digits.
fn small(number: &[u8]) -> Option<u64> {
    if number.is_empty() || number.len() > SMALL_DIGITS {
        return None;
    }
    let mut count = 0;
    for byte in number {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        count = count * 10 + u64::from(digit);
    }
    Some(count)
}

/// The number, which is whole and at most [`COUNT_MAX`].
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates, and this one is exact"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

impl UsageEnvelope {
    /// Whether no token is in any bucket.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        let input = [self.input_fresh, self.input_cache_read, self.audio_in];
        let written = [self.input_cache_write_5m, self.input_cache_write_1h];
        let output = [self.output, self.audio_out];
        input.into_iter().chain(written).chain(output).all(|count| count == 0)
    }

    /// Notes that content was seen in the answer: an output of 0 is doubtful then, and a report
    /// without one is not the final count.
    pub fn note_content(&mut self) {
        if self.provenance != Provenance::Reported || self.output > 0 || self.audio_out > 0 {
            return;
        }
        if self.flags.contains(UsageFlags::OUTPUT_MISSING) {
            self.provenance = Provenance::Estimated;
        } else {
            self.flags.insert(UsageFlags::ZERO_WITH_CONTENT);
        }
    }

    /// All input buckets together.
    #[must_use]
    pub fn input_total(&self) -> u64 {
        [
            self.input_fresh,
            self.input_cache_read,
            self.input_cache_write_5m,
            self.input_cache_write_1h,
            self.audio_in,
        ]
        .into_iter()
        .map(u64::from)
        .sum()
    }
}
