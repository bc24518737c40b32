//! The shape of a scenario file, as written. No behaviour: `compile` gives it meaning. A new
//! scenario is a new table, not new code. Streams have a file of their own.

use serde::Deserialize;

use super::stream::Stream;
use super::tool;

/// One file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub(super) scenario: Vec<Scenario>,
}

/// One script, chosen by its name as the model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Scenario {
    /// The model name, or one ending in `{n}` or `{n}-{m}` for a family with one or two numbers.
    pub(super) name: String,
    /// What it stands for, in one line.
    pub(super) about: String,
    /// The steps of every request.
    #[serde(default)]
    pub(super) steps: Vec<Step>,
    /// Instead of `steps`: the steps of the first request, the second …; the last list repeats.
    #[serde(default)]
    pub(super) rounds: Vec<Vec<Step>>,
    /// What the rounds are counted by.
    #[serde(default)]
    pub(super) count: Count,
    /// Most bytes in one write.
    pub(super) split: Option<usize>,
    /// Pause between the writes of a split.
    #[serde(default)]
    pub(super) pace_ms: u64,
}

/// What makes a request the first or the second.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Count {
    /// Attempts of one call, told by `x-tollgate-request-id`; calls without one count together.
    #[default]
    Call,
    /// Requests on one connection.
    Connection,
    /// Requests that name one model, whoever sends them: a client's own retries.
    Model,
}

/// One thing done.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) enum Step {
    /// Waits for so many bytes of the body, not for all of it; only as the first step.
    Read(Amount),
    /// Sends a message, whole or cut. A completion becomes a stream if the request wants one.
    Answer(Box<Answer>),
    /// Sends a stream, whole or cut.
    Stream(Box<Stream>),
    /// Sends bytes as they are.
    Send(Text),
    /// Waits.
    WaitMs(Amount),
    /// Ends the sending side in order and ignores what still comes.
    Close,
    /// Closes both sides at once: a reset if bytes of the request were not read.
    CloseHard,
    /// Resets the connection.
    Reset,
    /// Does nothing until the peer leaves.
    Hang,
}

/// A number, or `"{n}"` or `"{m}"` for one in the scenario's name.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Amount {
    Fixed(u64),
    Named(String),
}

/// A string, or one repeated.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Text {
    Plain(String),
    Repeated { repeat: String, times: usize },
}

/// One answer message.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Instead of the usual one; empty for none.
    pub(super) reason: Option<String>,
    pub(super) version: String,
    /// `None` leaves the field out.
    pub(super) content_type: Option<String>,
    /// Further fields; `{length}` in a value stands for the body's length.
    pub(super) headers: Vec<(String, Text)>,
    pub(super) body: Body,
    pub(super) framing: Framing,
    /// Content of one chunk.
    pub(super) chunk_bytes: usize,
    /// Put behind each chunk size, semicolon included.
    pub(super) chunk_extension: String,
    /// Trailer lines, line ends included.
    pub(super) trailers: String,
    /// How much of the message is sent.
    pub(super) keep: Keep,
}

impl Default for Answer {
    fn default() -> Answer {
        Answer {
            status: 200,
            reason: None,
            version: "HTTP/1.1".to_owned(),
            content_type: Some("application/json".to_owned()),
            headers: Vec::new(),
            body: Body::default(),
            framing: Framing::Length,
            chunk_bytes: 256,
            chunk_extension: String::new(),
            trailers: String::new(),
            keep: Keep::All,
        }
    }
}

/// How the end of an answer is told.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Framing {
    Length,
    Chunked,
    /// Nothing is announced: the body ends with the connection, or there is none.
    None,
}

/// How much of an answer is sent.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Keep {
    All,
    /// The head with its blank line.
    Head,
    /// The head and half of the body as framed.
    HalfBody,
    /// All but the last byte.
    AllButOne,
    /// So many bytes.
    Bytes(usize),
}

/// What an answer carries.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) enum Body {
    /// A completion in the dialect of the path.
    Completion(Completion),
    /// An error in the shape of the provider.
    Error(ErrorBody),
    /// Anything.
    Text(Text),
    /// Another body, compressed.
    Gzip(Box<Body>),
}

impl Default for Body {
    fn default() -> Body {
        Body::Completion(Completion::default())
    }
}

/// A completion; its content is padded so that the body has the size.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Completion {
    /// Bytes of the body: 823 is what the answers of the peers' measurements had.
    pub(super) size: Amount,
    /// Whether usage is reported.
    pub(super) usage: bool,
    pub(super) prompt_tokens: u64,
    pub(super) completion_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) finish_reason: String,
    /// Tool calls behind the text.
    pub(super) calls: Amount,
    /// As of a stream.
    pub(super) tool: String,
    pub(super) input: Option<String>,
    /// Further members of the answer, as JSON text with a leading comma.
    pub(super) members: String,
}

impl Default for Completion {
    fn default() -> Completion {
        Completion {
            size: Amount::Fixed(823),
            usage: true,
            prompt_tokens: 512,
            completion_tokens: 64,
            cached_tokens: 0,
            finish_reason: "stop".to_owned(),
            calls: Amount::Fixed(0),
            tool: tool::NAME.to_owned(),
            input: None,
            members: String::new(),
        }
    }
}

/// An error body.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ErrorBody {
    pub(super) message: String,
    pub(super) kind: String,
    pub(super) code: Option<String>,
    /// Reports usage beside the error, as a provider does that billed the failure.
    #[serde(default)]
    pub(super) usage: bool,
}
