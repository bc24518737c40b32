//! `host [":" port]`, as in `Host`, in absolute-form and in CONNECT.
//!
//! Follows RFC 3986 without user information, without zone identifiers and without IPvFuture:
//! nobody sends those to a gateway, and parsers disagree on where their host ends. Names are not
//! resolved.

/// Longest authority taken: a DNS name of 253 bytes, or its percent-encoded form, and a port.
const AUTHORITY_BYTES_MAX: usize = 1024;

/// Whether the bytes are a host with an optional port. An empty host is none.
pub(super) fn is_authority(bytes: &[u8]) -> bool {
    if bytes.len() > AUTHORITY_BYTES_MAX {
        return false;
    }
    if let Some(literal) = bytes.strip_prefix(b"[") {
        let Some(close) = memchr::memchr(b']', literal) else { return false };
        let (address, rest) = literal.split_at(close);
        return is_ipv6(address) && is_port_suffix(rest.get(1..).unwrap_or_default());
    }
    let host_len = memchr::memchr(b':', bytes).unwrap_or(bytes.len());
    let (host, rest) = bytes.split_at(host_len);
    !host.is_empty() && is_reg_name(host) && is_port_suffix(rest)
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

fn is_reg_name(host: &[u8]) -> bool {
    let mut rest = host;
    loop {
        match rest {
            [] => return true,
            [b'%', high, low, tail @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                rest = tail;
            }
            [byte, tail @ ..] if is_reg_name_byte(*byte) => rest = tail,
            _ => return false,
        }
    }
}

fn is_reg_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte)
}

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
