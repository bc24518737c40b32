//! Reads Rust text just well enough for the rules: what is code, what belongs to a test, which
//! paths are named.
//!
//! Not a parser. It knows comments, strings, char literals, braces and `::` paths; macros are
//! seen as the tokens they are written with.

/// The text with comments and the contents of literals turned into spaces. Line breaks stay, so
/// line numbers stay.
pub(crate) fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => line_end(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => block_comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if starts_raw(bytes, at) => raw_string_end(bytes, at),
            b'\'' => char_end(bytes, at),
            _ => {
                at += 1;
                continue;
            }
        };
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |found| at + found)
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0usize;
    let mut at = start;
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// `r"`, `r#"`, `br"`, `cr#"`: an `r` that begins a literal and is not the tail of a name.
fn starts_raw(bytes: &[u8], at: usize) -> bool {
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    let opens = bytes.get(at + 1 + hashes) == Some(&b'"');
    let prefixed = at >= 1 && matches!(bytes[at - 1], b'b' | b'c');
    let before = at.checked_sub(if prefixed { 2 } else { 1 }).map(|index| bytes[index]);
    opens && !before.is_some_and(is_word)
}

fn raw_string_end(bytes: &[u8], at: usize) -> usize {
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let body = at + hashes + 2;
    let rest = bytes.get(body..).unwrap_or_default();
    rest.windows(close.len())
        .position(|window| window == close)
        .map_or(bytes.len(), |found| body + found + close.len())
}

/// The end of a char literal; one past the quote for a lifetime.
fn char_end(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at + 1) == Some(&b'\\') {
        let tail = bytes.get(at + 3..).unwrap_or_default();
        return tail.iter().position(|byte| *byte == b'\'').map_or(bytes.len(), |n| at + n + 4);
    }
    // A char is at most four bytes of UTF-8; a lifetime has no second quote that near, except
    // `'a'` itself, which is a char.
    let wide = match bytes.get(at + 1) {
        Some(first) if *first >= 0xF0 => 4,
        Some(first) if *first >= 0xE0 => 3,
        Some(first) if *first >= 0xC0 => 2,
        _ => 1,
    };
    if bytes.get(at + 1 + wide) == Some(&b'\'') { at + wide + 2 } else { at + 1 }
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The line, from 1, in which the byte at `at` stands.
pub(crate) fn line_of(code: &str, at: usize) -> usize {
    code.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Every place where `word` stands as a whole word.
pub(crate) fn find_word<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = at.checked_sub(1).map(|index| bytes[index]);
        let after = bytes.get(at + word.len()).copied();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// What follows a place, leading white space skipped.
pub(crate) fn rest(code: &str, at: usize) -> &str {
    code.get(at..).unwrap_or_default().trim_start()
}

/// For each `#[cfg(test)]` item the byte range it covers, attribute included.
pub(crate) fn test_items(code: &str) -> Vec<(usize, usize)> {
    let mut items: Vec<(usize, usize)> = Vec::new();
    for (start, attribute) in code.match_indices("#[cfg(test)]") {
        if items.last().is_none_or(|(_, end)| start >= *end) {
            items.push((start, item_end(code, start + attribute.len())));
        }
    }
    items
}

/// The end of the item that begins at `at`: its closing brace, or a semicolon before any brace.
pub(crate) fn item_end(code: &str, at: usize) -> usize {
    let mut depth = 0usize;
    for (offset, byte) in code.as_bytes()[at..].iter().enumerate() {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && *byte == b'}' {
                    return at + offset + 1;
                }
            }
            b';' if depth == 0 => return at + offset + 1,
            _ => {}
        }
    }
    code.len()
}

/// A path as written, `use` trees expanded: `a::{b, c::d}` is `a::b` and `a::c::d`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedPath {
    pub(crate) at: usize,
    pub(crate) segments: Vec<String>,
}

/// All `::` paths of two segments or more.
pub(crate) fn paths(code: &str) -> Vec<NamedPath> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !is_word(bytes[at]) {
            at += 1;
            continue;
        }
        let end = word_end(bytes, at);
        let continues = code[..at].trim_end().ends_with("::");
        if continues || bytes[at].is_ascii_digit() {
            at = end;
            continue;
        }
        let mut prefix = vec![code[at..end].to_owned()];
        // Past the whole tree: the names inside its braces are no paths of their own.
        at = follow(code, at, end, &mut prefix, &mut found).max(end);
    }
    found
}

