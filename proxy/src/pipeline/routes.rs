//! Path and method → route. Paths are matched as the bytes they are: never decoded, never
//! normalised, so that nothing can be one thing here and another upstream.

use crate::exchange::call::{Dialect, Health, Route};
use crate::exchange::refusal::Refusal;
use codec::http1::Method;

/// The route of a path, whatever the method.
pub(super) fn of_path(path: &[u8]) -> Option<Route> {
    Some(match path {
        b"/v1/chat/completions" => Route::ChatCompletions,
        b"/v1/models" => Route::Models,
        b"/v1/responses" => Route::Responses,
        b"/v1/messages" => Route::Messages,
        b"/v1/messages/count_tokens" => Route::CountTokens,
        b"/healthz" => Route::Health(Health::Live),
        b"/readyz" => Route::Health(Health::Ready),
        b"/startupz" => Route::Health(Health::Started),
        _ => return unserved(path),
    })
}

/// Routes that clients of the dialects use and that come later.
fn unserved(path: &[u8]) -> Option<Route> {
    // An encoded or dotted segment could name another resource upstream than it does here.
    if path.contains(&b'%') || path.windows(2).any(|two| two == b".." || two == b"//") {
        return None;
    }
    if path.starts_with(b"/v1/messages/") {
        return Some(Route::Unserved(Dialect::Messages));
    }
    if path.starts_with(b"/v1/responses/") {
        return Some(Route::Unserved(Dialect::Responses));
    }
    if path.starts_with(b"/v1beta/") {
        return Some(Route::Unserved(Dialect::Gemini));
    }
    if let Some(model) = path.strip_prefix(b"/v1/models/") {
        let gemini = model.contains(&b':');
        return Some(Route::Unserved(if gemini { Dialect::Gemini } else { Dialect::Chat }));
    }
    const OPENAI: [&[u8]; 8] = [
        b"/v1/completions",
        b"/v1/embeddings",
        b"/v1/moderations",
        b"/v1/images/",
        b"/v1/audio/",
        b"/v1/files",
        b"/v1/batches",
        b"/v1/realtime",
    ];
    let known = OPENAI.iter().any(|prefix| path.starts_with(prefix));
    known.then_some(Route::Unserved(Dialect::Chat))
}

/// Whether the route takes the method.
pub(super) fn check_method(route: Route, method: Method, upgrade: bool) -> Result<(), Refusal> {
    let refused = |allow| Err(Refusal::MethodNotAllowed { allow });
    match (route, method) {
        (Route::ChatCompletions | Route::Messages | Route::CountTokens, Method::Post) => Ok(()),
        (Route::ChatCompletions | Route::Messages | Route::CountTokens, _) => refused("POST"),
        (Route::Models | Route::Health(_), Method::Get | Method::Head) => Ok(()),
        (Route::Models | Route::Health(_), _) => refused("GET, HEAD"),
        // A client that probes for a socket must be told at once to fall back to POST.
        (Route::Responses, Method::Get) if upgrade => Err(Refusal::UpgradeRequired),
        (Route::Responses, Method::Post) => Err(Refusal::NotImplemented),
        (Route::Responses, _) => refused("POST"),
        (Route::Unserved(_), _) => Err(Refusal::NotImplemented),
    }
}

/// The dialect to answer in when the head itself is broken: what its first line seems to ask for.
pub(super) fn guess_dialect(head: &[u8]) -> Dialect {
    guess(head).map_or(Dialect::Chat, Route::dialect)
}

/// The route that the first line of a head seems to ask for.
pub(super) fn guess(head: &[u8]) -> Option<Route> {
    let line = head.split(|b| *b == b'\r' || *b == b'\n').find(|line| !line.is_empty());
    let path = line.and_then(|line| line.split(|b| *b == b' ').nth(1)).unwrap_or_default();
    let path = path.split(|b| *b == b'?').next().unwrap_or_default();
    of_path(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_as_bytes() {
        let unserved = |d| Some(Route::Unserved(d));
        for (path, route) in [
            ("/v1/chat/completions", Some(Route::ChatCompletions)),
            ("/v1/chat/completions/", None),
            ("/V1/chat/completions", None),
            ("/v1/chat%2Fcompletions", None),
            ("/v1/models", Some(Route::Models)),
            ("/v1/models/gpt-x", unserved(Dialect::Chat)),
            ("/v1/models/g:generateContent", unserved(Dialect::Gemini)),
            ("/v1/models/..%2f..%2fadmin", None),
            ("/v1beta/models/ok%2F..%2Fadmin:generateContent", None),
            ("/v1beta/models//ok:generateContent", None),
            ("/v1beta/models/ok:generateContent", unserved(Dialect::Gemini)),
            ("/v1/messages", Some(Route::Messages)),
            ("/v1/messages/", unserved(Dialect::Messages)),
            ("/v1/messages/count_tokens", Some(Route::CountTokens)),
            ("/v1/messages/count_tokens/", unserved(Dialect::Messages)),
            ("/v1/messages/../messages", None),
            ("/v1/messages/batches", unserved(Dialect::Messages)),
            ("/v1/embeddings", unserved(Dialect::Chat)),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(of_path(path.as_bytes()), route, "{path}");
        }
    }

    #[test]
    fn a_socket_probe_is_told_to_fall_back() {
        assert_eq!(
            check_method(Route::Responses, Method::Get, true),
            Err(Refusal::UpgradeRequired)
        );
        assert_eq!(
            check_method(Route::Responses, Method::Get, false),
            Err(Refusal::MethodNotAllowed { allow: "POST" })
        );
    }

    #[test]
    fn a_broken_head_is_answered_in_the_dialect_it_seems_to_speak() {
        for (head, dialect) in [
            ("POST /v1/messages?beta=true HTTP/9.9\r\n", Dialect::Messages),
            ("\r\nPOST /v1/responses HTTP/1.1\r\nX Y: 1\r\n", Dialect::Responses),
            ("\x16\x03\x01", Dialect::Chat),
            ("", Dialect::Chat),
        ] {
            assert_eq!(guess_dialect(head.as_bytes()), dialect, "{head}");
        }
    }
}
