//! The bytes of a run, built once: requests that carry the number of their stream, and the parts
//! of the stream that answers them, the same as the stand-in's `ok`.

use memchr::memmem;

use crate::standin::{self, Dialect};

/// Stands before the number of a stream in the request's body, wherever a gateway puts that body.
const MARK: &[u8] = b"stream number ";

/// Digits of the number: above the streams of any run.
const DIGITS: usize = 7;

/// What the requests say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) host: &'a str,
    pub(super) key: &'a str,
    pub(super) model: &'a str,
    pub(super) body_bytes: usize,
}

/// All bytes of a run.
#[derive(Debug, Default)]
pub(super) struct Text {
    request: Vec<u8>,
    number_at: usize,
    /// Head and preamble as they are sent.
    pub(super) opening: Vec<u8>,
    /// One content event as it is sent.
    pub(super) event: Vec<u8>,
    /// Everything behind the content events, the end of the body included.
    pub(super) tail: Vec<u8>,
    /// The same three as a reader has them once the framing is off.
    pub(super) content: [Vec<u8>; 3],
}

impl Text {
    pub(super) fn new(dialect: Dialect, request: Request<'_>) -> Text {
        let content = standin::stream_parts(request.model, dialect);
        let mut opening = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
            cache-control: no-cache\r\nx-request-id: req_standin\r\n\
            transfer-encoding: chunked\r\n\r\n"
            .to_vec();
        chunk(&content[0], &mut opening);
        let (mut event, mut tail) = (Vec::new(), Vec::new());
        chunk(&content[1], &mut event);
        chunk(&content[2], &mut tail);
        tail.extend_from_slice(b"0\r\n\r\n");
        let request = asking(dialect, request);
        let number_at = memmem::find(&request, MARK).map_or(0, |at| at + MARK.len());
        Text { request, number_at, opening, event, tail, content }
    }

    /// The request for this stream.
    pub(super) fn request(&self, stream: usize) -> Vec<u8> {
        let mut bytes = self.request.clone();
        let number = format!("{stream:0DIGITS$}");
        bytes[self.number_at..self.number_at + DIGITS].copy_from_slice(number.as_bytes());
        bytes
    }

    /// The stream a request is for, once that is there.
    pub(super) fn asked(bytes: &[u8]) -> Option<usize> {
        let at = memmem::find(bytes, MARK)? + MARK.len();
        let digits = std::str::from_utf8(bytes.get(at..at + DIGITS)?).ok()?;
        digits.parse().ok()
    }
}

fn asking(dialect: Dialect, request: Request<'_>) -> Vec<u8> {
    let Request { host, key, model, body_bytes } = request;
    let (path, fields, members) = match dialect {
        Dialect::Messages | Dialect::CountTokens => (
            "/v1/messages",
            "anthropic-version: 2023-06-01\r\n",
            "\"max_tokens\":256,\"stream\":true",
        ),
        Dialect::Chat | Dialect::None => (
            "/v1/chat/completions",
            "",
            "\"max_tokens\":256,\"stream\":true,\"stream_options\":{\"include_usage\":true}",
        ),
    };
    let mark = String::from_utf8_lossy(MARK);
    let model = serde_json::json!(model);
    let before = format!(
        "{{\"model\":{model},\"messages\":[{{\"role\":\"user\",\"content\":\"{mark}{:0DIGITS$}. ",
        0
    );
    let after = format!("\"}}],{members}}}");
    const WORDS: &[u8] = b"The clerk wrote the number beside each name and went on. ";
    let pad = body_bytes.saturating_sub(before.len() + after.len());
    let mut body = before.into_bytes();
    body.extend(WORDS.iter().cycle().take(pad));
    body.extend_from_slice(after.as_bytes());
    let mut bytes = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n{fields}\
         Accept: text/event-stream\r\nAccept-Encoding: gzip, deflate\r\n\
         User-Agent: tollgate-loadtest/0.1\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(&body);
    bytes
}

fn chunk(content: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{:x}\r\n", content.len()).as_bytes());
    out.extend_from_slice(content);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::{Request, Text};
    use crate::standin::Dialect;

    #[test]
    fn a_request_is_json_of_its_size_and_tells_its_stream() {
        for dialect in [Dialect::Chat, Dialect::Messages] {
            let request = Request { host: "a", key: "k", model: "ok", body_bytes: 1024 };
            let text = Text::new(dialect, request);
            for stream in [0, 17, 9_999_999] {
                let bytes = text.request(stream);
                assert_eq!(Text::asked(&bytes), Some(stream));
                let text = String::from_utf8(bytes).unwrap();
                let (head, body) = text.split_once("\r\n\r\n").unwrap();
                assert!(head.ends_with("Content-Length: 1024") && body.len() == 1024);
                let json: serde_json::Value = serde_json::from_str(body).unwrap();
                assert_eq!(json["stream"], true);
            }
            assert_eq!(Text::asked(b"stream number 12"), None);
            let [opening, event, tail] = &text.content;
            let all = String::from_utf8([&opening[..], event, tail].concat()).unwrap();
            assert_eq!(all.matches("The toll").count(), 1, "{all}");
            assert!(all.contains("[DONE]") || all.contains("message_stop"));
            assert!(event.ends_with(b"\n\n") && text.event.ends_with(b"\n\n\r\n"));
        }
    }
}
