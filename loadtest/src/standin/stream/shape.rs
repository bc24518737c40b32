//! A stream as written in a scenario. No behaviour: `stream` gives it meaning.

use serde::Deserialize;

use crate::standin::scenario::{Amount, Framing, Text};
use crate::standin::tool;

/// One stream. Asked for whole, it is answered by a completion of the same usage.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Stream {
    /// Instead of the one of the path.
    pub(crate) dialect: Option<Spoken>,
    pub(crate) status: u16,
    pub(crate) version: String,
    /// Instead of the usual one; empty for none.
    pub(crate) reason: Option<String>,
    pub(crate) content_type: Option<String>,
    /// Further fields; `{length}` in a value stands for the body's length.
    pub(crate) headers: Vec<(String, Text)>,
    pub(crate) framing: Framing,
    /// Put behind each chunk size, semicolon included.
    pub(crate) chunk_extension: String,
    /// Trailer lines, line ends included.
    pub(crate) trailers: String,
    /// Whether the role chunk, or `message_start` and what follows it, comes first.
    pub(crate) opening: bool,
    /// Content events of text.
    pub(crate) events: Amount,
    /// Bytes of text in each, as far as whole characters allow.
    pub(crate) text_bytes: Amount,
    /// What the text repeats.
    pub(crate) words: String,
    /// Content events of a tool call behind the text.
    pub(crate) tools: Amount,
    /// Tool calls of so many events each, one behind the other.
    pub(crate) calls: Amount,
    /// The tool that is called …
    pub(crate) tool: String,
    /// … and what it is called with, as JSON text in place of the usual.
    pub(crate) input: Option<String>,
    /// Comments (chat) or `ping` events (messages) before the first content event …
    pub(crate) pings: Amount,
    /// … and one before every so many content events.
    pub(crate) ping_every: usize,
    /// In the words of chat; empty for no finish at all.
    pub(crate) finish_reason: String,
    pub(crate) usage: Report,
    /// Also reports running usage half-way.
    pub(crate) usage_middle: bool,
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
    pub(crate) cached_tokens: u64,
    /// Pads an event to so many KiB, its usage last.
    pub(crate) giant: Option<Giant>,
    /// Whether `[DONE]` or `message_stop` comes last.
    pub(crate) terminator: bool,
    /// An error event in place of all that is left.
    pub(crate) error: Option<Fault>,
    /// Texts of events in place of the generated ones; one write each.
    pub(crate) raw: Option<Vec<Text>>,
    pub(crate) line_end: LineEnd,
    /// Compresses, flushed behind each write.
    pub(crate) gzip: bool,
    /// Events of one write, and so of one chunk.
    pub(crate) batch: Amount,
    /// Between two writes.
    pub(crate) pace_ms: Amount,
    pub(crate) pause: Option<Pause>,
    /// Leaves out all that comes later, the end of the body too.
    pub(crate) cut: Option<Cut>,
    /// Leaves out the end of the body alone.
    pub(crate) unended: bool,
}

impl Default for Stream {
    fn default() -> Stream {
        Stream {
            dialect: None,
            status: 200,
            version: "HTTP/1.1".to_owned(),
            reason: None,
            content_type: Some("text/event-stream; charset=utf-8".to_owned()),
            headers: Vec::new(),
            framing: Framing::Chunked,
            chunk_extension: String::new(),
            trailers: String::new(),
            opening: true,
            events: Amount::Fixed(8),
            text_bytes: Amount::Fixed(24),
            words: "The toll is counted once and the road stays open. ".to_owned(),
            tools: Amount::Fixed(0),
            calls: Amount::Fixed(1),
            tool: tool::NAME.to_owned(),
            input: None,
            pings: Amount::Fixed(0),
            ping_every: 0,
            finish_reason: "stop".to_owned(),
            usage: Report::Asked,
            usage_middle: false,
            prompt_tokens: 512,
            completion_tokens: 64,
            cached_tokens: 0,
            giant: None,
            terminator: true,
            error: None,
            raw: None,
            line_end: LineEnd::Lf,
            gzip: false,
            batch: Amount::Fixed(1),
            pace_ms: Amount::Fixed(0),
            pause: None,
            cut: None,
            unended: false,
        }
    }
}

/// A dialect of streams.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Spoken {
    Chat,
    Messages,
}

/// When usage is reported.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Report {
    /// Chat: if the request asks for it. Messages: always.
    Asked,
    Always,
    Never,
    /// What the beginning tells and not the final count: messages alone knows the difference.
    Start,
}

/// An event padded beyond measure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Giant {
    pub(crate) kib: Amount,
    pub(crate) event: Padded,
}

/// Which event is padded.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Padded {
    /// The one that names the finish; it then reports usage even if nobody asked.
    Finish,
    /// Chat: the usage chunk, which has no choices. Messages: as `finish`.
    Usage,
    /// The first content event, without usage.
    Content,
}

/// An error told in the stream.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Fault {
    /// Content events before it.
    pub(crate) after: Amount,
    pub(crate) message: String,
    pub(crate) kind: String,
    pub(crate) code: Option<String>,
    /// What a request that asked for no stream gets it with.
    pub(crate) status: u16,
}

/// A silence.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Pause {
    /// Content events before it.
    pub(crate) after: Amount,
    pub(crate) ms: Amount,
    /// Added to `ms`.
    pub(crate) s: Amount,
}

impl Default for Pause {
    fn default() -> Pause {
        Pause { after: Amount::Fixed(0), ms: Amount::Fixed(0), s: Amount::Fixed(0) }
    }
}

/// Where a stream is cut.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Cut {
    /// Content events before it.
    pub(crate) after: Amount,
    /// Half of the next event is sent too.
    #[serde(default)]
    pub(crate) inside: bool,
}

/// How lines end.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LineEnd {
    Lf,
    Crlf,
    Cr,
}
