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
    /// `delta` of a messages event; in responses events it is the text itself.
    Delta,
    /// `response` of a responses event.
    Response,
    /// `candidates` of gemini, one of them, its `content`, and its usage.
    Candidates,
    Candidate,
    Parts,
    GeminiUsage,
    /// `promptFeedback` of gemini: a prompt that was blocked has no candidate to finish.
    PromptFeedback,
    /// An error, if it is not null.
    Error,
    /// Content, if it is a text that is not empty, an object, or an array of such.
    Content,
    /// Arguments of a call, a text or any value: all of it is what the model said.
    Arguments,
    /// A count.
    Count(Field),
    /// A short text.
    Text(TextPlace),
}

/// Short texts that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextPlace {
    /// `type` of an event.
    Event,
    /// `code` beside the type: responses events say so what went wrong.
    Code,
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
        self.members().find(key)
    }

    /// Whether members of an object here are looked at.
    pub(super) fn has_members(self) -> bool {
        !self.members().rows.is_empty()
    }

    /// Whether a text here is what the model said, to be counted and not kept.
    #[inline(always)]
    pub(super) fn is_said(self) -> bool {
        matches!(self, Self::Content | Self::Arguments | Self::Delta)
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

    /// The members that are looked at, if this is an object.
    #[inline(always)]
    pub(super) fn members(self) -> &'static Members {
        match self {
            Self::Root => &ROOT,
            Self::Choice => &CHOICE,
            Self::ChatMessage => &CHAT_MESSAGE,
            Self::Usage => &USAGE,
            Self::InputDetails => &INPUT_DETAILS,
            Self::OutputDetails => &OUTPUT_DETAILS,
            Self::CacheCreation => &CACHE_CREATION,
            Self::Message => &MESSAGE,
            Self::Delta => &DELTA,
            Self::Response => &RESPONSE,
            Self::Candidate => &CANDIDATE,
            Self::Parts => &PARTS,
            Self::GeminiUsage => &GEMINI_USAGE,
            Self::PromptFeedback => &PROMPT_FEEDBACK,
            Self::Error => &ERROR,
            Self::Content => &CONTENT,
            Self::Choices | Self::Candidates | Self::Arguments | Count(_) | Text(_) => &NONE,
        }
    }
}

/// Lengths of keys that are told apart before a byte is compared; the longest key has 27 bytes.
const LENGTHS: usize = 32;

/// The members of an object that are looked at, in order of the lengths of their keys.
pub(super) struct Members {
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
            let length = rows[row].0.len();
            assert!(row == 0 || rows[row - 1].0.len() <= length, "rows go by length");
            first[length] = row as u8;
        }
        Self { rows, first }
    }

    #[inline(always)]
    pub(super) fn find(&self, key: &[u8]) -> Option<Place> {
        let mut row = usize::from(*self.first.get(key.len())?);
        while let Some((name, place)) = self.rows.get(row)
            && name.len() == key.len()
        {
            if same(name.as_bytes(), key) {
                return Some(*place);
            }
            row += 1;
        }
        None
    }
}

/// Equality of keys. They are short: a few words compared here cost less than a call.
#[inline(always)]
fn same(name: &[u8], key: &[u8]) -> bool {
    if name.len() != key.len() {
        return false;
    }
    let Some((head, tail)) = ends::<8>(name, key) else {
        let few = ends::<4>(name, key).map(|(head, tail)| head && tail);
        return few.unwrap_or_else(|| name == key);
    };
    head && tail && (name.len() <= 16 || name == key)
}

/// Whether the first and the last N bytes are equal; `None` if there are fewer.
#[inline(always)]
fn ends<const N: usize>(name: &[u8], key: &[u8]) -> Option<(bool, bool)> {
    let head = name.first_chunk::<N>()? == key.first_chunk::<N>()?;
    let tail = name.last_chunk::<N>()? == key.last_chunk::<N>()?;
    Some((head, tail))
}

static NONE: Members = Members::new(&[]);

static INPUT_DETAILS: Members = Members::new(&[
    ("audio_tokens", Count(Field::AudioIn)),
    ("cached_tokens", Count(Field::Cached)),
]);

static OUTPUT_DETAILS: Members = Members::new(&[
    ("audio_tokens", Count(Field::AudioOut)),
    ("reasoning_tokens", Count(Field::Reasoning)),
]);

