//! The request scan: one pass over a growing body that checks it whole, points at what the
//! gateway acts on and counts its text for the estimate.
//!
//! The caller hands over the whole prefix received so far, each time; a shorter prefix bounds a
//! turn. The first error is final. It does not look at the meaning of messages, and it takes no
//! second reading: judged keys stand once and plainly spelled, or the body is refused.

use super::MODEL_BYTES_MAX;
use super::error::{JsonError, JsonErrorKind as Kind};
use super::escape::{UnescapeError, unescape_into};
use super::keys::RequestKey as Key;
use super::nest::Nest;
use super::number;
use super::span::{Count, CountField, IncludeUsage, RequestSpans, Span, StreamOptions, StringSpan};
use super::text::Text;
use super::tokens::{Tokens, Visit};

/// Longest key compared after unescaping; the longest we know has 21 bytes.
const KEY_BYTES_MAX: usize = 32;

/// A blank-free model of [`MODEL_BYTES_MAX`] bytes is at most this long with every byte escaped
/// as `\u00xx`; beyond it nothing needs unescaping to be refused.
const MODEL_RAW_MAX: usize = MODEL_BYTES_MAX * 6;

/// Whether the document has been closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    More,
    /// The top-level object is closed; only whitespace may follow.
    Closed,
}

/// A resumable scan of one request body.
#[derive(Clone, Copy, Debug)]
pub struct RequestScan {
    tokens: Tokens,
    reader: Reader,
    failed: Option<JsonError>,
}

impl Default for RequestScan {
    fn default() -> Self {
        Self::new()
    }
}

impl RequestScan {
    /// A scan that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self { tokens: Tokens::new(), reader: Reader::new(), failed: None }
    }

    /// Goes on where the last call stopped. `body` is everything received so far (or less, to
    /// bound this turn), never less than in an earlier call.
    ///
    /// # Errors
    ///
    /// The first thing wrong with the body; later calls say the same.
    pub fn advance(&mut self, body: &[u8]) -> Result<Progress, JsonError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        match self.tokens.run(body, &mut self.reader) {
            Ok(()) if self.tokens.is_done() => Ok(Progress::Closed),
            Ok(()) => Ok(Progress::More),
            Err(error) => {
                self.failed = Some(error);
                Err(error)
            }
        }
    }

    /// Looks at what is left of the whole body and says what was found.
    ///
    /// # Errors
    ///
    /// The first thing wrong with the body, its end inside the document, or no model.
    pub fn finish(&mut self, body: &[u8]) -> Result<RequestSpans, JsonError> {
        match self.advance(body)? {
            Progress::More => Err(JsonError { kind: Kind::UnexpectedEnd, offset: body.len() }),
            Progress::Closed if !self.reader.seen(Key::Model) => {
                let offset = self.reader.spans.object.start;
                Err(JsonError { kind: Kind::ModelMissing, offset })
            }
            Progress::Closed => Ok(self.reader.spans),
        }
    }

    /// How many bytes need not be looked at again.
    #[must_use]
    pub fn position(&self) -> usize {
        self.tokens.position()
    }
}

/// Turns tokens into spans and counters.
#[derive(Clone, Copy, Debug)]
struct Reader {
    spans: RequestSpans,
    /// Keys seen, one bit each.
    seen: u32,
    /// The current key of the top level, if we read it.
    top: Option<Key>,
    /// The current key one level below it, if we read it.
    below: Option<Key>,
    /// Keys and values at this depth or less are looked at one by one.
    watch: usize,
    /// Strings are counted for the estimate.
    counted: bool,
    /// The current key below a counted one names an image or file.
    item_key: bool,
}

// === impl Visit for Reader ===

impl Visit for Reader {
    #[inline(always)]
    fn key(&mut self, body: &[u8], depth: usize, text: Text, end: usize) -> Result<(), Kind> {
        if depth <= self.watch {
            let raw = body.get(text.start..end).unwrap_or_default();
            return self.watched_key(raw, depth, text.escaped);
        }
        // Three lengths to compare: most keys are done with here.
        self.item_key = match end - text.start {
            3 => body.get(text.start..end) == Some(b"url"),
            4 => body.get(text.start..end) == Some(b"data"),
            9 => body.get(text.start..end) == Some(b"image_url"),
            _ => false,
        };
        Ok(())
    }

