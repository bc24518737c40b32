//! What went wrong with an attempt, as a row of the walk's table, and what each row says.
//!
//! [`Fault::of`] classifies an upstream's answer by its status and by the error in it: an error
//! that comes inside a 200, as the first event of a stream or as its body, counts as the status
//! it stands for. It reads a type, a code and the beginning of the error's text; it never looks
//! for an error in what a model said.
//!
//! Bounds: texts are searched in their first [`TEXT_MAX`] bytes.

use crate::exchange::refusal::Refusal;

/// Bytes of an error's body that are searched: providers say what is wrong at its beginning.
pub const TEXT_MAX: usize = 2_048;

/// How an attempt ended without a good answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// No connection could be had.
    Unreachable,
    /// A connection that had served before ended before a byte of an answer.
    Stale,
    /// The connection ended before the answer could be passed on.
    Cut {
        /// The request was wholly sent: it may have been served, and billed.
        sent: bool,
    },
    /// The next byte did not come, or was not taken, in time.
    Timeout {
        /// As above.
        sent: bool,
    },
    /// What came is an error, or no answer at all.
    Fault(Fault),
}

/// An answer that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which row of the table.
    pub kind: Kind,
    /// The status the client would be told: the answer's own, or what its error stands for.
    pub status: u16,
    /// It came inside a 200.
    pub within: bool,
    /// What the upstream said to wait.
    pub retry_after_ms: Option<u64>,
}

/// The rows of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It said what it has used: it is booked and told as it is.
    Billed,
    /// A plain 429, 500, 503, 529: nothing was done.
    Busy,
    /// 502, 504, any other 5xx: something may have been done behind it.
    Doubtful,
    /// A redirect or an upgrade: nobody follows it.
    Redirected,
    /// Our account is used up: 402, 429 `insufficient_quota`.
    Exhausted,
    /// Our credential may not do this: 403.
    Forbidden,
    /// Our credential is refused: 401.
    Unauthorized,
    /// The same four of the caller's own credential.
    OwnKey,
    /// The upstream cannot do what was asked for: 404, 405, 501, a 400 or 403 that says so; a 508,
    /// which says where a call came from and nothing of who refuses it.
    Mismatch,
    /// Any other 4xx: the request is at fault.
    Rejected,
    /// No answer that could be passed on: not HTTP, not the media type, an error nobody knows.
    Invalid,
    /// A 200 with neither content, usage nor finish.
    Empty,
}

/// What an upstream answered, as far as its error goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answered<'b> {
    /// The status line's.
    pub status: u16,
    /// `error.type`, or the event's.
    pub kind: &'b [u8],
    /// `error.code`: a text, or a number as it is written.
    pub code: &'b [u8],
    /// `error.status`, as Google writes it.
    pub state: &'b [u8],
    /// The beginning of the body.
    pub text: &'b [u8],
    /// Usage is reported in it.
    pub usage: bool,
    /// What it said to wait.
    pub retry_after_ms: Option<u64>,
    /// The credential is the caller's own. No route takes one yet.
    pub own_key: bool,
}

/// Whether something follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum May {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// Only where the operator lets a request be sent that may be billed twice.
    IfBilledTwice,
}

/// What an end says about a host, or a credential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Nothing.
    #[default]
    Unknown,
    /// It works.
    Well,
    /// It has failed.
    Ill,
}

/// What the client is told if nothing comes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The answer, byte for byte.
    Verbatim,
    /// The answer with another `error.message`: it is our account that it speaks of.
    Reworded,
    /// Our own words.
    Refusal(Refusal),
}

/// A row of the table of DESIGN §6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The same candidate again.
    pub again: May,
    /// The next one.
    pub next: May,
    /// What it says about the host.
    pub host: Health,
    /// What it says about the credential.
    pub credential: Health,
    /// The credential cools down, for as long as the upstream says or else the longest.
    pub cools: bool,
    /// What the client sees at the end.
    pub seen: Seen,
}

// === impl AttemptEnd ===

