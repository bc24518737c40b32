//! The whole gateway, from a client's bytes to the upstream's and back: every promise on the
//! scripted transport, on io_uring and on epoll.

#[cfg(test)]
mod accepting;
#[cfg(test)]
mod answers;
#[cfg(test)]
mod bodies;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod breaker;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod corpus_client;
#[cfg(test)]
mod corpus_events;
#[cfg(test)]
mod corpus_upstream;
#[cfg(test)]
mod counts;
#[cfg(test)]
mod credentials;
#[cfg(test)]
mod deadlines;
#[cfg(test)]
mod draining;
#[cfg(test)]
mod early;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod events;
#[cfg(test)]
mod failover;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod garbled;
#[cfg(test)]
mod governed;
#[cfg(test)]
mod headers;
#[cfg(test)]
mod heartbeats;
mod hostile;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod retry;
#[cfg(test)]
mod security;
#[cfg(test)]
mod seeds;
#[cfg(test)]
mod stream_life;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod traces;
#[cfg(test)]
mod upstreams;

use gateway_tests::scenario::{Step, send};

/// A completion with usage: one token in, two out.
const COMPLETION: &str = concat!(
    r#"{"id":"c","object":"chat.completion","model":"a","choices":[{"index":0,"message":"#,
    r#"{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"#,
    r#""usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#
);

/// The body most requests have.
const BODY: &str = r#"{"model":"a","messages":[]}"#;

/// A request with this body, and `fields` (each with its CR LF) in its head.
fn post(fields: &str, body: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: gw.test\r\nAuthorization: Bearer sk-test\r\n\
         Content-Type: application/json\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// An upstream's answer with this JSON body.
fn json(status: &str, fields: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{fields}Content-Length: {}\r\n\r\n\
         {body}",
        body.len()
    )
}

/// The usual answer.
fn ok() -> String {
    json("200 OK", "", COMPLETION)
}

/// One attempt a candidate: what an upstream does is seen as it is.
const ONE_ATTEMPT: &str = "[retry]\nattempts = 1";

/// A client that sends one request and reads its answer.
fn call(request: impl AsRef<[u8]>) -> Vec<Step> {
    vec![send(request), Step::Answer]
}
