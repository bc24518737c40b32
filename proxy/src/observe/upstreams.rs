//! How providers do at a moment, in the words of metrics. What a breaker's word means is judged
//! elsewhere; here it has a name.

/// States of a breaker, by their place.
pub const BREAKER_STATES: [&str; 4] = ["closed", "open", "probing", "slow_start"];

/// One provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamState {
    /// Its name in the configuration.
    pub provider: Box<str>,
    /// The state of its host's breaker, a place in [`BREAKER_STATES`].
    pub host: usize,
    /// How many of its credentials have a breaker in each state.
    pub credentials: [u64; BREAKER_STATES.len()],
    /// How many of them cool down.
    pub cooling: u64,
}

/// Asks for all of them, in the order of the configuration.
pub type AskUpstreams = dyn Fn() -> Vec<UpstreamState> + Send + Sync;
