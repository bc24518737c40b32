//! Streams that the tests of streams share: one of each dialect, and how an upstream frames them.
//!
//! Model `a` costs 10 pico-dollars a token in and 100 out; of `claude-a` the tokens of each kind
//! cost what the price list of the setting says.

use crate::{messages, post};
use gateway_tests::scenario::{Act, say};

/// A stream of the chat dialect: one token in, two out.
pub(crate) const CHAT: &str = concat!(
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n",
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"h\"}}]}\n\n",
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"i\"}}]}\n\n",
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2,",
    "\"total_tokens\":3}}\n\n",
    "data: [DONE]\n\n",
);

/// What it costs.
pub(crate) const CHAT_COST: u64 = 210;

/// A stream of the messages dialect: three tokens in, two out.
pub(crate) const MESSAGES: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":",
    "\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,",
    "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,",
    "\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":",
    "\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

/// What it costs.
pub(crate) const MESSAGES_COST: u64 = 3 * 1_000 + 2 * 100_000;

/// How an upstream frames its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length,
    Chunked,
    Close,
}

pub(crate) const FRAMINGS: [Framing; 3] = [Framing::Length, Framing::Chunked, Framing::Close];

/// The head of a stream.
pub(crate) fn head(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{fields}\r\n")
}

/// The head of one that comes in chunks.
pub(crate) fn chunked() -> String {
    head("Transfer-Encoding: chunked\r\n")
}

/// A piece of a body as one chunk.
pub(crate) fn chunk(piece: impl AsRef<[u8]>) -> Vec<u8> {
    let piece = piece.as_ref();
    [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()
}

/// The last one.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Head and body; in chunks, one an event.
pub(crate) fn framed(framing: Framing, body: &[u8]) -> Vec<u8> {
    match framing {
        Framing::Length => {
            [head(&format!("Content-Length: {}\r\n", body.len())).as_bytes(), body].concat()
        }
        Framing::Close => [head("").as_bytes(), body].concat(),
        Framing::Chunked => {
            let mut out = chunked().into_bytes();
            for event in events(body) {
                out.extend(chunk(event));
            }
            out.extend_from_slice(LAST_CHUNK);
            out
        }
    }
}

/// The same of a text.
pub(crate) fn streamed(framing: Framing, body: &str) -> String {
    String::from_utf8(framed(framing, body.as_bytes())).unwrap()
}

/// What an upstream does that sends this whole stream and keeps its connection where it can.
pub(crate) fn sent(framing: Framing, body: &[u8]) -> Vec<Act> {
    let mut acts = vec![say(framed(framing, body))];
    acts.extend((framing == Framing::Close).then_some(Act::Fin));
    acts
}

/// A stream cut behind each of its blank lines, whatever its line ends are.
pub(crate) fn events(body: &[u8]) -> Vec<&[u8]> {
    let (mut out, mut start) = (Vec::new(), 0);
    for at in 0..body.len() {
        let seen = &body[start..=at];
        if [b"\n\n".as_slice(), b"\r\n\r\n", b"\r\r"].iter().any(|end| seen.ends_with(end)) {
            out.push(seen);
            start = at + 1;
        }
    }
    if start < body.len() {
        out.push(&body[start..]);
    }
    out
}

/// What a client sees of a chat stream that did not ask for usage.
pub(crate) fn without_usage(body: &str) -> String {
    let of_usage = |event: &&[u8]| {
        let text = String::from_utf8_lossy(event);
        text.contains("\"usage\":{") && text.contains("\"choices\":[]")
    };
    let events = events(body.as_bytes()).into_iter().filter(|event| !of_usage(event));
    String::from_utf8(events.collect::<Vec<_>>().concat()).unwrap()
}

/// A request for a stream of the chat dialect; `more` are further members of its body.
pub(crate) fn ask(more: &str) -> String {
    post("", &format!(r#"{{"model":"a","messages":[],"stream":true{more}}}"#))
}

/// The same that asks to see the usage.
pub(crate) fn ask_with_usage() -> String {
    ask(r#","stream_options":{"include_usage":true}"#)
}

/// The same request for another model than `a`.
pub(crate) fn named(request: &str, model: &str) -> String {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let body = body.replace("\"a\"", &format!("\"{model}\""));
    let head = head.split("Content-Length").next().unwrap();
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// A request for a stream of the messages dialect.
pub(crate) fn ask_messages() -> String {
    let body = messages::ASK.replace("\"stream\":false", "\"stream\":true");
    messages::ask_at("/v1/messages", "", &body)
}
