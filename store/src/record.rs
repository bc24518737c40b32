//! The settlement record: what one exchange was, and what it cost. Units are in the names.
//!
//! A record is a prelude of four bytes (version, a reserved byte, length of the tail), a fixed
//! [`Head`] and a bounded [`Tail`]. A slot of the slab *is* a record, and a frame of the log
//! carries it verbatim. Plain integers and bytes only; the head says nothing in text.
//!
//! Bound: [`RECORD_BYTES_MAX`]. The log's frame carries the checksum, the record none.

use crate::ending::{Ending, Mode, Provenance, Release, StatusClass};
use crate::tail::Tail;
use crate::wire::{Put, Take, Wire, wire_struct};

/// The version of this layout. A change of any field is a new version with its own golden file.
pub const VERSION: u8 = 1;

/// Version, reserved, length of the tail.
pub const PRELUDE_BYTES: usize = 4;

/// The head without the prelude.
pub const HEAD_BYTES: usize = 312;

/// Budget windows one exchange may touch: total and month of a key, of its team and of its
/// project. A hold walks them all on the data path, hence few.
pub const WINDOWS_MAX: usize = 6;

/// Attempts a record lists; later ones are only counted.
pub const ATTEMPTS_LISTED: usize = 6;

/// The largest record: the largest slot less its state word.
pub const RECORD_BYTES_MAX: usize = 24 * 1024 - 4;

wire_struct! {
    /// A budget window an exchange drew on.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Window {
        /// The budget; 0 = no window in this place.
        pub budget_id: u32,
        /// Its window, never going back.
        pub window_id: u32,
    }
}

wire_struct! {
    /// One attempt at a candidate.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Attempt {
        /// Place of the provider in the configuration.
        pub provider_id: u16,
        /// Place of the credential in the configuration.
        pub credential_id: u16,
        /// Place of the candidate in the plan.
        pub candidate: u8,
        /// What came of it.
        pub class: StatusClass,
        /// 1 if the upstream may have billed it.
        pub possibly_billed: u8,
        /// Zero.
        pub reserved: u8,
    }
}

wire_struct! {
    /// The fixed part of a record.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Head {
        /// The idempotency key of the settlement.
        pub request_id: [u8; 16],
        /// The key that pays.
        pub key_id: u64,
        /// Its team; 0 = none.
        pub team_id: u32,
        /// Its project; 0 = none.
        pub project_id: u32,
        /// What was asked for, by the number of its route; 0 = unknown.
        pub route_id: u16,
        /// Provider that served, or was tried last.
        pub provider_id: u16,
        /// Credential that served, or was tried last.
        pub credential_id: u16,
        /// Status the client got; 0 if none.
        pub status: u16,
        /// Stable number of our own refusal; 0 if none.
        pub error_code: u16,
        /// Candidate that served, or was tried last.
        pub candidate: u8,
        /// Attempts begun.
        pub attempts: u8,
        /// Attempts at another candidate than the one before.
        pub fallbacks: u8,
        /// Where the tokens come from.
        pub provenance: Provenance,
        /// What the key pays.
        pub mode: Mode,
        /// How it ended.
        pub ending: Ending,
        /// Why a hold went back uncharged.
        pub release: Release,
        /// The dialect the client spoke, by its number in the configuration.
        pub dialect: u8,
        /// Zero.
        pub reserved: u16,
        /// Facts about usage and price, see [`flag`].
        pub flags: u32,
        /// Configuration it ran under.
        pub snapshot_version: u64,
        /// Price list its costs come from.
        pub price_version: u32,
        /// Parts per million the key pays of the upstream's cost: 1,000,000 is the cost itself.
        pub markup_ppm: u32,
        /// When the slot was taken.
        pub opened_unix_ms: u64,
        /// When the ending was known. The wall clock may have gone back between the two.
        pub closed_unix_ms: u64,
        /// Disjoint: input fresh, cache read, cache write 5 m and 1 h, output, audio in and out,
        /// and (informative) the reasoning part of the output.
        pub tokens: [u32; 8],
        /// Bytes of the request's body.
        pub request_bytes: u64,
        /// Bytes of the answer relayed to the client.
        pub relayed_bytes: u64,
        /// What the upstream takes.
        pub upstream_cost_picousd: u64,
        /// What the key pays.
        pub cost_picousd: u64,
        /// What was held for it; what would have been, if a budget refused it.
        pub hold_picousd: u64,
        /// What it cost above its hold.
        pub overrun_picousd: u64,
        /// The slab and incarnation it was settled in.
        pub slab: u64,
        /// Gapless within `slab`, from 1.
        pub settle_sequence: u64,
        /// First bytes of the digest of the caller's idempotency key; zero = none.
        pub idempotency_digest: [u8; 16],
        /// Time inside this gateway: request and answer, without the upstream.
        pub overhead_us: u32,
        /// From dispatch to the first content event.
        pub first_content_us: u32,
        /// Exchanges this record stands for: 1, or more where refusals are only counted.
        pub count: u32,
        /// From dispatch to the upstream's last byte.
        pub upstream_us: u32,
        /// Budget windows it drew on.
        pub windows: [Window; WINDOWS_MAX],
        /// The first attempts.
        pub listed: [Attempt; ATTEMPTS_LISTED],
    }
}

