//! Request and response heads: httparse, and what it lets through closed again.
//!
//! httparse takes a bare LF for any line end, any number of empty lines before the start line,
//! UTF-8 in the target and any three digits as a status; none of that passes here. It already
//! refuses folding, white space before a colon, a bare CR, control bytes and repeated spaces in the
//! start line.
//! A head is judged from left to right and the bounds are judged on what has arrived, so a head
//! that comes in pieces is refused for the same reason as one that comes whole.
//! Deliberately does not route, does not know credentials and does not decide what is forwarded.

use core::mem::MaybeUninit;

use httparse::{Error, Header, ParserConfig, Request, Response, Status};

use super::facts::Facts;
use super::target;
use super::{Expect, FIELDS_MAX, Fields, Framing, HeadError, Span, Target};

/// Bytes of a head, its empty lines and its blank line included. More than any client of a model
/// sends, and what a connection may hold before it has said who it is.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Bytes of a start line with its CR LF.
pub const START_LINE_BYTES_MAX: usize = 8 * 1024;

/// Empty lines skipped before a start line: RFC 9112 asks for one, and one to spare.
pub const EMPTY_LINES_MAX: usize = 2;

/// The method of a request. Names are case-sensitive: `post` is [`Method::Other`].
#[expect(missing_docs, reason = "the variants are the methods' own names")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    Get,
    Post,
    Head,
    Options,
    Put,
    Delete,
    Patch,
    Connect,
    Trace,
    Other,
}

/// A complete, valid request head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// Bytes up to and with the blank line; the body starts there.
    pub head_len: usize,
    /// The method.
    pub method: Method,
    /// The method as written, of interest for [`Method::Other`].
    pub method_text: Span,
    /// The target by form.
    pub target: Target,
    /// 0 or 1, of HTTP/1.x.
    pub minor: u8,
    /// How the body is delimited; never [`Framing::UntilClose`].
    pub framing: Framing,
    /// Whether the client wants the connection to live on.
    pub keep_alive: bool,
    /// What the client waits for before it sends the body.
    pub expect: Expect,
    /// Whether the client asks for another protocol (`Upgrade` and `Connection: upgrade`).
    pub upgrade: bool,
    /// Whether there is a `Host`; always so in HTTP/1.1.
    pub host: bool,
    /// Number of `Authorization` lines. More than one leaves open who is asking: refuse.
    pub authorizations: u8,
}

/// A complete, valid response head, interim ones included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Bytes up to and with the blank line; the body starts there.
    pub head_len: usize,
    /// 100 to 599. Below 200 the final head is still to come, except for 101.
    pub status: u16,
    /// 0 or 1, of HTTP/1.x.
    pub minor: u8,
    /// How the body is delimited.
    pub framing: Framing,
    /// Whether the connection may carry another request afterwards.
    pub keep_alive: bool,
    /// The reason phrase, maybe empty, maybe with bytes above 0x7f.
    pub reason: Span,
}

impl ResponseHead {
    /// Whether another head follows this one. 101 ends HTTP on the connection and is not interim.
    #[must_use]
    pub fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }
}

