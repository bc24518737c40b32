//! Heads as they are: a chat call of the OpenAI SDK for Python (captured; the key is made up), and
//! an answer's of about the fields a large provider sends.

use codec::http1::{Fields, HeadScan};
use std::hint::black_box;

/// 17 fields.
pub(crate) const REQUEST: &str = concat!(
    "POST /v1/chat/completions HTTP/1.1\r\n",
    "Host: localhost:4180\r\n",
    "Accept-Encoding: gzip, deflate\r\n",
    "Connection: keep-alive\r\n",
    "authorization: Bearer tg-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
    "accept: application/json\r\n",
    "content-type: application/json\r\n",
    "user-agent: OpenAI/Python 3.57.0\r\n",
    "x-stainless-lang: python\r\n",
    "x-stainless-package-version: 3.57.0\r\n",
    "x-stainless-os: Linux\r\n",
    "x-stainless-arch: x64\r\n",
    "x-stainless-runtime: CPython\r\n",
    "x-stainless-runtime-version: 3.11.7\r\n",
    "x-stainless-async: false\r\n",
    "x-stainless-retry-count: 0\r\n",
    "x-stainless-read-timeout: 600\r\n",
    "Content-Length: 1945\r\n\r\n",
);

/// 15 fields.
pub(crate) const ANSWER: &str = concat!(
    "HTTP/1.1 200 OK\r\n",
    "Date: Mon, 16 Nov 2026 10:00:00 GMT\r\n",
    "Content-Type: application/json\r\n",
    "Content-Length: 821\r\n",
    "Connection: keep-alive\r\n",
    "access-control-expose-headers: X-Request-ID\r\n",
    "openai-organization: example\r\n",
    "openai-processing-ms: 412\r\n",
    "openai-version: 2020-10-01\r\n",
    "x-ratelimit-limit-requests: 10000\r\n",
    "x-ratelimit-limit-tokens: 2000000\r\n",
    "x-ratelimit-remaining-requests: 9999\r\n",
    "x-ratelimit-remaining-tokens: 1998000\r\n",
    "x-ratelimit-reset-requests: 6ms\r\n",
    "x-request-id: req_0f6d6f3e7a3e4a5f9d2e0c6f2a9b1e77\r\n",
    "strict-transport-security: max-age=31536000\r\n\r\n",
);

/// The table of fields is made anew for each head, as a connection does.
pub(crate) fn parse_request() -> bool {
    let mut fields = Fields::new();
    let parsed = HeadScan::new().request(black_box(REQUEST.as_bytes()), &mut fields);
    black_box(&fields);
    matches!(parsed, Ok(Some(head)) if head.head_len == REQUEST.len())
}

/// The same for an answer.
pub(crate) fn parse_answer() -> bool {
    let mut fields = Fields::new();
    let parsed = HeadScan::new().response(black_box(ANSWER.as_bytes()), &mut fields, false);
    black_box(&fields);
    matches!(parsed, Ok(Some(head)) if head.status == 200)
}
