//! Whether a provider is this gateway itself, which every call would go round to: by address and
//! port, as far as this machine says what its addresses are. Nothing is resolved by asking anybody.
//! What leads back by another name, or through something else, is refused by the first call
//! (`loop_detected`).

use super::compile::Config;
use super::env::Env;
use super::file::{self, File};
use super::findings::Findings;
use super::snapshot::{Host, Provider};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// Refuses providers that are this gateway.
pub(super) fn refuse(file: &File, config: &Config, env: &dyn Env, findings: &mut Findings<'_>) {
    let here = config.listen_data;
    for provider in &config.snapshot.providers {
        if leads_here(provider, here, env) {
            let named = |written: &&file::Provider| {
                written.name.as_ref().is_some_and(|name| name.value == provider.name)
            };
            let written = file.providers.iter().find(named);
            let at = written.and_then(|written| written.base_url.as_ref()).map_or(0, |url| url.at);
            findings.error(at, format!("base_url leads to this gateway itself, {here}"));
        }
    }
}

/// Whether calls to this provider come in at `here`.
pub(super) fn leads_here(provider: &Provider, here: SocketAddr, env: &dyn Env) -> bool {
    if provider.port != here.port() {
        return false;
    }
    match &provider.host {
        Host::Address(address) => is_here(address.ip(), here.ip(), env),
        Host::Name(name) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            let loopback = name == "localhost" || name.ends_with(".localhost");
            loopback && (here.ip().is_loopback() || here.ip().is_unspecified())
                || of_hosts(name, env).any(|address| is_here(address, here.ip(), env))
        }
    }
}

fn is_here(address: IpAddr, here: IpAddr, env: &dyn Env) -> bool {
    // Who calls no address in particular calls this machine.
    let address = match address.to_canonical() {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    };
    let here = here.to_canonical();
    address == here || here.is_unspecified() && (address.is_loopback() || is_own(address, env))
}

/// Whether an interface of this machine has the address, by what the kernel lists.
fn is_own(address: IpAddr, env: &dyn Env) -> bool {
    let read = |path| env.read_file(Path::new(path)).unwrap_or_default();
    match address {
        IpAddr::V4(address) => {
            // An address in a line, and what it is in one of those behind it.
            let (text, mut at) = (read("/proc/net/fib_trie"), None);
            text.lines().any(|line| match line.split_once("|-- ") {
                Some((_, listed)) => {
                    at = listed.trim().parse::<Ipv4Addr>().ok();
                    false
                }
                None => at == Some(address) && line.contains("/32 host LOCAL"),
            })
        }
        IpAddr::V6(address) => {
            let digits = format!("{:032x}", u128::from(address));
            read("/proc/net/if_inet6").lines().any(|line| line.starts_with(&digits))
        }
    }
}

/// What the machine's own file says of a name.
fn of_hosts(name: &str, env: &dyn Env) -> impl Iterator<Item = IpAddr> {
    let text = env.read_file(Path::new("/etc/hosts")).unwrap_or_default();
    let address = |line: &str| {
        let mut words = line.split('#').next()?.split_ascii_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|word| word.eq_ignore_ascii_case(name)).then_some(address)
    };
    text.lines().filter_map(address).collect::<Vec<IpAddr>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use std::io;

    /// A machine with two addresses and a name.
    struct Machine;

    impl Env for Machine {
        fn var(&self, _: &str) -> Option<String> {
            Some("secret".to_owned())
        }

        fn read_file(&self, path: &Path) -> io::Result<String> {
            let text = match path.to_str() {
                Some("/proc/net/fib_trie") => {
                    "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.0.0.0\n        /24 link UNICAST\n\
                     |-- 10.0.0.7\n        /32 host LOCAL\n\
                     |-- 10.0.0.255\n        /32 link BROADCAST\n"
                }
                Some("/proc/net/if_inet6") => {
                    "fd000000000000000000000000000007 02 40 00 80     eth0\n"
                }
                Some("/etc/hosts") => "127.0.0.1 localhost\n10.0.0.7 box # box2\n10.0.0.9 other\n",
                _ => return Err(io::ErrorKind::NotFound.into()),
            };
            Ok(text.to_owned())
        }
    }

    fn refused(data: &str, url: &str) -> bool {
        let text = format!(
            "state_dir = \"state\"\n[listen]\ndata = \"{data}\"\n[[provider]]\nname = \"p\"\n\
             kind = \"openai\"\nbase_url = \"{url}/v1\"\n\
             credentials = [{{ name = \"main\", key = \"${{KEY}}\" }}]\n"
        );
        match parse("t", &text, &Machine) {
            Ok(_) => false,
            Err(errors) => {
                let told = errors.to_string();
                let wanted = format!("t:7:12: base_url leads to this gateway itself, {data}");
                assert_eq!(told, wanted, "{url}");
                true
            }
        }
    }

    #[test]
    fn a_file_s_provider_is_not_the_gateway_itself_by_any_address_of_the_machine() {
        for (data, url) in [
            ("127.0.0.1:4180", "http://127.0.0.1:4180"),
            ("127.0.0.1:4180", "http://localhost:4180"),
            ("127.0.0.1:4180", "http://0.0.0.0:4180"),
            ("127.0.0.1:4180", "http://[::ffff:0.0.0.0]:4180"),
            ("[::1]:4180", "http://[::]:4180"),
            ("10.0.0.7:4180", "http://box:4180"),
            ("0.0.0.0:4180", "http://10.0.0.7:4180"),
            ("0.0.0.0:4180", "http://127.9.9.9:4180"),
            ("0.0.0.0:4180", "http://box:4180"),
            ("[::]:4180", "http://10.0.0.7:4180"),
            ("[::]:4180", "http://[fd00::7]:4180"),
        ] {
            assert!(refused(data, url), "{data} {url}");
        }
        for (data, url) in [
            ("127.0.0.1:4180", "http://127.0.0.1:4182"),
            ("127.0.0.1:4180", "http://127.0.0.2:4180"),
            ("127.0.0.1:4180", "http://10.0.0.7:4180"),
            ("10.0.0.7:4180", "http://localhost:4180"),
            ("0.0.0.0:4180", "http://10.0.0.255:4180"),
            ("0.0.0.0:4180", "http://10.0.0.0:4180"),
            ("0.0.0.0:4180", "http://box2:4180"),
            ("0.0.0.0:4180", "http://other:4180"),
            ("[::]:4180", "http://[fd00::8]:4180"),
        ] {
            assert!(!refused(data, url), "{data} {url}");
        }
    }
}
