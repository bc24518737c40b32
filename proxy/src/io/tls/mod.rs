//! TLS over any transport: [`Link`] is a connection that is plain or secured, [`TlsIo`] a
//! transport whose connections can become secured. Whoever stands above sees the same promises as
//! of a plain connection; a peer that goes away without saying so is an error and no end.
//!
//! It deliberately knows nothing of HTTP, of pools or of what a deadline means: the handshake is
//! [`Stream::poll_secured`], and whoever waits for it brings the deadline.
//!
//! Bound: see `stream` for what a connection holds.

mod link;
mod session;
mod settings;
mod stream;

pub use link::Link;
pub use settings::{ClientTls, ServerTls, Side, TlsFault, Trust};
pub use stream::Tls;

use super::Io;
use super::buffers::Buffers;
use crate::exchange::time::{MonoNs, Now};
use session::Session;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

/// A transport that can secure its connections.
#[derive(Clone)]
pub struct TlsIo<I> {
    io: I,
    buffers: Rc<Buffers>,
}

impl<I> TlsIo<I> {
    /// Over `io`, with the buffers of its shard.
    pub fn new(io: I, buffers: Rc<Buffers>) -> TlsIo<I> {
        TlsIo { io, buffers }
    }
}

impl<I: Io> Io for TlsIo<I> {
    type Stream = Link<I::Stream>;
    type Listener = I::Listener;

    async fn accept(&self, listener: &I::Listener) -> io::Result<(Self::Stream, SocketAddr)> {
        let (stream, peer) = self.io.accept(listener).await?;
        Ok((Link::Plain(stream), peer))
    }

    fn stop_listening(&self, listener: &I::Listener) {
        self.io.stop_listening(listener);
    }

    fn connect(&self, to: SocketAddr) -> io::Result<Self::Stream> {
        self.io.connect(to).map(Link::Plain)
    }

    fn secure(&self, stream: Self::Stream, side: Side<'_>) -> io::Result<Self::Stream> {
        let Link::Plain(under) = stream else {
            return Err(io::ErrorKind::AlreadyExists.into());
        };
        let session = match side {
            Side::Client(tls) => Session::client(tls),
            Side::Server(tls) => Session::server(tls),
        };
        let session = session.map_err(stream::broken)?;
        Ok(Link::Tls(Box::new(Tls::new(under, session, self.buffers.clone()))))
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.io.spawn(task);
    }

    fn tick(&self) -> impl Future<Output = ()> {
        self.io.tick()
    }

    fn now(&self) -> Now {
        self.io.now()
    }

    fn mono(&self) -> MonoNs {
        self.io.mono()
    }
}

#[cfg(test)]
mod tests;
