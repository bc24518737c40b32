//! W3C Trace Context: which trace a request belongs to, read from `traceparent` and `tracestate`
//! and written again for the next hop.
//!
//! What is not exactly a `traceparent` is none: then the trace begins here, and a `tracestate`
//! beside it means nothing. A `tracestate` of which one member is malformed is none either. It
//! deliberately adds no member, looks into none, and drops no duplicate. Bound: [`MEMBERS_MAX`].

/// Members of a `tracestate`; a list with more goes nowhere.
pub const MEMBERS_MAX: usize = 32;

/// The whole line of the field, as it is written: its length is always the same.
pub const LINE: &[u8; LINE_BYTES] =
    b"traceparent: 00-00000000000000000000000000000000-0000000000000000-00\r\n";

/// Bytes of [`LINE`].
pub const LINE_BYTES: usize = 70;

/// Bytes of the field's value in version 00.
const VALUE_BYTES: usize = 55;

/// Where the trace's id begins in the line.
const TRACE_AT: usize = 16;

/// Digits of the trace's id.
const ID_DIGITS: usize = 32;

/// Where the parent's id begins in the line.
const PARENT_AT: usize = 49;

/// Where the flags begin in the line.
const FLAGS_AT: usize = 66;

/// Flags that are defined: sampled, and that the trace's id is random.
const FLAGS: u8 = 0b11;

/// Longest key of a member.
const KEY_BYTES_MAX: usize = 256;

/// Longest value of a member.
const MEMBER_BYTES_MAX: usize = 256;

/// A trace, as a hop is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Never zero.
    pub id: [u8; 16],
    /// Whether it is recorded, and whether its id is random; nothing else.
    pub flags: u8,
}

impl Trace {
    /// Reads a field's value.
    pub fn parse(value: &[u8]) -> Option<Trace> {
        let (fixed, rest) = value.split_at_checked(VALUE_BYTES)?;
        let [b'0'..=b'9' | b'a'..=b'f', b'0'..=b'9' | b'a'..=b'f', ..] = fixed else { return None };
        let version = fixed.get(..2)?;
        // A later version may say more, behind another dash.
        let ends = rest.is_empty() || version != b"00" && rest.first() == Some(&b'-');
        let dashed = [2, 35, 52].iter().all(|at| fixed.get(*at) == Some(&b'-'));
        if version == b"ff" || !ends || !dashed {
            return None;
        }
        let id: [u8; 16] = hexadecimal(fixed.get(3..35)?)?;
        let parent: [u8; 8] = hexadecimal(fixed.get(36..52)?)?;
        let [flags] = hexadecimal(fixed.get(53..)?)?;
        let there = id != [0; 16] && parent != [0; 8];
        there.then_some(Trace { id, flags: flags & FLAGS })
    }

    /// The line of the field for the next hop, whose parent is `span`.
    pub fn line(&self, span: u64) -> [u8; LINE_BYTES] {
        let mut line = *LINE;
        write(&mut line, TRACE_AT, &self.id);
        write(&mut line, FLAGS_AT, &[self.flags]);
        set_span(&mut line, span);
        line
    }
}

/// The trace's id in a line.
pub fn id_of(line: &[u8]) -> Option<[u8; 16]> {
    id(line.get(TRACE_AT..TRACE_AT + ID_DIGITS)?)
}

/// A trace's id as the field spells it.
pub fn id(text: &[u8]) -> Option<[u8; 16]> {
    hexadecimal(text).filter(|id| *id != [0; 16])
}

/// Makes `span` the parent in a line; zero is no span and is taken for one.
pub fn set_span(line: &mut [u8], span: u64) {
    write(line, PARENT_AT, &span.max(1).to_be_bytes());
}

/// How many members the value of one `tracestate` field has, empty ones not among them; `None` if
/// one of them is malformed.
pub fn members(value: &[u8]) -> Option<usize> {
    let mut count = 0;
    for member in value.split(|byte| *byte == b',') {
        let member = trimmed(member);
        if member.is_empty() {
            continue;
        }
        let at = member.iter().position(|byte| *byte == b'=')?;
        let (key, value) = (member.get(..at)?, member.get(at + 1..)?);
        if !is_key(key) || !is_value(value) {
            return None;
        }
        count += 1;
    }
    Some(count)
}

fn is_key(key: &[u8]) -> bool {
    let begins = key.first().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-*/@".contains(b);
    begins && key.len() <= KEY_BYTES_MAX && key.iter().all(plain)
}

fn is_value(value: &[u8]) -> bool {
    let plain = |b: &u8| (b' '..=b'~').contains(b) && *b != b'=';
    (1..=MEMBER_BYTES_MAX).contains(&value.len()) && value.iter().all(plain)
}

/// Without spaces and tabs at both ends; a value may begin with a space, behind its `=`.
fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Lower-case digits only, as the field is defined.
fn hexadecimal<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

/// Writes digits into a line that has room for them.
fn write(line: &mut [u8], at: usize, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let places = line.get_mut(at..).unwrap_or_default().chunks_exact_mut(2);
    for (place, byte) in places.zip(bytes) {
        let digits = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        place.copy_from_slice(&digits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_was_read_and_a_parent_of_its_own() {
        let value = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff";
        let trace = Trace::parse(value).unwrap();
        assert_eq!(trace.flags, 3, "flags that are not defined are not passed on");
        let line = trace.line(0x0123_4567_89ab_cdef);
        let wanted = b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-0123456789abcdef-03\r\n";
        assert_eq!(&line, wanted);
        let value = &line[13..68];
        assert_eq!(Trace::parse(value), Some(trace), "what is written can be read");
        assert!(Trace::parse(&trace.line(0)[13..68]).is_some(), "no span is none");
        let mut other = line;
        set_span(&mut other, 1);
        assert_eq!(&other[49..65], b"0000000000000001");
        set_span(&mut other[..20], 7);
    }

    #[test]
    fn what_is_not_exactly_one_is_none() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        for at in 0..good.len() {
            assert!(Trace::parse(&good.as_bytes()[..at]).is_none(), "{at}");
            let mut bytes = good.as_bytes().to_vec();
            bytes[at] = b'G';
            assert!(Trace::parse(&bytes).is_none(), "{at}");
        }
        for (value, fits) in [
            (good.to_owned(), true),
            (good.replace("00-", "cc-"), true),
            (good.replace("00-", "cc-") + "-more", true),
            (good.replace("00-", "cc-") + "more", false),
            (good.to_owned() + "-more", false),
            (good.replace("00-", "ff-"), false),
            (good.to_uppercase(), false),
            (good.replace("b7ad6b7169203331", "0000000000000000"), false),
        ] {
            assert_eq!(Trace::parse(value.as_bytes()).is_some(), fits, "{value}");
        }
    }

    #[test]
    fn members_are_counted_and_one_malformed_spoils_them_all() {
        let long = |n| format!("a={}", "v".repeat(n));
        for (value, count) in [
            ("", Some(0)),
            (" , \t,", Some(0)),
            ("foo=1,bar=2", Some(2)),
            ("foo=1 \t , bar= 2", Some(2)),
            ("a@b@c=1", Some(1)),
            ("1a=1", Some(1)),
            ("@a=1", None),
            ("foo", None),
            ("foo=", None),
            ("foo=a=b", None),
            ("foo =1", None),
            ("Foo=1", None),
            ("foo=\u{e9}", None),
            (&long(256), Some(1)),
            (&long(257), None),
            (&format!("{}=1", "k".repeat(257)), None),
        ] {
            assert_eq!(members(value.as_bytes()), count, "{value}");
        }
    }
}
