//! A stream's numbers for one request, all amounts known. What the dialects speak from.

use serde_json::json;

use super::shape::{Padded, Report, Stream};
use crate::standin::call::Call;
use crate::standin::script::Usage;
use crate::standin::tool;

/// Content events of one stream: above any answer of a model, few enough to build at once.
const EVENTS_MAX: u64 = 100_000;

/// Text of all content events, for the same reason.
const TEXT_BYTES_MAX: u64 = 32 << 20;

/// What a dialect's events are made from.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) stream: &'a Stream,
    /// The model's name as JSON.
    pub(super) model: String,
    /// Text of each content event, as the inside of a JSON string.
    pub(super) texts: Vec<String>,
    /// Tool calls, each of as many content events as its arguments have pieces.
    pub(super) calls: usize,
    pub(super) pings: usize,
    /// The pieces of the arguments of each of them.
    pub(super) arguments: Vec<String>,
    /// The content event that carries running usage.
    pub(super) middle: Option<usize>,
    pub(super) usage: Usage,
    /// The request asked for usage in chat's way.
    pub(super) asked: bool,
    /// Text that pads an event, and which one.
    pub(super) giant: Option<(String, Padded)>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(stream: &'a Stream, call: Call<'_>) -> Result<Facts<'a>, String> {
        let events = call.events.map_or_else(|| stream.events.value(call), Ok)?;
        let bytes = call.text.map_or_else(|| stream.text_bytes.value(call), Ok)?;
        let (tools, pings) = (stream.tools.value(call)?, stream.pings.value(call)?);
        let calls = if tools == 0 { 0 } else { stream.calls.value(call)? };
        for count in [events, tools.saturating_mul(calls), pings] {
            if count > EVENTS_MAX {
                return Err(format!("{count} events are above {EVENTS_MAX}"));
            }
        }
        let giant = match &stream.giant {
            Some(giant) => Some((giant.kib.value(call)?.saturating_mul(1024), giant.event)),
            None => None,
        };
        let text = events.saturating_mul(bytes).max(giant.map_or(0, |(bytes, _)| bytes));
        if text > TEXT_BYTES_MAX {
            return Err(format!("{text} bytes of text are above {TEXT_BYTES_MAX}"));
        }
        let mut words = stream.words.chars().cycle();
        let mut take = |bytes: u64| json_text(&mut words, usize::try_from(bytes).unwrap_or(0));
        let texts: Vec<String> = (0..events).map(|_| take(bytes)).collect();
        Ok(Facts {
            stream,
            model: json!(call.model).to_string(),
            middle: (stream.usage_middle && !texts.is_empty()).then_some(texts.len() / 2),
            texts,
            calls: usize::try_from(calls).unwrap_or(0),
            arguments: tool::pieces(stream.input.as_deref(), usize::try_from(tools).unwrap_or(0)),
            pings: usize::try_from(pings).unwrap_or(0),
            usage: Usage {
                prompt_tokens: stream.prompt_tokens,
                completion_tokens: stream.completion_tokens,
                cached_tokens: stream.cached_tokens,
            },
            asked: call.form.include_usage,
            giant: giant.map(|(bytes, event)| (take(bytes), event)),
        })
    }

    /// Usage half-way.
    pub(super) fn running(&self) -> Usage {
        Usage { completion_tokens: self.usage.completion_tokens / 2, ..self.usage }
    }

    /// Whether the dialect's beginning may name usage.
    pub(super) fn at_start(&self) -> bool {
        self.stream.usage != Report::Never
    }

    /// Whether the final count is reported, `asked` being the dialect's own rule.
    pub(super) fn at_end(&self, asked: bool) -> bool {
        match self.stream.usage {
            Report::Asked => asked,
            Report::Always => true,
            Report::Never | Report::Start => false,
        }
    }

    /// The padding of an event.
    pub(super) fn padding(&self, event: Padded) -> Option<&str> {
        self.giant.as_ref().filter(|(_, padded)| *padded == event).map(|(text, _)| text.as_str())
    }

    /// Whether a ping comes before the content event of this number.
    pub(super) fn ping_before(&self, content: usize) -> bool {
        let every = self.stream.ping_every;
        every > 0 && content > 0 && content.is_multiple_of(every)
    }
}

/// At least one character and about `bytes` bytes, as the inside of a JSON string.
fn json_text(words: &mut impl Iterator<Item = char>, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 8);
    while text.len() < bytes {
        let Some(letter) = words.next() else { break };
        text.push(letter);
    }
    let quoted = json!(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}
