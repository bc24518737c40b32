//! `https`, `ca_file` and the listener's certificate: what is read, shared and refused.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::sync::OnceLock;

/// A CA's certificate, one that it signed, and the key of that; a CA is made once.
pub(in crate::config) struct Papers {
    pub(in crate::config) ca: String,
    pub(in crate::config) chain: String,
    pub(in crate::config) key: String,
}

pub(in crate::config) fn made(name: &str) -> Papers {
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let chain = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &ca);
    Papers { ca: ca.pem(), chain: chain.unwrap().pem(), key: key.serialize_pem() }
}

/// The same certificate, but for the number of its version.
fn of_version_1(chain: &str) -> String {
    let (version_3, version_1) = ("gAwIBAgI", "gAwIBAAI");
    assert!(chain.contains(version_3), "{chain}");
    chain.replacen(version_3, version_1, 1)
}

fn papers() -> &'static Papers {
    static MADE: OnceLock<Papers> = OnceLock::new();
    MADE.get_or_init(|| made("gateway.test"))
}

/// The usual world, with certificates in it, and maybe roots of its own.
struct Secured {
    world: World,
    roots: bool,
}

impl Secured {
    fn new() -> Secured {
        let mut world = World::usual();
        let other = made("other.test");
        for (path, text) in [
            ("/etc/tollgate/ca.pem", papers().ca.clone()),
            ("/etc/tollgate/cert.pem", papers().chain.clone()),
            ("/etc/tollgate/key.pem", papers().key.clone()),
            ("/etc/tollgate/other-key.pem", other.key),
            ("/etc/tollgate/empty.pem", String::new()),
            ("/etc/tollgate/old-version.pem", of_version_1(&papers().chain)),
        ] {
            world.files.insert(path, text);
        }
        Secured { world, roots: true }
    }
}

impl Env for Secured {
    fn var(&self, name: &str) -> Option<String> {
        self.world.var(name)
    }

    fn read_file(&self, path: &Path) -> io::Result<String> {
        self.world.read_file(path)
    }

    fn system_roots(&self) -> Vec<rustls::pki_types::CertificateDer<'static>> {
        use rustls::pki_types::pem::PemObject;
        let der = rustls::pki_types::CertificateDer::from_pem_slice(papers().ca.as_bytes());
        if self.roots { vec![der.unwrap()] } else { Vec::new() }
    }
}

/// `MINIMAL` with another URL, lines behind it, and tables behind them.
fn file(url: &str, lines: &str, tables: &str) -> String {
    let provider = MINIMAL.replace("http://127.0.0.1:9000/v1", url);
    format!("{provider}{lines}\n{tables}\n")
}

fn read(text: &str, env: &Secured) -> Result<Config, String> {
    let read = parse("/etc/tollgate/tollgate.toml", text, env);
    read.map_err(|errors| errors.to_string().replace("/etc/tollgate/", ""))
}

const LISTEN: &str = "[listen]\ntls = { cert_file = \"cert.pem\", key_file = \"key.pem\" }";

#[test]
fn a_provider_behind_https_is_called_over_tls_and_one_behind_http_is_not() {
    let env = Secured::new();
    for (url, lines, name) in [
        ("https://api.openai.test/v1", "", Some("DnsName(\"api.openai.test\")")),
        ("https://192.0.2.7/v1", "ca_file = \"ca.pem\"", Some("IpAddress")),
        ("https://[2001:db8::1]/v1", "ca_file = \"/etc/tollgate/ca.pem\"", Some("IpAddress")),
        ("http://api.openai.test/v1", "", None),
    ] {
        let config = read(&file(url, lines, ""), &env).unwrap();
        let tls = &config.snapshot.provider(ProviderId(0)).tls;
        match name {
            Some(name) => assert!(format!("{tls:?}").contains(name), "{tls:?}"),
            None => assert!(tls.is_none()),
        }
        let report = check::report(&config);
        assert!(report.contains(&format!("openai (openai) at {url}")), "{report}");
    }
}

