//! Scenarios → scripts. All checks are here, so that a script cannot fail while it runs. Bounds:
//! `BODY_BYTES_MAX` a message.

use std::fmt;
use std::rc::Rc;

use super::completion::{self, Built};
use super::scenario::{Amount, Answer, Body, Count, Framing, Keep, Scenario, Step};
use super::script::{Action, Play, Rounds, Script, Usage};
use crate::wire::{self, Head};

/// Largest message: above any answer a gateway should hold, small enough to build at once.
const BODY_BYTES_MAX: u64 = 64 << 20;

/// Longest wait: above every deadline a gateway could have by default (ten minutes).
const WAIT_MS_MAX: u64 = 900_000;

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

/// What the model name adds to the scenario.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Call<'a> {
    pub(super) model: &'a str,
    /// The number in the name of a family.
    pub(super) n: Option<u64>,
    /// Overrides of the scenario's own.
    pub(super) split: Option<usize>,
    pub(super) pace_ms: Option<u64>,
}

/// Compiles `scenario` for one model name.
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
            Step::Read(bytes) if at == 0 => draft.early = Some(amount(bytes, call)?),
            Step::Read(_) => return Err("reads after its first step".to_owned()),
            Step::Answer(answer) => draft.answer(answer, call)?,
            Step::Send(text) => draft.send(&completion::text_bytes(text)),
            Step::WaitMs(ms) => draft.act(Action::WaitMs(amount(ms, call)?.min(WAIT_MS_MAX))),
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
    early: Option<u64>,
    usage: Option<Usage>,
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

    fn answer(&mut self, answer: &Answer, call: Call<'_>) -> Result<(), String> {
        let size = body_size(&answer.body, call)?;
        let Built { bytes: body, usage } = completion::build(&answer.body, call.model, size);
        let head = head(answer, body.len());
        let framed = framed(answer, body)?;
        let total = head.len() + framed.len();
        let kept = match answer.keep {
            Keep::All => total,
            Keep::Head => head.len(),
            Keep::HalfBody => head.len() + framed.len() / 2,
            Keep::AllButOne => total - 1,
            Keep::Bytes(bytes) => bytes.min(total),
        };
        if self.usage.is_none() {
            self.usage = usage;
        }
        let mut message = head;
        message.extend_from_slice(&framed);
        self.send(&message[..kept]);
        Ok(())
    }

    fn finish(mut self) -> Result<Script, String> {
        self.flush();
        if self.early.is_some() && !self.ended() {
            return Err("leaves a request half read, so it must end the connection".to_owned());
        }
        let (status, whole) = as_read(&self.actions);
        Ok(Script {
            usage: self.usage.filter(|_| whole),
            actions: self.actions,
            early: self.early,
            status,
            whole,
            split: None,
            pace_ms: 0,
        })
    }
}

/// What a strict reader makes of all bytes sent: the status of the first answer that is not an
/// interim one (0 if its head is not whole) and whether that answer is whole.
fn as_read(actions: &[Action]) -> (u16, bool) {
    let mut bytes = Vec::new();
    for action in actions {
        if let Action::Send(part) = action {
            bytes.extend_from_slice(part);
        }
    }
    let mut rest = bytes.as_slice();
    loop {
        let Some(head) = Head::find(rest) else { return (0, false) };
        let Some(status) = head.status() else { return (0, false) };
        rest = &rest[head.len()..];
        if matches!(status, 100 | 102..200) {
            continue;
        }
        let Ok(framing) = wire::Framing::of_answer(&head, status) else { return (status, false) };
        let mut reader = wire::BodyReader::new(framing);
        if reader.feed(rest, |_| {}).is_err() {
            return (status, false);
        }
        let ends_in_order = matches!(actions.last(), Some(Action::Close));
        return (status, reader.done() || (ends_in_order && reader.ends_with_close()));
    }
}

fn amount(amount: &Amount, call: Call<'_>) -> Result<u64, String> {
    match amount {
        Amount::Fixed(n) => Ok(*n),
        Amount::Named(name) if name == "{n}" => {
            call.n.ok_or_else(|| "uses {n} and has no {n} in its name".to_owned())
        }
        Amount::Named(other) => Err(format!("{other:?} is neither a number nor \"{{n}}\"")),
    }
}

fn body_size(body: &Body, call: Call<'_>) -> Result<usize, String> {
    let size = match body {
        Body::Completion(completion) => amount(&completion.size, call)?,
        Body::Gzip(inner) => return body_size(inner, call),
        Body::Error(_) | Body::Text(_) => 0,
    };
    if size > BODY_BYTES_MAX {
        return Err(format!("size {size} is above {BODY_BYTES_MAX}"));
    }
    usize::try_from(size).map_err(|_| format!("size {size}"))
}

fn head(answer: &Answer, length: usize) -> Vec<u8> {
    let status = answer.status;
    let mut head = format!("{} {status}", answer.version).into_bytes();
    match answer.reason.as_deref().unwrap_or_else(|| reason(status)) {
        "" => {}
        reason => head.extend_from_slice(format!(" {reason}").as_bytes()),
    }
    head.extend_from_slice(b"\r\n");
    let mut field = |name: &str, value: &[u8]| {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    };
    if let Some(content_type) = &answer.content_type {
        field("content-type", content_type.as_bytes());
    }
    for (name, value) in &answer.headers {
        let value = completion::text_bytes(value);
        match std::str::from_utf8(&value) {
            Ok(text) => field(name, text.replace("{length}", &length.to_string()).as_bytes()),
            Err(_) => field(name, &value),
        }
    }
    match answer.framing {
        Framing::Length => field("content-length", length.to_string().as_bytes()),
        Framing::Chunked => field("transfer-encoding", b"chunked"),
        Framing::None => {}
    }
    head.extend_from_slice(b"\r\n");
    head
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
        let size = format!("{:x}{}\r\n", chunk.len(), answer.chunk_extension);
        out.extend_from_slice(size.as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("0{}\r\n", answer.chunk_extension).as_bytes());
    out.extend_from_slice(answer.trailers.as_bytes());
    out.extend_from_slice(b"\r\n");
    Ok(out)
}

fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        302 => "Found",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "Unknown",
    }
}
