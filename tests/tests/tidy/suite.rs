//! How tests behave, and what only tests may do.

use crate::code;
use crate::source::{Finding, Source};

/// Scripts against real clients run real processes and may wait for them.
const MAY_WAIT: &str = "tests/clients/";

/// As free functions: a method (`world.sleep(..)`) turns the virtual clock, which is the cure.
const SLEEPS: &[&str] = &["sleep", "sleep_until", "sleep_ms"];

pub(crate) fn check_tests(source: &Source) -> Vec<Finding> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for word in SLEEPS {
        let calls = code::find_word(&source.code, word)
            .filter(|at| code::rest(&source.code, at + word.len()).starts_with('('))
            .filter(|at| !source.code[..*at].trim_end().ends_with('.'))
            .filter(|at| source.in_test(*at) && !source.path.starts_with(MAY_WAIT));
        found.extend(calls.map(|at| (at, "a test does not sleep: turn the virtual clock")));
    }
    let ignored = code::find_word(&source.code, "ignore").filter(|at| {
        let before = source.code[..*at].trim_end();
        before.ends_with("#[")
            || attribute_before(before).is_some_and(|text| text.contains("cfg_attr"))
    });
    found.extend(ignored.map(|at| (at, "an ignored test is a test that fails in silence")));
    found.into_iter().map(|(at, message)| source.finding(at, message)).collect()
}

/// The attribute that is still open at the end of `before`.
fn attribute_before(before: &str) -> Option<&str> {
    let text = &before[before.rfind("#[")?..];
    (!text.contains(']')).then_some(text)
}

pub(crate) fn check_globs(source: &Source) -> Vec<Finding> {
    let globs = source.code.match_indices("::*").map(|(at, _)| at);
    globs
        .filter(|at| !source.in_test(*at))
        .map(|at| source.finding(at, "glob import: name what is taken"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_fails_in_tests_and_is_no_matter_of_this_rule_elsewhere() {
        let count = |path: &str, text: &str| check_tests(&Source::new(path, text)).len();
        let call = "fn f() { std::thread::sleep(second) }";
        assert_eq!(count("tests/tests/kill.rs", call), 1);
        assert_eq!(count("codec/src/http1/tests.rs", "time::sleep_until (x)"), 1);
        let inline = format!("#[cfg(test)]\nmod tests {{ {call} }}");
        assert_eq!(count("proxy/src/io/wheel.rs", &inline), 1);
        assert_eq!(count("proxy/src/control/mod.rs", call), 0);
        assert_eq!(count("tests/clients/run.rs", call), 0);
        assert_eq!(count("tests/tests/beat.rs", "world.run_until(world.sleep(TICK));"), 0);
        assert_eq!(
            count("tests/tests/kill.rs", "// sleep(1)\nlet asleep = asleep(); sleep = 1;"),
            0
        );
    }

    #[test]
    fn ignored_tests_fail() {
        let count = |text: &str| check_tests(&Source::new("tests/tests/x.rs", text)).len();
        assert_eq!(count("#[test]\n#[ignore]\nfn f() {}"), 1);
        assert_eq!(count("#[ignore = \"slow\"]"), 1);
        assert_eq!(count("#[cfg_attr(miri, ignore)]"), 1);
        assert_eq!(count("#[test]\nfn ignore() { ignore(x) }"), 0);
    }

    #[test]
    fn globs_pass_in_tests_only() {
        let count = |path: &str, text: &str| check_globs(&Source::new(path, text)).len();
        assert_eq!(count("codec/src/lib.rs", "use crate::http1::*;"), 1);
        assert_eq!(count("codec/src/lib.rs", "pub use a::{b::*, c};"), 1);
        assert_eq!(count("codec/src/lib.rs", "use a::{b, c}; let x = a * b;"), 0);
        assert_eq!(count("codec/src/lib.rs", "#[cfg(test)]\nmod tests { use super::*; }"), 0);
        assert_eq!(count("codec/src/http1/tests.rs", "use super::*;"), 0);
    }
}
