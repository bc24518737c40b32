//! Every way this gateway says no in its own words. A closed list; `pipeline/refuse.rs` is its
//! only translation to HTTP.
//!
//! Texts below 500 contain no digits: there is a client that retries on any text in which it
//! finds certain status codes, whatever the status line said. They never contain the caller's own
//! text either.

use super::budget::Scope;
use super::call::Dialect;
use super::time::UnixMs;
use super::window::{self, Period};

/// A refusal, with what the answer must carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The head breaks RFC 9112 or a bound; the status is the parser's.
    BadHead {
        /// 400 or 431.
        status: u16,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The head, or the body, did not arrive in time.
    RequestTimeout,
    /// A body is needed and its length was not announced.
    LengthRequired,
    /// The body is larger than the route takes.
    TooLarge,
    /// The body's media type or coding is not one the route takes.
    UnsupportedMedia {
        /// Which of the two.
        why: &'static str,
    },
    /// An expectation other than `100-continue`.
    ExpectationFailed,
    /// The client asks to upgrade a route that is served over plain HTTP.
    UpgradeRequired,
    /// No such route.
    NotFound,
    /// The route exists, with other methods.
    MethodNotAllowed {
        /// The methods, as the `Allow` field lists them.
        allow: &'static str,
    },
    /// The route is known and not served yet.
    NotImplemented,
    /// The body is not what the route takes.
    InvalidRequest {
        /// The member at fault, if one is.
        param: Option<&'static str>,
        /// What is wrong.
        why: &'static str,
    },
    /// The body names no model.
    ModelMissing,
    /// No credential, or one that stands for nobody.
    InvalidApiKey,
    /// The key was revoked.
    KeyRevoked,
    /// The key is switched off for now.
    KeyDisabled,
    /// The key has expired: at its last instant it is already over.
    KeyExpired,
    /// The key may not use the model.
    ModelNotAllowed,
    /// The key has used its requests of the minute.
    RateLimited {
        /// How long until one more passes.
        retry_after_ms: u32,
    },
    /// As many calls of the key are in flight as may be.
    ConcurrencyLimited,
    /// What is spent leaves no room for the call.
    BudgetExceeded {
        /// Whose budget.
        scope: Scope,
        /// Of what period.
        period: Period,
        /// When it begins anew; [`window::NEVER`] if it does not.
        resets: UnixMs,
    },
    /// The call would fit but for what other calls hold.
    BudgetReserved {
        /// When to try again.
        retry_after_s: u32,
    },
    /// A money budget applies and no candidate has a price.
    PriceUnknown,
    /// No route serves the model.
    ModelNotFound,
    /// The model has a route and none of its candidates can be used.
    ModelUnavailable,
    /// The shard holds as many body bytes as it may.
    NodeBusy,
    /// No slot is free for the call's record, or the ledger takes none.
    LedgerBusy,
    /// The node is stopping.
    ShuttingDown,
    /// No connection to the upstream could be had.
    UpstreamUnreachable,
    /// The upstream was silent for too long.
    UpstreamTimeout,
    /// The upstream broke off before its answer could be passed on.
    UpstreamCut,
    /// The upstream's answer cannot be passed on.
    UpstreamInvalid,
    /// The upstream answered 200 with nothing in it.
    EmptyCompletion,
    /// The upstream refused *our* credential.
    UpstreamAuth,
    /// Every candidate rests for now: its breaker is open, or its credential cools down.
    UpstreamUnavailable {
        /// When the first of them is tried again.
        retry_after_s: u32,
    },
    /// A call has come back to this node, from itself or through other gateways.
    LoopDetected,
    /// A defect of ours.
    Internal,
}

/// Seconds after which a client may try again when the node itself is the bottleneck: long enough
/// for a body to leave, short enough for an agent to wait.
pub const BUSY_RETRY_AFTER_S: u32 = 1;

/// Seconds after which a place among the calls in flight may be free: a short call's length.
pub const CONCURRENCY_RETRY_AFTER_S: u32 = 1;

/// What a refusal is on the wire, before the dialect shapes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Face {
    /// The status code.
    pub status: u16,
    /// The stable code clients may match.
    pub code: &'static str,
    /// What to tell a person.
    pub text: &'static str,
    /// The member of the body at fault.
    pub param: Option<&'static str>,
    /// `Retry-After`, in seconds.
    pub retry_after_s: Option<u32>,
    /// Adds `x-should-retry: false`: the same request will never pass.
    pub never_retry: bool,
}

const fn face(status: u16, code: &'static str, text: &'static str) -> Face {
    Face { status, code, text, param: None, retry_after_s: None, never_retry: false }
}

