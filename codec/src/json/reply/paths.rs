//! The paths an answer is read along, as one table: a shape of answer is a few rows.
//!
//! Chat answers and chunks, messages answers and events, responses and their terminal events,
//! gemini answers (whole, chunked, or as one array) meet in one table, because their keys do not
//! collide where their meanings differ. A key that stands nowhere in it is skipped with all
//! below it, so no text of a model can be taken for a fact.

use crate::usage::UsageField as Field;

/// A place in an answer, and what a value there says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// An answer, a chunk or the data of an event.
    Root,
    /// `choices` of chat, and one of them.
    Choices,
    Choice,
    /// The message of a chat answer, the delta of a chat chunk.
    ChatMessage,
    /// The `usage` of chat, messages and responses, and its parts.
    Usage,
    InputDetails,
    OutputDetails,
    CacheCreation,
    /// `message` of a messages `message_start`.
    Message,
    /// `delta` of a messages `message_delta`.
    Delta,
    /// `response` of a responses event.
    Response,
    /// `candidates` of gemini, one of them, its `content`, and its usage.
    Candidates,
    Candidate,
    Parts,
    GeminiUsage,
    /// An error, if it is not null.
    Error,
    /// Content, if it is a text that is not empty, an object, or an array of such.
    Content,
    /// A count.
    Count(Field),
    /// A short text.
    Text(TextPlace),
}

/// Short texts that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextPlace {
    Finish,
    ErrorCode,
    ErrorKind,
    ErrorStatus,
}

use Place::{Count, Text};

impl Place {
    /// The place of the member with this key, if this is an object.
    #[inline(always)]
    pub(super) fn member(self, key: &[u8]) -> Option<Self> {
        self.members()?.find(key)
    }

    /// Whether members of an object here are looked at.
    pub(super) fn has_members(self) -> bool {
        self.members().is_some()
    }

    /// The place of the elements, if this is an array.
    pub(super) fn each(self) -> Option<Self> {
        match self {
            Self::Root => Some(Self::Root),
            Self::Choices => Some(Self::Choice),
            Self::Candidates => Some(Self::Candidate),
            Self::Content => Some(Self::Content),
            _ => None,
        }
    }

    #[inline(always)]
    fn members(self) -> Option<&'static Members> {
        match self {
            Self::Root => Some(&ROOT),
            Self::Choice => Some(&CHOICE),
            Self::ChatMessage => Some(&CHAT_MESSAGE),
            Self::Usage => Some(&USAGE),
            Self::InputDetails => Some(&INPUT_DETAILS),
            Self::OutputDetails => Some(&OUTPUT_DETAILS),
            Self::CacheCreation => Some(&CACHE_CREATION),
            Self::Message => Some(&MESSAGE),
            Self::Delta => Some(&DELTA),
            Self::Response => Some(&RESPONSE),
            Self::Candidate => Some(&CANDIDATE),
            Self::Parts => Some(&PARTS),
            Self::GeminiUsage => Some(&GEMINI_USAGE),
            Self::Error => Some(&ERROR),
            Self::Choices | Self::Candidates | Self::Content | Count(_) | Text(_) => None,
        }
    }
}

/// Lengths of keys that are told apart before a byte is compared; the longest key has 27 bytes.
const LENGTHS: usize = 32;

/// The members of an object that are looked at.
struct Members {
    rows: &'static [(&'static str, Place)],
    /// For each length of a key the first row with it; past the end if there is none.
    first: [u8; LENGTHS],
}

impl Members {
    const fn new(rows: &'static [(&'static str, Place)]) -> Self {
        let mut first = [u8::MAX; LENGTHS];
        let mut row = rows.len();
        while row > 0 {
            row -= 1;
            first[rows[row].0.len()] = row as u8;
        }
        Self { rows, first }
    }

    #[inline(always)]
    fn find(&self, key: &[u8]) -> Option<Place> {
        let first = usize::from(*self.first.get(key.len())?);
        for (name, place) in self.rows.get(first..)? {
            if name.as_bytes() == key {
                return Some(*place);
            }
        }
        None
    }
}