static CACHE_CREATION: Members = Members::new(&[
    ("ephemeral_5m_input_tokens", Count(Field::CacheWrite5m)),
    ("ephemeral_1h_input_tokens", Count(Field::CacheWrite1h)),
]);

static USAGE: Members = Members::new(&[
    ("input_tokens", Count(Field::Input)),
    ("total_tokens", Count(Field::Total)),
    ("prompt_tokens", Count(Field::Prompt)),
    ("output_tokens", Count(Field::Output)),
    ("cached_tokens", Count(Field::Cached)),
    ("cache_creation", Place::CacheCreation),
    ("completion_tokens", Count(Field::Completion)),
    ("input_tokens_details", Place::InputDetails),
    ("prompt_tokens_details", Place::InputDetails),
    ("output_tokens_details", Place::OutputDetails),
    ("cache_read_input_tokens", Count(Field::CacheRead)),
    ("completion_tokens_details", Place::OutputDetails),
    ("cache_creation_input_tokens", Count(Field::CacheWrite)),
]);

static GEMINI_USAGE: Members = Members::new(&[
    ("totalTokenCount", Count(Field::Total)),
    ("promptTokenCount", Count(Field::GeminiPrompt)),
    ("thoughtsTokenCount", Count(Field::GeminiThoughts)),
    ("candidatesTokenCount", Count(Field::GeminiCandidates)),
    ("cachedContentTokenCount", Count(Field::GeminiCached)),
    ("toolUsePromptTokenCount", Count(Field::GeminiToolUse)),
]);

static ERROR: Members = Members::new(&[
    ("code", Text(TextPlace::ErrorCode)),
    ("type", Text(TextPlace::ErrorKind)),
    ("status", Text(TextPlace::ErrorStatus)),
]);

/// Parts of messages, calls and blocks of all dialects. Base64 and signatures are not looked at.
static CONTENT: Members = Members::new(&[
    ("args", Place::Arguments),
    ("text", Place::Content),
    ("input", Place::Arguments),
    ("content", Place::Content),
    ("function", Place::Content),
    ("thinking", Place::Content),
    ("arguments", Place::Arguments),
    ("functionCall", Place::Content),
]);

static CHAT_MESSAGE: Members = Members::new(&[
    ("audio", Place::Content),
    ("content", Place::Content),
    ("refusal", Place::Content),
    ("reasoning", Place::Content),
    ("tool_calls", Place::Content),
    ("function_call", Place::Content),
    ("reasoning_content", Place::Content),
]);

static CHOICE: Members = Members::new(&[
    ("text", Place::Content),
    ("delta", Place::ChatMessage),
    // Some servers put the usage of a stream into its last choice.
    ("usage", Place::Usage),
    ("message", Place::ChatMessage),
    ("finish_reason", Text(TextPlace::Finish)),
]);

static PARTS: Members = Members::new(&[("parts", Place::Content)]);

static CANDIDATE: Members =
    Members::new(&[("content", Place::Parts), ("finishReason", Text(TextPlace::Finish))]);

static MESSAGE: Members = Members::new(&[("usage", Place::Usage)]);

static PROMPT_FEEDBACK: Members = Members::new(&[("blockReason", Text(TextPlace::Finish))]);

static DELTA: Members = Members::new(&[
    ("text", Place::Content),
    ("thinking", Place::Content),
    ("stop_reason", Text(TextPlace::Finish)),
    ("partial_json", Place::Content),
]);

static RESPONSE: Members = Members::new(&[("usage", Place::Usage), ("error", Place::Error)]);

static ROOT: Members = Members::new(&[
    ("type", Text(TextPlace::Event)),
    ("code", Text(TextPlace::Code)),
    ("usage", Place::Usage),
    ("error", Place::Error),
    ("delta", Place::Delta),
    ("output", Place::Content),
    ("choices", Place::Choices),
    ("content", Place::Content),
    ("message", Place::Message),
    ("response", Place::Response),
    ("candidates", Place::Candidates),
    ("stop_reason", Text(TextPlace::Finish)),
    ("content_block", Place::Content),
    ("usageMetadata", Place::GeminiUsage),
    ("promptFeedback", Place::PromptFeedback),
]);
