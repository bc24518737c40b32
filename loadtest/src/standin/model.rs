//! The top-level `"model"` of a JSON body, found without building anything. No judgement: a body
//! that is not JSON has no model. Escapes in the name are left as they are.

use memchr::memchr2;

/// The value of the top-level key `model`, if it is a string.
pub(super) fn find(body: &[u8]) -> Option<&[u8]> {
    let (mut at, mut depth) = (0_usize, 0_usize);
    loop {
        match *body.get(at)? {
            b'"' => {
                let (text, end) = string(body, at + 1)?;
                at = end;
                if depth == 1 && text == b"model" {
                    let value = skip_spaces(body, at)?;
                    if body[value] == b':' {
                        let value = skip_spaces(body, value + 1)?;
                        return (body[value] == b'"')
                            .then(|| string(body, value + 1))
                            .flatten()
                            .map(|(text, _)| text);
                    }
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
    }
}

/// The string that starts at `from` and the place behind its closing quote.
fn string(body: &[u8], from: usize) -> Option<(&[u8], usize)> {
    let mut at = from;
    loop {
        at += memchr2(b'"', b'\\', body.get(at..)?)?;
        if body[at] == b'"' {
            return Some((&body[from..at], at + 1));
        }
        at += 2;
    }
}

fn skip_spaces(body: &[u8], from: usize) -> Option<usize> {
    body.get(from..)?
        .iter()
        .position(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
        .map(|skipped| from + skipped)
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn the_top_level_model_is_found() {
        let model = |text: &str| find(text.as_bytes()).map(|name| name.to_vec());
        assert_eq!(model(r#"{"model":"a"}"#).as_deref(), Some(&b"a"[..]));
        assert_eq!(
            model(r#"{"tools":[{"model":"x"}],"t":"\"model\":\"y\"","model" : "z"}"#).as_deref(),
            Some(&b"z"[..])
        );
        assert_eq!(model(r#"{"user":"model","model":"b"}"#).as_deref(), Some(&b"b"[..]));
        for none in [
            "",
            "{}",
            r#"{"model":1}"#,
            r#"{"model":"cut"#,
            r#"{"m":{"model":"a"}}"#,
            r#"["model","a"]"#,
            "}",
            r#"{"model""#,
        ] {
            assert_eq!(model(none), None, "{none}");
        }
    }
}
