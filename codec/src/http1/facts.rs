//! What the field lines of one head say about framing, connection and host.
//!
//! Names are told apart by length and first letter: of the dozen lines of a usual head only those
//! that say something here are compared at all. Deliberately keeps no other field: the rest is
//! looked up in [`super::Fields`].

use super::HeadError;
use super::authority::is_authority;
use super::bytes::{is_name, is_token};
use super::connection::Options;

/// How the body behind a head is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body, whatever the fields announce.
    None,
    /// Exactly so many bytes; zero is possible.
    Length(u64),
    /// Chunks up to the last one and its trailer.
    Chunked,
    /// Everything up to the end of the connection. Responses only.
    UntilClose,
}

/// What the client expects before it sends the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing. Also `100-continue` in HTTP/1.0, which has no such answer.
    None,
    /// `100-continue`: an interim answer or a final one.
    Continue,
    /// Something else: answer 417.
    Other,
}

/// Collected over the lines of one head, judged once at its end.
pub(super) struct Facts {
    minor: u8,
    pub(super) host: bool,
    pub(super) connection: Options,
    pub(super) first_connection: Option<usize>,
    pub(super) authorizations: u8,
    length: Option<u64>,
    chunked: bool,
    upgrade_named: bool,
    expect: Expect,
}

impl Facts {
    pub(super) fn new(minor: u8) -> Self {
        Self {
            minor,
            host: false,
            connection: Options::default(),
            first_connection: None,
            authorizations: 0,
            length: None,
            chunked: false,
            upgrade_named: false,
            expect: Expect::None,
        }
    }

    /// Whether a line of that name is worth a call of [`Self::note`]: told by length and first
    /// letter, which leaves out nearly all that say nothing here.
    #[inline]
    pub(super) fn may_concern(name: &[u8]) -> bool {
        let first = name.first().map(|byte| byte | 0x20);
        first.is_some() && first.as_ref() == FIRST_LETTERS.get(name.len())
    }

    /// Takes in line number `index`.
    #[inline(never)]
    pub(super) fn note(
        &mut self,
        index: usize,
        name: &[u8],
        value: &[u8],
    ) -> Result<(), HeadError> {
        match name.len() {
            4 if is_name(name, b"host") => self.note_host(value),
            6 if is_name(name, b"expect") => {
                self.note_expect(value);
                Ok(())
            }
            7 if is_name(name, b"upgrade") => {
                self.upgrade_named = true;
                Ok(())
            }
            10 if is_name(name, b"connection") => {
                self.first_connection.get_or_insert(index);
                self.connection.note(value)
            }
            13 if is_name(name, b"authorization") => {
                self.authorizations = self.authorizations.saturating_add(1);
                Ok(())
            }
            14 if is_name(name, b"content-length") => self.note_length(value),
            17 if is_name(name, b"transfer-encoding") => self.note_encoding(value),
            _ => Ok(()),
        }
    }

    fn note_host(&mut self, value: &[u8]) -> Result<(), HeadError> {
        if self.host {
            return Err(HeadError::HostRepeated);
        }
        if !is_authority(value) {
            return Err(HeadError::HostMalformed);
        }
        self.host = true;
        Ok(())
    }

    fn note_expect(&mut self, value: &[u8]) {
        let known = value.eq_ignore_ascii_case(b"100-continue");
        self.expect = match (self.expect, known) {
            (Expect::None | Expect::Continue, true) => Expect::Continue,
            _ => Expect::Other,
        };
    }

    fn note_length(&mut self, value: &[u8]) -> Result<(), HeadError> {
        if self.length.is_some() {
            return Err(HeadError::LengthRepeated);
        }
        if self.chunked {
            return Err(HeadError::LengthWithEncoding);
        }
        self.length = Some(length(value).ok_or(HeadError::LengthMalformed)?);
        Ok(())
    }

    fn note_encoding(&mut self, value: &[u8]) -> Result<(), HeadError> {
        if self.length.is_some() {
            return Err(HeadError::LengthWithEncoding);
        }
        if self.chunked {
            return Err(HeadError::EncodingRepeated);
        }
        if self.minor == 0 {
            return Err(HeadError::EncodingInHttp10);
        }
        if !value.eq_ignore_ascii_case(CHUNKED) {
            return Err(other_encoding(value));
        }
        self.chunked = true;
        Ok(())
    }