    #[inline(always)]
    fn string(&mut self, body: &[u8], nest: &Nest, text: Text, end: usize) -> Result<(), Kind> {
        if self.counted {
            let is_item = (self.item_key && nest.in_object())
                || (body.get(text.start) == Some(&b'd')
                    && body.get(text.start..end).is_some_and(|raw| raw.starts_with(b"data:")));
            if is_item {
                self.spans.estimate.items = self.spans.estimate.items.saturating_add(1);
            } else {
                self.spans.estimate.ascii += (end - text.start - text.non_ascii) as u64;
                self.spans.estimate.non_ascii += text.non_ascii as u64;
            }
        }
        if nest.depth() <= self.watch {
            return self.watched_string(body, nest, text, end);
        }
        Ok(())
    }

    #[inline(always)]
    fn scalar(&mut self, body: &[u8], depth: usize, span: Span) -> Result<(), Kind> {
        if depth <= self.watch {
            return self.watched_scalar(body, depth, span);
        }
        Ok(())
    }

    #[inline(always)]
    fn open(&mut self, depth: usize, object: bool, at: usize) -> Result<(), Kind> {
        if depth <= self.watch {
            return self.watched_open(depth, object, at);
        }
        Ok(())
    }

    #[inline(always)]
    fn close(&mut self, depth: usize, end: usize) {
        if depth <= 1 {
            self.watched_close(depth, end);
        }
    }
}

impl Reader {
    fn new() -> Self {
        Self {
            spans: RequestSpans::default(),
            seen: 0,
            top: None,
            below: None,
            watch: 1,
            counted: false,
            item_key: false,
        }
    }

    fn seen(&self, key: Key) -> bool {
        self.seen & key.bit() != 0
    }

    #[inline(never)]
    fn watched_key(&mut self, raw: &[u8], depth: usize, escaped: bool) -> Result<(), Kind> {
        let mut buffer = [0; KEY_BYTES_MAX];
        let name = if escaped {
            unescape_into(raw, &mut buffer).map(str::as_bytes).unwrap_or_default()
        } else {
            raw
        };
        let parent = if depth == 1 { None } else { self.top };
        let key = match parent {
            None => Key::top_level(name),
            Some(parent) => Key::below(parent, name),
        };
        if let Some(key) = key {
            if escaped {
                return Err(Kind::EscapedKey(key));
            }
            if key.is_judged() && self.seen(key) {
                return Err(Kind::DuplicateKey(key));
            }
            self.seen |= key.bit();
        } else if let Some(key) = Key::miscased(parent, name) {
            return Err(Kind::MiscasedKey(key));
        }
        if depth > 1 {
            self.below = key;
            if let Some(options) = &mut self.spans.stream_options {
                options.is_empty &= self.top != Some(Key::StreamOptions);
            }
            return Ok(());
        }
        self.top = key;
        self.below = None;
        self.watch = if key.is_some_and(Key::has_keys_below) { 2 } else { 1 };
        self.counted = key.is_some_and(Key::is_counted);
        self.item_key = false;
        Ok(())
    }

    /// The key the value at this depth belongs to; elements of arrays belong to none.
    fn current(&self, depth: usize) -> Option<Key> {
        match depth {
            1 => self.top,
            2 => self.below,
            _ => None,
        }
    }

    #[inline(never)]
    fn watched_string(
        &mut self,
        body: &[u8],
        nest: &Nest,
        text: Text,
        end: usize,
    ) -> Result<(), Kind> {
        let span = Span { start: text.start, end };
        let raw = span.of(body);
        let string = StringSpan { text: span, escaped: text.escaped };
        match self.current(nest.depth()) {
            Some(Key::Model) => {
                judge_model(raw)?;
                self.spans.model = string;
            }
            Some(Key::User) => self.spans.user = Some(string),
            Some(Key::PromptCacheKey) => self.spans.prompt_cache_key = Some(string),
            Some(Key::UserId) => self.spans.metadata_user_id = Some(string),
            Some(key) => self.other_value(key, string.quoted(), Count::NotNumber)?,
            None => {}
        }
        Ok(())
    }

