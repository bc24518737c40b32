//! `host [":" port]`, as in `Host`, in absolute-form and in CONNECT.
//!
//! Follows RFC 3986 without user information, without zone identifiers and without IPvFuture:
//! nobody sends those to a gateway, and parsers disagree on where their host ends. Names are not
//! resolved.

use super::bytes::byte_set;

/// Longest authority taken: a DNS name of 253 bytes, or its percent-encoded form, and a port.
const AUTHORITY_BYTES_MAX: usize = 1024;

/// Whether the bytes are a host with an optional port. An empty host is none.
pub(super) fn is_authority(bytes: &[u8]) -> bool {
    if bytes.len() > AUTHORITY_BYTES_MAX {
        return false;
    }
    match bytes {
        [b'[', literal @ ..] => is_ip_literal(literal),
        _ => {
            let (host, port) = bytes.split_at(reg_name_len(bytes));
            !host.is_empty() && is_port_suffix(port)
        }
    }
}

/// An address and `]`, with what may follow a host.
fn is_ip_literal(literal: &[u8]) -> bool {
    let Some(close) = memchr::memchr(b']', literal) else { return false };
    let (address, rest) = literal.split_at(close);
    is_ipv6(address) && is_port_suffix(rest.get(1..).unwrap_or_default())
}

fn is_ipv6(address: &[u8]) -> bool {
    core::str::from_utf8(address)
        .is_ok_and(|text| !text.contains('%') && text.parse::<core::net::Ipv6Addr>().is_ok())
}

/// Nothing, or a colon with at most five digits that fit a port; the digits may be absent.
fn is_port_suffix(rest: &[u8]) -> bool {
    let Some(digits) = rest.strip_prefix(b":") else { return rest.is_empty() };
    digits.len() <= 5
        && digits.iter().all(u8::is_ascii_digit)
        && digits.iter().fold(0_u32, |sum, digit| sum * 10 + u32::from(digit - b'0')) <= 65_535
}

/// Bytes from the start that can be a registered name: with whole percent-encoded triplets.
fn reg_name_len(bytes: &[u8]) -> usize {
    let mut len = 0;
    loop {
        let rest = bytes.get(len..).unwrap_or_default();
        len += plain_len(rest);
        match bytes.get(len..) {
            Some([b'%', high, low, ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                len += 3;
            }
            _ => return len,
        }
    }
}

/// Bytes from the start that stand for themselves; four are looked up without a branch between
/// them.
#[inline]
fn plain_len(bytes: &[u8]) -> usize {
    let (fours, _) = bytes.as_chunks::<4>();
    let all = |four: &&[u8; 4]| four.iter().fold(true, |all, &byte| all & is_reg_name_byte(byte));
    let whole = fours.iter().take_while(all).count() * 4;
    let rest = bytes.get(whole..).unwrap_or_default();
    whole + rest.iter().position(|&byte| !is_reg_name_byte(byte)).unwrap_or(rest.len())
}

#[inline]
fn is_reg_name_byte(byte: u8) -> bool {
    REG_NAME_BYTES.get(usize::from(byte)).copied().unwrap_or(false)
}

static REG_NAME_BYTES: [bool; 256] = byte_set(b"-._~!$&'()*+,;=");

#[cfg(test)]
mod tests {
    use super::is_authority;

    #[test]
    fn hosts_that_are_taken() {
        for host in [
            "gw.test",
            "gw.test:80",
            "gw.test:",
            "127.0.0.1:65535",
            "[::1]",
            "[::1]:4180",
            "[::ffff:127.0.0.1]",
            "0.0.0.0=5000",
            "a_b",
            "a%2Db",
        ] {
            assert!(is_authority(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn hosts_that_are_refused() {
        for host in [
            "",
            ":80",
            "a b",
            "a,b c",
            "u@h",
            "a/b",
            "a?b",
            "a#b",
            "a\\b",
            "h:65536",
            "h:000080",
            "h:8o",
            "h:80:80",
            "::1",
            "[::1",
            "[::1]x",
            "[fe80::1%25eth0]",
            "[v1.x]",
            "[]",
            "a%2",
            "a%zz",
            "caf\u{e9}",
            "h:+80",
            "h: 80",
        ] {
            assert!(!is_authority(host.as_bytes()), "{host}");
        }
        assert!(!is_authority(&[b'a'; 1025]));
    }
}
