//! The bytes of a class's request, built once before the run, and what its answer is held against.

use std::ops::Range;

use super::book::Outcome;
use super::class::{Class, Key, Leave, Spoken};
use super::content::{Kind, Seen};
use crate::standin::{Digest, Known};

/// A well-formed key that no gateway knows.
const WRONG_KEY: &str = "tg-wrongwrongwrongwrongwrongwrongwr";

/// What the run gives to all classes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared<'a> {
    pub(super) host: &'a str,
    pub(super) key: &'a str,
    pub(super) model: &'a str,
    pub(super) model_prefix: &'a str,
    /// The same for the classes that speak messages.
    pub(super) messages_prefix: &'a str,
    pub(super) body_bytes: usize,
}

/// A request ready to be sent.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub(super) bytes: Vec<u8>,
    /// How much of it is sent.
    pub(super) limit: usize,
    /// Answers it should get.
    pub(super) answers: u32,
    /// It says that nothing follows it on its connection.
    pub(super) last: bool,
    pub(super) piece: usize,
    pub(super) every_ms: u64,
    pub(super) leave: Option<Leave>,
    pub(super) leave_after_ms: u64,
    pub(super) reset: bool,
    stream: bool,
    /// Status and content of each answer the stand-in may give; `None` compares nothing.
    known: Option<Vec<(u16, Digest)>>,
}

/// Builds the request of a class; with `known` its answers are compared with what is known.
pub(super) fn prepare(class: &Class, common: Shared<'_>, known: Option<&mut Known>) -> Prepared {
    let request = &class.request;
    let (head, body) = message(class, common);
    let head_len = head.len();
    let copies = request.copies.unwrap_or(1).max(1);
    let mut bytes = head;
    bytes.extend_from_slice(&body);
    let one = bytes.len();
    let bytes = bytes.repeat(copies as usize);
    let limit = match request.leave {
        Some(Leave::InHead) => head_len / 2,
        Some(Leave::InBody) => head_len + (one - head_len) / 2,
        Some(Leave::BeforeAnswer | Leave::InAnswer) | None => bytes.len(),
    };
    Prepared {
        limit,
        answers: copies,
        last: request.line.as_deref().is_some_and(|line| line.ends_with("HTTP/1.0"))
            || request.fields.as_deref().is_some_and(|fields| fields.contains("Connection: close")),
        piece: request.piece.unwrap_or(usize::MAX).max(1),
        every_ms: request.every_ms,
        leave: request.leave,
        leave_after_ms: request.leave_after_ms,
        reset: request.reset,
        stream: request.stream,
        known: known.map(|known| {
            let model = request.model.as_deref().unwrap_or(common.model);
            let dialect = request.dialect.dialect();
            known.answers(model, dialect, request.stream, request.include_usage)
        }),
        bytes,
    }
}

fn message(class: &Class, common: Shared<'_>) -> (Vec<u8>, Vec<u8>) {
    let request = &class.request;
    let prefix = match (request.dialect, &request.model) {
        // the run's own model is given as it is to be sent
        (Spoken::Chat, None) => "",
        (Spoken::Chat, Some(_)) => common.model_prefix,
        (Spoken::Messages | Spoken::CountTokens, _) => common.messages_prefix,
    };
    let model = format!("{prefix}{}", request.model.as_deref().unwrap_or(common.model));
    let size = request.body_bytes.unwrap_or(common.body_bytes);
    let (usual_line, usual_body) = match request.dialect {
        Spoken::Chat => {
            let body = chat_body_with(&model, size, chat_members(request));
            ("POST /v1/chat/completions HTTP/1.1", body)
        }
        Spoken::Messages => {
            ("POST /v1/messages HTTP/1.1", messages_body(&model, size, Some(request.stream)))
        }
        Spoken::CountTokens => {
            ("POST /v1/messages/count_tokens HTTP/1.1", messages_body(&model, size, None))
        }
    };
    let body = match &request.body {
        Some(body) => body.replace("{model}", &model).into_bytes(),
        None => usual_body,
    };
    let line = request.line.as_deref().unwrap_or(usual_line);
    let mut head = format!("{line}\r\nHost: {}\r\n", common.host);
    let key = match request.key {
        Key::Given => Some(common.key),
        Key::Wrong => Some(WRONG_KEY),
        Key::None => None,
    };
    if let Some(key) = key {
        head.push_str(&format!("Authorization: Bearer {key}\r\n"));
    }
    if request.dialect != Spoken::Chat {
        head.push_str("anthropic-version: 2023-06-01\r\n");
    }
    head.push_str("Accept: application/json\r\nContent-Type: application/json\r\n");
    head.push_str("User-Agent: tollgate-loadtest/0.1\r\nAccept-Encoding: gzip, deflate\r\n");
    if request.pad_field > 0 {
        head.push_str(&format!("X-Pad: {}\r\n", "a".repeat(request.pad_field)));
    }
    if let Some(fields) = &request.fields {
        let fields = fields.replace("{length}", &body.len().to_string());
        head.push_str(&fields.replace("{key}", common.key));
    }
    let body = if request.chunked {
        head.push_str("Transfer-Encoding: chunked\r\n");
        chunked(&body)
    } else {
        if !request.no_length {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        body
    };
    head.push_str("\r\n");
    (head.into_bytes(), body)
}

/// A chat request with a system message, three turns and two tools, padded to `size` bytes. This
/// is the shape and size that the peers were measured with.
pub(crate) fn chat_body(model: &str, size: usize) -> Vec<u8> {
    chat_body_with(model, size, "\"stream\":false")
}

fn chat_members(request: &super::class::Request) -> &'static str {
    match (request.stream, request.include_usage) {
        (false, _) => "\"stream\":false",
        (true, false) => "\"stream\":true",
        (true, true) => "\"stream\":true,\"stream_options\":{\"include_usage\":true}",
    }
}

