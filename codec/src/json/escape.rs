//! Escapes of JSON strings, both ways: a scanned string to text, a text to a string.
//!
//! Reading goes into a caller's buffer and expects a string that has passed the scan; a lone
//! surrogate has no text and is named. Writing escapes only what RFC 8259 demands.

/// Why a string has no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnescapeError {
    /// Longer than the buffer.
    TooLong,
    /// A surrogate without its partner.
    LoneSurrogate,
    /// Not a string the scan would have passed.
    Malformed,
}

/// Writes the text of a string (given between its quotes) into `buffer`.
///
/// # Errors
///
/// If the text does not fit, has a lone surrogate, or was never scanned.
pub fn unescape_into<'o>(raw: &[u8], buffer: &'o mut [u8]) -> Result<&'o str, UnescapeError> {
    let length = {
        let mut out = Out { buffer, length: 0 };
        let mut rest = raw;
        while let Some((&byte, tail)) = rest.split_first() {
            if byte == b'\\' {
                rest = out.escape(tail)?;
            } else {
                out.push(&[byte])?;
                rest = tail;
            }
        }
        out.length
    };
    let text = buffer.get(..length).unwrap_or_default();
    std::str::from_utf8(text).map_err(|_| UnescapeError::Malformed)
}

struct Out<'o> {
    buffer: &'o mut [u8],
    length: usize,
}

impl Out<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), UnescapeError> {
        let end = self.length + bytes.len();
        let place = self.buffer.get_mut(self.length..end).ok_or(UnescapeError::TooLong)?;
        place.copy_from_slice(bytes);
        self.length = end;
        Ok(())
    }

    /// Takes what follows a backslash, gives back what follows the escape.
    fn escape<'r>(&mut self, tail: &'r [u8]) -> Result<&'r [u8], UnescapeError> {
        let (&kind, rest) = tail.split_first().ok_or(UnescapeError::Malformed)?;
        let byte = match kind {
            b'"' | b'\\' | b'/' => kind,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode(rest),
            _ => return Err(UnescapeError::Malformed),
        };
        self.push(&[byte])?;
        Ok(rest)
    }

    /// Takes what follows `\u`.
    fn unicode<'r>(&mut self, tail: &'r [u8]) -> Result<&'r [u8], UnescapeError> {
        let (unit, rest) = hex4(tail)?;
        let (scalar, rest) = match unit {
            0xd800..=0xdbff => {
                let low = rest.strip_prefix(b"\\u").ok_or(UnescapeError::LoneSurrogate)?;
                let (low, after) = hex4(low)?;
                if !(0xdc00..=0xdfff).contains(&low) {
                    return Err(UnescapeError::LoneSurrogate);
                }
                (0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00), after)
            }
            _ => (unit, rest),
        };
        let character = char::from_u32(scalar).ok_or(UnescapeError::LoneSurrogate)?;
        self.push(character.encode_utf8(&mut [0; 4]).as_bytes())?;
        Ok(rest)
    }
}

fn hex4(tail: &[u8]) -> Result<(u32, &[u8]), UnescapeError> {
    let (digits, rest) = tail.split_first_chunk::<4>().ok_or(UnescapeError::Malformed)?;
    let mut value = 0;
    for &digit in digits {
        let digit = char::from(digit).to_digit(16).ok_or(UnescapeError::Malformed)?;
        value = value * 16 + digit;
    }
    Ok((value, rest))
}

/// Appends `text` as a JSON string with its quotes. Grows `out`: meant for names that are
/// written once, when a configuration is compiled, or into a buffer that is kept.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text.as_bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..=0x1f => out.extend_from_slice(&[
                b'\\',
                b'u',
                b'0',
                b'0',
                hex_digit(byte >> 4),
                hex_digit(byte & 15),
            ]),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

fn hex_digit(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' + (nibble - 10) }
}
