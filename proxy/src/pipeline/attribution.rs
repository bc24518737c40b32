//! Who asked and for what, as the record's tail has it: names out of the body, unescaped, and the
//! session that a client names in its head or body.

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

/// Fields by which clients name the session of a call; the first that is there counts.
const SESSION_HINTS: [&[u8]; 5] = [
    b"x-claude-code-session-id",
    b"x-session-affinity",
    b"x-session-id",
    b"session-id",
    b"x-session-hash",
];

/// How good a session hint the field of this name is; the least is the best.
pub(super) fn session_rank(name: &[u8]) -> Option<usize> {
    SESSION_HINTS.iter().position(|hint| hint.eq_ignore_ascii_case(name))
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

/// The tail of a request's record. `hint` is the session as a field of the head names it.
pub(super) fn tail<'b>(
    (asked, sent): (&'b str, &'b str),
    (body, hint): (&'b [u8], &'b [u8]),
    marks: &Marks,
    names: &'b mut Names,
) -> Tail<'b> {
    let Names { session, end_user } = names;
    let end_user = name(body, marks.end_user, end_user);
    let session = hinted(hint)
        .or_else(|| session_in(end_user))
        .unwrap_or_else(|| name(body, marks.session, session));
    Tail {
        model_asked: asked,
        model_sent: sent,
        session,
        end_user,
        metadata: marks.metadata.map_or(&[], |span| span.of(body)),
        ..Tail::default()
    }
}

/// A field's value, if it can be a name.
fn hinted(hint: &[u8]) -> Option<&str> {
    let hint = std::str::from_utf8(hint).ok()?;
    let fits = !hint.is_empty() && hint.len() <= NAME_BYTES_MAX;
    (fits && !hint.chars().any(char::is_control)).then_some(hint)
}

/// The session inside a `metadata.user_id`: clients of the messages dialect put one there, as a
/// member of a JSON object or behind its own word.
fn session_in(user_id: &str) -> Option<&str> {
    let session = if user_id.starts_with('{') {
        let (_, behind) = user_id.split_once("\"session_id\"")?;
        let value = behind.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        let (session, _) = value.split_once('"')?;
        session
    } else {
        let (_, session) = user_id.rsplit_once("_session_")?;
        session
    };
    (!session.is_empty() && !session.contains('\\')).then_some(session)
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

#[cfg(test)]
mod tests {
    use super::*;
    use codec::json::RequestScan;

    fn attributed(hint: &str, body: &str) -> (String, String) {
        let spans = RequestScan::new().finish(body.as_bytes()).unwrap();
        let mut names = Names::default();
        let whole = (body.as_bytes(), hint.as_bytes());
        let tail = tail(("a", "b"), whole, &Marks::of(&spans), &mut names);
        (tail.session.to_owned(), tail.end_user.to_owned())
    }

    #[test]
    fn a_session_is_found_where_clients_put_it() {
        let claude = r#"{\"device_id\":\"d\",\"account_uuid\":\"\",\"session_id\":\"s-1\"}"#;
        let unescaped = claude.replace('\\', "");
        let spaced = claude.replace(':', " : ");
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        let (id, key) = ("\"metadata\":{\"user_id\":", "\"prompt_cache_key\":");
        for (hint, members, session, end_user) in [
            ("", String::new(), "", ""),
            ("h", String::new(), "h", ""),
            ("", format!(",{id}\"{claude}\"}}"), "s-1", &*unescaped),
            ("", format!(",{id}\"{spaced}\"}}"), "s-1", &*unescaped.replace(':', " : ")),
            ("h", format!(",{id}\"{claude}\"}},{key}\"k\""), "h", &*unescaped),
            (
                "",
                format!(",{id}\"user_1_account_2_session_s-2\"}}"),
                "s-2",
                "user_1_account_2_session_s-2",
            ),
            ("", format!(",{key}\"k\\u0031\""), "k1", ""),
            ("", format!(",{id}\"me\"}},{key}\"k\""), "k", "me"),
            (
                "",
                format!(",{id}\"{{\\\"session_id\\\":7}}\"}},{key}\"k\""),
                "k",
                "{\"session_id\":7}",
            ),
            ("", format!(",{id}\"a_session_\"}}"), "", "a_session_"),
            (&*long, format!(",{key}\"k\""), "k", ""),
            ("a\tb", format!(",{key}\"k\""), "k", ""),
        ] {
            let body = format!("{{\"model\":\"m\"{members}}}");
            let wanted = (session.to_owned(), end_user.to_owned());
            assert_eq!(attributed(hint, &body), wanted, "{hint} {body}");
        }
    }

    #[test]
    fn a_hint_is_known_in_any_case_and_the_clients_own_comes_first() {
        assert_eq!(session_rank(b"X-Claude-Code-Session-Id"), Some(0));
        assert!(session_rank(b"x-session-id") < session_rank(b"Session-ID"));
        assert_eq!(session_rank(b"x-request-id"), None);
    }
}
