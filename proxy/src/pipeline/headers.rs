//! What happens to each header field, both ways. The table of `docs/reference/headers.md` is this
//! table; a test holds them together.
//!
//! Everything not named here is forwarded as it came. Fields that `Connection` lists are stripped
//! whatever they are.

/// What becomes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Goes on as it came.
    Forward,
    /// Is for us; the other side never sees it.
    Consume,
    /// Another value goes on in its place.
    Rewrite,
    /// Goes nowhere.
    Strip,
    /// Describes the body's bytes: goes on only if they did not change.
    IfUnchanged,
}

/// Letters of a name that are looked at: more than any name or beginning below has, so that a
/// longer one is never taken for one of them, and still known by how it begins.
const NAME_MAX: usize = 40;

/// Of a field a client sent.
pub(super) fn of_request(name: &[u8]) -> Fate {
    let mut lower = [0; NAME_MAX];
    let lower = lowered(name, &mut lower);
    match lower {
        b"host" | b"content-length" | b"accept-encoding" => Fate::Rewrite,
        b"authorization" | b"x-api-key" | b"api-key" | b"x-goog-api-key" | b"x-tollgate-key" => {
            Fate::Consume
        }
        b"x-request-id" | b"traceparent" | b"tracestate" | b"expect" => Fate::Consume,
        b"x-claude-code-session-id"
        | b"x-session-affinity"
        | b"x-session-id"
        | b"session-id"
        | b"x-session-hash" => Fate::Consume,
        b"content-md5" | b"digest" | b"content-digest" | b"repr-digest" => Fate::IfUnchanged,
        b"cookie" | b"cookie2" | b"forwarded" | b"x-real-ip" | b"via" | b"content-encoding" => {
            Fate::Strip
        }
        _ if is_hop_by_hop(lower) => Fate::Strip,
        _ if lower.starts_with(b"x-forwarded-") => Fate::Strip,
        _ if lower.starts_with(b"x-tollgate-") => Fate::Strip,
        _ => Fate::Forward,
    }
}

/// Of a field an upstream answered with.
pub(super) fn of_response(name: &[u8]) -> Fate {
    let mut lower = [0; NAME_MAX];
    let lower = lowered(name, &mut lower);
    match lower {
        b"content-length" => Fate::Rewrite,
        b"x-request-id" | b"request-id" => Fate::Forward,
        b"set-cookie" | b"set-cookie2" | b"alt-svc" => Fate::Strip,
        b"traceparent" | b"tracestate" | b"traceresponse" => Fate::Strip,
        _ if is_hop_by_hop(lower) => Fate::Strip,
        // What pages of other origins may do with a key of ours is not the provider's to grant.
        _ if lower.starts_with(b"access-control-") => Fate::Strip,
        _ if lower.starts_with(b"x-ratelimit-") => Fate::Strip,
        _ if lower.starts_with(b"anthropic-ratelimit-") => Fate::Strip,
        _ if lower.starts_with(b"x-tollgate-") => Fate::Strip,
        _ => Fate::Forward,
    }
}

/// Fields that are about one connection (RFC 9110 §7.6.1).
fn is_hop_by_hop(lower: &[u8]) -> bool {
    matches!(
        lower,
        b"connection"
            | b"keep-alive"
            | b"proxy-connection"
            | b"proxy-authenticate"
            | b"proxy-authorization"
            | b"te"
            | b"trailer"
            | b"transfer-encoding"
            | b"upgrade"
            | b"http2-settings"
    )
}

fn lowered<'a>(name: &[u8], into: &'a mut [u8; NAME_MAX]) -> &'a [u8] {
    let len = name.len().min(NAME_MAX);
    let (lower, _) = into.split_at_mut(len);
    lower.copy_from_slice(&name[..len]);
    lower.make_ascii_lowercase();
    // Servers that hand fields on as variables cannot tell the two apart: what is not passed on
    // under one spelling is not under the other.
    lower.iter_mut().filter(|byte| **byte == b'_').for_each(|byte| *byte = b'-');
    lower
}
