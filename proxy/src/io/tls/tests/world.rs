//! The stage: a scripted network, certificates, and a peer that speaks TLS on its own.

use crate::io::buffers::{BUFFER_BYTES, Buffers};
use crate::io::script::{Peer, PeerListener, ScriptIo, ScriptStream, ScriptWorld};
use crate::io::tls::{ClientTls, Link, ServerTls, Side, TlsIo, Trust};
use crate::io::{Chunk, Io, ReadDone, Recall, Stream, WriteDone};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore};
use rustls::{ServerConfig, ServerConnection};
use std::future::{Future, poll_fn};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// The name that is called.
pub(super) const NAME: &str = "provider.test";

/// A CA, and what it has signed for [`NAME`] or somebody else.
pub(super) struct Papers {
    pub(super) ca: CertifiedIssuer<'static, KeyPair>,
    pub(super) chain: String,
    pub(super) key: String,
}

/// Everything a test stands on.
pub(super) struct Stage {
    pub(super) world: ScriptWorld,
    pub(super) io: TlsIo<ScriptIo>,
    pub(super) buffers: Rc<Buffers>,
    pub(super) papers: Papers,
}

/// The other side.
pub(super) struct Far {
    pub(super) peer: Peer,
    pub(super) session: Connection,
    /// Plaintext that nobody has asked for.
    heard: Vec<u8>,
    /// Bytes sent so far.
    sent: usize,
    /// What a bad line does to one of them: which, and the bits it turns.
    pub(super) spoils: Option<(usize, u8)>,
}

pub(super) type Near = Link<ScriptStream>;

// === Papers ===

impl Papers {
    pub(super) fn of(name: &str, change: impl FnOnce(&mut CertificateParams)) -> Papers {
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        // Two of one name would be taken for each other until a signature is looked at.
        let own = format!("{:x?}", key.public_key_raw());
        ca.distinguished_name.push(DnType::CommonName, own);
        let ca = CertifiedIssuer::self_signed(ca, key).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut leaf = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut leaf);
        let chain = leaf.signed_by(&key, &ca).unwrap().pem();
        Papers { ca, chain, key: key.serialize_pem() }
    }

    pub(super) fn trust(&self) -> Trust {
        Trust::of_pem(&self.ca.pem()).unwrap()
    }

    pub(super) fn server(&self) -> ServerTls {
        ServerTls::of_pem(&self.chain, &self.key).unwrap()
    }

    /// The configuration of a peer that is called.
    pub(super) fn far_server(&self) -> ServerConfig {
        self.far_server_of(&rustls::version::TLS13)
    }

    /// The same in one version of TLS.
    pub(super) fn far_server_of(
        &self,
        version: &'static rustls::SupportedProtocolVersion,
    ) -> ServerConfig {
        let (chain, key) = self.parsed();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[version]).unwrap();
        let mut config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
        config.ticketer = rustls::crypto::ring::Ticketer::new().unwrap();
        config
    }

    fn parsed(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let chain = CertificateDer::pem_slice_iter(self.chain.as_bytes());
        let chain = chain.map(|found| found.unwrap()).collect();
        (chain, PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap())
    }

    /// The configuration of a peer that calls.
    pub(super) fn far_client(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.ca.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        builder.with_root_certificates(roots).with_no_client_auth()
    }
}

// === Stage ===

impl Stage {
    pub(super) fn new() -> Stage {
        Stage::with(Papers::of(NAME, |_| {}))
    }

    pub(super) fn with(papers: Papers) -> Stage {
        let world = ScriptWorld::new(7);
        let buffers = Buffers::of_thread();
        let io = TlsIo::new(world.io(), buffers.clone());
        Stage { world, io, buffers, papers }
    }

    pub(super) fn run<F: Future>(&self, test: F) -> F::Output {
        self.world.run_until(test).unwrap_or_else(|stuck| panic!("{stuck}"))
    }

    /// A connection that we dial, and the one that answers.
    pub(super) async fn dial(&self, tls: &ClientTls, far: ServerConfig) -> (Near, Far) {
        let at = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = self.world.serve(at).unwrap();
        self.dial_to(&listener, tls, Arc::new(far)).await
    }

    pub(super) async fn dial_to(
        &self,
        listener: &PeerListener,
        tls: &ClientTls,
        far: Arc<ServerConfig>,
    ) -> (Near, Far) {
        let near = self.io.connect(listener.local_addr()).unwrap();
        let mut near = self.io.secure(near, Side::Client(tls)).unwrap();
        let peer = listener.accept().await.unwrap();
        poll_fn(|cx| near.poll_connected(cx)).await.unwrap();
        (near, Far::new(peer, ServerConnection::new(far).unwrap().into()))
    }

