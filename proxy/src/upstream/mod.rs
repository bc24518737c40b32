//! Toward providers: connections, their pool, and the head of a request.

pub mod addresses;
pub mod dial;
pub mod outgoing;
pub mod pool;
pub mod request;

use crate::io::Stream;
use crate::io::buffers::Buffers;
use crate::io::tls::ClientTls;
use std::net::SocketAddr;
use std::sync::Arc;

/// A connection to a provider.
pub struct Upstream<S> {
    /// The connection.
    pub stream: S,
    /// Bytes of the answer not yet passed on; empty while a read has it.
    pub inbox: Vec<u8>,
    /// Where it leads.
    pub address: SocketAddr,
    /// What secures it; none if it is plain.
    pub tls: Option<Arc<ClientTls>>,
    /// When it was made, in ticks of its shard.
    pub born_tick: u64,
    /// Exchanges before this one.
    pub uses: u32,
}

impl<S: Stream> Upstream<S> {
    /// A fresh connection.
    pub fn new(
        stream: S,
        (address, tls): (SocketAddr, Option<Arc<ClientTls>>),
        born_tick: u64,
        inbox: Vec<u8>,
    ) -> Upstream<S> {
        Upstream { stream, inbox, address, tls, born_tick, uses: 0 }
    }

    /// Closes it. The buffer of a read in flight goes with the read.
    pub fn discard(self, buffers: &Buffers) {
        self.stream.shutdown();
        buffers.give(self.inbox);
    }
}