/// Parses a request head. `None`: it is not complete, nothing is wrong so far.
///
/// # Errors
/// The first fault from the left. The connection is of no further use.
pub fn parse_request(buf: &[u8], fields: &mut Fields) -> Result<Option<RequestHead>, HeadError> {
    fields.seal(0, None);
    let Some(arrived) = Arrived::new(buf)? else { return Ok(None) };
    let mut slots = [const { MaybeUninit::<Header<'_>>::uninit() }; FIELDS_MAX];
    let mut parsed = Request::new(&mut []);
    let outcome = ParserConfig::default().parse_request_with_uninit_headers(
        &mut parsed,
        arrived.bytes,
        &mut slots,
    );
    let len = match outcome {
        Ok(Status::Complete(len)) => len,
        Ok(Status::Partial) => return arrived.incomplete(),
        Err(error) => return Err(arrived.request_fault(error, &parsed)),
    };
    let (Some(name), Some(path), Some(minor)) = (parsed.method, parsed.path, parsed.version) else {
        return Err(HeadError::RequestLine);
    };
    let start = arrived.skipped + name.len() + 1;
    let lines =
        Lines { buf, first: start + path.len() + VERSION_LINE_TAIL, end: arrived.skipped + len };
    let mut facts = Facts::new(minor);
    lines.store(parsed.headers, fields, &mut facts)?;
    let method = method(name.as_bytes());
    let target = target::classify(path.as_bytes(), start, method)?;
    if minor == 1 && !facts.host {
        return Err(HeadError::HostMissing);
    }
    fields.seal(parsed.headers.len(), facts.first_connection);
    Ok(Some(RequestHead {
        head_len: lines.end,
        method,
        method_text: Span::new(arrived.skipped, name.len()).ok_or(HeadError::HeadTooLarge)?,
        target,
        minor,
        framing: facts.framing(Framing::None),
        keep_alive: facts.keep_alive(),
        expect: facts.expect(),
        upgrade: facts.upgrade(),
        host: facts.host,
        authorizations: facts.authorizations,
    }))
}

/// Parses a response head. `None`: it is not complete, nothing is wrong so far.
///
/// # Errors
/// The first fault from the left. The connection is of no further use.
pub fn parse_response(
    buf: &[u8],
    fields: &mut Fields,
    request_was_head: bool,
) -> Result<Option<ResponseHead>, HeadError> {
    fields.seal(0, None);
    let Some(arrived) = Arrived::new(buf)? else { return Ok(None) };
    let mut slots = [const { MaybeUninit::<Header<'_>>::uninit() }; FIELDS_MAX];
    let mut parsed = Response::new(&mut []);
    let outcome = ParserConfig::default().parse_response_with_uninit_headers(
        &mut parsed,
        arrived.bytes,
        &mut slots,
    );
    let len = match outcome {
        Ok(Status::Complete(len)) => len,
        Ok(Status::Partial) => return arrived.incomplete(),
        Err(error) => return Err(arrived.response_fault(error)),
    };
    let (Some(status), Some(minor)) = (parsed.code, parsed.version) else {
        return Err(HeadError::StatusLine);
    };
    let line_end = memchr::memchr(b'\n', arrived.bytes).ok_or(HeadError::LineEnd)?;
    let lines = Lines { buf, first: arrived.skipped + line_end + 1, end: arrived.skipped + len };
    let mut facts = Facts::new(minor);
    lines.store(parsed.headers, fields, &mut facts)?;
    if !(100..600).contains(&status) {
        return Err(HeadError::StatusLine);
    }
    fields.seal(parsed.headers.len(), facts.first_connection);
    let bodyless = request_was_head || status < 200 || status == 204 || status == 304;
    let framing = if bodyless { Framing::None } else { facts.framing(Framing::UntilClose) };
    let reason_start = STATUS_LINE_REASON.min(line_end - 1);
    Ok(Some(ResponseHead {
        head_len: lines.end,
        status,
        minor,
        framing,
        keep_alive: facts.keep_alive() && framing != Framing::UntilClose && status != 101,
        reason: Span::new(arrived.skipped + reason_start, line_end - 1 - reason_start)
            .ok_or(HeadError::HeadTooLarge)?,
    }))
}

/// ` HTTP/1.1` CR LF behind the target.
const VERSION_LINE_TAIL: usize = 11;

/// `HTTP/1.1 200 ` before the reason.
const STATUS_LINE_REASON: usize = 13;

/// The part of the buffer that may belong to this head.
struct Arrived<'b> {
    /// From the start line on, no more than the bounds allow.
    bytes: &'b [u8],
    /// Empty lines before it, in bytes.
    skipped: usize,
    /// What is wrong if these bytes do not complete the head.
    bound: Option<HeadError>,
}

// === impl Arrived ===

impl<'b> Arrived<'b> {
    /// `None` while there is nothing but empty lines.
    #[inline]
    fn new(buf: &'b [u8]) -> Result<Option<Self>, HeadError> {
        let mut rest = buf;
        let mut skipped = 0;
        while let [b'\r' | b'\n', ..] = rest {
            match rest {
                [b'\r'] => return Ok(None),
                [b'\r', b'\n', tail @ ..] if skipped < EMPTY_LINES_MAX * 2 => rest = tail,
                [b'\r', b'\n', ..] => return Err(HeadError::EmptyLines),
                _ => return Err(HeadError::LineEnd),
            }
            skipped += 2;
        }
        if rest.is_empty() {
            return Ok(None);
        }
        if let Some(line) = rest.get(..START_LINE_BYTES_MAX)
            && memchr::memchr(b'\n', line).is_none()
        {
            let bound = Some(HeadError::StartLineTooLong);
            return Ok(Some(Self { bytes: line, skipped, bound }));
        }
        let room = HEAD_BYTES_MAX - skipped;
        let (bytes, bound) = match rest.get(..room) {
            Some(bytes) => (bytes, Some(HeadError::HeadTooLarge)),
            None => (rest, None),
        };
        Ok(Some(Self { bytes, skipped, bound }))
    }

    fn incomplete<T>(&self) -> Result<Option<T>, HeadError> {
        self.bound.map_or(Ok(None), Err)
    }

    #[cold]
    fn request_fault(&self, error: Error, parsed: &Request<'_, '_>) -> HeadError {
        if self.bytes.first() == Some(&TLS_HANDSHAKE) {
            return HeadError::Tls;
        }
        if self.bytes.starts_with(HTTP2_PREFACE) {
            return HeadError::Http2;
        }
        match (error, parsed.method, parsed.path) {
            (Error::Version, Some(method), Some(path)) => {
                self.version_fault(method.len() + path.len() + 2)
            }
            (Error::Token | Error::Status, ..) => HeadError::RequestLine,
            (error, ..) => line_fault(error),
        }
    }

    #[cold]
    fn response_fault(&self, error: Error) -> HeadError {
        match error {
            Error::Version => self.version_fault(0),
            Error::Token | Error::Status => HeadError::StatusLine,
            error => line_fault(error),
        }
    }

    /// Tells a version that we do not speak from one that is none. Looks no further than the first
    /// byte that is wrong, since the next one may not have arrived.
    fn version_fault(&self, at: usize) -> HeadError {
        match self.bytes.get(at..).and_then(|text| text.strip_prefix(b"HTTP/")) {
            Some([b'1', b'.', b'2'..=b'9', ..]) => HeadError::VersionUnsupported,
            Some([b'0' | b'2'..=b'9', ..]) => HeadError::VersionUnsupported,
            _ => HeadError::VersionSyntax,
        }
    }
}

/// First byte of a TLS handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

/// Enough of the preface to tell it from a request with the method `PRI`.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2";

fn line_fault(error: Error) -> HeadError {
    match error {
        Error::HeaderName => HeadError::FieldName,
        Error::HeaderValue => HeadError::FieldValue,
        Error::TooManyHeaders => HeadError::TooManyFields,
        Error::NewLine => HeadError::LineEnd,
        Error::Status | Error::Token => HeadError::RequestLine,
        Error::Version => HeadError::VersionSyntax,
    }
}

/// The field lines of a complete head: `first` is the offset of the first one, `end` that of the
/// body.
struct Lines<'b> {
    buf: &'b [u8],
    first: usize,
    end: usize,
}

// === impl Lines ===

impl Lines<'_> {
    /// Turns the parsed lines into offsets, checks that each line before them ended in CR LF, and
    /// takes their facts.
    #[inline]
    fn store(
        &self,
        headers: &[Header<'_>],
        fields: &mut Fields,
        facts: &mut Facts,
    ) -> Result<(), HeadError> {
        let base = self.buf.as_ptr().addr();
        for (index, (slot, header)) in fields.slots().iter_mut().zip(headers).enumerate() {
            let name = header.name.as_bytes();
            slot.name = Span::within(base, name);
            slot.value = Span::within(base, header.value);
            self.check_line_end_before(slot.name.start())?;
            if Facts::may_concern(name) {
                facts.note(index, name, header.value)?;
            }
        }
        if headers.is_empty() {
            self.check_line_end_before(self.first)?;
        }
        self.check_line_end_before(self.end)?;
        self.check_line_end_before(self.end.wrapping_sub(2))?;
        Ok(())
    }

    /// The byte two before a line's start is the CR of the line above: httparse has already seen
    /// that the one before it is LF.
    #[inline]
    fn check_line_end_before(&self, start: usize) -> Result<(), HeadError> {
        match self.buf.get(start.wrapping_sub(2)) {
            Some(b'\r') => Ok(()),
            _ => Err(HeadError::LineEnd),
        }
    }
}

fn method(name: &[u8]) -> Method {
    match name {
        b"GET" => Method::Get,
        b"POST" => Method::Post,
        b"HEAD" => Method::Head,
        b"OPTIONS" => Method::Options,
        b"PUT" => Method::Put,
        b"DELETE" => Method::Delete,
        b"PATCH" => Method::Patch,
        b"CONNECT" => Method::Connect,
        b"TRACE" => Method::Trace,
        _ => Method::Other,
    }
}

#[cfg(test)]
mod tests;
