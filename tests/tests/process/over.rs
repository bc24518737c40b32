//! What a test of the program calls over, and the program its provider: TCP, or TLS on both sides.

use crate::program::connect;
use gateway_tests::secured::{NAMES, Papers};
use loadtest::standin::{Config, Standin};
use loadtest::tls::Identity;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// What lies under HTTP, on both sides of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Tcp,
    Tls,
}

/// A connection to the gateway.
pub(crate) trait Line: Read + Write {}

impl<S: Read + Write> Line for S {}

impl Over {
    /// A stand-in that keeps many entries.
    pub(crate) fn standin(self) -> Standin {
        let papers = Papers::usual();
        let identity = Identity::of_pem(&papers.chain, &papers.key).expect("sound papers");
        let identity = (self == Over::Tls).then_some(identity);
        Standin::start(Config { identity, entries_max: 1 << 20, ..Config::default() }).unwrap()
    }

    /// What a name of a test's own ends with.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Over::Tcp => "",
            Over::Tls => "-tls",
        }
    }

    /// The scheme of addresses, lines of `[listen]` and lines of a provider.
    pub(crate) fn configured(self) -> [&'static str; 3] {
        match self {
            Over::Tcp => ["http", "", ""],
            Over::Tls => [
                "https",
                "tls = { cert_file = \"chain.pem\", key_file = \"key.pem\" }",
                "ca_file = \"ca.pem\"",
            ],
        }
    }

    /// Writes the files that are named by that.
    pub(crate) fn write(self, folder: &Path) {
        let Papers { ca, chain, key } = Papers::usual();
        for (name, text) in [("ca.pem", ca), ("chain.pem", chain), ("key.pem", key)] {
            std::fs::write(folder.join(name), text).expect("it can be written");
        }
    }

    /// A connection to a gateway that listens.
    pub(crate) fn dial(self, data: SocketAddr) -> Box<dyn Line> {
        self.over(connect(data))
    }

    /// The same to one that may be gone.
    pub(crate) fn try_dial(self, data: SocketAddr) -> Option<Box<dyn Line>> {
        TcpStream::connect(data).ok().map(|stream| self.over(stream))
    }

    /// A handshake comes with the first byte that is written.
    fn over(self, stream: TcpStream) -> Box<dyn Line> {
        static TRUST: OnceLock<Arc<ClientConfig>> = OnceLock::new();
        if self == Over::Tcp {
            return Box::new(stream);
        }
        let trust = TRUST.get_or_init(|| Papers::usual().client());
        let name = NAMES[0].try_into().expect("a name");
        let session = ClientConnection::new(trust.clone(), name).expect("a session");
        Box::new(StreamOwned::new(session, stream))
    }
}
