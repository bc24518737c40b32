//! The head alone → route, framing, credential, and the fields that will go on.
//!
//! Runs without waiting: the field table lives on the stack and is gone when this returns. What a
//! later stage needs of the client's fields is written once, in wire form, into `forward`.
//!
//! It deliberately looks at no byte of the body and decides nothing about the caller.

use super::attribution;
use super::authenticate::Caller;
use super::chain::Chain;
use super::headers::{self, Fate};
use super::query;
use super::routes;
use super::tracing::{self, Begun, Fresh};
use crate::exchange::call::Route;
use crate::exchange::refusal::Refusal;
use codec::http1::{self, Expect, Fields, Framing, Method, RequestHead, connection_lists};

/// What the head says, checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// What is asked for.
    pub route: Route,
    /// Bytes of the head in its buffer.
    pub head_len: usize,
    /// How the body is delimited.
    pub framing: Framing,
    /// Whether the head was answered for `HEAD`.
    pub is_head: bool,
    /// 0 or 1, of HTTP/1.x.
    pub minor: u8,
    /// Whether the client wants the connection to live on.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue`.
    pub expects_continue: bool,
    /// Bytes of `forward` before the field lines: the line of the trace, and the query with its
    /// `?`.
    pub query_len: usize,
    /// Where in `forward` the lines begin that go on only with an unchanged body.
    pub digests_at: usize,
    /// `anthropic-version` was sent: the model list has another shape for such clients, and a
    /// provider that wants one need not be given ours.
    pub anthropic: bool,
}

/// What a later stage needs of the client's own fields, in wire form.
pub(super) struct Kept<'a> {
    /// Query and field lines that go on.
    pub forward: &'a mut Vec<u8>,
    /// The caller's own request id.
    pub caller_id: &'a mut Vec<u8>,
    /// The session as the client names it.
    pub session: &'a mut Vec<u8>,
    /// The credential.
    pub caller: &'a mut Caller,
    /// For a trace that begins here.
    pub fresh: Fresh,
    /// Who this node is in ids.
    pub node: [u8; 3],
}

/// Reads a complete head. Nothing of the request before is left in `kept`: whoever waits for a head
/// has forgotten it.
pub(super) fn request(
    bytes: &[u8],
    head: &RequestHead,
    fields: &Fields,
    request_bytes_max: u64,
    mut kept: Kept<'_>,
) -> Result<Request, Refusal> {
    let begun = tracing::begin(bytes, fields, kept.fresh, kept.forward);
    let request = read(bytes, head, (fields, begun), request_bytes_max, &mut kept);
    if request.is_err()
        && let Some(id) = fields.first(bytes, "x-request-id")
    {
        // A refusal is told with the caller's own id too, however early it came.
        kept.caller_id.clear();
        kept.caller_id.extend_from_slice(id);
    }
    request
}

fn read(
    bytes: &[u8],
    head: &RequestHead,
    (fields, begun): (&Fields, Begun),
    request_bytes_max: u64,
    kept: &mut Kept<'_>,
) -> Result<Request, Refusal> {
    let target = head.target.path().unwrap_or_default().of(bytes);
    let split = target.iter().position(|b| *b == b'?').unwrap_or(target.len());
    let (path, query) = target.split_at(split);
    let route = routes::of_path(path).ok_or(Refusal::NotFound)?;
    routes::check_method(route, head.method, head.upgrade)?;
    if head.expect == Expect::Other {
        return Err(Refusal::ExpectationFailed);
    }
    if head.authorizations > 1 {
        let why = "More than one Authorization field was sent.";
        return Err(Refusal::InvalidRequest { param: None, why });
    }
    check_framing(route, head.framing, request_bytes_max)?;
    query::write(query, kept.forward);
    let mut request = Request {
        route,
        head_len: head.head_len,
        framing: head.framing,
        is_head: head.method == Method::Head,
        minor: head.minor,
        keep_alive: head.keep_alive,
        expects_continue: head.expect == Expect::Continue,
        query_len: kept.forward.len(),
        digests_at: 0,
        anthropic: false,
    };
    read_fields(bytes, (fields, begun), &mut request, kept)?;
    Ok(request)
}

fn check_framing(route: Route, framing: Framing, max: u64) -> Result<(), Refusal> {
    match (route, framing) {
        (_, Framing::Length(n)) if n > max => Err(Refusal::TooLarge),
        (route, Framing::None) if route.upstream_path().is_some() => Err(Refusal::LengthRequired),
        _ => Ok(()),
    }
}