#[test]
fn what_cannot_be_trusted_or_would_do_nothing_is_refused() {
    let mut env = Secured::new();
    let https = "https://api.openai.test/v1";
    for (url, lines, wanted) in [
        (
            "http://127.0.0.1/v1",
            "ca_file = \"ca.pem\"",
            "tollgate.toml:8:11: \"ca_file\" in [[provider]] has no effect: base_url begins with \
             http://",
        ),
        (https, "ca_file = \"\"", "tollgate.toml:8:11: \"ca_file\" in [[provider]] must be a path"),
        (
            https,
            "ca_file = \"empty.pem\"",
            "tollgate.toml:8:11: ca_file empty.pem: there is no certificate in it",
        ),
        (
            https,
            "ca_file = \"key.pem\"",
            "tollgate.toml:8:11: ca_file key.pem: there is no certificate in it",
        ),
        (
            https,
            "ca_file = \"none.pem\"",
            "tollgate.toml:8:11: ca_file none.pem cannot be read: entity not found",
        ),
    ] {
        assert_eq!(read(&file(url, lines, ""), &env).unwrap_err(), wanted);
    }
    env.roots = false;
    let error = read(&file(https, "", ""), &env).unwrap_err();
    assert!(error.starts_with("tollgate.toml:5:12: base_url: this system has no root"), "{error}");
    assert!(read(&file(https, "ca_file = \"ca.pem\"", ""), &env).is_ok());
}

#[test]
fn a_listener_has_a_certificate_with_its_key_or_none() {
    let env = Secured::new();
    let plain = "http://127.0.0.1:9000/v1";
    let config = read(&file(plain, "", LISTEN), &env).unwrap();
    let listen = config.listen_tls.as_ref().unwrap();
    assert_eq!(listen.cert_file, Path::new("/etc/tollgate/cert.pem"));
    assert_eq!(listen.read(&env).unwrap().digest, listen.papers.digest);
    assert!(check::report(&config).contains("data 127.0.0.1:4180 (TLS)"));
    assert!(read(&file(plain, "", ""), &env).unwrap().listen_tls.is_none());
    // It may then be reached from elsewhere without a warning.
    let reached = format!("{LISTEN}\ndata = \"0.0.0.0:4180\"");
    assert!(read(&file(plain, "", &reached), &env).unwrap().warnings.is_empty());
    for (tls, wanted) in [
        ("{ cert_file = \"cert.pem\" }", "tollgate.toml:10:7: tls of [listen] lacks \"key_file\""),
        (
            "{ cert_file = \"cert.pem\", key_file = \"other-key.pem\" }",
            "tollgate.toml:10:44: key_file other-key.pem: the key is not that of the certificate, \
             or of an unknown kind",
        ),
        (
            "{ cert_file = \"cert.pem\", key_file = \"cert.pem\" }",
            "tollgate.toml:10:44: key_file cert.pem: there is no private key in it",
        ),
        (
            "{ cert_file = \"key.pem\", key_file = \"key.pem\" }",
            "tollgate.toml:10:21: cert_file key.pem: there is no certificate in it",
        ),
        (
            "{ cert_file = \"none.pem\", key_file = \"key.pem\" }",
            "tollgate.toml:10:21: cert_file none.pem cannot be read: entity not found",
        ),
        (
            "{ cert_file = \"cert.pem\", key_file = \"\" }",
            "tollgate.toml:10:44: \"key_file\" in tls of [listen] must be a path",
        ),
        (
            "{ cert_file = \"none.pem\", key_file = \"none-either.pem\" }",
            "tollgate.toml:10:21: cert_file none.pem cannot be read: entity not found\n\
             tollgate.toml:10:44: key_file none-either.pem cannot be read: entity not found",
        ),
        (
            "{ cert_file = \"old-version.pem\", key_file = \"key.pem\" }",
            "tollgate.toml:10:21: cert_file old-version.pem: its first certificate cannot be read: \
             it has to be X.509 of version 3",
        ),
        (
            "true",
            "tollgate.toml:10:7: \"tls\" in [listen] must be the table tls of [listen], not a \
             boolean",
        ),
    ] {
        let text = file(plain, "", &format!("[listen]\ntls = {tls}"));
        assert_eq!(read(&text, &env).unwrap_err(), wanted);
    }
}

#[test]
fn the_deadline_of_a_handshake_is_its_own() {
    let config = good(&format!("{MINIMAL}[deadlines]\ntls = \"2s\"\n"));
    let deadlines = config.snapshot.deadlines;
    assert_eq!(
        (deadlines.tls, deadlines.connect),
        (Duration::from_secs(2), Duration::from_secs(5))
    );
}

#[test]
fn a_private_key_is_in_nothing_that_is_shown() {
    let config = read(&file("http://127.0.0.1:9000/v1", "", LISTEN), &Secured::new()).unwrap();
    let shown = format!("{config:?}{}{}", check::report(&config), check::report_json(&config));
    let inside = papers().key.lines().nth(1).unwrap().to_owned();
    assert!(!shown.contains(&inside));
}
