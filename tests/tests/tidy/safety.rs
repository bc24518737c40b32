//! What the compiler accepts and io_uring or a reader does not.

use crate::code;
use crate::source::{Finding, Source};

/// Folders whose futures hold operations that the kernel has already been given.
const DATA_PATH: &[&str] =
    &["proxy/src/pipeline/", "proxy/src/shard/", "proxy/src/io/", "proxy/src/upstream/"];

/// `unsafe` is allowed below these prefixes and nowhere else.
const UNSAFE_PLACES: &[&str] = &[
    "proxy/src/io/",
    "store/src/slab",
    "codec/src/json/simd",
    // The counting allocator.
    "bench/src/alloc",
];

/// A branch that loses drops its future, and with it bytes the kernel has already delivered.
pub(crate) fn check_dropped_reads(source: &Source) -> Vec<Finding> {
    if !DATA_PATH.iter().any(|place| source.path.starts_with(place)) {
        return Vec::new();
    }
    let follows = |at: usize, word: &str, next: char| {
        code::rest(&source.code, at + word.len()).starts_with(next)
    };
    let mut found = Vec::new();
    for word in ["select", "select_biased"] {
        let used = code::find_word(&source.code, word).filter(|at| follows(*at, word, '!'));
        found.extend(used.map(|at| (at, "`select!`: wait through `io::Turn`")));
    }
    let timeouts =
        code::find_word(&source.code, "timeout").filter(|at| follows(*at, "timeout", '('));
    found.extend(timeouts.map(|at| (at, "`timeout(`: deadlines come from the wheel")));
    let sets = code::find_word(&source.code, "FuturesUnordered");
    found.extend(sets.map(|at| (at, "`FuturesUnordered`: one owner a connection")));
    found.into_iter().map(|(at, message)| source.finding(at, message)).collect()
}

pub(crate) fn check_unsafe(source: &Source) -> Vec<Finding> {
    if UNSAFE_PLACES.iter().any(|place| source.path.starts_with(place)) {
        return Vec::new();
    }
    code::find_word(&source.code, "unsafe")
        .map(|at| source.finding(at, "`unsafe` outside its places"))
        .collect()
}

/// `#[expect(.., reason)]` complains once it is no longer needed, `#[allow]` never does.
pub(crate) fn check_allow(source: &Source) -> Vec<Finding> {
    let opens_attribute = |at: usize| {
        let before = source.code[..at].trim_end();
        let attribute = before.rfind("#[").or_else(|| before.rfind("#!["));
        before.ends_with("#[")
            || before.ends_with("#![")
            || attribute.is_some_and(|from| {
                before[from..].contains("cfg_attr") && !before[from..].contains(']')
            })
    };
    code::find_word(&source.code, "allow")
        .filter(|at| opens_attribute(*at))
        .map(|at| source.finding(at, "`#[allow]`: use `#[expect(.., reason = \"…\")]`"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn racing_futures_fail_on_the_data_path_only() {
        for text in [
            "tokio::select! { a = b => {} }",
            "futures::select_biased! {}",
            "timeout(five, read).await",
            "let set = FuturesUnordered::new();",
        ] {
            let at = |path: &str| check_dropped_reads(&Source::new(path, text)).len();
            assert_eq!(at("proxy/src/upstream/pool.rs"), 1, "{text}");
            assert_eq!(at("proxy/src/pipeline/relay.rs"), 1, "{text}");
            assert_eq!(at("proxy/src/control/mod.rs"), 0, "{text}");
        }
    }

    #[test]
    fn words_that_only_resemble_them_pass() {
        let text = "// select! loses bytes\nlet timeout = idle_timeout(x); select(y); // timeout(";
        assert_eq!(check_dropped_reads(&Source::new("proxy/src/io/turn.rs", text)), []);
    }

    #[test]
    fn unsafe_has_four_places() {
        let count = |path: &str, text: &str| check_unsafe(&Source::new(path, text)).len();
        let block = "unsafe { f() }";
        assert_eq!(count("proxy/src/io/uring.rs", block), 0);
        assert_eq!(count("store/src/slab/map.rs", block), 0);
        assert_eq!(count("codec/src/json/simd/avx2.rs", block), 0);
        assert_eq!(count("bench/src/alloc.rs", block), 0);
        assert_eq!(count("proxy/src/shard/mod.rs", block), 1);
        assert_eq!(count("codec/src/json/scan.rs", block), 1);
        assert_eq!(count("proxy/src/lib.rs", "#![deny(unsafe_code)] // unsafe"), 0);
    }

    #[test]
    fn allow_fails_in_every_spelling_and_expect_passes() {
        let count = |text: &str| check_allow(&Source::new("a.rs", text)).len();
        for text in [
            "#[allow(dead_code)]",
            "#![allow(clippy::all)]",
            "#[ allow(x)]",
            "#[cfg_attr(test, allow(x))]",
        ] {
            assert_eq!(count(text), 1, "{text}");
        }
        for text in ["#[expect(dead_code, reason = \"x\")]", "fn allow() {}", "x.allow(y)"] {
            assert_eq!(count(text), 0, "{text}");
        }
    }
}
