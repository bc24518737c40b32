//! Who asked and for what, as the record's tail has it: names out of the body, unescaped.

use super::body::Received;
use codec::json::{RequestSpans, StringSpan, unescape_into};
use store::tail::{NAME_BYTES_MAX, Tail};

/// Room for names that are spelled with escapes.
pub(super) struct Names {
    session: [u8; NAME_BYTES_MAX],
    end_user: [u8; NAME_BYTES_MAX],
}

impl Default for Names {
    fn default() -> Names {
        Names { session: [0; NAME_BYTES_MAX], end_user: [0; NAME_BYTES_MAX] }
    }
}

/// The tail of a request's record.
pub(super) fn tail<'b>(
    (asked, sent): (&'b str, &'b str),
    received: &'b Received<'_>,
    spans: &RequestSpans,
    names: &'b mut Names,
) -> Tail<'b> {
    let body = received.body();
    let Names { session, end_user } = names;
    Tail {
        model_asked: asked,
        model_sent: sent,
        session: name(body, spans.prompt_cache_key, session),
        end_user: name(body, spans.user.or(spans.metadata_user_id), end_user),
        metadata: spans.metadata.map_or(&[], |span| span.of(body)),
        ..Tail::default()
    }
}

/// A name as its characters; one that does not fit its room unescaped is left out.
fn name<'b>(body: &'b [u8], span: Option<StringSpan>, room: &'b mut [u8]) -> &'b str {
    let Some(span) = span else { return "" };
    let raw = span.text.of(body);
    if span.escaped {
        return unescape_into(raw, room).unwrap_or_default();
    }
    // The scan has checked the body's UTF-8.
    std::str::from_utf8(raw).unwrap_or_default()
}