    #[inline(never)]
    fn watched_scalar(&mut self, body: &[u8], depth: usize, span: Span) -> Result<(), Kind> {
        let Some(key) = self.current(depth) else { return Ok(()) };
        let raw = span.of(body);
        let null = raw == b"null";
        let truth = match raw {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        };
        match key {
            Key::Stream if null || truth.is_some() => self.spans.stream = truth,
            Key::StreamOptions if null => {
                self.spans.stream_options = Some(StreamOptions {
                    span,
                    is_null: true,
                    is_empty: true,
                    include_usage: None,
                });
            }
            Key::IncludeUsage if null || truth.is_some() => {
                if let Some(options) = &mut self.spans.stream_options {
                    let value = truth == Some(true);
                    options.include_usage = Some(IncludeUsage { span, value });
                }
            }
            Key::Tools | Key::Functions | Key::CacheControl if null => {}
            _ => self.other_value(key, span, number::count(raw))?,
        }
        Ok(())
    }

    #[inline(never)]
    fn watched_open(&mut self, depth: usize, object: bool, at: usize) -> Result<(), Kind> {
        let from = Span { start: at, end: at };
        match self.current(depth) {
            None if depth == 0 => self.spans.object = from,
            Some(Key::StreamOptions) if object => {
                self.spans.stream_options = Some(StreamOptions {
                    span: from,
                    is_null: false,
                    is_empty: true,
                    include_usage: None,
                });
            }
            Some(Key::Metadata) if object => {
                self.spans.metadata = Some(from);
                self.spans.metadata_user_id = None;
            }
            Some(key) => self.other_value(key, from, Count::NotNumber)?,
            None => {}
        }
        Ok(())
    }

    fn watched_close(&mut self, depth: usize, end: usize) {
        match (depth, self.top) {
            (0, _) => self.spans.object.end = end,
            (1, Some(Key::StreamOptions)) => {
                if let Some(options) = &mut self.spans.stream_options {
                    options.span.end = end;
                }
            }
            (1, Some(Key::Metadata)) => {
                if let Some(metadata) = &mut self.spans.metadata {
                    metadata.end = end;
                }
            }
            _ => {}
        }
    }

    /// A value that is not of the kind its key wants, or whose kind does not matter.
    fn other_value(&mut self, key: Key, span: Span, count: Count) -> Result<(), Kind> {
        let field = Some(CountField { span, count });
        match key {
            Key::Model => return Err(Kind::ModelNotString),
            Key::Stream => return Err(Kind::StreamNotBoolean),
            Key::StreamOptions => return Err(Kind::StreamOptionsNotObject),
            Key::IncludeUsage => return Err(Kind::IncludeUsageNotBoolean),
            Key::MaxTokens => self.spans.max_tokens = field,
            Key::MaxCompletionTokens => self.spans.max_completion_tokens = field,
            Key::MaxOutputTokens => self.spans.max_output_tokens = field,
            Key::N => self.spans.n = field,
            Key::Tools | Key::Functions => self.spans.has_tools = true,
            Key::CacheControl => self.spans.has_cache_control = true,
            Key::User => self.spans.user = None,
            Key::PromptCacheKey => self.spans.prompt_cache_key = None,
            Key::Metadata => self.spans.metadata = None,
            Key::UserId => self.spans.metadata_user_id = None,
            Key::Messages | Key::System | Key::Input => {}
        }
        Ok(())
    }
}

/// A model is text of bounded length that is not blank and that a log line can carry.
fn judge_model(raw: &[u8]) -> Result<(), Kind> {
    let plain = raw.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'\\');
    if plain && !raw.is_empty() && raw.len() <= MODEL_BYTES_MAX {
        return Ok(());
    }
    if raw.len() > MODEL_RAW_MAX {
        return Err(Kind::ModelTooLong);
    }
    let mut buffer = [0; MODEL_BYTES_MAX];
    let name = unescape_into(raw, &mut buffer).map_err(|error| match error {
        UnescapeError::TooLong => Kind::ModelTooLong,
        UnescapeError::LoneSurrogate | UnescapeError::Malformed => Kind::ModelUnreadable,
    })?;
    if name.trim().is_empty() {
        return Err(Kind::ModelEmpty);
    }
    if name.chars().any(char::is_control) {
        return Err(Kind::ModelUnreadable);
    }
    Ok(())
}
