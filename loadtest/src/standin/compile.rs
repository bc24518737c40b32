//! Scenarios → scripts. All checks are here, so that a script cannot fail while it runs. Bounds:
//! `BODY_BYTES_MAX` a message.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use super::ask::Dialect;
use super::call::Call;
use super::completion::{self, Built, Wanted};
use super::message::{self, Head, Message, Piece};
use super::scenario::{
    Amount, Answer, Body, Completion, Count, ErrorBody, Framing, Keep, Scenario, Step,
};
use super::script::{self, Action, Mark, Play, Rounds, Script, Usage};
use super::stream::{self, Report, Stream};
use super::tool;

/// Largest message: above any answer a gateway should hold, small enough to build at once.
const BODY_BYTES_MAX: u64 = 64 << 20;

/// Tool calls of one whole answer: above what any model asks for at once.
const CALLS_MAX: u64 = 1000;

/// Longest wait: above every deadline a gateway could have by default (ten minutes).
const WAIT_MS_MAX: u64 = 900_000;

/// Bytes of a completion for which its stream has one content event: about what one takes.
const EVENT_BYTES: u64 = 256;

/// Content events of a completion from which on its stream sends several a write.
const FEW_EVENTS: u64 = 64;

/// What is wrong with a scenario.
#[derive(Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The scenario.
    pub name: String,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "scenario {}: {}", self.name, self.reason)
    }
}

impl std::error::Error for ScenarioError {}

/// Compiles `scenario` for one model name in one form.
pub(super) fn play(scenario: &Scenario, call: Call<'_>) -> Result<Play, ScenarioError> {
    let fail = |reason: String| ScenarioError { name: scenario.name.clone(), reason };
    let lists: Vec<&[Step]> = match (scenario.steps.as_slice(), scenario.rounds.as_slice()) {
        ([], []) => return Err(fail("has neither steps nor rounds".to_owned())),
        (steps, []) => vec![steps],
        ([], rounds) => rounds.iter().map(Vec::as_slice).collect(),
        _ => return Err(fail("has both steps and rounds".to_owned())),
    };
    let split = call.split.or(scenario.split);
    if split == Some(0) {
        return Err(fail("split = 0".to_owned()));
    }
    let mut scripts = Vec::with_capacity(lists.len());
    for steps in &lists {
        let mut script = script(steps, call).map_err(fail)?;
        script.split = split;
        script.pace_ms = call.pace_ms.unwrap_or(scenario.pace_ms).min(WAIT_MS_MAX);
        scripts.push(Rc::new(script));
    }
    let rounds = match (lists.len(), scenario.count) {
        (1, _) => Rounds::Same,
        (_, Count::Call) => Rounds::Call,
        (_, Count::Connection) => Rounds::Connection,
        (_, Count::Model) => Rounds::Model,
    };
    Ok(Play { name: scenario.name.as_str().into(), rounds, scripts })
}

fn script(steps: &[Step], call: Call<'_>) -> Result<Script, String> {
    let mut draft = Draft::default();
    for (at, step) in steps.iter().enumerate() {
        if draft.ended() {
            return Err("has steps after the end of the connection".to_owned());
        }
        match step {
            Step::Read(bytes) if at == 0 => draft.early = Some(bytes.value(call)?),
            Step::Read(_) => return Err("reads after its first step".to_owned()),
            Step::Answer(answer) => draft.message(answer_message(answer, call)?),
            Step::Stream(stream) => draft.message(stream_message(stream, call)?),
            Step::Send(text) => draft.send(&completion::text_bytes(text)),
            Step::WaitMs(ms) => draft.wait(ms.value(call)?),
            Step::Close => draft.act(Action::Close),
            Step::CloseHard => draft.act(Action::CloseHard),
            Step::Reset => draft.act(Action::Reset),
            Step::Hang => draft.act(Action::Hang),
        }
    }
    draft.finish()
}

#[derive(Default)]
struct Draft {
    actions: Vec<Action>,
    /// Sends in a row become one write.
    pending: Vec<u8>,
    /// Bytes sent, pending ones included.
    sent: u64,
    marks: Vec<Mark>,
    hidden: Option<Range<u64>>,
    early: Option<u64>,
}