const _: () = assert!(<Head as Wire>::BYTES == HEAD_BYTES, "HEAD_BYTES is the sum of the fields");

/// Where the notes of an exchange under way stand in a record; a test holds them to the encoding.
pub(crate) mod at {
    use super::PRELUDE_BYTES;

    /// [`super::Head::tokens`].
    pub(crate) const TOKENS: usize = PRELUDE_BYTES + 88;
    /// [`super::Head::relayed_bytes`].
    pub(crate) const RELAYED_BYTES: usize = PRELUDE_BYTES + 128;
    /// [`super::Head::settle_sequence`].
    pub(crate) const SETTLE_SEQUENCE: usize = PRELUDE_BYTES + 176;
}

/// Bits of [`Head::flags`].
pub mod flag {
    /// The tail did not fit and was cut.
    pub const TAIL_CUT: u32 = 1;
    /// A price was known.
    pub const PRICED: u32 = 1 << 1;
    /// The price is the configured fall-back.
    pub const PRICE_FALLBACK: u32 = 1 << 2;
    /// The cost is the upstream's own hint.
    pub const PRICE_HINT: u32 = 1 << 3;
    /// The usage had more than one reading; the cheaper one was billed.
    pub const USAGE_AMBIGUOUS: u32 = 1 << 4;
    /// Usage came in a coding we do not read, or in one that it was not.
    pub const USAGE_UNREADABLE: u32 = 1 << 5;
    /// The dialect's terminator was seen.
    pub const TERMINATED: u32 = 1 << 6;
    /// The answer was a stream.
    pub const STREAM: u32 = 1 << 7;
    /// The charge is what had been noted when the process died.
    pub const CHARGED_NOTED: u32 = 1 << 8;
    /// The charge is the hold.
    pub const CHARGED_HOLD: u32 = 1 << 9;
    /// The hold was the whole output cap.
    pub const STRICT: u32 = 1 << 10;
    /// Stands for several exchanges of the same refusal, see [`super::Head::count`].
    pub const COUNTED: u32 = 1 << 11;
    /// The caller's own credential was used.
    pub const OWN_CREDENTIAL: u32 = 1 << 12;
    /// The usage that was reported cannot be; it is estimated.
    pub const USAGE_IMPOSSIBLE: u32 = 1 << 13;
}

// === impl Head ===

impl Default for Head {
    fn default() -> Head {
        Head {
            request_id: [0; 16],
            key_id: 0,
            team_id: 0,
            project_id: 0,
            route_id: 0,
            provider_id: 0,
            credential_id: 0,
            status: 0,
            error_code: 0,
            candidate: 0,
            attempts: 0,
            fallbacks: 0,
            provenance: Provenance::Missing,
            mode: Mode::Managed,
            ending: Ending::None,
            release: Release::None,
            dialect: 0,
            reserved: 0,
            flags: 0,
            snapshot_version: 0,
            price_version: 0,
            markup_ppm: 1_000_000,
            opened_unix_ms: 0,
            closed_unix_ms: 0,
            tokens: [0; 8],
            request_bytes: 0,
            relayed_bytes: 0,
            upstream_cost_picousd: 0,
            cost_picousd: 0,
            hold_picousd: 0,
            overrun_picousd: 0,
            slab: 0,
            settle_sequence: 0,
            idempotency_digest: [0; 16],
            overhead_us: 0,
            first_content_us: 0,
            count: 1,
            upstream_us: 0,
            windows: [Window::default(); WINDOWS_MAX],
            listed: [Attempt::default(); ATTEMPTS_LISTED],
        }
    }
}

impl Head {
    /// Sets a bit of [`flag`].
    pub fn set(&mut self, flag: u32) {
        self.flags |= flag;
    }

    /// Whether a bit of [`flag`] is set.
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Milliseconds from open to close; 0 where the wall clock went back meanwhile.
    pub fn duration_ms(&self) -> u64 {
        self.closed_unix_ms.saturating_sub(self.opened_unix_ms)
    }

