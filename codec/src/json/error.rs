//! Why a request body is refused. A closed list; every one of them is the caller's fault (400).
//!
//! The texts are fixed and never repeat what the caller sent: an error can be shown and logged
//! as it is.

use super::keys::RequestKey;

/// What is wrong with a request body, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// What is wrong.
    pub kind: JsonErrorKind,
    /// Offset in the body of the byte (or of the value) that shows it.
    pub offset: usize,
}

/// The closed list of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonErrorKind {
    /// The body ends inside the document, or is empty.
    UnexpectedEnd,
    /// A byte that cannot stand here.
    UnexpectedByte,
    /// Something other than whitespace after the top-level object.
    TrailingBytes,
    /// The top level is not an object.
    NotAnObject,
    /// A control character below 0x20 inside a string.
    ControlInString,
    /// An escape that JSON does not know.
    BadEscape,
    /// Bytes that are not UTF-8.
    BadUtf8,
    /// A number JSON does not allow.
    BadNumber,
    /// Neither `true`, `false` nor `null`.
    BadLiteral,
    /// Nested deeper than [`super::DEPTH_MAX`].
    TooDeep,
    /// A key we act on stands twice: we and the upstream could read different ones.
    DuplicateKey(RequestKey),
    /// A key we act on is spelled with escapes: another reader could miss it.
    EscapedKey(RequestKey),
    /// A key we act on is spelled with capitals: a reader that takes keys in any case would read
    /// it.
    MiscasedKey(RequestKey),
    /// `stream` is neither a boolean nor null.
    StreamNotBoolean,
    /// `stream_options` is neither an object nor null.
    StreamOptionsNotObject,
    /// `stream_options.include_usage` is neither a boolean nor null.
    IncludeUsageNotBoolean,
    /// No `model` at the top level.
    ModelMissing,
    /// `model` is not a string.
    ModelNotString,
    /// `model` is empty or blank.
    ModelEmpty,
    /// `model` is longer than [`super::MODEL_BYTES_MAX`].
    ModelTooLong,
    /// `model` holds a control character or a lone surrogate: no provider has such a name.
    ModelUnreadable,
}

impl JsonError {
    /// A fixed sentence for the answer and the log.
    #[must_use]
    pub fn message(&self) -> &'static str {
        self.kind.message()
    }

    /// The parameter the error is about, for the `param` of an error body.
    #[must_use]
    pub fn param(&self) -> Option<&'static str> {
        self.kind.param()
    }
}

impl JsonErrorKind {
    /// A fixed sentence for the answer and the log.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            Self::UnexpectedEnd => "the body ends before the JSON document does",
            Self::UnexpectedByte => "the body is not valid JSON",
            Self::TrailingBytes => "the body has bytes after the JSON object",
            Self::NotAnObject => "the body must be a JSON object",
            Self::ControlInString => "a string holds an unescaped control character",
            Self::BadEscape => "a string holds an invalid escape",
            Self::BadUtf8 => "the body is not valid UTF-8",
            Self::BadNumber => "the body holds an invalid number",
            Self::BadLiteral => "the body holds a word that is not true, false or null",
            Self::TooDeep => "the body is nested too deeply",
            Self::DuplicateKey(key) => key.duplicate_message(),
            Self::EscapedKey(key) => key.escaped_message(),
            Self::MiscasedKey(key) => key.miscased_message(),
            Self::StreamNotBoolean => "stream must be true, false or null",
            Self::StreamOptionsNotObject => "stream_options must be an object or null",
            Self::IncludeUsageNotBoolean => {
                "stream_options.include_usage must be true, false or null"
            }
            Self::ModelMissing => "model is missing",
            Self::ModelNotString => "model must be a string",
            Self::ModelEmpty => "model must not be empty",
            Self::ModelTooLong => "model is too long",
            Self::ModelUnreadable => "model holds characters no model name has",
        }
    }

    /// The parameter the error is about.
    #[must_use]
    pub fn param(self) -> Option<&'static str> {
        match self {
            Self::DuplicateKey(key) | Self::EscapedKey(key) | Self::MiscasedKey(key) => {
                Some(key.name())
            }
            Self::StreamNotBoolean => Some("stream"),
            Self::StreamOptionsNotObject => Some("stream_options"),
            Self::IncludeUsageNotBoolean => Some("stream_options.include_usage"),
            Self::ModelMissing
            | Self::ModelNotString
            | Self::ModelEmpty
            | Self::ModelTooLong
            | Self::ModelUnreadable => Some("model"),
            Self::UnexpectedEnd
            | Self::UnexpectedByte
            | Self::TrailingBytes
            | Self::NotAnObject
            | Self::ControlInString
            | Self::BadEscape
            | Self::BadUtf8
            | Self::BadNumber
            | Self::BadLiteral
            | Self::TooDeep => None,
        }
    }
}

impl std::fmt::Display for JsonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (offset {})", self.message(), self.offset)
    }
}

impl std::error::Error for JsonError {}