static INPUT_DETAILS: Members = Members::new(&[
    ("cached_tokens", Count(Field::Cached)),
    ("audio_tokens", Count(Field::AudioIn)),
]);

static OUTPUT_DETAILS: Members = Members::new(&[
    ("reasoning_tokens", Count(Field::Reasoning)),
    ("audio_tokens", Count(Field::AudioOut)),
]);

static CACHE_CREATION: Members = Members::new(&[
    ("ephemeral_5m_input_tokens", Count(Field::CacheWrite5m)),
    ("ephemeral_1h_input_tokens", Count(Field::CacheWrite1h)),
]);

static USAGE: Members = Members::new(&[
    ("prompt_tokens", Count(Field::Prompt)),
    ("completion_tokens", Count(Field::Completion)),
    ("input_tokens", Count(Field::Input)),
    ("output_tokens", Count(Field::Output)),
    ("total_tokens", Count(Field::Total)),
    ("cached_tokens", Count(Field::Cached)),
    ("prompt_tokens_details", Place::InputDetails),
    ("input_tokens_details", Place::InputDetails),
    ("completion_tokens_details", Place::OutputDetails),
    ("output_tokens_details", Place::OutputDetails),
    ("cache_read_input_tokens", Count(Field::CacheRead)),
    ("cache_creation_input_tokens", Count(Field::CacheWrite)),
    ("cache_creation", Place::CacheCreation),
]);

static GEMINI_USAGE: Members = Members::new(&[
    ("promptTokenCount", Count(Field::GeminiPrompt)),
    ("cachedContentTokenCount", Count(Field::GeminiCached)),
    ("candidatesTokenCount", Count(Field::GeminiCandidates)),
    ("thoughtsTokenCount", Count(Field::GeminiThoughts)),
    ("toolUsePromptTokenCount", Count(Field::GeminiToolUse)),
    ("totalTokenCount", Count(Field::Total)),
]);

static ERROR: Members = Members::new(&[
    ("code", Text(TextPlace::ErrorCode)),
    ("type", Text(TextPlace::ErrorKind)),
    ("status", Text(TextPlace::ErrorStatus)),
]);

static CHAT_MESSAGE: Members = Members::new(&[
    ("content", Place::Content),
    ("tool_calls", Place::Content),
    ("function_call", Place::Content),
    ("refusal", Place::Content),
    ("reasoning_content", Place::Content),
    ("reasoning", Place::Content),
    ("audio", Place::Content),
]);

static CHOICE: Members = Members::new(&[
    ("message", Place::ChatMessage),
    ("delta", Place::ChatMessage),
    ("text", Place::Content),
    ("finish_reason", Text(TextPlace::Finish)),
    // Some servers put the usage of a stream into its last choice.
    ("usage", Place::Usage),
]);

static PARTS: Members = Members::new(&[("parts", Place::Content)]);

static CANDIDATE: Members =
    Members::new(&[("content", Place::Parts), ("finishReason", Text(TextPlace::Finish))]);

static MESSAGE: Members = Members::new(&[("usage", Place::Usage)]);

static DELTA: Members = Members::new(&[("stop_reason", Text(TextPlace::Finish))]);

static RESPONSE: Members = Members::new(&[("usage", Place::Usage), ("error", Place::Error)]);

static ROOT: Members = Members::new(&[
    ("usage", Place::Usage),
    ("choices", Place::Choices),
    ("error", Place::Error),
    // messages, and responses
    ("content", Place::Content),
    ("stop_reason", Text(TextPlace::Finish)),
    ("message", Place::Message),
    ("delta", Place::Delta),
    ("output", Place::Content),
    ("response", Place::Response),
    // gemini
    ("candidates", Place::Candidates),
    ("usageMetadata", Place::GeminiUsage),
]);
