//! Sets of bytes as tables, and names compared without regard to case.
//!
//! Both exist because they run for every head: a table costs two instructions a byte, and a name is
//! compared a word at a time.

/// Letters, digits and the bytes in `others`.
pub(super) const fn byte_set(others: &[u8]) -> [bool; 256] {
    let mut set = [false; 256];
    let mut rest: &[u8] = others;
    while let [byte, tail @ ..] = rest {
        set = with(set, *byte);
        rest = tail;
    }
    let mut byte = 0_u8;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() {
            set = with(set, byte);
        }
        byte += 1;
    }
    set
}

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler; a u8 is below 256")]
const fn with(mut set: [bool; 256], byte: u8) -> [bool; 256] {
    set[byte as usize] = true;
    set
}

/// A byte of a token, RFC 9110 5.6.2.
#[inline]
pub(super) fn is_token(byte: u8) -> bool {
    TOKEN_BYTES.get(usize::from(byte)).copied().unwrap_or(false)
}

static TOKEN_BYTES: [bool; 256] = byte_set(b"!#$%&'*+-.^_`|~");

/// Whether a name or an option is `lower`, which consists of lower-case letters and hyphens.
/// Setting the case bit makes equal what is equal but for case, and nothing else: the only other
/// byte that it maps onto one of those is CR, onto the hyphen, and CR is in no part of a parsed
/// head.
#[inline]
pub(super) fn is_name<const N: usize>(name: &[u8], lower: &[u8; N]) -> bool {
    let Some((name, [])) = name.split_first_chunk::<N>() else { return false };
    let differing = name.iter().zip(lower).map(|(byte, lower)| (byte | CASE_BIT) ^ lower);
    differing.fold(0, |any, one| any | one) == 0
}

const CASE_BIT: u8 = 0x20;

#[cfg(test)]
mod tests {
    use super::{is_name, is_token};

    #[test]
    fn only_case_is_forgiven() {
        let name = b"content-length";
        assert!(is_name(b"content-length", name) && is_name(b"Content-LENGTH", name));
        for byte in 0..=255_u8 {
            for at in 0..name.len() {
                let mut other = *name;
                other[at] = byte;
                let same = byte != b'\r' && is_name(&other, name);
                assert_eq!(same, other.eq_ignore_ascii_case(name), "{byte} at {at}");
            }
        }
        assert!(!is_name(b"content-lengt", name) && !is_name(b"content-lengths", name));
    }

    #[test]
    fn tokens() {
        let tokens: Vec<u8> = (0..=255).filter(|&byte| is_token(byte)).collect();
        let expected =
            b"!#$%&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~";
        assert_eq!(tokens, expected);
    }
}
