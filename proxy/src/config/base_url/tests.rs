//! URLs by table: what is dialled, what goes into `Host`, and what is refused.

use super::super::tests::World;
use super::*;

fn parse(text: &str) -> Result<BaseUrl, String> {
    BaseUrl::parse(text, &World::usual()).map_err(|faults| faults.join("; "))
}

#[test]
fn every_fault_of_a_url_is_told() {
    for (url, faults) in [
        (
            "https://user:pw@host:99999/a/../b?x=1",
            &["a query", "user information", "a dot segment", "a port"][..],
        ),
        ("ftp://a b", &["a space"]),
        ("host:0//v1", &["begin with https:// or http://", "an empty or a dot segment", "a port"]),
        ("http://[fe80::1]:x#y", &["a fragment", "a port", "needs a zone"]),
        ("http://a..b:x/\"", &["a character in its path", "a port", "neither a host name"]),
        ("http://a\\b/c\\d", &["a backslash"]),
    ] {
        let told = BaseUrl::parse(url, &World::usual()).unwrap_err();
        assert_eq!(told.len(), faults.len(), "{url}: {told:?}");
        for (fault, told) in faults.iter().zip(&told) {
            assert!(told.contains(fault), "{url}: {told}");
        }
    }
}

/// Case `net-ipv6-zone` and its neighbours: URL, dialled, `Host`, path.
#[test]
fn what_is_dialled_and_what_is_said_are_kept_apart() {
    for (url, dialled, authority, path) in [
        ("http://[::1]:9000", "[::1]:9000", "[::1]:9000", ""),
        ("http://[fe80::1%25eth0]:9000/v1", "[fe80::1%7]:9000", "[fe80::1]:9000", "/v1"),
        ("http://[fe80::1%2512]:9000/v1", "[fe80::1%12]:9000", "[fe80::1]:9000", "/v1"),
        ("http://[::ffff:127.0.0.1]/", "127.0.0.1:80", "[::ffff:127.0.0.1]", ""),
        ("http://[2001:DB8:0::1]/v1/", "[2001:db8::1]:80", "[2001:db8::1]", "/v1"),
        ("http://127.0.0.1:9000/v1", "127.0.0.1:9000", "127.0.0.1:9000", "/v1"),
        ("http://127.0.0.1:80/v1", "127.0.0.1:80", "127.0.0.1", "/v1"),
        ("HTTP://127.0.0.1:080", "127.0.0.1:80", "127.0.0.1", ""),
        ("https://127.0.0.1/v1", "127.0.0.1:443", "127.0.0.1", "/v1"),
        ("https://127.0.0.1:80/v1", "127.0.0.1:80", "127.0.0.1:80", "/v1"),
        ("HTTPS://[::1]:443", "[::1]:443", "[::1]", ""),
    ] {
        let parsed = parse(url).unwrap();
        assert_eq!(parsed.secured, url.to_lowercase().starts_with("https"), "{url}");
        assert_eq!(parsed.host, Host::Address(dialled.parse().unwrap()), "{url}");
        assert_eq!((&*parsed.authority, &*parsed.path), (authority, path), "{url}");
    }
    for (url, name, port, authority, path) in [
        ("http://api.openai.test/v1", "api.openai.test", 80, "api.openai.test", "/v1"),
        ("http://API.Openai.test:8080//", "api.openai.test", 8080, "api.openai.test:8080", ""),
        ("http://llm/a/b:c,d/", "llm", 80, "llm", "/a/b:c,d"),
        ("http://my_llm.internal./a-b/c~1", "my_llm.internal.", 80, "my_llm.internal.", "/a-b/c~1"),
        ("http://1.2.3.4.test", "1.2.3.4.test", 80, "1.2.3.4.test", ""),
        ("http://llm:443", "llm", 443, "llm:443", ""),
        ("https://api.openai.test/v1", "api.openai.test", 443, "api.openai.test", "/v1"),
        ("https://api.openai.test:8443", "api.openai.test", 8443, "api.openai.test:8443", ""),
    ] {
        let parsed = parse(url).unwrap();
        assert_eq!((parsed.host, parsed.port), (Host::Name(name.into()), port), "{url}");
        assert_eq!((&*parsed.authority, &*parsed.path), (authority, path), "{url}");
    }
}

#[test]
fn a_url_that_readers_could_read_differently_is_refused() {
    let long = format!("http://a/{}", "x".repeat(1024));
    let label = format!("http://{}.test", "x".repeat(64));
    let name = format!("http://{}test", "xx.".repeat(84));
    for (url, why) in [
        ("http://::1:9000", "written in brackets"),
        ("http://user:pw@host/v1", "must not have user information"),
        ("http://host/v1?x=1", "must not have a query"),
        ("http://host/v1#x", "must not have a fragment"),
        ("http://host\\@evil/v1", "must not have a backslash"),
        ("ftp://host", "must begin with https:// or http://"),
        ("host/v1", "must begin with https:// or http://"),
        ("", "must begin with https:// or http://"),
        ("http://", "neither a host name nor an address"),
        ("http:///v1", "neither a host name nor an address"),
        ("http://:80", "neither a host name nor an address"),
        ("http://host:", "port that is not"),
        ("http://host:0", "port that is not"),
        ("http://host:65536", "port that is not"),
        ("http://host:+80", "port that is not"),
        ("http://host:8o", "port that is not"),
        ("http://[::1]:", "port that is not"),
        ("http://[::1", "no closing one"),
        ("http://[::1]9000", "text behind the bracket"),
        ("http://[127.0.0.1]", "no IPv6 address in its brackets"),
        ("http://[]", "no IPv6 address in its brackets"),
        ("http://[fe80::1%eth0]", "a zone is written as %25eth0"),
        ("http://[fe80::1%25eth9]", "no network interface"),
        ("http://[fe80::1%25]", "no network interface"),
        ("http://[fe80::1%250]", "no network interface"),
        ("http://[fe80::1%25..]", "no network interface"),
        ("http://[fe80::1%2599999999999]", "no network interface"),
        ("http://[fe80::1%25a-name-too-long-for-linux]", "no network interface"),
        ("http://[fe80::1]", "needs a zone"),
        ("http://[::1%25eth0]", "only a link-local address has a zone"),
        ("http://1.2.3", "neither a host name nor an address"),
        ("http://127.1", "neither a host name nor an address"),
        ("http://0x7f000001", "neither a host name nor an address"),
        ("http://2130706433", "neither a host name nor an address"),
        ("http://127.0.0.01", "neither a host name nor an address"),
        ("http://a..b", "neither a host name nor an address"),
        ("http://-a.test", "neither a host name nor an address"),
        ("http://a%2fb", "neither a host name nor an address"),
        ("http://host/a/../b", "a dot segment"),
        ("http://host/./b", "a dot segment"),
        ("http://host//b", "an empty or a dot segment"),
        ("http://host/%2e%2e/b", "a character in its path"),
        ("http://host/a\"b", "a character in its path"),
        ("http://host/a b", "a space, a control character"),
        ("http://host\r\nX: 1", "a space, a control character"),
        ("http://hôst/", "a letter outside ASCII"),
        (&long, "longer than 1 KiB"),
        (&label, "neither a host name nor an address"),
        (&name, "neither a host name nor an address"),
    ] {
        let error = parse(url).unwrap_err();
        assert!(error.contains(why), "{url}: {error}");
    }
}