impl Refusal {
    /// Its status, code and text in a dialect. Clients of the responses dialect repeat a payment
    /// error several times and take this other form as final.
    pub fn face_in(self, dialect: Dialect) -> Face {
        let face = self.face();
        match (self, dialect) {
            (Refusal::BudgetExceeded { .. }, Dialect::Responses) => {
                Face { status: 429, code: "insufficient_quota", ..face }
            }
            _ => face,
        }
    }

    /// Its status, code and text.
    pub fn face(self) -> Face {
        let face = self.request_face().or_else(|| self.limit_face());
        face.unwrap_or_else(|| self.upstream_face())
    }

    /// Limits of the key.
    fn limit_face(self) -> Option<Face> {
        Some(match self {
            Refusal::KeyDisabled => Face {
                never_retry: true,
                ..face(403, "key_revoked", "This API key is switched off.")
            },
            Refusal::KeyExpired => {
                Face { never_retry: true, ..face(403, "key_expired", "This API key has expired.") }
            }
            Refusal::ModelNotAllowed => Face {
                param: Some("model"),
                ..face(403, "model_not_allowed", "This API key may not use this model.")
            },
            Refusal::RateLimited { retry_after_ms } => Face {
                retry_after_s: Some(retry_after_ms.div_ceil(1_000)),
                ..face(429, "rate_limited", "This API key has used its requests of the minute.")
            },
            Refusal::ConcurrencyLimited => Face {
                retry_after_s: Some(CONCURRENCY_RETRY_AFTER_S),
                ..face(429, "concurrency_limited", "Too many calls of this API key are in flight.")
            },
            Refusal::BudgetExceeded { scope, period, resets } => Face {
                never_retry: true,
                ..face(402, "budget_exceeded", exceeded(scope, period, resets))
            },
            Refusal::BudgetReserved { retry_after_s } => Face {
                retry_after_s: Some(retry_after_s),
                ..face(429, "budget_reserved", "Other calls hold the rest of the budget for now.")
            },
            Refusal::PriceUnknown => Face {
                param: Some("model"),
                ..face(400, "price_unknown", "A budget applies and this model has no price.")
            },
            _ => return None,
        })
    }

    /// Faults of the request, and of the moment it came at.
    fn request_face(self) -> Option<Face> {
        Some(match self {
            // What is not supported stays so: a client that asks again gains nothing.
            Refusal::BadHead { status, why } => {
                Face { never_retry: status >= 500, ..face(status, head_code(status), why) }
            }
            Refusal::RequestTimeout => {
                face(408, "request_timeout", "The request did not arrive in time.")
            }
            Refusal::LengthRequired => {
                face(411, "length_required", "Send the body with Content-Length or chunked.")
            }
            Refusal::TooLarge => {
                face(413, "request_too_large", "The request body is larger than this route takes.")
            }
            Refusal::UnsupportedMedia { why } => face(415, "unsupported_media_type", why),
            Refusal::ExpectationFailed => {
                face(417, "expectation_failed", "Only the expectation of a continue is met.")
            }
            Refusal::UpgradeRequired => {
                face(426, "upgrade_required", "Send this request as POST over plain HTTP.")
            }
            Refusal::NotFound => face(404, "not_found", "There is no such route."),
            Refusal::MethodNotAllowed { .. } => {
                face(405, "method_not_allowed", "This route takes another method.")
            }
            Refusal::InvalidRequest { param, why } => {
                Face { param, ..face(400, "invalid_request", why) }
            }
            Refusal::ModelMissing => Face {
                param: Some("model"),
                ..face(400, "model_missing", "The request names no model.")
            },
            Refusal::InvalidApiKey => Face {
                never_retry: true,
                ..face(401, "invalid_api_key", "The API key is missing or not known here.")
            },
            Refusal::KeyRevoked => {
                Face { never_retry: true, ..face(403, "key_revoked", "This API key was revoked.") }
            }
            Refusal::ModelNotFound => Face {
                param: Some("model"),
                ..face(404, "model_not_found", "No route serves this model.")
            },
            Refusal::ModelUnavailable => Face {
                param: Some("model"),
                ..face(400, "model_unavailable", "No candidate can serve this model now.")
            },
            _ => return None,
        })
    }

