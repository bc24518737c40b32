//! An answer as a client sees it, read strictly: the framing must be beyond doubt.

use crate::fields::{self, Pairs};

/// How an answer's body was delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framed {
    /// It has none.
    Bodyless,
    /// By its length.
    Length,
    /// By chunks.
    Chunked,
    /// By the end of the connection.
    Close,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its reason phrase.
    pub reason: String,
    /// Names in lower case, in order.
    pub fields: Pairs,
    /// The decoded body.
    pub body: Vec<u8>,
    /// How it was delimited.
    pub framed: Framed,
}

impl Answer {
    /// The first value of a name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<String> {
        let first = fields::all(&self.fields, name).first().copied();
        first.map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// How often a name occurs.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        fields::all(&self.fields, name).len()
    }

    /// Whether the connection ends with it.
    #[must_use]
    pub fn closes(&self) -> bool {
        let close = |value: &[u8]| value.eq_ignore_ascii_case(b"close");
        fields::all(&self.fields, "connection").into_iter().any(close)
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// `error.code` of an error in the shape of OpenAI.
    #[must_use]
    pub fn code(&self) -> String {
        let body: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// What can be said of the bytes so far.
pub(crate) enum Reading {
    /// An answer, and how many bytes it took.
    Done(Answer, usize),
    /// More must come.
    More,
}

/// Reads the answer at the front of `bytes`. `ended`: nothing will follow them.
pub(crate) fn read(bytes: &[u8], to_head: bool, ended: bool) -> Result<Reading, String> {
    let Some((line, fields, start)) = fields::head(bytes)? else {
        return if ended && !bytes.is_empty() {
            Err("cut in the head".into())
        } else {
            more(ended)
        };
    };
    let (status, reason) = status_line(&line)?;
    let rest = &bytes[start..];
    let length = fields::length(&fields)?;
    let coded = fields::all(&fields, "transfer-encoding");
    let bodyless = to_head || status < 200 || status == 204 || status == 304;
    if !coded.is_empty() && length.is_some() {
        return Err("both framings".into());
    }
    if !to_head && bodyless && (!coded.is_empty() || length.is_some()) {
        return Err(format!("framing on a {status}"));
    }
    let (framed, body, taken) = if bodyless {
        (Framed::Bodyless, Vec::new(), 0)
    } else if let Some(length) = length {
        match rest.get(..length) {
            Some(body) => (Framed::Length, body.to_vec(), length),
            None if ended => return Err(format!("cut at {} of {length}", rest.len())),
            None => return Ok(Reading::More),
        }
    } else if !coded.is_empty() {
        if coded != [b"chunked"] {
            return Err(format!("transfer-encoding {coded:?}"));
        }
        match chunks(rest)? {
            Some((body, taken)) => (Framed::Chunked, body, taken),
            None if ended => return Err("cut in the chunks".into()),
            None => return Ok(Reading::More),
        }
    } else if ended {
        (Framed::Close, rest.to_vec(), rest.len())
    } else {
        return Ok(Reading::More);
    };
    Ok(Reading::Done(Answer { status, reason, fields, body, framed }, start + taken))
}

fn more(ended: bool) -> Result<Reading, String> {
    if ended { Err("no answer".into()) } else { Ok(Reading::More) }
}

fn status_line(line: &str) -> Result<(u16, String), String> {
    let wrong = || format!("status line {line:?}");
    let rest = line.strip_prefix("HTTP/1.1 ").ok_or_else(wrong)?;
    let (code, reason) = rest.split_once(' ').ok_or_else(wrong)?;
    if code.len() != 3 || !code.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    Ok((code.parse().map_err(|_| wrong())?, reason.to_owned()))
}

/// The decoded body and the bytes it took; no extension and no trailer is ours to send.
fn chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, String> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let rest = &bytes[at..];
        let Some(line) = rest.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
        let digits = String::from_utf8_lossy(&rest[..line]).into_owned();
        let hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let size = usize::from_str_radix(&digits, 16).ok().filter(|_| hex);
        let size = size.ok_or_else(|| format!("chunk size {digits:?}"))?;
        let Some(data) = rest.get(line + 2..line + 2 + size + 2) else { return Ok(None) };
        if !data.ends_with(b"\r\n") {
            return Err(format!("chunk of {size} does not end"));
        }
        body.extend_from_slice(&data[..size]);
        at += line + 2 + size + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str, ended: bool) -> String {
        match read(text.as_bytes(), false, ended) {
            Ok(Reading::Done(answer, taken)) => {
                format!("{} {:?} {:?} {taken}", answer.status, answer.framed, answer.text())
            }
            Ok(Reading::More) => "more".into(),
            Err(why) => why,
        }
    }

    #[test]
    fn framing_is_beyond_doubt_or_refused() {
        for (text, ended, expected) in [
            ("HTTP/1.1 200 OK\r\ncontent-length:   2\r\n\r\n{}x", false, "200 Length \"{}\" 42"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}", false, "more"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}", true, "cut at 2 of 3"),
            ("HTTP/1.1 200 OK\r\n\r\n{}", true, "200 Close \"{}\" 21"),
            ("HTTP/1.1 204 No\r\n\r\n", false, "204 Bodyless \"\" 19"),
            ("HTTP/1.1 204 No\r\ncontent-length: 0\r\n\r\n", false, "framing on a 204"),
            ("HTTP/1.1 20 OK\r\n\r\n", false, "status line \"HTTP/1.1 20 OK\""),
            ("HTTP/1.1 200 OK\r\na : b\r\n\r\n", true, "no token before the colon of \"a : b\""),
            ("", true, "no answer"),
        ] {
            assert_eq!(verdict(text, ended), expected, "{text}");
        }
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        for (body, expected) in [
            ("2\r\n{}\r\n0\r\n\r\n", "200 Chunked \"{}\" 59"),
            ("2\r\n{}\r\n0\r\n", "cut in the chunks"),
            ("2;a\r\n{}\r\n0\r\n\r\n", "chunk size \"2;a\""),
            ("2\r\n{}\r\n0\r\nx: y\r\n\r\n", "chunk of 0 does not end"),
        ] {
            assert_eq!(verdict(&format!("{chunked}{body}"), true), expected, "{body}");
        }
    }
}
