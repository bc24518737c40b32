//! The request target: which form it has, and where its path lies.
//!
//! Origin-form and absolute-form (`http` and `https`, host with optional port, no user information)
//! are taken; `*` for OPTIONS only; an authority for CONNECT only. Nothing is decoded or
//! normalised: what is matched is what was sent. `#` is refused, since a fragment has no place here
//! and readers that cut it off see another path than readers that do not.

use super::authority::is_authority;
use super::{HeadError, Method, Span};

/// The request target by form. Spans point into the head's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `/path?query`.
    Origin(Span),
    /// `http://authority/path?query`: the authority wins over `Host`. The path span starts at `/`
    /// or `?`, or is empty when the URL ends with its authority; both of the latter mean path `/`.
    Absolute {
        /// Host and optional port of the URL.
        authority: Span,
        /// What an origin-form target would have been.
        path: Span,
    },
    /// `*` of OPTIONS.
    Asterisk,
    /// `host:port` of CONNECT.
    Authority(Span),
}

impl Target {
    /// Path and query of the forms that have one.
    #[must_use]
    pub fn path(self) -> Option<Span> {
        match self {
            Self::Origin(path) | Self::Absolute { path, .. } => Some(path),
            Self::Asterisk | Self::Authority(_) => None,
        }
    }
}

/// Judges the target that lies at `start` of its buffer.
pub(super) fn classify(bytes: &[u8], start: usize, method: Method) -> Result<Target, HeadError> {
    // httparse lets any UTF-8 pass here. A fold, since it is vectorised and `all` is not.
    if bytes.iter().fold(false, |bad, &byte| bad | !byte.is_ascii_graphic() | (byte == b'#')) {
        return Err(HeadError::TargetByte);
    }
    let whole = Span::new(start, bytes.len()).ok_or(HeadError::HeadTooLarge)?;
    match (bytes.first(), method) {
        (_, Method::Connect) if is_authority(bytes) => Ok(Target::Authority(whole)),
        (_, Method::Connect) => Err(HeadError::TargetForm),
        (Some(b'/'), _) => Ok(Target::Origin(whole)),
        (Some(b'*'), Method::Options) if bytes.len() == 1 => Ok(Target::Asterisk),
        _ => absolute(bytes, start),
    }
}

fn absolute(bytes: &[u8], start: usize) -> Result<Target, HeadError> {
    let scheme_len = [&b"http://"[..], b"https://"]
        .into_iter()
        .find(|scheme| starts_with_any_case(bytes, scheme))
        .map(<[u8]>::len)
        .ok_or(HeadError::TargetForm)?;
    let rest = bytes.get(scheme_len..).unwrap_or_default();
    let authority_len = memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_len);
    if !is_authority(authority) {
        return Err(HeadError::TargetForm);
    }
    let authority_start = start + scheme_len;
    let spans = Span::new(authority_start, authority_len)
        .zip(Span::new(authority_start + authority_len, path.len()));
    let (authority, path) = spans.ok_or(HeadError::HeadTooLarge)?;
    Ok(Target::Absolute { authority, path })
}

fn starts_with_any_case(bytes: &[u8], prefix: &[u8]) -> bool {
    bytes.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
mod tests {
    use super::{Target, classify};
    use crate::http1::{HeadError, Method};

    fn path(text: &str) -> Option<&str> {
        let target = classify(text.as_bytes(), 0, Method::Get).unwrap();
        std::str::from_utf8(target.path()?.of(text.as_bytes())).ok()
    }

    #[test]
    fn paths_are_found_in_both_forms() {
        assert_eq!(path("/v1/models?x=1"), Some("/v1/models?x=1"));
        assert_eq!(path("http://gw.test/v1/models"), Some("/v1/models"));
        assert_eq!(path("HTTPS://gw.test:443/v1?k"), Some("/v1?k"));
        assert_eq!(path("http://gw.test?hail=all"), Some("?hail=all"));
        assert_eq!(path("http://gw.test"), Some(""));
    }

    #[test]
    fn forms_fit_their_method() {
        assert_eq!(classify(b"*", 0, Method::Options), Ok(Target::Asterisk));
        assert_eq!(classify(b"*", 0, Method::Get), Err(HeadError::TargetForm));
        assert_eq!(classify(b"**", 0, Method::Options), Err(HeadError::TargetForm));
        assert!(classify(b"gw.test:443", 0, Method::Connect).is_ok());
        assert_eq!(classify(b"/x", 0, Method::Connect), Err(HeadError::TargetForm));
        assert_eq!(classify(b"gw.test:443", 0, Method::Get), Err(HeadError::TargetForm));
    }

    #[test]
    fn doubtful_targets_are_refused() {
        for text in ["http://", "http:///x", "http://u:p@h/x", "ftp://h/x", "http:/h", "v1", ""] {
            assert_eq!(
                classify(text.as_bytes(), 0, Method::Get),
                Err(HeadError::TargetForm),
                "{text}"
            );
        }
        for text in ["/a#b", "/\u{e9}", "/a\u{7f}", "/a\tb", "/a\0b"] {
            assert_eq!(
                classify(text.as_bytes(), 0, Method::Get),
                Err(HeadError::TargetByte),
                "{text}"
            );
        }
    }
}