fn read_fields(
    bytes: &[u8],
    (fields, begun): (&Fields, Begun),
    request: &mut Request,
    kept: &mut Kept<'_>,
) -> Result<(), Refusal> {
    let Kept { forward, caller_id, session, caller, node, .. } = kept;
    let mut chain = Chain::default();
    let mut credential = Credential::default();
    let mut session_rank = usize::MAX;
    let mut digests = false;
    for line in fields.lines() {
        let (name, value) = (line.name.of(bytes), line.value.of(bytes));
        match headers::of_request(name) {
            Fate::Forward | Fate::IfUnchanged if connection_lists(bytes, fields, name) => {}
            Fate::Forward => {
                request.anthropic |= name.eq_ignore_ascii_case(b"anthropic-version");
                push_line(forward, name, value);
            }
            Fate::IfUnchanged => digests = true,
            Fate::Consume if name.eq_ignore_ascii_case(b"x-request-id") => {
                caller_id.clear();
                caller_id.extend_from_slice(value);
            }
            Fate::Consume => match attribution::session_rank(name) {
                None => credential.offer(name, value)?,
                Some(rank) if rank < session_rank => {
                    session_rank = rank;
                    session.clear();
                    session.extend_from_slice(value);
                }
                Some(_) => {}
            },
            Fate::Strip => {
                check_coding(name, value)?;
                chain.note(name, value);
            }
            Fate::Rewrite => {}
        }
    }
    if chain.is_round(*node) {
        return Err(Refusal::LoopDetected);
    }
    chain.write(forward);
    tracing::hand_on(bytes, fields, begun, forward);
    request.digests_at = forward.len();
    if digests {
        for (name, value) in fields.iter(bytes) {
            let digest = headers::of_request(name) == Fate::IfUnchanged;
            if digest && !connection_lists(bytes, fields, name) {
                push_line(forward, name, value);
            }
        }
    }
    caller.present(credential.best.map_or(&[], |(_, value)| value));
    Ok(())
}

/// The parser has refused every byte that could end a line, so a line goes on as it is.
fn push_line(forward: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    forward.extend_from_slice(name);
    forward.extend_from_slice(b": ");
    forward.extend_from_slice(value);
    forward.extend_from_slice(b"\r\n");
}

fn check_coding(name: &[u8], value: &[u8]) -> Result<(), Refusal> {
    let coded = name.eq_ignore_ascii_case(b"content-encoding")
        && !value.is_empty()
        && !value.eq_ignore_ascii_case(b"identity");
    if coded {
        let why = "Send the body without a content coding.";
        return Err(Refusal::UnsupportedMedia { why });
    }
    Ok(())
}

/// The best credential offered so far; a lower rank wins.
#[derive(Default)]
struct Credential<'b> {
    best: Option<(u8, &'b [u8])>,
    /// One bit a rank that was offered.
    offered: u8,
}

impl<'b> Credential<'b> {
    /// `x-tollgate-key` stands beside a caller's own key and so comes first; of the others any
    /// client sends only one. The same field twice leaves open who is asking.
    fn offer(&mut self, name: &[u8], value: &'b [u8]) -> Result<(), Refusal> {
        const RANKED: [&[u8]; 5] =
            [b"x-tollgate-key", b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key"];
        let Some(rank) = RANKED.iter().position(|known| known.eq_ignore_ascii_case(name)) else {
            return Ok(());
        };
        let rank = rank as u8;
        let value = if rank == 1 { bearer(value) } else { Some(value) };
        let Some(value) = value.filter(|value| !value.is_empty()) else { return Ok(()) };
        if self.offered & 1 << rank != 0 {
            let why = "The same credential field was sent twice.";
            return Err(Refusal::InvalidRequest { param: None, why });
        }
        self.offered |= 1 << rank;
        if self.best.is_none_or(|(best, _)| rank < best) {
            self.best = Some((rank, value));
        }
        Ok(())
    }
}

/// The token of `Bearer <token>`, the scheme in any case.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Parses what has arrived of a head.
pub(super) fn head(
    scan: &mut http1::HeadScan,
    bytes: &[u8],
    fields: &mut Fields,
) -> Result<Option<RequestHead>, Refusal> {
    let broken = |e: http1::HeadError| Refusal::BadHead { status: e.status(), why: e.text() };
    scan.request(bytes, fields).map_err(broken)
}
