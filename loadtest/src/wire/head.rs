//! A head as it lies in a buffer: start line and fields, found but not copied. Judges nothing but
//! the lines' shape; what a field means is decided elsewhere.

use memchr::{memchr, memchr_iter};

/// A whole head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    bytes: &'a [u8],
}

impl<'a> Head<'a> {
    /// The head at the start of `bytes`, once its blank line is there.
    pub(crate) fn find(bytes: &'a [u8]) -> Option<Head<'a>> {
        memchr_iter(b'\n', bytes)
            .find(|&at| at >= 3 && &bytes[at - 3..=at] == b"\r\n\r\n")
            .map(|at| Head { bytes: &bytes[..=at] })
    }

    /// A head that was found before and kept.
    pub(crate) fn kept(bytes: &'a [u8]) -> Head<'a> {
        Head { bytes }
    }

    /// All its bytes, the blank line included.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its length, the blank line included.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The first line without its end.
    pub(crate) fn start_line(&self) -> &'a [u8] {
        let end = memchr(b'\n', self.bytes).unwrap_or(self.bytes.len());
        self.bytes[..end].strip_suffix(b"\r").unwrap_or(&self.bytes[..end])
    }

    /// The fields in order.
    pub(crate) fn fields(&self) -> Fields<'a> {
        let start = memchr(b'\n', self.bytes).map_or(self.bytes.len(), |at| at + 1);
        Fields { rest: &self.bytes[start..] }
    }

    /// The first field of this name, which is given in lower case.
    pub(crate) fn field(&self, name: &str) -> Option<&'a [u8]> {
        let name = name.as_bytes();
        self.fields().flatten().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The three words of a request line.
    pub(crate) fn request_line(&self) -> Option<(&'a [u8], &'a [u8], &'a [u8])> {
        let mut words = self.start_line().split(|&byte| byte == b' ');
        let line = (words.next()?, words.next()?, words.next()?);
        let known = line.2 == b"HTTP/1.1" || line.2 == b"HTTP/1.0";
        (words.next().is_none() && known && !line.0.is_empty() && !line.1.is_empty())
            .then_some(line)
    }

    /// The status of a status line.
    pub(crate) fn status(&self) -> Option<u16> {
        let rest = self.start_line().strip_prefix(b"HTTP/1.")?;
        let [b'0' | b'1', b' ', hundreds @ b'1'..=b'9', tens, ones, after @ ..] = rest else {
            return None;
        };
        if !matches!(after.first(), None | Some(b' ')) {
            return None;
        }
        number(&[*hundreds, *tens, *ones]).and_then(|status| u16::try_from(status).ok())
    }
}

/// Field lines; `None` stands for a line that is not `name: value`.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(&'a [u8], &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        let end = memchr(b'\n', self.rest)?;
        let (line, rest) = (&self.rest[..end], &self.rest[end + 1..]);
        self.rest = rest;
        if line == b"\r" {
            return None;
        }
        Some(field(line))
    }
}

fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.strip_suffix(b"\r")?;
    let colon = memchr(b':', line)?;
    let (name, value) = (&line[..colon], trim(&line[colon + 1..]));
    // folds, not `all`: without an early exit the compiler checks many bytes at once
    let token = name.iter().fold(true, |ok, byte| ok & (b'!'..=b'~').contains(byte));
    let text = value
        .iter()
        .fold(true, |ok, &byte| ok & ((byte >= b' ' && byte != 0x7f) | (byte == b'\t')));
    (!name.is_empty() && token && text).then_some((name, value))
}

/// Without spaces and tabs at both ends.
pub(crate) fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Digits alone, without sign or space.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| {
        byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::{Head, number, trim};

    #[test]
    fn a_head_is_found_only_whole() {
        let bytes = b"POST /v1 HTTP/1.1\r\nHost: a\r\nX-Two:  b \r\n\r\nbody";
        for cut in 0..bytes.len() - 4 {
            assert!(Head::find(&bytes[..cut]).is_none(), "{cut}");
        }
        let head = Head::find(bytes).unwrap();
        assert_eq!(head.len(), bytes.len() - 4);
        assert_eq!(head.request_line(), Some((&b"POST"[..], &b"/v1"[..], &b"HTTP/1.1"[..])));
        assert_eq!(head.field("x-two"), Some(&b"b"[..]));
        assert_eq!(head.field("x-three"), None);
        assert_eq!(head.fields().count(), 2);
    }

    #[test]
    fn a_line_that_is_no_field_is_reported_as_such() {
        for bad in ["no colon", ": empty", "a b: c", "a: b\0c", "a: b\rc", " fold: x"] {
            let text = format!("HTTP/1.1 200 OK\r\n{bad}\r\n\r\n");
            let head = Head::find(text.as_bytes()).unwrap();
            assert!(head.fields().any(|field| field.is_none()), "{bad:?}");
        }
    }

    #[test]
    fn status_lines() {
        let status = |text: &str| Head::kept(text.as_bytes()).status();
        assert_eq!(status("HTTP/1.1 200 OK\r\n\r\n"), Some(200));
        assert_eq!(status("HTTP/1.0 404\r\n\r\n"), Some(404));
        for bad in ["HTTP/2 200 OK", "HTTP/1.1 2000", "HTTP/1.1 20", "ICY 200 OK", "HTTP/1.1  200"]
        {
            assert_eq!(status(&format!("{bad}\r\n\r\n")), None, "{bad}");
        }
    }

    #[test]
    fn numbers_are_digits_alone() {
        assert_eq!(number(b"0027"), Some(27));
        for bad in ["", "+27", "-1", " 27", "27 ", "2,7", "0x1b", "99999999999999999999"] {
            assert_eq!(number(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(trim(b" \t a b\t "), b"a b");
    }
}