    /// Notes an attempt that begins, and makes its candidate the one tried last.
    pub fn attempt(&mut self, attempt: Attempt) {
        if self.attempts > 0 && attempt.candidate != self.candidate {
            self.fallbacks = self.fallbacks.saturating_add(1);
        }
        if let Some(place) = self.listed.get_mut(usize::from(self.attempts)) {
            *place = attempt;
        }
        self.attempts = self.attempts.saturating_add(1);
        self.provider_id = attempt.provider_id;
        self.credential_id = attempt.credential_id;
        self.candidate = attempt.candidate;
    }

    /// Notes what came of the attempt begun last.
    pub fn attempt_ended(&mut self, class: StatusClass, possibly_billed: bool) {
        let last = usize::from(self.attempts).checked_sub(1);
        if let Some(attempt) = last.and_then(|index| self.listed.get_mut(index)) {
            attempt.class = class;
            attempt.possibly_billed = u8::from(possibly_billed);
        }
    }

    /// The head as it stands after the prelude.
    #[inline]
    pub(crate) fn encode(&self) -> [u8; HEAD_BYTES] {
        crate::wire::encoded(self)
    }
}

/// A record as read: its head, and its tail borrowed from the bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record<'b> {
    /// The fixed part.
    pub head: Head,
    /// Who asked, for what.
    pub tail: Tail<'b>,
}

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotARecord {
    /// Fewer bytes than the prelude promises.
    Short,
    /// More bytes than the prelude promises.
    Long,
    /// A version this build does not know.
    Version(u8),
    /// A field holds a number without a meaning.
    Field,
    /// The tail is not made of whole items.
    Tail,
}

// === impl Record ===

impl<'b> Record<'b> {
    /// Reads a record and nothing but a record.
    pub fn decode(bytes: &'b [u8]) -> Result<Record<'b>, NotARecord> {
        let (head, tail) = split(bytes)?;
        let tail = Tail::decode(tail).ok_or(NotARecord::Tail)?;
        Ok(Record { head, tail })
    }

    /// Appends the record to `out`. A tail that does not fit in `bytes_max` bytes of record is
    /// cut and flagged.
    pub fn encode(&self, bytes_max: usize, out: &mut Vec<u8>) {
        let from = out.len();
        let room = bytes_max.min(RECORD_BYTES_MAX).saturating_sub(PRELUDE_BYTES + HEAD_BYTES);
        out.resize(from + PRELUDE_BYTES + HEAD_BYTES + room, 0);
        let (_, record) = out.split_at_mut(from);
        let mut head = self.head;
        let (fixed, tail) = record.split_at_mut(PRELUDE_BYTES + HEAD_BYTES);
        let (used, cut) = self.tail.encode(tail);
        if cut {
            head.flags |= flag::TAIL_CUT;
        }
        let mut put = Put::new(fixed);
        prelude(used).put(&mut put);
        put.bytes(head.encode());
        out.truncate(from + PRELUDE_BYTES + HEAD_BYTES + usize::from(used));
    }
}

/// The prelude of a record with a tail of so many bytes, as the word a slot stores at once.
pub(crate) fn prelude(tail_bytes: u16) -> u32 {
    u32::from(VERSION) | (u32::from(tail_bytes) << 16)
}

/// Bytes of the record that begins with `bytes`, by its prelude.
pub(crate) fn len_of(bytes: &[u8]) -> Option<usize> {
    let word = u32::take(&mut Take::new(bytes))?;
    let tail = usize::try_from(word >> 16).ok()?;
    Some(PRELUDE_BYTES + HEAD_BYTES + tail)
}

/// The head, and the bytes of the tail.
pub(crate) fn split(bytes: &[u8]) -> Result<(Head, &[u8]), NotARecord> {
    let mut take = Take::new(bytes);
    let word = u32::take(&mut take).ok_or(NotARecord::Short)?;
    let [version, reserved, ..] = word.to_le_bytes();
    if version != VERSION {
        return Err(NotARecord::Version(version));
    }
    let fixed: [u8; HEAD_BYTES] = take.bytes().ok_or(NotARecord::Short)?;
    let tail_bytes = usize::try_from(word >> 16).map_err(|_| NotARecord::Short)?;
    let tail = take.slice(tail_bytes).ok_or(NotARecord::Short)?;
    if take.left() > 0 {
        return Err(NotARecord::Long);
    }
    let head = Head::take(&mut Take::new(&fixed)).filter(|_| reserved == 0);
    Ok((head.ok_or(NotARecord::Field)?, tail))
}

mod settled;
pub use settled::{MODEL_BYTES, Settled};

#[cfg(test)]
mod tests;