impl AttemptEnd {
    /// What the table says about it.
    pub fn row(self) -> Row {
        use Health::{Ill, Unknown, Well};
        use May::{IfBilledTwice, No, Yes};
        let refused = |refusal| Seen::Refusal(refusal);
        let row = |again, next, host, credential, seen| Row {
            again,
            next,
            host,
            credential,
            cools: false,
            seen,
        };
        match self {
            AttemptEnd::Unreachable => {
                row(Yes, Yes, Ill, Ill, refused(Refusal::UpstreamUnreachable))
            }
            // The replay that comes first is the walk's own; here: when even that was stale.
            AttemptEnd::Stale => row(No, Yes, Unknown, Unknown, refused(Refusal::UpstreamCut)),
            AttemptEnd::Cut { sent } => {
                let may = if sent { IfBilledTwice } else { Yes };
                row(may, may, Ill, Unknown, refused(Refusal::UpstreamCut))
            }
            AttemptEnd::Timeout { sent } => {
                let may = if sent { IfBilledTwice } else { Yes };
                row(may, may, Ill, Unknown, refused(Refusal::UpstreamTimeout))
            }
            AttemptEnd::Fault(fault) => {
                let found = fault.row();
                // Nothing of it was let through, so the next may always be asked.
                let next =
                    if fault.within && fault.kind != Kind::Billed { Yes } else { found.next };
                Row { next, host: Well, ..found }
            }
        }
    }
}

// === impl Fault ===

impl Fault {
    /// What an upstream's answer is that is no success: an error by its status, or a 200 with an
    /// error in it.
    pub fn of(answer: &Answered<'_>) -> Fault {
        let within = (200..300).contains(&answer.status);
        let stands_for = if within { stands_for(answer) } else { Some(answer.status) };
        let status = stands_for.unwrap_or(answer.status);
        let kind = match stands_for {
            _ if answer.usage => Kind::Billed,
            None => Kind::Invalid,
            Some(status) => kind(status, answer),
        };
        // What nobody knows, and is told as it is, is told with a status of an error.
        let status = if within && stands_for.is_none() { 502 } else { status };
        Fault { kind, status, within, retry_after_ms: answer.retry_after_ms }
    }

    /// What came is no answer: not HTTP, or a 200 of another media type than a model's.
    pub const INVALID: Fault =
        Fault { kind: Kind::Invalid, status: 502, within: true, retry_after_ms: None };

    /// A 200 ended with neither content, usage nor finish.
    pub const EMPTY: Fault =
        Fault { kind: Kind::Empty, status: 502, within: true, retry_after_ms: None };

    fn row(self) -> Row {
        use Health::{Ill, Unknown, Well};
        use May::{IfBilledTwice, No, Yes};
        let of_server = if self.status >= 500 { Ill } else { Unknown };
        let ours = |refusal| Seen::Refusal(refusal);
        let row = |again, next, credential, seen| Row {
            again,
            next,
            host: Well,
            credential,
            cools: false,
            seen,
        };
        match self.kind {
            Kind::Billed => row(No, No, of_server, Seen::Verbatim),
            Kind::Busy => row(Yes, Yes, of_server, Seen::Verbatim),
            Kind::Doubtful => row(IfBilledTwice, IfBilledTwice, Ill, Seen::Verbatim),
            Kind::Redirected => row(No, Yes, Unknown, ours(Refusal::UpstreamInvalid)),
            Kind::Exhausted => Row { cools: true, ..row(No, Yes, Unknown, Seen::Reworded) },
            Kind::Forbidden => Row { cools: true, ..row(No, Yes, Unknown, Seen::Verbatim) },
            Kind::Unauthorized => {
                Row { cools: true, ..row(No, Yes, Unknown, ours(Refusal::UpstreamAuth)) }
            }
            Kind::OwnKey => row(No, No, Unknown, Seen::Verbatim),
            Kind::Mismatch => row(No, Yes, Well, Seen::Verbatim),
            Kind::Rejected => row(No, No, Well, Seen::Verbatim),
            // As a 502, for the breaker too: a page instead of an answer is a failure.
            Kind::Invalid => row(IfBilledTwice, Yes, Ill, ours(Refusal::UpstreamInvalid)),
            // A caller could bring it about with a strange prompt: nobody else is to pay for it.
            Kind::Empty => row(IfBilledTwice, Yes, Unknown, ours(Refusal::EmptyCompletion)),
        }
    }
}

