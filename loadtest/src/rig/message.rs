//! The two messages of a run, built once: a chat request as the usual SDK sends it and the
//! completion that answers it, the same as the stand-in's `ok`.

use crate::{mix, standin};

/// What the request says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) host: &'a str,
    pub(super) key: &'a str,
    pub(super) model: &'a str,
    pub(super) body_bytes: usize,
}

/// The bytes of the request.
pub(super) fn request(request: Request<'_>) -> Vec<u8> {
    let Request { host, key, model, body_bytes } = request;
    let body = mix::chat_body(model, body_bytes);
    let mut bytes = format!(
        "POST /v1/chat/completions HTTP/1.1\r\n\
         Host: {host}\r\n\
         Accept-Encoding: gzip, deflate\r\n\
         Connection: keep-alive\r\n\
         Accept: application/json\r\n\
         Content-Type: application/json\r\n\
         User-Agent: OpenAI/Python 1.99.9\r\n\
         X-Stainless-Lang: python\r\n\
         X-Stainless-Package-Version: 1.99.9\r\n\
         X-Stainless-OS: Linux\r\n\
         X-Stainless-Arch: x64\r\n\
         X-Stainless-Runtime: CPython\r\n\
         X-Stainless-Runtime-Version: 3.13.5\r\n\
         Authorization: Bearer {key}\r\n\
         X-Stainless-Async: false\r\n\
         x-stainless-retry-count: 0\r\n\
         x-stainless-read-timeout: 600\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(&body);
    bytes
}

/// The bytes of the answer with a body of `body_bytes`.
pub(super) fn answer(body_bytes: usize) -> Vec<u8> {
    let body = standin::usual(body_bytes);
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req_standin\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(&body);
    bytes
}