fn chat_body_with(model: &str, size: usize, members: &str) -> Vec<u8> {
    let model = serde_json::json!(model).to_string();
    let before = format!(
        "{{\"model\":{model},\"messages\":[\
         {{\"role\":\"system\",\"content\":\"You keep the books of a toll road.\"}},\
         {{\"role\":\"user\",\"content\":\"How many carts passed?\"}},\
         {{\"role\":\"assistant\",\"content\":\"Seventeen, and two came back.\"}},\
         {{\"role\":\"user\",\"content\":\""
    );
    let after = format!(
        "{}{members}}}",
        "\"}],\"tools\":[\
         {\"type\":\"function\",\"function\":{\"name\":\"count_carts\",\"description\":\
         \"Counts the carts of a day\",\"parameters\":{\"type\":\"object\",\"properties\":\
         {\"day\":{\"type\":\"string\"},\"gate\":{\"type\":\"integer\"}},\"required\":[\"day\"]}}},\
         {\"type\":\"function\",\"function\":{\"name\":\"open_gate\",\"description\":\
         \"Opens one gate\",\"parameters\":{\"type\":\"object\",\"properties\":\
         {\"gate\":{\"type\":\"integer\"}},\"required\":[\"gate\"]}}}],\
         \"tool_choice\":\"auto\",\"temperature\":0.2,\"max_tokens\":256,"
    );
    padded(before, size, &after)
}

/// The same as messages; without `stream` a count of its tokens is asked for.
fn messages_body(model: &str, size: usize, stream: Option<bool>) -> Vec<u8> {
    let model = serde_json::json!(model).to_string();
    let before = format!(
        "{{\"model\":{model},\"system\":[{{\"type\":\"text\",\"text\":\
         \"You keep the books of a toll road.\"}}],\"messages\":[\
         {{\"role\":\"user\",\"content\":\"How many carts passed?\"}},\
         {{\"role\":\"assistant\",\"content\":\"Seventeen, and two came back.\"}},\
         {{\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":\""
    );
    let members = stream
        .map_or_else(String::new, |stream| format!(",\"max_tokens\":256,\"stream\":{stream}"));
    let after = format!(
        "\"}}]}}],\"tools\":[{{\"name\":\"count_carts\",\"description\":\
         \"Counts the carts of a day\",\"input_schema\":{{\"type\":\"object\",\"properties\":\
         {{\"day\":{{\"type\":\"string\"}}}}}}}}]\
         {members}}}"
    );
    padded(before, size, &after)
}

fn padded(before: String, size: usize, after: &str) -> Vec<u8> {
    const TEXT: &[u8] = b"The clerk wrote \\\"paid\\\" beside each name and went on. ";
    let pad = size.saturating_sub(before.len() + after.len());
    let mut bytes = before.into_bytes();
    bytes.extend(TEXT.iter().cycle().take(pad - pad % TEXT.len()));
    // whole sentences only: a cut escape would not be JSON
    bytes.extend(std::iter::repeat_n(b'.', pad % TEXT.len()));
    bytes.extend_from_slice(after.as_bytes());
    bytes
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in body.chunks(700) {
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

impl Prepared {
    /// Whether the content of its answers matters.
    pub(super) fn looks(&self) -> bool {
        self.stream || self.known.is_some()
    }

    /// What a whole answer is. Answers of 200 are the upstream's; others may be the gateway's own.
    pub(super) fn outcome(&self, status: u16, seen: Option<Seen>) -> Outcome {
        let Some(seen) = seen.filter(|_| status == 200) else { return Outcome::Status(status) };
        let good = self.known.as_ref().is_none_or(|known| known.contains(&(200, seen.content)));
        match seen.kind {
            // an error may be the gateway's, behind what the upstream had sent
            Kind::Failed if self.stream => Outcome::StreamError,
            _ if !good => Outcome::Differs,
            Kind::Terminated if self.stream => Outcome::Stream,
            Kind::Open if self.stream => Outcome::StreamOpen,
            Kind::Plain | Kind::Terminated | Kind::Open | Kind::Failed => Outcome::Status(status),
        }
    }

    /// The bytes of the next write, from `sent` on.
    pub(super) fn next(&self, sent: usize) -> Range<usize> {
        sent..sent.saturating_add(self.piece).min(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::{chat_body, messages_body};

    #[test]
    fn the_body_is_json_of_the_size_with_tools() {
        for size in [1100, 1101, 2048, 2049, 65_536] {
            let body = chat_body("o\"k", size);
            assert_eq!(body.len(), size);
            let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(json["model"], "o\"k");
            assert_eq!(json["tools"].as_array().unwrap().len(), 2);
            assert_eq!(json["messages"].as_array().unwrap().len(), 4);
        }
        for (size, stream) in [(1100, Some(true)), (2049, Some(false)), (4096, None)] {
            let body = messages_body("o\"k", size, stream);
            assert_eq!(body.len(), size);
            let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(json["model"], "o\"k");
            assert_eq!(json["stream"].as_bool(), stream);
            assert_eq!(json["messages"].as_array().unwrap().len(), 3);
        }
    }
}