impl Draft {
    fn ended(&self) -> bool {
        matches!(
            self.actions.last(),
            Some(Action::Close | Action::CloseHard | Action::Reset | Action::Hang)
        )
    }

    fn send(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        self.sent += bytes.len() as u64;
    }

    fn wait(&mut self, ms: u64) {
        self.act(Action::WaitMs(ms.min(WAIT_MS_MAX)));
    }

    fn act(&mut self, action: Action) {
        self.flush();
        self.actions.push(action);
    }

    fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.actions.push(Action::Send(std::mem::take(&mut self.pending).into()));
        }
    }

    /// The head goes out with the first write of the body.
    fn message(&mut self, message: Message) {
        self.send(&message.head);
        let (mut first, many) = (true, message.pieces.len() > 1);
        for piece in message.pieces {
            match piece {
                Piece::Bytes(bytes, marks) => {
                    if !std::mem::take(&mut first) {
                        self.flush();
                    }
                    let before = self.sent;
                    let moved = marks.into_iter().map(|mark| Mark { at: before + mark.at, ..mark });
                    self.marks.extend(moved);
                    self.send(&bytes);
                }
                Piece::WaitMs(ms) => self.wait(ms),
            }
        }
        if many {
            self.flush();
        }
        self.hidden = self.hidden.take().or(message.hidden);
    }

    fn finish(mut self) -> Result<Script, String> {
        self.flush();
        if self.early.is_some() && !self.ended() {
            return Err("leaves a request half read, so it must end the connection".to_owned());
        }
        let read = script::read(&self.actions, u64::MAX, self.hidden.as_ref());
        let usage = self.marks.iter().rev().find_map(|mark| mark.usage);
        Ok(Script {
            usage: usage.map(|(usage, _)| usage).filter(|_| read.whole),
            actions: self.actions,
            marks: self.marks,
            hidden: self.hidden,
            early: self.early,
            read,
            split: None,
            pace_ms: 0,
        })
    }
}

/// An answer as it is asked for: a completion becomes a stream if one is wanted.
fn answer_message(answer: &Answer, call: Call<'_>) -> Result<Message, String> {
    if call.form.stream && call.form.dialect != Dialect::CountTokens && answer.status == 200 {
        let (body, gzip) = match &answer.body {
            Body::Gzip(inner) => (inner.as_ref(), true),
            body => (body, false),
        };
        if let Body::Completion(completion) = body {
            let stream = streamed(answer, completion, gzip, call)?;
            let mut message = stream::message(&stream, call)?;
            message.keep(answer.keep);
            return Ok(message);
        }
    }
    whole_message(answer, call)
}

/// The stream of the same usage and about the same size.
fn streamed(
    answer: &Answer,
    completion: &Completion,
    gzip: bool,
    call: Call<'_>,
) -> Result<Stream, String> {
    let events = (completion.size.value(call)? / EVENT_BYTES).max(1);
    let pieces = if completion.calls.value(call)? == 0 { 0 } else { tool::PIECES as u64 };
    let framing = if answer.version == "HTTP/1.0" { Framing::None } else { answer.framing };
    Ok(Stream {
        version: answer.version.clone(),
        reason: answer.reason.clone(),
        headers: answer.headers.clone(),
        framing: if framing == Framing::Length { Framing::Chunked } else { framing },
        chunk_extension: answer.chunk_extension.clone(),
        trailers: answer.trailers.clone(),
        events: Amount::Fixed(events),
        tools: Amount::Fixed(pieces),
        calls: completion.calls.clone(),
        tool: completion.tool.clone(),
        input: completion.input.clone(),
        finish_reason: completion.finish_reason.clone(),
        usage: if completion.usage { Report::Asked } else { Report::Never },
        prompt_tokens: completion.prompt_tokens,
        completion_tokens: completion.completion_tokens,
        cached_tokens: completion.cached_tokens,
        gzip,
        batch: Amount::Fixed(if events > FEW_EVENTS { 16 } else { 1 }),
        ..Stream::default()
    })
}

