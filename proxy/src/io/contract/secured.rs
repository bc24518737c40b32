//! A transport with TLS on every connection, and certificates for it.

use super::stage::{BlackHole, Stage};
use super::{both, read, write};
use crate::exchange::time::Now;
use crate::io::buffers::Buffers;
use crate::io::tls::{ClientTls, Link, ServerTls, Side, TlsIo, Trust};
use crate::io::{Io, Stream};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

/// A stage with TLS over it.
pub(super) struct Secured<S: Stage> {
    under: S,
    io: SecuredIo<S::Io>,
    buffers: Rc<Buffers>,
}

/// Secures whatever is dialled or accepted.
#[derive(Clone)]
pub(super) struct SecuredIo<I> {
    io: TlsIo<I>,
    ends: Rc<(ClientTls, ServerTls)>,
}

/// Both ends of a session for a host of this name, over a CA made for it.
pub(in crate::io) fn ends(name: &str) -> (ClientTls, ServerTls) {
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &ca);
    let server = ServerTls::of_pem(&leaf.unwrap().pem(), &key.serialize_pem()).unwrap();
    let client = Trust::of_pem(&ca.pem()).unwrap().of_name(name).unwrap();
    (client, server)
}

impl<S: Stage> Secured<S> {
    pub(super) fn over(under: S) -> Secured<S> {
        let buffers = Buffers::of_thread();
        let io = TlsIo::new(under.io(), buffers.clone());
        let ends = Rc::new(ends("provider.test"));
        Secured { under, io: SecuredIo { io, ends }, buffers }
    }
}

impl<S: Stage> Stage for Secured<S> {
    type Io = SecuredIo<S::Io>;

    const TELLS_CUTS: bool = true;

    /// Each is a handshake.
    const ROUNDS: u32 = 200;

    fn io(&self) -> Self::Io {
        self.io.clone()
    }

    fn buffers(&self) -> Rc<Buffers> {
        self.buffers.clone()
    }

    /// The handshake, and a byte behind it: what a server sends of its own has been read with it.
    async fn greet(&self, near: &mut <Self::Io as Io>::Stream, far: &mut <Self::Io as Io>::Stream) {
        let (ours, theirs) =
            both(poll_fn(|cx| near.poll_secured(cx)), poll_fn(|cx| far.poll_secured(cx))).await;
        ours.unwrap();
        theirs.unwrap();
        write(far, b"!").await.result.unwrap();
        assert_eq!(read(near, Vec::with_capacity(64)).await.buffer, b"!");
    }

    fn listen(&self) -> (<Self::Io as Io>::Listener, SocketAddr) {
        self.under.listen()
    }

    fn black_hole(&self) -> BlackHole {
        self.under.black_hole()
    }
}

impl<I: Io> Io for SecuredIo<I> {
    type Stream = Link<I::Stream>;
    type Listener = I::Listener;

    async fn accept(&self, listener: &I::Listener) -> io::Result<(Self::Stream, SocketAddr)> {
        let (stream, peer) = self.io.accept(listener).await?;
        Ok((self.io.secure(stream, Side::Server(&self.ends.1))?, peer))
    }

    fn stop_listening(&self, listener: &I::Listener) {
        self.io.stop_listening(listener);
    }

    fn connect(&self, to: SocketAddr) -> io::Result<Self::Stream> {
        self.io.secure(self.io.connect(to)?, Side::Client(&self.ends.0))
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.io.spawn(task);
    }

    async fn tick(&self) {
        self.io.tick().await;
    }

    fn now(&self) -> Now {
        self.io.now()
    }
}
