//! What a request asks for: the dialect by its path, the rest by its body, found without building
//! anything. No judgement: a body that is not JSON asks for nothing. Escapes are left as they are.

use memchr::memchr2;
use serde::Serialize;

/// The dialect of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// None of ours.
    #[default]
    None,
    /// `…/chat/completions`.
    Chat,
    /// `…/messages`.
    Messages,
    /// `…/messages/count_tokens`.
    CountTokens,
}

/// What of a request decides the form of its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) dialect: Dialect,
    pub(super) stream: bool,
    /// `stream_options.include_usage`.
    pub(super) include_usage: bool,
}

impl Form {
    /// How many there are.
    pub(super) const COUNT: usize = 16;

    /// Its place among all.
    pub(super) fn index(self) -> usize {
        (self.dialect as usize) * 4 + usize::from(self.stream) * 2 + usize::from(self.include_usage)
    }

    /// All that a path can give.
    #[cfg(test)]
    pub(super) fn all() -> impl Iterator<Item = Form> {
        [Dialect::Chat, Dialect::Messages, Dialect::CountTokens].into_iter().flat_map(|dialect| {
            [(false, false), (true, false), (true, true)].map(|(stream, include_usage)| Form {
                dialect,
                stream,
                include_usage,
            })
        })
    }
}

/// The members of a body that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ask<'a> {
    /// The first `model` that is a string; empty if none.
    pub(super) model: &'a [u8],
    pub(super) stream: bool,
    pub(super) include_usage: bool,
}

impl<'a> Ask<'a> {
    /// Reads the top level of `body`.
    pub(super) fn read(body: &'a [u8]) -> Ask<'a> {
        let mut ask = Ask::default();
        for (key, value) in Members::of(body) {
            match key {
                b"model" if ask.model.is_empty() => ask.model = text(value).unwrap_or_default(),
                b"stream" => ask.stream = value.starts_with(b"true"),
                b"stream_options" => {
                    ask.include_usage = Members::of(value)
                        .any(|(key, value)| key == b"include_usage" && value.starts_with(b"true"));
                }
                _ => {}
            }
        }
        ask
    }
}

/// The model alone, as soon as it is there.
pub(super) fn model(body: &[u8]) -> Option<&[u8]> {
    Members::of(body).find(|(key, _)| *key == b"model").and_then(|(_, value)| text(value))
}

/// The members of an object: each key, and all bytes from its value on. Ends where the object
/// does, or where it has no shape.
struct Members<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Members<'a> {
    fn of(bytes: &'a [u8]) -> Members<'a> {
        let at = skip_spaces(bytes, 0).filter(|&at| bytes[at] == b'{');
        Members { bytes, at: at.map_or(bytes.len(), |at| at + 1) }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.bytes;
        let mut depth = 0_usize;
        loop {
            match *bytes.get(self.at)? {
                b'"' => {
                    let (text, end) = string(bytes, self.at + 1)?;
                    self.at = end;
                    if depth > 0 {
                        continue;
                    }
                    let colon = skip_spaces(bytes, end)?;
                    // a string that is a value has a comma or the end behind it
                    if bytes[colon] == b':' {
                        let value = skip_spaces(bytes, colon + 1)?;
                        self.at = value;
                        return Some((text, &bytes[value..]));
                    }
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            self.at += 1;
        }
    }
}

fn text(value: &[u8]) -> Option<&[u8]> {
    (value.first() == Some(&b'"')).then(|| string(value, 1)).flatten().map(|(text, _)| text)
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
    use super::{Ask, Form, model};

    #[test]
    fn the_top_level_model_is_found() {
        let model = |text: &str| {
            let found = model(text.as_bytes()).map(<[u8]>::to_vec);
            assert_eq!(Ask::read(text.as_bytes()).model, found.clone().unwrap_or_default());
            found
        };
        assert_eq!(model(r#"{"model":"a"}"#).as_deref(), Some(&b"a"[..]));
        assert_eq!(
            model(r#"{"tools":[{"model":"x"}],"t":"\"model\":\"y\"","model" : "z"}"#).as_deref(),
            Some(&b"z"[..])
        );
        assert_eq!(model(r#" {"user":"model","model":"b"}"#).as_deref(), Some(&b"b"[..]));
        assert_eq!(model(r#"{"model":"early","messages":"cut"#).as_deref(), Some(&b"early"[..]));
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

    #[test]
    fn stream_and_its_options_are_found_wherever_they_stand() {
        let asked = |text: &str| {
            let ask = Ask::read(text.as_bytes());
            (ask.stream, ask.include_usage)
        };
        assert_eq!(asked(r#"{"model":"a","stream":true}"#), (true, false));
        assert_eq!(
            asked(
                r#"{"stream_options":{"a":[{}],"include_usage" : true},"m":["a"],"stream":true}"#
            ),
            (true, true)
        );
        assert_eq!(
            asked(r#"{"stream":true,"stream_options":{"include_usage":false}}"#),
            (true, false)
        );
        assert_eq!(asked(r#"{"a":{"stream":true,"include_usage":true}}"#), (false, false));
        assert_eq!(asked(r#"{"stream":false,"stream_options":null}"#), (false, false));
        assert_eq!(asked(r#"{"a":"stream","stream":null}"#), (false, false));
    }

    #[test]
    fn each_form_has_its_place() {
        let mut places: Vec<usize> = Form::all().map(Form::index).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), Form::all().count());
        assert!(places.iter().all(|&place| place < Form::COUNT));
    }
}