/// A stream as it is asked for: without that, a completion of its usage, or its error.
fn stream_message(stream: &Stream, call: Call<'_>) -> Result<Message, String> {
    let wanted = call.form.stream && call.form.dialect != Dialect::CountTokens;
    if wanted || stream.raw.is_some() {
        return stream::message(stream, call);
    }
    // what a stream of this call could not be must not be known only once it is asked for
    stream::message(stream, call)?;
    let mut answer = Answer { headers: stream.headers.clone(), ..Answer::default() };
    if let Some(fault) = &stream.error {
        answer.status = fault.status;
        answer.body = Body::Error(ErrorBody {
            message: fault.message.clone(),
            kind: fault.kind.clone(),
            code: fault.code.clone(),
            usage: false,
        });
    } else {
        answer.keep = if stream.cut.is_some() { Keep::HalfBody } else { Keep::All };
        answer.headers.retain(|(name, _)| name != "content-encoding");
        answer.body = Body::Completion(Completion {
            usage: stream.usage != Report::Never,
            prompt_tokens: stream.prompt_tokens,
            completion_tokens: stream.completion_tokens,
            cached_tokens: stream.cached_tokens,
            ..called(stream, call)?
        });
    }
    whole_message(&answer, call)
}

/// A completion with the tool calls of a stream, and its finish if there are any.
fn called(stream: &Stream, call: Call<'_>) -> Result<Completion, String> {
    if stream.tools.value(call)? == 0 {
        return Ok(Completion::default());
    }
    Ok(Completion {
        calls: stream.calls.clone(),
        tool: stream.tool.clone(),
        input: stream.input.clone(),
        finish_reason: stream.finish_reason.clone(),
        ..Completion::default()
    })
}

fn whole_message(answer: &Answer, call: Call<'_>) -> Result<Message, String> {
    let wanted = Wanted {
        model: call.model,
        dialect: call.form.dialect,
        status: answer.status,
        size: body_size(&answer.body, call)?,
        calls: tool_calls(&answer.body, call)?,
    };
    let Built { bytes: body, usage } = completion::build(&answer.body, &wanted);
    let head = Head {
        version: &answer.version,
        status: answer.status,
        reason: answer.reason.as_deref(),
        content_type: answer.content_type.as_deref(),
        headers: &answer.headers,
        framing: answer.framing,
        length: body.len(),
    };
    let head = head.bytes();
    let framed = framed(answer, body)?;
    let told = usage.map(|usage: Usage| (usage, true));
    let mark = Mark { at: framed.len() as u64, usage: told, ..Mark::default() };
    let pieces = vec![Piece::Bytes(framed, vec![mark])];
    let mut message = Message { head, pieces, hidden: None };
    message.keep(answer.keep);
    Ok(message)
}

fn body_size(body: &Body, call: Call<'_>) -> Result<usize, String> {
    let size = match body {
        Body::Completion(completion) => completion.size.value(call)?,
        Body::Gzip(inner) => return body_size(inner, call),
        Body::Error(_) | Body::Text(_) => 0,
    };
    if size > BODY_BYTES_MAX {
        return Err(format!("size {size} is above {BODY_BYTES_MAX}"));
    }
    usize::try_from(size).map_err(|_| format!("size {size}"))
}

fn tool_calls(body: &Body, call: Call<'_>) -> Result<usize, String> {
    let calls = match body {
        Body::Completion(completion) => completion.calls.value(call)?,
        Body::Gzip(inner) => return tool_calls(inner, call),
        Body::Error(_) | Body::Text(_) => 0,
    };
    if calls > CALLS_MAX {
        return Err(format!("{calls} calls are above {CALLS_MAX}"));
    }
    usize::try_from(calls).map_err(|_| format!("{calls} calls"))
}

fn framed(answer: &Answer, body: Vec<u8>) -> Result<Vec<u8>, String> {
    if answer.framing != Framing::Chunked {
        return Ok(body);
    }
    if answer.chunk_bytes == 0 {
        return Err("chunk-bytes = 0".to_owned());
    }
    let mut out = Vec::with_capacity(body.len() + body.len() / answer.chunk_bytes * 8 + 64);
    for chunk in body.chunks(answer.chunk_bytes) {
        message::chunk(chunk, &answer.chunk_extension, &mut out);
    }
    message::last_chunk(&answer.chunk_extension, &answer.trailers, &mut out);
    Ok(out)
}
