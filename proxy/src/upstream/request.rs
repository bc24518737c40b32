//! The head of a request to a provider.

use crate::config::snapshot::{Credential, Provider, ProviderKind};
use codec::http1;
use codec::trace_context;

/// What goes into the head beside the provider's own facts.
pub struct Parts<'a> {
    /// Path behind the provider's base path, from its slash on.
    pub path: &'a str,
    /// Query with its `?`, or nothing.
    pub query: &'a [u8],
    /// The line of the trace.
    pub trace: &'a [u8],
    /// What this attempt is called in the trace.
    pub span: u64,
    /// The client's field lines that go on, each with its CR LF.
    pub lines: &'a [u8],
    /// `anthropic-version` is among them.
    pub has_version: bool,
    /// Our request id.
    pub request_id: &'a [u8],
    /// 1 for the first attempt.
    pub attempt: u8,
    /// Bytes of the body.
    pub body_len: u64,
}

/// What a provider of kind anthropic is told if the client names no version: it takes no call
/// without one.
const VERSION: &[u8] = b"anthropic-version: 2023-06-01\r\n";

/// Appends the head of a `POST`.
pub fn write_head(
    out: &mut Vec<u8>,
    provider: &Provider,
    credential: &Credential,
    parts: &Parts<'_>,
) {
    out.extend_from_slice(b"POST ");
    out.extend_from_slice(provider.base_path.as_bytes());
    out.extend_from_slice(parts.path.as_bytes());
    out.extend_from_slice(parts.query);
    out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    out.extend_from_slice(provider.authority.as_bytes());
    out.extend_from_slice(match provider.kind {
        ProviderKind::OpenAi => b"\r\nAuthorization: Bearer ".as_slice(),
        ProviderKind::Anthropic => b"\r\nx-api-key: ",
    });
    out.extend_from_slice(credential.secret.reveal().as_bytes());
    out.extend_from_slice(b"\r\nAccept-Encoding: identity\r\nx-tollgate-request-id: ");
    out.extend_from_slice(parts.request_id);
    out.extend_from_slice(b"\r\nx-tollgate-attempt: ");
    http1::decimal(out, u64::from(parts.attempt));
    out.extend_from_slice(b"\r\n");
    let at = out.len();
    out.extend_from_slice(parts.trace);
    trace_context::set_span(out.get_mut(at..).unwrap_or_default(), parts.span);
    if provider.kind == ProviderKind::Anthropic && !parts.has_version {
        out.extend_from_slice(VERSION);
    }
    out.extend_from_slice(parts.lines);
    http1::content_length(out, parts.body_len);
    out.extend_from_slice(b"\r\n");
}