    /// The framing that the fields announce; `bare` is what holds when they announce none.
    pub(super) fn framing(&self, bare: Framing) -> Framing {
        match (self.chunked, self.length) {
            (true, _) => Framing::Chunked,
            (false, Some(length)) => Framing::Length(length),
            (false, None) => bare,
        }
    }

    pub(super) fn keep_alive(&self) -> bool {
        !self.connection.close && (self.minor == 1 || self.connection.keep_alive)
    }

    pub(super) fn upgrade(&self) -> bool {
        self.minor == 1 && self.upgrade_named && self.connection.upgrade
    }

    pub(super) fn expect(&self) -> Expect {
        match self.expect {
            Expect::Continue if self.minor == 0 => Expect::None,
            expect => expect,
        }
    }
}

/// The first letter of the name in [`Facts::note`] that has this length; zero where there is none.
const FIRST_LETTERS: [u8; 18] = *b"\0\0\0\0h\0eu\0\0c\0\0ac\0\0t";

/// Digits of a `Content-Length`: as many as cannot overflow. Nobody sends ten exabytes.
const LENGTH_DIGITS_MAX: usize = 19;

/// Digits only: `str::parse` would let a plus sign through.
#[inline]
fn length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > LENGTH_DIGITS_MAX {
        return None;
    }
    let mut sum = 0;
    for &byte in value {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        sum = sum * 10 + u64::from(digit);
    }
    Some(sum)
}

/// The one transfer coding that is read.
const CHUNKED: &[u8] = b"chunked";

/// What is wrong with codings that are not `chunked` alone. Only a list that ends in it says where
/// the body ends; of one that does not nobody may guess.
fn other_encoding(value: &[u8]) -> HeadError {
    let mut codings = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let last = codings.next_back().unwrap_or_default();
    let known = |coding: &[u8]| coding.eq_ignore_ascii_case(CHUNKED);
    let token = |coding: &[u8]| !coding.is_empty() && coding.iter().copied().all(is_token);
    if known(last) && codings.all(|coding| token(coding) && !known(coding)) {
        HeadError::EncodingUnsupported
    } else {
        HeadError::EncodingMalformed
    }
}

#[cfg(test)]
mod tests {
    use super::{Expect, Facts, Framing, length};

    #[test]
    fn every_name_that_is_noted_may_concern() {
        let mut facts = Facts::new(1);
        for (name, value) in [
            ("Host", "gw.test"),
            ("EXPECT", "x"),
            ("upgrade", "x"),
            ("Connection", "upgrade"),
            ("authorization", "x"),
            ("Content-Length", "3"),
        ] {
            assert!(Facts::may_concern(name.as_bytes()), "{name}");
            facts.note(0, name.as_bytes(), value.as_bytes()).unwrap();
        }
        assert!(facts.host && facts.upgrade() && facts.expect() == Expect::Other);
        assert_eq!((facts.authorizations, facts.framing(Framing::None)), (1, Framing::Length(3)));
        assert_eq!(facts.first_connection, Some(0));
        let mut facts = Facts::new(1);
        assert!(Facts::may_concern(b"Transfer-Encoding"));
        facts.note(0, b"Transfer-Encoding", b"chunked").unwrap();
        assert_eq!(facts.framing(Framing::None), Framing::Chunked);
        for name in ["", "user-agent", "accept", "x-stainless-os", "content-type"] {
            assert!(!Facts::may_concern(name.as_bytes()), "{name}");
        }
        assert!(!Facts::may_concern(&[b'c'; 300]));
    }

    #[test]
    fn lengths_are_up_to_nineteen_digits() {
        for (text, expected) in [
            ("0", Some(0)),
            ("003", Some(3)),
            ("9999999999999999999", Some(9_999_999_999_999_999_999)),
            ("00000000000000000003", None),
            ("18446744073709551615", None),
            ("18446744073709551643", None),
            ("", None),
            ("+27", None),
            ("-27", None),
            ("2 7", None),
            ("27;", None),
            ("0x1b", None),
            ("27, 27", None),
            ("\u{b}27", None),
            ("\u{663}", None),
        ] {
            assert_eq!(length(text.as_bytes()), expected, "{text:?}");
        }
    }
}
