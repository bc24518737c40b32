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

/// Port of `https` without one.
const HTTPS_PORT: u16 = 443;

/// Longest URL: four times what the longest host name needs.
const URL_BYTES_MAX: usize = 1024;

/// Longest host name in the DNS.
const NAME_BYTES_MAX: usize = 253;

/// Longest label of a host name.
const LABEL_BYTES_MAX: usize = 63;

/// Longest name of a network interface on Linux (IFNAMSIZ without its NUL).
const INTERFACE_BYTES_MAX: usize = 15;

/// What is wrong with a URL: every fault, each once.
type Faults = Vec<&'static str>;

/// A checked base URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BaseUrl {
    /// Whether it begins with `https`.
    pub(super) secured: bool,
    /// For `Host`: without zone, without the default port.
    pub(super) authority: Box<str>,
    pub(super) host: Host,
    pub(super) port: u16,
    /// Without a trailing slash; empty for the root.
    pub(super) path: Box<str>,
}

impl BaseUrl {
    /// Reads a URL; `env` is asked for the number of a zone's interface. Every fault is told.
    pub(super) fn parse(text: &str, env: &dyn Env) -> Result<BaseUrl, Faults> {
        if text.len() > URL_BYTES_MAX {
            return Err(vec!["base_url is longer than 1 KiB"]);
        }
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(vec![
                "base_url has a space, a control character or a letter outside ASCII in it; write \
                 a name in its xn-- form",
            ]);
        }
        let mut faults = Faults::new();
        let (secured, rest) = scheme(text, &mut faults);
        let default = if secured { HTTPS_PORT } else { HTTP_PORT };
        for (mark, why) in [
            ('?', "base_url must not have a query"),
            ('#', "base_url must not have a fragment"),
            ('\\', "base_url must not have a backslash"),
            ('@', "base_url must not have user information"),
        ] {
            if rest.contains(mark) {
                faults.push(why);
            }
        }
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let path = checked_path(path, &mut faults);
        let host = match authority.strip_prefix('[') {
            // Told already, and what it does to the host is anybody's guess.
            _ if authority.contains('\\') => None,
            Some(rest) => bracketed(rest, default, env, &mut faults),
            None => plain(authority, default, &mut faults),
        };
        let (Some((host, port, shown)), true) = (host, faults.is_empty()) else {
            return Err(faults);
        };
        let authority = if port == default { shown } else { format!("{shown}:{port}") };
        Ok(BaseUrl { secured, authority: authority.into(), host, port, path: path.into() })
    }
}

/// Whether the scheme is that of TLS, and what follows it; without one, all of it, so that the
/// rest is looked at too.
fn scheme<'t>(text: &'t str, faults: &mut Vec<&'static str>) -> (bool, &'t str) {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let secured = scheme.eq_ignore_ascii_case("https");
    if !secured && !scheme.eq_ignore_ascii_case("http") {
        faults.push("base_url must begin with https:// or http://");
    }
    (secured, rest)
}

/// `::1]:9000` or `fe80::1%25eth0]`: what follows the opening bracket.
fn bracketed(
    rest: &str,
    default: u16,
    env: &dyn Env,
    faults: &mut Faults,
) -> Option<(Host, u16, String)> {
    let mut fault = |why| faults.push(why);
    let Some((inside, after)) = rest.split_once(']') else {
        fault("base_url has an opening bracket and no closing one");
        return None;
    };
    let port = match after.strip_prefix(':') {
        Some(digits) => port(digits).map_err(&mut fault).ok(),
        None if after.is_empty() => Some(default),
        None => {
            fault("base_url has text behind the bracket");
            None
        }
    };
    let (address, zone) = match inside.split_once('%') {
        Some((address, zone)) => {
            let bare = zone.strip_prefix("25");
            if bare.is_none() {
                fault("base_url: a zone is written as %25eth0");
            }
            (address, bare.map(Some)?)
        }
        None => (inside, None),
    };
    let Ok(address) = address.parse::<Ipv6Addr>() else {
        fault("base_url has no IPv6 address in its brackets");
        return None;
    };
    let scope = match (address.is_unicast_link_local(), zone) {
        (true, Some(zone)) => scope_id(zone, env),
        (true, None) => Err("base_url: a link-local address needs a zone, %25eth0"),
        (false, Some(_)) => Err("base_url: only a link-local address has a zone"),
        (false, None) => Ok(0),
    };
    let (scope, port) = (scope.map_err(&mut fault).ok()?, port?);
    // A mapped address is dialled as what it maps, so that it also works without IPv6.
    let dialled = match address.to_ipv4_mapped() {
        Some(mapped) => SocketAddr::new(IpAddr::V4(mapped), port),
        None => SocketAddr::V6(SocketAddrV6::new(address, port, 0, scope)),
    };
    Some((Host::Address(dialled), port, format!("[{address}]")))
}

/// The number of a zone: a number as it is, or an interface's name as the kernel lists it.
fn scope_id(zone: &str, env: &dyn Env) -> Result<u32, &'static str> {
    let unknown = || "base_url: there is no network interface of this zone's name";
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
fn plain(authority: &str, default: u16, faults: &mut Faults) -> Option<(Host, u16, String)> {
    let (host, port) = match authority.split_once(':') {
        None => (authority, Ok(default)),
        Some((_, rest)) if rest.contains(':') => {
            faults.push("base_url: an IPv6 address is written in brackets");
            return None;
        }
        Some((host, digits)) => (host, port(digits)),
    };
    let port = port.map_err(|why| faults.push(why)).ok();
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        let port = port?;
        let dialled = SocketAddr::new(IpAddr::V4(address), port);
        return Some((Host::Address(dialled), port, host.to_owned()));
    }
    let name = host.to_ascii_lowercase();
    if !is_name(&name) {
        faults.push("base_url has neither a host name nor an address");
        return None;
    }
    Some((Host::Name(name.as_str().into()), port?, name))
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
fn port(digits: &str) -> Result<u16, &'static str> {
    let wrong = "base_url has a port that is not a number from 1 to 65535";
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong);
    }
    digits.parse().ok().filter(|&port| port != 0).ok_or(wrong)
}

fn checked_path<'t>(path: &'t str, faults: &mut Faults) -> &'t str {
    let path = path.trim_end_matches('/');
    let mut segments = path.split('/').skip(1);
    if segments.any(|s| s.is_empty() || s == "." || s == "..") {
        faults.push("base_url has an empty or a dot segment in its path");
    }
    // A backslash is told as such.
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/\\".contains(&b);
    if !path.bytes().all(allowed) {
        faults.push("base_url has a character in its path that does not belong there");
    }
    path
}

#[cfg(test)]
mod tests;