fn word_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| !is_word(*byte)).map_or(bytes.len(), |n| at + n)
}

/// Follows a path from the end of its last known segment. Depth is bounded by the text.
fn follow(
    code: &str,
    start: usize,
    end: usize,
    prefix: &mut Vec<String>,
    found: &mut Vec<NamedPath>,
) -> usize {
    let after = rest(code, end);
    let next = code.len() - after.len();
    let Some(tail) = after.strip_prefix("::") else {
        if prefix.len() > 1 {
            found.push(NamedPath { at: start, segments: prefix.clone() });
        }
        return end;
    };
    let tail_at = code.len() - tail.trim_start().len();
    let bytes = code.as_bytes();
    match bytes.get(tail_at) {
        Some(b'{') => group(code, tail_at, prefix, found),
        Some(byte) if is_word(*byte) => {
            let word = word_end(bytes, tail_at);
            prefix.push(code[tail_at..word].to_owned());
            let end = follow(code, start, word, prefix, found);
            prefix.pop();
            end
        }
        // A glob or a turbofish: the path so far is what counts.
        _ => {
            if prefix.len() > 1 {
                found.push(NamedPath { at: start, segments: prefix.clone() });
            }
            next + 2
        }
    }
}

fn group(code: &str, open: usize, prefix: &mut Vec<String>, found: &mut Vec<NamedPath>) -> usize {
    let bytes = code.as_bytes();
    let mut at = open + 1;
    while at < bytes.len() && bytes[at] != b'}' {
        if is_word(bytes[at]) {
            let word = word_end(bytes, at);
            prefix.push(code[at..word].to_owned());
            at = follow(code, at, word, prefix, found).max(word);
            prefix.pop();
        } else {
            at += 1;
        }
    }
    at + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blank_and_code_is_not() {
        let text = "let a = \"un/*safe\"; // unsafe\nlet b = r#\"x\"y\"#; /* a /* b */ c */ d();\n";
        let code = blank(text);
        assert_eq!(code.len(), text.len());
        assert_eq!(code.lines().count(), 2);
        assert!(!code.contains("safe"));
        assert!(code.contains("let b = ") && code.ends_with("d();\n"));
    }

    #[test]
    fn lifetimes_are_code_and_chars_are_not() {
        let code = blank("fn f<'a>(x: &'a str) { g('{', '\\'', '\u{e9}', '\\u{1f}'); }");
        assert!(code.starts_with("fn f<"));
        assert_eq!(code.matches('{').count(), 1);
        assert!(code.contains("a>(x: & a str)") || code.contains("a>(x: &"));
    }

    #[test]
    fn a_name_that_ends_in_r_before_a_string_is_no_raw_string() {
        let code = blank("bar!(\"a\\\"b\"); br\"c\\\"; next");
        assert!(code.contains("bar!(") && code.contains("next"));
    }

    #[test]
    fn use_trees_are_expanded() {
        let named: Vec<String> =
            paths("use crate::{govern::{walk, price::Rate}, io};\nlet x = std::io::Error;")
                .into_iter()
                .map(|path| path.segments.join("::"))
                .collect();
        let expected =
            ["crate::govern::walk", "crate::govern::price::Rate", "crate::io", "std::io::Error"];
        assert_eq!(named, expected);
    }

    #[test]
    fn globs_and_turbofish_end_a_path() {
        let named = paths("use crate::govern::*; let v = Vec::<u8>::new(); store::open::<u8>()");
        assert_eq!(named[0].segments, ["crate", "govern"]);
        assert!(named.iter().any(|path| path.segments == ["store", "open"]));
    }

    #[test]
    fn a_test_item_ends_with_its_brace_or_its_semicolon() {
        let code =
            "a();\n#[cfg(test)]\nmod tests { fn x() {} }\nb();\n#[cfg(test)]\nmod more;\nc();";
        let covered: Vec<&str> =
            test_items(code).iter().map(|(from, to)| &code[*from..*to]).collect();
        assert_eq!(covered.len(), 2);
        assert!(covered[0].ends_with("fn x() {} }") && covered[1].ends_with("mod more;"));
    }
}
