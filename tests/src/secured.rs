//! TLS for those who play: a [`Wire`] over a wire, by rustls' own buffered connections, so that
//! what the gateway does with TLS is told apart from what its own adapter thinks of it. And the
//! certificates everybody uses.

use crate::scenario::Guise;
use crate::wire::{Fault, Wire};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore};
use rustls::{ServerConfig, ServerConnection};
use std::io::{ErrorKind, Read, Write};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What gateway and upstreams are called: a name, and where they listen.
pub const NAMES: [&str; 2] = ["gw.test", "127.0.0.1"];

/// A CA's certificate, one that it signed for [`NAMES`], and the key of that; all PEM.
pub struct Papers {
    /// Whom to trust.
    pub ca: String,
    /// What is shown.
    pub chain: String,
    /// Its private key.
    pub key: String,
}

impl Papers {
    /// Fresh ones.
    #[must_use]
    pub fn made() -> Papers {
        let mut ca = CertificateParams::new(Vec::new()).expect("parameters");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_key = KeyPair::generate().expect("a key");
        // Two of one name would be taken for each other until a signature is looked at.
        let own = format!("{:x?}", ca_key.public_key_raw());
        ca.distinguished_name.push(DnType::CommonName, own);
        let ca = CertifiedIssuer::self_signed(ca, ca_key).expect("a certificate");
        let key = KeyPair::generate().expect("a key");
        let leaf = CertificateParams::new(NAMES.map(str::to_owned)).expect("parameters");
        let leaf = leaf.signed_by(&key, &ca).expect("a certificate");
        Papers { ca: ca.pem(), chain: leaf.pem(), key: key.serialize_pem() }
    }

    /// Those that everybody has who says nothing else.
    #[must_use]
    pub fn usual() -> &'static Papers {
        static USUAL: OnceLock<Papers> = OnceLock::new();
        USUAL.get_or_init(Papers::made)
    }

    /// What somebody is who shows them.
    #[must_use]
    pub fn server(&self) -> Arc<ServerConfig> {
        let chain = CertificateDer::pem_slice_iter(self.chain.as_bytes());
        let chain = chain.map(|found| found.expect("a certificate")).collect();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("a key");
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("versions");
        let config = builder.with_no_client_auth().with_single_cert(chain, key);
        Arc::new(config.expect("a configuration"))
    }

    /// What somebody is who trusts them.
    #[must_use]
    pub fn client(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        for ca in CertificateDer::pem_slice_iter(self.ca.as_bytes()) {
            roots.add(ca.expect("a certificate")).expect("a root");
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("versions");
        Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
    }
}

/// The usual ends, made once: sessions are resumed as they are in the field.
fn usual() -> &'static (Arc<ClientConfig>, Arc<ServerConfig>) {
    static USUAL: OnceLock<(Arc<ClientConfig>, Arc<ServerConfig>)> = OnceLock::new();
    USUAL.get_or_init(|| (Papers::usual().client(), Papers::usual().server()))
}

/// An end of a secured connection.
pub(crate) struct TlsWire<W> {
    wire: W,
    session: Connection,
    /// What was read and not yet asked for.
    plain: Vec<u8>,
    /// The other end has said its end.
    ended: bool,
    /// It broke the rules, or says that this end did.
    broken: bool,
    /// This end speaks plainly.
    bare: bool,
}

impl<W: Wire> TlsWire<W> {
    /// The end that calls.
    pub(crate) fn calling(wire: W) -> TlsWire<W> {
        let name = NAMES[0].try_into().expect("a name");
        let session = ClientConnection::new(usual().0.clone(), name).expect("a session");
        TlsWire::over(wire, session.into())
    }

    /// The end that is called.
    pub(crate) fn called(wire: W, guise: Guise) -> TlsWire<W> {
        let config = match guise {
            Guise::Itself | Guise::Bare => usual().1.clone(),
            Guise::Stranger => Papers::made().server(),
        };
        let session = ServerConnection::new(config).expect("a session");
        let bare = guise == Guise::Bare;
        TlsWire { bare, ..TlsWire::over(wire, session.into()) }
    }

    fn over(wire: W, session: Connection) -> TlsWire<W> {
        TlsWire { wire, session, plain: Vec::new(), ended: false, broken: false, bare: false }
    }

    fn sealed(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        while self.session.wants_write() {
            self.session.write_tls(&mut out).expect("a vector takes all");
        }
        out
    }

    async fn flush(&mut self) -> Result<(), Fault> {
        match self.sealed() {
            out if out.is_empty() => Ok(()),
            out => self.wire.send(&out).await,
        }
    }

    /// Takes in what comes next; false at the end of the connection.
    async fn take(&mut self) -> Result<bool, Fault> {
        let bytes = self.wire.read().await?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() && self.session.read_tls(&mut rest).is_ok_and(|count| count > 0) {
            let result = self.session.process_new_packets();
            // An alert is for somebody who may have gone.
            let _ = self.flush().await;
            match (result, self.session.reader().read_to_end(&mut self.plain)) {
                (Err(_), _) => self.broken = true,
                (Ok(_), Ok(_)) => self.ended = true,
                (Ok(_), Err(error)) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            if self.broken {
                return Err(Fault::Reset);
            }
        }
        Ok(!bytes.is_empty())
    }
}

impl<W: Wire> Wire for TlsWire<W> {
    fn bare(&mut self) {
        self.bare = true;
    }

    async fn begin(&mut self) {
        if self.bare {
            return;
        }
        // What fails here fails at the first byte too.
        let _ = self.flush().await;
        while self.session.is_handshaking() && matches!(self.take().await, Ok(true)) {}
        let _ = self.flush().await;
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        if self.bare {
            return self.wire.send(bytes).await;
        }
        for piece in bytes.chunks(16 * 1024) {
            self.session.writer().write_all(piece).map_err(|_| Fault::Reset)?;
            self.flush().await?;
        }
        Ok(())
    }

    async fn offer(&mut self, bytes: &[u8]) -> bool {
        if self.bare {
            return self.wire.offer(bytes).await;
        }
        if self.session.writer().write_all(bytes).is_err() {
            return false;
        }
        let out = self.sealed();
        self.wire.offer(&out).await
    }

    async fn read(&mut self) -> Result<Vec<u8>, Fault> {
        if self.bare {
            return self.wire.read().await;
        }
        loop {
            if !self.plain.is_empty() || self.ended {
                return Ok(std::mem::take(&mut self.plain));
            }
            // An end that was not said: bytes may be missing.
            if self.broken || !self.take().await? && !self.ended {
                return Err(Fault::Reset);
            }
        }
    }

    async fn fin(&mut self) {
        self.say_end().await;
        self.wire.fin().await;
    }

    async fn cut(&mut self) {
        self.wire.fin().await;
    }

    async fn say_end(&mut self) {
        if self.bare {
            return;
        }
        self.session.send_close_notify();
        let _ = self.flush().await;
    }

    fn reset(&mut self) {
        self.wire.reset();
    }

    async fn settle(&mut self) {
        self.wire.settle().await;
    }

    fn now_ms(&self) -> Option<u64> {
        self.wire.now_ms()
    }

    async fn pause(&mut self, span: Duration) {
        self.wire.pause(span).await;
    }

    fn drain(&mut self) {
        self.wire.drain();
    }

    fn revoke(&mut self) {
        self.wire.revoke();
    }

    fn signal(&mut self, what: &'static str) {
        self.wire.signal(what);
    }

    async fn wait(&mut self, what: &'static str) -> bool {
        self.wire.wait(what).await
    }
}
