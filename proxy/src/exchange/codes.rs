//! The stable codes of refusals, and their numbers in records: a code's number is its place in the
//! list, counted from 1. New ones are added at the end; a number on the disk is for ever.

/// Every code a refusal can have.
pub const CODES: [&str; 37] = [
    "invalid_request",
    "model_missing",
    "model_unavailable",
    "price_unknown",
    "invalid_api_key",
    "budget_exceeded",
    "key_revoked",
    "key_expired",
    "model_not_allowed",
    "not_found",
    "model_not_found",
    "method_not_allowed",
    "request_timeout",
    "length_required",
    "request_too_large",
    "unsupported_media_type",
    "expectation_failed",
    "upgrade_required",
    "rate_limited",
    "concurrency_limited",
    "budget_reserved",
    "insufficient_quota",
    "header_too_large",
    "not_implemented",
    "node_busy",
    "shutting_down",
    "upstream_unreachable",
    "upstream_timeout",
    "upstream_cut",
    "upstream_invalid",
    "empty_completion",
    "upstream_auth",
    "internal",
    "ledger_busy",
    "upstream_unavailable",
    "loop_detected",
    "http_version_not_supported",
];

/// A code's number; 0 is none.
pub fn number(code: &str) -> u16 {
    let at = CODES.iter().position(|known| *known == code);
    at.and_then(|at| u16::try_from(at + 1).ok()).unwrap_or(0)
}

/// The code of a number.
pub fn name(number: u16) -> Option<&'static str> {
    CODES.get(usize::from(number).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_codes_are_one_to_one() {
        for (at, code) in CODES.iter().enumerate() {
            assert_eq!(usize::from(number(code)), at + 1);
            assert_eq!(name(number(code)), Some(*code));
        }
        assert_eq!((number("no such code"), name(0), name(38)), (0, None, None));
    }
}
