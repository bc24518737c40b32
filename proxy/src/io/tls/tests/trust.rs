//! Who is believed, what is offered, and what may be shown.

use super::world::{NAME, Papers, Stage, read_some, shake, write};
use crate::io::tls::{ServerTls, TlsFault, Trust};
use rcgen::date_time_ymd;
use rustls::{AlertDescription, HandshakeKind, ProtocolVersion};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// What a server with these papers comes to, for a client that trusts `trust` and calls `name`;
/// what the server is told.
fn meet(papers: Papers, trust: &Trust, name: &str) -> (io::Result<()>, Result<(), rustls::Error>) {
    let stage = Stage::with(papers);
    let result = stage.run(async {
        let tls = match name.parse::<IpAddr>() {
            Ok(address) => trust.of_address(address),
            Err(_) => trust.of_name(name).unwrap(),
        };
        let (mut near, mut far) = stage.dial(&tls, stage.papers.far_server()).await;
        let (ours, mut theirs) =
            crate::io::contract::both(super::world::secured(&mut near), far.shake()).await;
        if ours.is_err() && theirs.is_ok() {
            theirs = far.take().await.map(drop);
        }
        (ours, theirs)
    });
    assert_eq!(stage.buffers.lent(), 0);
    result
}

fn refused(papers: Papers, trust: &Trust, name: &str) -> AlertDescription {
    let (ours, theirs) = meet(papers, trust, name);
    assert_eq!(ours.unwrap_err().kind(), io::ErrorKind::InvalidData);
    match theirs {
        Err(rustls::Error::AlertReceived(alert)) => alert,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_certificate_has_to_be_of_the_name_in_time_and_of_a_known_root() {
    let papers = |change: fn(&mut rcgen::CertificateParams)| Papers::of(NAME, change);
    let good = papers(|_| {});
    let trust = good.trust();
    assert!(meet(good, &trust, NAME).0.is_ok());
    let good = papers(|_| {});
    let trust = good.trust();
    assert!(meet(good, &trust, "provider.test.").0.is_ok(), "the root's dot is no part of it");

    let other = Papers::of("other.test", |_| {});
    let trust = other.trust();
    assert_eq!(refused(other, &trust, NAME), AlertDescription::BadCertificate);
    let late = papers(|leaf| leaf.not_after = date_time_ymd(2000, 1, 1));
    let trust = late.trust();
    assert_eq!(refused(late, &trust, NAME), AlertDescription::CertificateExpired);
    let early = papers(|leaf| leaf.not_before = date_time_ymd(4000, 1, 1));
    let trust = early.trust();
    assert_eq!(refused(early, &trust, NAME), AlertDescription::CertificateExpired);
    let stranger = papers(|_| {}).trust();
    assert_eq!(refused(papers(|_| {}), &stranger, NAME), AlertDescription::UnknownCA);
}

#[test]
fn a_host_without_a_name_has_to_have_its_address_in_the_certificate() {
    let papers = Papers::of("192.0.2.7", |_| {});
    let trust = papers.trust();
    assert!(meet(papers, &trust, "192.0.2.7").0.is_ok());
    let papers = Papers::of("192.0.2.7", |_| {});
    let trust = papers.trust();
    assert_eq!(refused(papers, &trust, "192.0.2.8"), AlertDescription::BadCertificate);
    let papers = Papers::of(NAME, |_| {});
    let trust = papers.trust();
    assert_eq!(refused(papers, &trust, "192.0.2.7"), AlertDescription::BadCertificate);
}

#[test]
fn the_hello_names_the_host_unless_it_is_an_address_and_offers_http_1_1() {
    for (name, said) in [(Some(NAME), Some(NAME)), (None, None)] {
        let stage = Stage::new();
        stage.run(async {
            let trust = stage.papers.trust();
            let tls = match name {
                Some(name) => trust.of_name(name).unwrap(),
                None => trust.of_address(Ipv4Addr::LOCALHOST.into()),
            };
            let mut config = stage.papers.far_server();
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            let (mut near, mut far) = stage.dial(&tls, config).await;
            let _ = crate::io::contract::both(super::world::secured(&mut near), far.shake()).await;
            assert_eq!(far.session.alpn_protocol(), Some(&b"http/1.1"[..]));
            let rustls::Connection::Server(server) = &far.session else { panic!("a server") };
            assert_eq!(server.server_name(), said);
        });
    }
}

#[test]
fn a_client_is_answered_in_http_1_1_and_refused_if_it_knows_only_others() {
    for (offered, spoken) in [
        (vec!["h2", "http/1.1"], Some("http/1.1")),
        (vec!["http/1.0", "http/1.1"], Some("http/1.1")),
        (vec!["http/1.0"], Some("http/1.0")),
        (vec![], None),
    ] {
        let stage = Stage::new();
        stage.run(async {
            let mut config = stage.papers.far_client();
            config.alpn_protocols = offered.iter().map(|name| name.as_bytes().to_vec()).collect();
            let (mut near, mut far) = stage.accept(&stage.papers.server(), config).await;
            shake(&mut near, &mut far).await.unwrap();
            assert_eq!(far.session.alpn_protocol(), spoken.map(str::as_bytes));
        });
    }
    let stage = Stage::new();
    stage.run(async {
        let mut config = stage.papers.far_client();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let (mut near, mut far) = stage.accept(&stage.papers.server(), config).await;
        let (ours, theirs) =
            crate::io::contract::both(super::world::secured(&mut near), far.shake()).await;
        assert!(ours.is_err());
        let told = rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol);
        assert_eq!(theirs, Err(told));
    });
}

#[test]
fn a_second_connection_to_a_provider_resumes_the_session_of_the_first() {
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let stage = Stage::new();
        stage.run(async {
            let at = SocketAddr::from(([127, 0, 0, 1], 0));
            let listener = stage.world.serve(at).unwrap();
            let trust = stage.papers.trust();
            let config = Arc::new(stage.papers.far_server_of(version));
            let mut kinds = Vec::new();
            for _ in 0..3 {
                // Made anew each time: the tickets belong to the trust.
                let tls = trust.of_name(NAME).unwrap();
                let (mut near, mut far) = stage.dial_to(&listener, &tls, config.clone()).await;
                shake(&mut near, &mut far).await.unwrap();
                far.say(b"x").await;
                assert_eq!(read_some(&mut near).await.unwrap(), b"x");
                kinds.push(far.session.handshake_kind().unwrap());
            }
            assert_eq!(
                kinds,
                [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed]
            );
        });
    }
}

