//! Who asked and for what, as the record's tail has it: names out of the body, unescaped.

use codec::json::{RequestSpans, Span, StringSpan, unescape_into};
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

/// Where the names stand in the body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    session: Option<StringSpan>,
    end_user: Option<StringSpan>,
    metadata: Option<Span>,
}

impl Marks {
    /// Those of a request.
    pub(super) fn of(spans: &RequestSpans) -> Marks {
        Marks {
            session: spans.prompt_cache_key,
            end_user: spans.user.or(spans.metadata_user_id),
            metadata: spans.metadata,
        }
    }
}

/// The tail of a request's record.
pub(super) fn tail<'b>(
    (asked, sent): (&'b str, &'b str),
    body: &'b [u8],
    marks: &Marks,
    names: &'b mut Names,
) -> Tail<'b> {
    let Names { session, end_user } = names;
    Tail {
        model_asked: asked,
        model_sent: sent,
        session: name(body, marks.session, session),
        end_user: name(body, marks.end_user, end_user),
        metadata: marks.metadata.map_or(&[], |span| span.of(body)),
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
