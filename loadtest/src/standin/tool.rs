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

/// The arguments of a call in so many pieces: those given, or the usual ones.
pub(super) fn pieces(given: Option<&str>, count: usize) -> Vec<String> {
    match given {
        None => (0..count).map(|n| usual(n, count).to_owned()).collect(),
        Some(given) => {
            let letters: Vec<char> = given.chars().collect();
            let place = |n: usize| letters.len() * n / count;
            (0..count).map(|n| letters[place(n)..place(n + 1)].iter().collect()).collect()
        }
    }
}

/// All arguments of a call, as JSON.
pub(super) fn whole(given: Option<&str>) -> String {
    pieces(given, PIECES).concat()
}

/// The `n`th of `count` pieces of the usual arguments.
fn usual(n: usize, count: usize) -> &'static str {
    match n {
        _ if count == 1 => "{}",
        0 => "{\"road\":\"",
        _ if n + 1 == count => "\"}",
        _ => "toll ",
    }
}
