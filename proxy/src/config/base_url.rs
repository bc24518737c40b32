//! A provider's `base_url`, taken apart by hand: what to dial, what goes into `Host`, and the
//! path in front of every route.
//!
//! Strict where readers of URLs differ: no user information, query, fragment, backslash,
//! non-ASCII letter or dot segment; an IPv6 address only in brackets. No error repeats the URL,
//! since people put passwords into them. A zone (`%25eth0`) is resolved here, once: it goes into
//! the address that is dialled and never into `Host` (RFC 6874, RFC 9110 §4.2.3).

use super::env::Env;
use super::snapshot::Host;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::path::Path;

/// Port of `http` without one.
const HTTP_PORT: u16 = 80;

/// Longest URL: four times what the longest host name needs.
const URL_BYTES_MAX: usize = 1024;

/// Longest host name in the DNS.
const NAME_BYTES_MAX: usize = 253;

/// Longest label of a host name.
const LABEL_BYTES_MAX: usize = 63;

/// Longest name of a network interface on Linux (IFNAMSIZ without its NUL).
const INTERFACE_BYTES_MAX: usize = 15;

/// A checked base URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BaseUrl {
    /// For `Host`: without zone, without the default port.
    pub(super) authority: Box<str>,
    pub(super) host: Host,
    pub(super) port: u16,
    /// Without a trailing slash; empty for the root.
    pub(super) path: Box<str>,
}

impl BaseUrl {
    /// Reads a URL; `env` is asked for the number of a zone's interface.
    pub(super) fn parse(text: &str, env: &dyn Env) -> Result<BaseUrl, String> {
        if text.len() > URL_BYTES_MAX {
            return Err("base_url is longer than 1 KiB".into());
        }
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err("base_url has a space, a control character or a letter outside ASCII in \
                        it; write a name in its xn-- form"
                .into());
        }
        let rest = without_scheme(text)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        for (mark, what) in [
            ('?', "a query"),
            ('#', "a fragment"),
            ('\\', "a backslash"),
            ('@', "user information"),
        ] {
            if rest.contains(mark) {
                return Err(format!("base_url must not have {what}"));
            }
        }
        let path = checked_path(path)?;
        let (host, port, shown) = match authority.strip_prefix('[') {
            Some(rest) => bracketed(rest, env)?,
            None => plain(authority)?,
        };
        let authority = match port {
            HTTP_PORT => shown,
            port => format!("{shown}:{port}"),
        };
        Ok(BaseUrl { authority: authority.into(), host, port, path: path.into() })
    }
}

fn without_scheme(text: &str) -> Result<&str, String> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err("base_url must begin with http://".into());
    };
    if scheme.eq_ignore_ascii_case("https") {
        return Err("base_url: TLS to upstreams is not built yet, only http:// is".into());
    }
    if !scheme.eq_ignore_ascii_case("http") {
        return Err("base_url must begin with http://".into());
    }
    Ok(rest)
}

/// `::1]:9000` or `fe80::1%25eth0]`: what follows the opening bracket.
fn bracketed(rest: &str, env: &dyn Env) -> Result<(Host, u16, String), String> {
    let Some((inside, after)) = rest.split_once(']') else {
        return Err("base_url has an opening bracket and no closing one".into());
    };
    let port = match after {
        "" => HTTP_PORT,
        after => port(after.strip_prefix(':').ok_or("base_url has text behind the bracket")?)?,
    };
    let (address, zone) = match inside.split_once('%') {
        Some((address, zone)) => {
            let zone = zone.strip_prefix("25").ok_or("base_url: a zone is written as %25eth0")?;
            (address, Some(zone))
        }
        None => (inside, None),
    };
    let address: Ipv6Addr =
        address.parse().map_err(|_| "base_url has no IPv6 address in its brackets")?;
    let shown = format!("[{address}]");
    let scope = match (address.is_unicast_link_local(), zone) {
        (true, Some(zone)) => scope_id(zone, env)?,
        (true, None) => return Err("base_url: a link-local address needs a zone, %25eth0".into()),
        (false, Some(_)) => return Err("base_url: only a link-local address has a zone".into()),
        (false, None) => 0,
    };
    // A mapped address is dialled as what it maps, so that it also works without IPv6.
    let dialled = match address.to_ipv4_mapped() {
        Some(mapped) => SocketAddr::new(IpAddr::V4(mapped), port),
        None => SocketAddr::V6(SocketAddrV6::new(address, port, 0, scope)),
    };
    Ok((Host::Address(dialled), port, shown))
}

/// The number of a zone: a number as it is, or an interface's name as the kernel lists it.
fn scope_id(zone: &str, env: &dyn Env) -> Result<u32, String> {
    let unknown = || "base_url: there is no network interface of this zone's name".to_owned();
    if zone.bytes().all(|b| b.is_ascii_digit()) {
        return zone.parse().ok().filter(|&id| id != 0).ok_or_else(unknown);
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.@".contains(&b);
    if zone.len() > INTERFACE_BYTES_MAX || zone.starts_with('.') || !zone.bytes().all(plain) {
        return Err(unknown());
    }
    let path = Path::new("/sys/class/net").join(zone).join("ifindex");
    let index = env.read_file(&path).map_err(|_| unknown())?;
    index.trim_end().parse().ok().filter(|&id| id != 0).ok_or_else(unknown)
}

/// A name or an IPv4 address, with or without a port.
fn plain(authority: &str) -> Result<(Host, u16, String), String> {
    let (host, port) = match authority.split_once(':') {
        None => (authority, HTTP_PORT),
        Some((_, rest)) if rest.contains(':') => {
            return Err("base_url: an IPv6 address is written in brackets".into());
        }
        Some((host, digits)) => (host, port(digits)?),
    };
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        let dialled = SocketAddr::new(IpAddr::V4(address), port);
        return Ok((Host::Address(dialled), port, host.to_owned()));
    }
    let name = host.to_ascii_lowercase();
    if !is_name(&name) {
        return Err("base_url has neither a host name nor an address".into());
    }
    Ok((Host::Name(name.as_str().into()), port, name))
}

/// A name of the DNS. The last label is not a number, or other readers would see an address.
fn is_name(name: &str) -> bool {
    let label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let bare = name.strip_suffix('.').unwrap_or(name);
    let last = bare.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|b| b.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    name.len() <= NAME_BYTES_MAX && bare.split('.').all(label) && !numeric
}

/// Digits alone: no sign, nothing empty, not zero.
fn port(digits: &str) -> Result<u16, String> {
    let wrong = "base_url has a port that is not a number from 1 to 65535";
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong.into());
    }
    digits.parse().ok().filter(|&port| port != 0).ok_or_else(|| wrong.into())
}

fn checked_path(path: &str) -> Result<&str, String> {
    let path = path.trim_end_matches('/');
    let mut segments = path.split('/').skip(1);
    if segments.any(|s| s.is_empty() || s == "." || s == "..") {
        return Err("base_url has an empty or a dot segment in its path".into());
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:/".contains(&b);
    if !path.bytes().all(allowed) {
        return Err("base_url has a character in its path that does not belong there".into());
    }
    Ok(path)
}

#[cfg(test)]
mod tests;
