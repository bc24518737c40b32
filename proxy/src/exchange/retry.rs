//! When a candidate is tried again, and how long all of it may take.

/// The numbers of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryRules {
    /// Attempts at one candidate, the first among them. At least one.
    pub attempts: u8,
    /// The wait before the second; it doubles with each one.
    pub backoff_ms: u32,
    /// The longest wait, and the longest `Retry-After` that is waited for at the same candidate.
    pub backoff_max_ms: u32,
    /// From the first attempt on, the time in which another one may begin.
    pub budget_ms: u32,
    /// Whether a request is sent once more although an upstream may bill it already.
    pub possibly_billed: bool,
}

impl Default for RetryRules {
    fn default() -> RetryRules {
        RetryRules {
            attempts: 3,
            backoff_ms: 500,
            backoff_max_ms: 5_000,
            budget_ms: 240_000,
            possibly_billed: false,
        }
    }
}
