//! Pure code takes time, chance and counters as arguments and waits for nothing. That is why it
//! can be tested by table and simulated by seed.

use crate::code;
use crate::source::{Finding, Source};

const PURE: &[&str] = &["proxy/src/govern/", "proxy/src/exchange/", "codec/src/"];
const FORBIDDEN_WORDS: &[&str] = &["async", "await"];
/// `core::net` has the address types without the sockets, and is fine.
const FORBIDDEN_STD: &[&str] = &["io", "net", "fs", "thread"];
const FORBIDDEN_CRATES: &[&str] = &["rand", "getrandom", "fastrand"];

pub(crate) fn check(source: &Source) -> Vec<Finding> {
    if !PURE.iter().any(|place| source.path.starts_with(place)) || source.is_test() {
        return Vec::new();
    }
    let mut found: Vec<(usize, String)> = Vec::new();
    for word in FORBIDDEN_WORDS {
        found.extend(code::find_word(&source.code, word).map(|at| (at, format!("`{word}`"))));
    }
    for path in code::paths(&source.code) {
        let (first, second) = (path.segments[0].as_str(), path.segments[1].as_str());
        if first == "std" && FORBIDDEN_STD.contains(&second) {
            found.push((path.at, format!("`std::{second}`")));
        }
        if FORBIDDEN_CRATES.contains(&first) {
            found.push((path.at, format!("`{first}`")));
        }
    }
    found
        .into_iter()
        .filter(|(at, _)| !source.in_test(*at))
        .map(|(at, what)| source.finding(at, format!("{what} in pure code")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&Source::new(path, text)).len()
    }

    #[test]
    fn waiting_io_and_chance_fail() {
        for text in [
            "pub async fn f() {}",
            "let x = f().await;",
            "use std::io::Write;",
            "use std::{fmt, net::IpAddr};",
            "std::thread::spawn(f)",
            "use std::fs::File;",
            "let n = rand::random();",
        ] {
            assert!(count("proxy/src/govern/walk.rs", text) >= 1, "{text}");
            assert!(count("codec/src/sse/frame.rs", text) >= 1, "{text}");
        }
    }

    #[test]
    fn arithmetic_words_and_tests_pass() {
        for text in [
            "use std::fmt; use core::net::IpAddr; let brand = operand;",
            "// async, .await and std::io are absent here",
            "#[cfg(test)]\nmod tests { use std::fs; fn f() { fs::read(x) } }",
        ] {
            assert_eq!(count("proxy/src/exchange/call.rs", text), 0, "{text}");
        }
        assert_eq!(count("codec/src/json/tests.rs", "use std::fs;"), 0);
        assert_eq!(count("proxy/src/io/tcp.rs", "async fn f() { std::net::x() }"), 0);
    }
}
