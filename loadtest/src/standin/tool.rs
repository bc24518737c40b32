//! The tool calls of answers, whole and streamed. Pure, and the same whatever tools a request has:
//! what a client makes of a call is its own.

/// The tool that is called.
pub(super) const NAME: &str = "look_up";

/// Pieces that the arguments of a whole call have as a stream.
pub(super) const PIECES: usize = 6;

/// The id of the `call`th call, in the manner of a dialect.
pub(super) fn id(manner: &str, call: usize) -> String {
    if call == 0 { format!("{manner}_standin") } else { format!("{manner}_standin_{call}") }
}

/// The `n`th of `all` pieces of a call's arguments.
pub(super) fn arguments(n: usize, all: usize) -> &'static str {
    match n {
        _ if all == 1 => "{}",
        0 => "{\"road\":\"",
        _ if n + 1 == all => "\"}",
        _ => "toll ",
    }
}

/// All of a call's arguments, as JSON.
pub(super) fn whole() -> String {
    (0..PIECES).map(|n| arguments(n, PIECES)).collect()
}
