//! What the field lines of one head say about framing, connection and host.
//!
//! Names are told apart by length first: of the dozen lines of a usual head only two or three are
//! compared at all. Deliberately keeps no other field: the rest is looked up in [`super::Fields`].

use super::HeadError;
use super::authority::is_authority;
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

    /// Takes in line number `index`.
    #[inline]
    pub(super) fn note(
        &mut self,
        index: usize,
        name: &[u8],
        value: &[u8],
    ) -> Result<(), HeadError> {
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => self.note_host(value),
            6 if name.eq_ignore_ascii_case(b"expect") => {
                self.note_expect(value);
                Ok(())
            }
            7 if name.eq_ignore_ascii_case(b"upgrade") => {
                self.upgrade_named = true;
                Ok(())
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                self.first_connection.get_or_insert(index);
                self.connection.note(value)
            }
            13 if name.eq_ignore_ascii_case(b"authorization") => {
                self.authorizations = self.authorizations.saturating_add(1);
                Ok(())
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => self.note_length(value),
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.note_encoding(value),
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
        if !value.eq_ignore_ascii_case(b"chunked") {
            return Err(HeadError::EncodingUnsupported);
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

/// Digits only: `str::parse` would let a plus sign through.
fn length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0_u64, |sum, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::length;

    #[test]
    fn lengths_are_digits_below_two_to_the_64() {
        for (text, expected) in [
            ("0", Some(0)),
            ("003", Some(3)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
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