    /// Faults of the node and of the upstream.
    fn upstream_face(self) -> Face {
        match self {
            Refusal::NotImplemented => Face {
                never_retry: true,
                ..face(501, "not_implemented", "This route is known here and not served yet.")
            },
            Refusal::NodeBusy => Face {
                retry_after_s: Some(BUSY_RETRY_AFTER_S),
                ..face(503, "node_busy", "This node holds as many request bytes as it may.")
            },
            Refusal::LedgerBusy => Face {
                retry_after_s: Some(BUSY_RETRY_AFTER_S),
                ..face(503, "ledger_busy", "This node cannot record more calls at the moment.")
            },
            Refusal::ShuttingDown => Face {
                retry_after_s: Some(BUSY_RETRY_AFTER_S),
                ..face(503, "shutting_down", "This node is stopping.")
            },
            Refusal::UpstreamUnreachable => {
                face(502, "upstream_unreachable", "The upstream could not be reached.")
            }
            Refusal::UpstreamTimeout => {
                face(504, "upstream_timeout", "The upstream did not answer in time.")
            }
            Refusal::UpstreamCut => face(502, "upstream_cut", "The upstream broke off its answer."),
            Refusal::UpstreamInvalid => {
                face(502, "upstream_invalid", "The upstream's answer cannot be passed on.")
            }
            Refusal::EmptyCompletion => {
                face(502, "empty_completion", "The upstream's answer has nothing in it.")
            }
            Refusal::UpstreamAuth => Face {
                never_retry: true,
                ..face(502, "upstream_auth", "The upstream refused this gateway's credential.")
            },
            Refusal::UpstreamUnavailable { retry_after_s } => Face {
                retry_after_s: Some(retry_after_s),
                ..face(503, "upstream_unavailable", "No upstream of this model takes calls now.")
            },
            Refusal::LoopDetected => Face {
                never_retry: true,
                ..face(508, "loop_detected", "A provider of this gateway leads back to it.")
            },
            _ => face(500, "internal", "A defect of this gateway ended the request."),
        }
    }
}

fn head_code(status: u16) -> &'static str {
    match status {
        431 => "header_too_large",
        501 => "not_implemented",
        505 => "http_version_not_supported",
        _ => "invalid_request",
    }
}

/// Scope, window and reset in words: a date would bring digits into the text.
fn exceeded(scope: Scope, period: Period, resets: UnixMs) -> &'static str {
    match (scope, period) {
        (Scope::Key, Period::Total) => {
            "The total budget of this API key has no room for this call; it does not reset."
        }
        (Scope::Key, Period::Month) => KEY_MONTH[window::month(resets) as usize % KEY_MONTH.len()],
    }
}

macro_rules! spent_until {
    ($($month:literal)*) => {
        [$(concat!(
            "The monthly budget of this API key has no room for this call; it resets at midnight ",
            "UTC on the first of ", $month, "."
        )),*]
    };
}

/// By the month of the reset; December, the twelfth, is at 0.
const KEY_MONTH: [&str; 12] = spent_until![
    "December" "January" "February" "March" "April" "May" "June" "July" "August" "September"
    "October" "November"
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spent_budget_names_scope_window_and_reset() {
        let spent = |at: u64| Refusal::BudgetExceeded {
            scope: Scope::Key,
            period: Period::Month,
            resets: Period::Month.window(UnixMs(at * 1_000)).end,
        };
        for (at, month) in [
            (1_798_761_599, "January"),
            (1_798_761_600, "February"),
            (1_796_040_000, "December"),
            (1_709_251_199, "March"),
        ] {
            let text = spent(at).face().text;
            assert!(text.ends_with(&format!("on the first of {month}.")), "{text}");
            assert!(text.contains("monthly budget of this API key"), "{text}");
        }
        let total = Refusal::BudgetExceeded {
            scope: Scope::Key,
            period: Period::Total,
            resets: window::NEVER,
        };
        assert!(total.face().text.ends_with("it does not reset."));
        for text in KEY_MONTH.iter().chain([&total.face().text]) {
            let text = text.to_lowercase();
            assert!(!text.contains("credit") && !text.contains("billing"), "{text}");
            assert!(!text.bytes().any(|b| b.is_ascii_digit()), "{text}");
        }
    }

    #[test]
    fn a_spent_budget_is_final_in_every_dialect() {
        let spent = Refusal::BudgetExceeded {
            scope: Scope::Key,
            period: Period::Total,
            resets: window::NEVER,
        };
        for (dialect, status, code) in [
            (Dialect::Chat, 402, "budget_exceeded"),
            (Dialect::Messages, 402, "budget_exceeded"),
            (Dialect::Responses, 429, "insufficient_quota"),
            (Dialect::Gemini, 402, "budget_exceeded"),
        ] {
            let face = spent.face_in(dialect);
            assert_eq!((face.status, face.code), (status, code), "{dialect:?}");
            assert!(face.never_retry && face.retry_after_s.is_none());
        }
        let other = Refusal::KeyExpired;
        assert_eq!(other.face_in(Dialect::Responses), other.face());
    }

    #[test]
    fn retry_after_is_rounded_up() {
        for (ms, s) in [(0, 0), (1, 1), (1_000, 1), (1_001, 2), (60_000, 60)] {
            let face = Refusal::RateLimited { retry_after_ms: ms }.face();
            assert_eq!(face.retry_after_s, Some(s), "{ms}");
        }
    }
}
