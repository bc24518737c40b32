//! The paths an answer is read along, as a tree of constants: a shape of answer is a few rows.
//!
//! Chat answers and chunks, messages answers and events, responses and their terminal events,
//! gemini answers (whole, chunked, or as one array) meet in one tree, because their keys do not
//! collide where their meanings differ. A key that stands nowhere in it is skipped with all
//! below it, so no text of a model can be taken for a fact.

use crate::usage::UsageField as Field;

/// One place in an answer.
#[derive(Debug)]
pub(super) struct Node {
    /// What a value here says.
    pub(super) leaf: Leaf,
    /// Places of its members, if it is an object.
    pub(super) keys: &'static [(&'static str, &'static Node)],
    /// The place of its elements, if it is an array.
    pub(super) each: Option<&'static Node>,
}

/// What a value says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    /// Nothing by itself.
    Pass,
    /// A count.
    Usage(Field),
    /// A short text.
    Text(TextPlace),
    /// Content, if it is not empty.
    Content,
    /// An error, if it is not null.
    Error,
}

/// Short texts that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextPlace {
    Finish,
    Object,
    Kind,
    Status,
    ErrorCode,
    ErrorKind,
    ErrorStatus,
}

impl Node {
    /// The place of the member with this key.
    pub(super) fn key(&self, key: Option<&[u8]>) -> Option<&'static Self> {
        let key = key?;
        self.keys.iter().find(|(name, _)| name.as_bytes() == key).map(|&(_, node)| node)
    }
}

type Keys = &'static [(&'static str, &'static Node)];

const fn object(keys: Keys) -> Node {
    Node { leaf: Leaf::Pass, keys, each: None }
}

const fn array(each: &'static Node) -> Node {
    Node { leaf: Leaf::Pass, keys: &[], each: Some(each) }
}

const fn leaf(leaf: Leaf) -> Node {
    Node { leaf, keys: &[], each: None }
}

const fn text(place: TextPlace) -> Node {
    leaf(Leaf::Text(place))
}

macro_rules! counts {
    ($($name:ident $field:ident;)*) => {
        $(static $name: Node = leaf(Leaf::Usage(Field::$field));)*
    };
}

counts! {
    PROMPT Prompt;
    COMPLETION Completion;
    INPUT Input;
    OUTPUT Output;
    TOTAL Total;
    CACHED Cached;
    AUDIO_IN AudioIn;
    AUDIO_OUT AudioOut;
    REASONING Reasoning;
    CACHE_READ CacheRead;
    CACHE_WRITE CacheWrite;
    CACHE_WRITE_5M CacheWrite5m;
    CACHE_WRITE_1H CacheWrite1h;
    GEMINI_PROMPT GeminiPrompt;
    GEMINI_CACHED GeminiCached;
    GEMINI_CANDIDATES GeminiCandidates;
    GEMINI_THOUGHTS GeminiThoughts;
    GEMINI_TOOL_USE GeminiToolUse;
}

static INPUT_DETAILS: Node = object(&[("cached_tokens", &CACHED), ("audio_tokens", &AUDIO_IN)]);

static OUTPUT_DETAILS: Node =
    object(&[("reasoning_tokens", &REASONING), ("audio_tokens", &AUDIO_OUT)]);

static CACHE_CREATION: Node = object(&[
    ("ephemeral_5m_input_tokens", &CACHE_WRITE_5M),
    ("ephemeral_1h_input_tokens", &CACHE_WRITE_1H),
]);

/// The `usage` of chat, messages and responses.
static USAGE: Node = object(&[
    ("prompt_tokens", &PROMPT),
    ("completion_tokens", &COMPLETION),
    ("input_tokens", &INPUT),
    ("output_tokens", &OUTPUT),
    ("total_tokens", &TOTAL),
    ("cached_tokens", &CACHED),
    ("prompt_tokens_details", &INPUT_DETAILS),
    ("input_tokens_details", &INPUT_DETAILS),
    ("completion_tokens_details", &OUTPUT_DETAILS),
    ("output_tokens_details", &OUTPUT_DETAILS),
    ("cache_read_input_tokens", &CACHE_READ),
    ("cache_creation_input_tokens", &CACHE_WRITE),
    ("cache_creation", &CACHE_CREATION),
]);

static GEMINI_USAGE: Node = object(&[
    ("promptTokenCount", &GEMINI_PROMPT),
    ("cachedContentTokenCount", &GEMINI_CACHED),
    ("candidatesTokenCount", &GEMINI_CANDIDATES),
    ("thoughtsTokenCount", &GEMINI_THOUGHTS),
    ("toolUsePromptTokenCount", &GEMINI_TOOL_USE),
    ("totalTokenCount", &TOTAL),
]);

static FINISH: Node = text(TextPlace::Finish);
static OBJECT: Node = text(TextPlace::Object);
static KIND: Node = text(TextPlace::Kind);
static STATUS: Node = text(TextPlace::Status);
static ERROR_CODE: Node = text(TextPlace::ErrorCode);
static ERROR_KIND: Node = text(TextPlace::ErrorKind);
static ERROR_STATUS: Node = text(TextPlace::ErrorStatus);

static ERROR: Node = Node {
    leaf: Leaf::Error,
    keys: &[("code", &ERROR_CODE), ("type", &ERROR_KIND), ("status", &ERROR_STATUS)],
    each: None,
};

/// A text that is not empty, an object, or an array of such.
static CONTENT: Node = Node { leaf: Leaf::Content, keys: &[], each: Some(&CONTENT) };

/// The message of a chat answer, the delta of a chat chunk.
static CHAT_MESSAGE: Node = object(&[
    ("content", &CONTENT),
    ("tool_calls", &CONTENT),
    ("function_call", &CONTENT),
    ("refusal", &CONTENT),
    ("reasoning_content", &CONTENT),
    ("reasoning", &CONTENT),
    ("audio", &CONTENT),
]);

static CHOICE: Node = object(&[
    ("message", &CHAT_MESSAGE),
    ("delta", &CHAT_MESSAGE),
    ("text", &CONTENT),
    ("finish_reason", &FINISH),
    // Some servers put the usage of a stream into its last choice.
    ("usage", &USAGE),
]);
static CHOICES: Node = array(&CHOICE);

static PARTS: Node = object(&[("parts", &CONTENT)]);
static CANDIDATE: Node = object(&[("content", &PARTS), ("finishReason", &FINISH)]);
static CANDIDATES: Node = array(&CANDIDATE);

/// `message` of a messages `message_start`.
static MESSAGE: Node = object(&[("usage", &USAGE)]);

/// `delta` of a messages `message_delta`.
static DELTA: Node = object(&[("stop_reason", &FINISH)]);

/// `response` of a responses event.
static RESPONSE: Node = object(&[("usage", &USAGE), ("error", &ERROR), ("status", &STATUS)]);

/// An answer, a chunk or the data of an event.
pub(super) static ROOT: Node = Node {
    leaf: Leaf::Pass,
    keys: &[
        ("usage", &USAGE),
        ("choices", &CHOICES),
        ("error", &ERROR),
        ("object", &OBJECT),
        ("type", &KIND),
        // messages, and responses
        ("content", &CONTENT),
        ("stop_reason", &FINISH),
        ("message", &MESSAGE),
        ("delta", &DELTA),
        ("output", &CONTENT),
        ("status", &STATUS),
        ("response", &RESPONSE),
        // gemini
        ("candidates", &CANDIDATES),
        ("usageMetadata", &GEMINI_USAGE),
    ],
    each: Some(&ROOT),
};
