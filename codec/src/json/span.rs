//! What the request scan found: positions in the body and a few judged values, no text.

/// A half-open range of the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The bytes it names; empty if the body is shorter than the one that was scanned.
    #[must_use]
    pub fn of<'b>(&self, body: &'b [u8]) -> &'b [u8] {
        body.get(self.start..self.end).unwrap_or_default()
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Whether it names no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A string value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StringSpan {
    /// Between the quotes.
    pub text: Span,
    /// Whether it holds a backslash, that is, must be unescaped before it is compared.
    pub escaped: bool,
}

impl StringSpan {
    /// With the quotes: what a replacement takes the place of.
    #[must_use]
    pub fn quoted(&self) -> Span {
        Span { start: self.text.start.saturating_sub(1), end: self.text.end.saturating_add(1) }
    }
}

/// A value that should be a whole number of tokens or answers. The caller judges the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// An unsigned whole number written without fraction or exponent.
    Value(u64),
    /// `null`.
    Null,
    /// A number below zero (`-0` too).
    Negative,
    /// A number with a fraction or an exponent.
    NotWhole,
    /// A whole number beyond `u64`.
    TooLarge,
    /// Not a number.
    NotNumber,
}

/// A [`Count`] and where it stands. The span is empty if the value is an object or array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountField {
    /// The value's bytes.
    pub span: Span,
    /// What they say.
    pub count: Count,
}

/// `stream_options`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// The object with its braces, or the word `null`.
    pub span: Span,
    /// It is `null`.
    pub is_null: bool,
    /// It has no members.
    pub is_empty: bool,
    /// Its `include_usage`.
    pub include_usage: Option<IncludeUsage>,
}

/// `stream_options.include_usage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncludeUsage {
    /// The value's bytes.
    pub span: Span,
    /// True only if it is `true`; `false` and `null` ask for nothing.
    pub value: bool,
}

/// Counters for the estimate of DESIGN §16.11: string values under `messages`, `system`,
/// `tools` (or `functions`, their older form) and `input`, escapes as written, keys excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextEstimate {
    /// Bytes below 0x80.
    pub ascii: u64,
    /// Bytes from 0x80.
    pub non_ascii: u64,
    /// Strings counted as one item each: under `data`, `url`, `image_url`, or `data:…`.
    pub items: u32,
}

/// Everything the request scan found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestSpans {
    /// The top-level object with its braces.
    pub object: Span,
    /// `model`: present, not blank, within the bound.
    pub model: StringSpan,
    /// `stream`; `None` if absent or null.
    pub stream: Option<bool>,
    /// `stream_options`, an object or null.
    pub stream_options: Option<StreamOptions>,
    /// `max_completion_tokens`.
    pub max_completion_tokens: Option<CountField>,
    /// `max_tokens`.
    pub max_tokens: Option<CountField>,
    /// `max_output_tokens`.
    pub max_output_tokens: Option<CountField>,
    /// `n`.
    pub n: Option<CountField>,
    /// `user`, if a string.
    pub user: Option<StringSpan>,
    /// `prompt_cache_key`, if a string.
    pub prompt_cache_key: Option<StringSpan>,
    /// `metadata`, if an object.
    pub metadata: Option<Span>,
    /// `metadata.user_id`, if a string.
    pub metadata_user_id: Option<StringSpan>,
    /// `tools` or `functions` stands in the body and is not null.
    pub has_tools: bool,
    /// `cache_control` stands at the top level and is not null.
    pub has_cache_control: bool,
    /// Counters for the token estimate.
    pub estimate: TextEstimate,
}

impl RequestSpans {
    /// Whether a stream is asked for.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.stream == Some(true)
    }

    /// Whether the client itself asked for the usage chunk of a stream.
    #[must_use]
    pub fn asks_for_usage(&self) -> bool {
        self.stream_options
            .and_then(|options| options.include_usage)
            .is_some_and(|include| include.value)
    }
}
