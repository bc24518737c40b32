//! How long files, functions and lines are.
//!
//! A limit does not make a file good; one noun per file does. The limit keeps it that way.

use crate::code;
use crate::source::Source;

/// Lines of a file that are not in a top-level `#[cfg(test)]` item: three screens, one noun.
pub(crate) const FILE_LINES_MAX: usize = 400;
/// From the line of `fn` to its closing brace: one screen.
pub(crate) const FUNCTION_LINES_MAX: usize = 70;
/// As `.rustfmt.toml`; the formatter leaves long literals and comments alone, this does not.
pub(crate) const COLUMNS_MAX: usize = 100;

/// One measured thing. `what` is the key in the ratchet: a path, or `path::function`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Measure {
    pub(crate) rule: &'static str,
    pub(crate) what: String,
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) value: usize,
    pub(crate) limit: usize,
}

pub(crate) fn measure(source: &Source) -> Vec<Measure> {
    let mut measures = functions(source);
    if !source.is_test() {
        measures.push(file(source));
    }
    measures.extend(columns(source));
    measures
}

fn file(source: &Source) -> Measure {
    let tests: usize = code::test_items(&source.code)
        .iter()
        .filter(|(from, _)| *from == 0 || source.code.as_bytes()[from - 1] == b'\n')
        .map(|(from, to)| code::line_of(&source.code, *to) - code::line_of(&source.code, *from) + 1)
        .sum();
    Measure {
        rule: "file",
        what: source.path.clone(),
        path: source.path.clone(),
        line: 1,
        value: source.text.lines().count().saturating_sub(tests),
        limit: FILE_LINES_MAX,
    }
}

fn functions(source: &Source) -> Vec<Measure> {
    let code = &source.code;
    let mut measures = Vec::new();
    for at in code::find_word(code, "fn") {
        let name: String = code::rest(code, at + 2)
            .chars()
            .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
            .collect();
        // `fn(u8) -> u8` is a type, not a function.
        if name.is_empty() {
            continue;
        }
        let line = code::line_of(code, at);
        let end = code::line_of(code, code::item_end(code, at));
        measures.push(Measure {
            rule: "function",
            what: format!("{}::{name}", source.path),
            path: source.path.clone(),
            line,
            value: end - line + 1,
            limit: FUNCTION_LINES_MAX,
        });
    }
    measures
}

/// The widest line, if it is too wide: one measure a file is enough for the ratchet.
fn columns(source: &Source) -> Option<Measure> {
    let widths = source.text.lines().map(|line| line.chars().count()).enumerate();
    let (index, widest) = widths.max_by_key(|(_, width)| *width)?;
    (widest > COLUMNS_MAX).then(|| Measure {
        rule: "columns",
        what: source.path.clone(),
        path: source.path.clone(),
        line: index + 1,
        value: widest,
        limit: COLUMNS_MAX,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(path: &str, text: &str) -> Vec<(&'static str, usize, usize)> {
        let measures = measure(&Source::new(path, text));
        let over = measures.into_iter().filter(|measure| measure.value > measure.limit);
        over.map(|measure| (measure.rule, measure.line, measure.value)).collect()
    }

    #[test]
    fn a_file_at_the_limit_passes_and_one_line_more_fails() {
        assert_eq!(over("codec/src/a.rs", &"x;\n".repeat(400)), []);
        assert_eq!(over("codec/src/a.rs", &"x;\n".repeat(401)), [("file", 1, 401)]);
    }

    #[test]
    fn tests_do_not_count_for_the_file_but_code_after_them_does() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "x;\n".repeat(300));
        let before = "x;\n".repeat(399);
        assert_eq!(over("codec/src/a.rs", &format!("{before}{tests}")), []);
        let after = format!("{before}{tests}y;\ny;\n");
        assert_eq!(over("codec/src/a.rs", &after), [("file", 1, 401)]);
        assert_eq!(over("tests/tests/a.rs", &"x;\n".repeat(900)), []);
    }

    #[test]
    fn a_function_counts_from_its_name_to_its_brace() {
        let fits = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(68));
        assert_eq!(over("a/src/a.rs", &fits), []);
        let long = format!("\nfn f() {{\n{}}}\n", "    g(\"}\"); // }\n".repeat(69));
        assert_eq!(over("a/src/a.rs", &long), [("function", 2, 71)]);
    }

    #[test]
    fn signatures_without_a_body_are_short() {
        let text = format!("trait T {{\n    fn f(x: [u8; 4]) -> fn(u8);\n{}}}", "\n".repeat(90));
        assert_eq!(over("a/src/a.rs", &text), []);
    }

    #[test]
    fn columns_are_characters() {
        assert_eq!(over("a/src/a.rs", &"é".repeat(100)), []);
        assert_eq!(over("a/src/a.rs", &format!("\n{}", "e".repeat(101))), [("columns", 2, 101)]);
    }
}