    /// A connection that we are dialled on.
    pub(super) async fn accept(&self, tls: &ServerTls, far: ClientConfig) -> (Near, Far) {
        let listener = self.world.listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let peer = self.world.dial(listener.local_addr()).unwrap();
        let (near, _) = self.io.accept(&listener).await.unwrap();
        let near = self.io.secure(near, Side::Server(tls)).unwrap();
        let name = NAME.try_into().unwrap();
        let session = ClientConnection::new(Arc::new(far), name).unwrap();
        (near, Far::new(peer, session.into()))
    }

    /// A connection that stands; what came behind the handshake is read.
    pub(super) async fn open(&self) -> (Near, Far) {
        let tls = self.papers.trust().of_name(NAME).unwrap();
        let (mut near, mut far) = self.dial(&tls, self.papers.far_server()).await;
        shake(&mut near, &mut far).await.unwrap();
        far.say(b"!").await;
        assert_eq!(read(&mut near, Vec::with_capacity(8)).await.buffer, b"!");
        (near, far)
    }
}

// === Far ===

impl Far {
    fn new(peer: Peer, session: Connection) -> Far {
        Far { peer, session, heard: Vec::new(), sent: 0, spoils: None }
    }

    /// Sends what the session has to send.
    pub(super) async fn flush(&mut self) {
        let mut out = Vec::new();
        while self.session.wants_write() {
            self.session.write_tls(&mut out).unwrap();
        }
        if let Some((place, bits)) = self.spoils
            && let Some(byte) = place.checked_sub(self.sent).and_then(|at| out.get_mut(at))
        {
            *byte ^= bits;
        }
        self.sent += out.len();
        // Whoever is gone takes nothing.
        let _ = self.peer.send(&out).await;
    }

    /// Takes records in until the session has something, or the connection ends; false then.
    pub(super) async fn take(&mut self) -> Result<bool, rustls::Error> {
        let Ok(bytes) = self.peer.read_some().await else { return Ok(false) };
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            if self.session.read_tls(&mut rest).unwrap() == 0 {
                return Ok(false); // the session has ended before
            }
            let result = self.session.process_new_packets();
            self.flush().await;
            result?;
            let Err(error) = self.session.reader().read_to_end(&mut self.heard) else { continue };
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        }
        Ok(!bytes.is_empty())
    }

    /// Does its part of the handshake.
    pub(super) async fn shake(&mut self) -> Result<(), rustls::Error> {
        self.flush().await;
        while self.session.is_handshaking() {
            if !self.take().await? {
                return Err(rustls::Error::General("the connection ended".into()));
            }
        }
        self.flush().await;
        Ok(())
    }

    pub(super) async fn say(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = &rest[self.session.writer().write(rest).unwrap()..];
            self.flush().await;
        }
    }

    /// The next so many bytes; fewer if the connection ends.
    pub(super) async fn hear(&mut self, count: usize) -> Vec<u8> {
        while self.heard.len() < count && self.take().await.unwrap() {}
        let rest = self.heard.split_off(count.min(self.heard.len()));
        std::mem::replace(&mut self.heard, rest)
    }

    /// Whether our side has said its end, once the connection has ended.
    pub(super) async fn heard_end(&mut self) -> bool {
        while let Ok(true) = self.take().await {}
        matches!(self.session.reader().read(&mut [0]), Ok(0))
    }
}

// === our side ===

pub(super) async fn shake(near: &mut Near, far: &mut Far) -> io::Result<()> {
    let (ours, theirs) = crate::io::contract::both(secured(near), far.shake()).await;
    assert!(ours.is_err() || theirs.is_ok(), "{ours:?} {theirs:?}");
    ours
}

pub(super) async fn secured(near: &mut Near) -> io::Result<()> {
    poll_fn(|cx| near.poll_secured(cx)).await
}

pub(super) async fn read(near: &mut Near, buffer: Vec<u8>) -> ReadDone {
    near.start_read(buffer, Recall::Never);
    poll_fn(|cx| near.poll_read(cx)).await
}

/// A read as a shard does it.
pub(super) async fn read_some(near: &mut Near) -> io::Result<Vec<u8>> {
    let done = read(near, Vec::with_capacity(BUFFER_BYTES)).await;
    done.result.map(|_| done.buffer)
}

pub(super) async fn write(near: &mut Near, bytes: &[u8]) -> WriteDone {
    near.start_write(Chunk::whole(bytes.to_vec()));
    poll_fn(|cx| near.poll_write(cx)).await
}