#[test]
fn a_client_resumes_by_a_ticket_of_ours_until_the_certificate_is_another() {
    let stage = Stage::new();
    stage.run(async {
        let tls = stage.papers.server();
        let client = stage.papers.far_client();
        let mut kinds = Vec::new();
        for tls in [&tls, &tls, &stage.papers.server()] {
            let (mut near, mut far) = stage.accept(tls, client.clone()).await;
            shake(&mut near, &mut far).await.unwrap();
            write(&mut near, b"x").await.result.unwrap();
            assert_eq!(far.hear(1).await, b"x");
            assert_eq!(far.session.protocol_version(), Some(ProtocolVersion::TLSv1_3));
            kinds.push(far.session.handshake_kind().unwrap());
        }
        assert_eq!(kinds, [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Full]);
    });
}

#[test]
fn papers_that_are_of_no_use_are_refused_and_say_why() {
    let (a, b) = (Papers::of(NAME, |_| {}), Papers::of(NAME, |_| {}));
    let server = |chain: &str, key: &str| ServerTls::of_pem(chain, key).err();
    assert_eq!(server(&a.chain, &a.key), None);
    assert_eq!(server(&a.chain, &b.key), Some(TlsFault::WrongKey));
    assert_eq!(server("", &a.key), Some(TlsFault::NoCertificate));
    assert_eq!(server(&a.chain, ""), Some(TlsFault::NoKey));
    assert_eq!(server(&a.chain, &a.chain), Some(TlsFault::NoKey));
    assert_eq!(server(&a.chain[..a.chain.len() / 2], &a.key), Some(TlsFault::BadPem));
    assert_eq!(Trust::of_pem("").err(), Some(TlsFault::NoCertificate));
    assert_eq!(Trust::of_system(Vec::new()).err(), Some(TlsFault::NoCertificate));
    let broken = a.ca.pem().replace("MII", "AAA");
    assert_eq!(Trust::of_pem(&broken).err(), Some(TlsFault::BadRoot));
    assert_eq!(a.trust().of_name("not a name").err(), Some(TlsFault::BadName));
}

#[test]
fn nothing_that_is_shown_has_a_key_in_it() {
    let papers = Papers::of(NAME, |_| {});
    let (server, trust) = (papers.server(), papers.trust());
    let client = trust.of_name(NAME).unwrap();
    let shown = format!("{server:?} {trust:?} {client:?}");
    assert_eq!(shown, "ServerTls Trust ClientTls { name: DnsName(\"provider.test\"), .. }");
}