/// The row of an error's status.
fn kind(status: u16, answer: &Answered<'_>) -> Kind {
    match status {
        401 | 402 if answer.own_key => Kind::OwnKey,
        403 if is_mismatch(answer) => Kind::Mismatch,
        403 if answer.own_key => Kind::OwnKey,
        429 if is_exhausted(answer) && answer.own_key => Kind::OwnKey,
        401 => Kind::Unauthorized,
        402 => Kind::Exhausted,
        403 => Kind::Forbidden,
        429 if is_exhausted(answer) => Kind::Exhausted,
        400 if !answer.own_key && is_exhausted(answer) => Kind::Exhausted,
        400 if is_mismatch(answer) => Kind::Mismatch,
        404 | 405 | 501 | 508 => Kind::Mismatch,
        429 | 500 | 503 | 529 => Kind::Busy,
        500.. => Kind::Doubtful,
        400..500 => Kind::Rejected,
        300..400 | 101 => Kind::Redirected,
        _ => Kind::Invalid,
    }
}

/// Codes and types that say an account is used up.
const EXHAUSTED: [&str; 4] =
    ["insufficient_quota", "billing_hard_limit_reached", "billing_error", "billing_not_active"];

/// What one provider's 400 says of it.
const EXHAUSTED_TEXT: [&str; 1] = ["credit balance"];

fn is_exhausted(answer: &Answered<'_>) -> bool {
    let named = |word: &&str| is(answer.kind, word) || is(answer.code, word);
    EXHAUSTED.iter().any(named) || says(answer.text, &EXHAUSTED_TEXT)
}

/// Codes that say a provider does not have or know what was asked for.
const MISMATCH: [&str; 7] = [
    "unsupported_parameter",
    "unsupported_value",
    "unsupported_model",
    "model_not_supported",
    "model_not_found",
    // Of another tollgate, whose key for this one has a list of models.
    "model_not_allowed",
    "not_supported",
];

/// Texts of a 400 or 403 that say so.
const MISMATCH_TEXT: [&str; 7] = [
    "not supported",
    "unsupported",
    "does not support",
    "reasoning_content",
    "access to model",
    "may not use this model",
    "requires moderation",
];

fn is_mismatch(answer: &Answered<'_>) -> bool {
    MISMATCH.iter().any(|word| is(answer.code, word)) || says(answer.text, &MISMATCH_TEXT)
}

/// The status an error inside a 200 stands for.
fn stands_for(answer: &Answered<'_>) -> Option<u16> {
    let named = |text: &[u8]| STANDS_FOR.iter().find(|(word, _)| is(text, word));
    number(answer.code).or_else(|| {
        let known = [answer.code, answer.kind, answer.state].into_iter().find_map(named);
        known.map(|(_, status)| *status)
    })
}

/// Error codes, types and states by the status they stand for.
const STANDS_FOR: &[(&str, u16)] = &[
    // Anthropic.
    ("invalid_request_error", 400),
    ("authentication_error", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("api_error", 500),
    ("timeout_error", 504),
    ("overloaded_error", 529),
    // OpenAI, and those who speak as it does.
    ("insufficient_quota", 429),
    ("rate_limit_exceeded", 429),
    ("tokens", 429),
    ("requests", 429),
    ("invalid_api_key", 401),
    ("model_not_found", 404),
    ("context_length_exceeded", 400),
    ("invalid_prompt", 400),
    ("server_error", 500),
    ("internal_error", 500),
    ("internal_server_error", 500),
    ("service_unavailable", 503),
    ("server_is_overloaded", 503),
    ("slow_down", 503),
    ("overloaded", 503),
    // Google.
    ("INVALID_ARGUMENT", 400),
    ("FAILED_PRECONDITION", 400),
    ("UNAUTHENTICATED", 401),
    ("PERMISSION_DENIED", 403),
    ("NOT_FOUND", 404),
    ("RESOURCE_EXHAUSTED", 429),
    ("INTERNAL", 500),
    ("UNIMPLEMENTED", 501),
    ("UNAVAILABLE", 503),
    ("DEADLINE_EXCEEDED", 504),
];

/// A code that is a status of an error in digits.
fn number(code: &[u8]) -> Option<u16> {
    let digits = std::str::from_utf8(code).ok().filter(|text| text.len() == 3)?;
    digits.parse().ok().filter(|status| (400..600).contains(status))
}

fn is(text: &[u8], word: &str) -> bool {
    text.eq_ignore_ascii_case(word.as_bytes())
}

/// Whether one of the words is in the beginning of a text, in any case.
fn says(text: &[u8], words: &[&str]) -> bool {
    let text = text.get(..TEXT_MAX).unwrap_or(text);
    let within = |word: &&str| {
        text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    words.iter().any(within)
}

#[cfg(test)]
mod tests;
