//! What a connection is secured with: whom we trust, who we are. Made off the shards from
//! checked text, shared by all of them, never changed.
//!
//! Sessions to providers are resumed by tickets, [`NAMES_MAX`] names of them; clients resume
//! theirs by tickets that we sealed ourselves and keep nothing of. TLS 1.2 and 1.3, HTTP/1.1,
//! no early data. Nothing here can be printed.

use crate::shard::clock;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Names of servers whose tickets are kept, eight of them each: more than providers of one node.
const NAMES_MAX: usize = 256;

/// What is spoken inside.
const ALPN: &[u8] = b"http/1.1";

/// What a client that was told to speak the older version names; its answers fit it.
const ALPN_OLDER: &[u8] = b"http/1.0";

/// Why certificates or keys are of no use. Says nothing of what is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// No certificate in the text.
    NoCertificate,
    /// A block that is not what it says, among certificates.
    BadPem,
    /// The same where the private key should be.
    BadKey,
    /// A root that cannot be one.
    BadRoot,
    /// No private key in the text.
    NoKey,
    /// The key is not that of the certificate, or of a kind we do not know.
    WrongKey,
    /// A name that no certificate can have.
    BadName,
    /// The settings contradict each other, or there is no randomness.
    Internal,
}

/// Whom a set of connections to providers trusts.
#[derive(Clone)]
pub struct Trust(Arc<ClientConfig>);

/// How connections to one provider are secured.
pub struct ClientTls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// Who a listener is.
pub struct ServerTls(Arc<ServerConfig>);

/// Which end of a session a connection is to be.
#[derive(Clone, Copy, Debug)]
pub enum Side<'a> {
    /// The one that calls.
    Client(&'a ClientTls),
    /// The one that is called.
    Server(&'a ServerTls),
}

/// The clock of a shard, as rustls asks for it.
#[derive(Debug)]
struct WallClock;

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_millis(clock::now().wall.0)))
    }
}

impl TlsFault {
    /// Whether it lies with the private key.
    pub fn is_of_the_key(self) -> bool {
        matches!(self, TlsFault::NoKey | TlsFault::BadKey | TlsFault::WrongKey)
    }
}

// === impl Trust ===

impl Trust {
    /// The roots in a text of PEM blocks.
    pub fn of_pem(text: &str) -> Result<Trust, TlsFault> {
        Trust::of_roots(&certificates(text)?)
    }

    /// These roots. Of a system's collection single ones may be of no use; of none at least one
    /// has to be.
    pub fn of_system(roots: Vec<CertificateDer<'static>>) -> Result<Trust, TlsFault> {
        let mut store = RootCertStore::empty();
        match store.add_parsable_certificates(roots) {
            (0, _) => Err(TlsFault::NoCertificate),
            _ => Trust::of_store(store),
        }
    }

    fn of_roots(roots: &[CertificateDer<'static>]) -> Result<Trust, TlsFault> {
        let mut store = RootCertStore::empty();
        for root in roots {
            store.add(root.clone()).map_err(|_| TlsFault::BadRoot)?;
        }
        Trust::of_store(store)
    }

    fn of_store(store: RootCertStore) -> Result<Trust, TlsFault> {
        let builder = ClientConfig::builder_with_details(provider(), Arc::new(WallClock));
        let builder =
            builder.with_safe_default_protocol_versions().map_err(|_| TlsFault::Internal)?;
        let mut config = builder.with_root_certificates(store).with_no_client_auth();
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = Resumption::in_memory_sessions(NAMES_MAX);
        Ok(Trust(Arc::new(config)))
    }

    /// How a host of this name is called: its name goes into the hello.
    pub fn of_name(&self, name: &str) -> Result<ClientTls, TlsFault> {
        // The root's dot belongs to a name and not to a certificate.
        let name = name.strip_suffix('.').unwrap_or(name).to_owned();
        let name = ServerName::try_from(name).map_err(|_| TlsFault::BadName)?;
        Ok(ClientTls { config: self.0.clone(), name })
    }

    /// How a host with an address and no name is called: its certificate must have the address,
    /// and no name goes into the hello.
    pub fn of_address(&self, address: IpAddr) -> ClientTls {
        ClientTls { config: self.0.clone(), name: ServerName::IpAddress(address.into()) }
    }
}

// === impl ClientTls ===

impl ClientTls {
    pub(super) fn parts(&self) -> (Arc<ClientConfig>, ServerName<'static>) {
        (self.config.clone(), self.name.clone())
    }
}

// === impl ServerTls ===

impl ServerTls {
    /// From a chain, leaf first, and its private key, both as PEM. The key is checked against the
    /// leaf.
    pub fn of_pem(chain: &str, key: &str) -> Result<ServerTls, TlsFault> {
        let chain = certificates(chain)?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| match error {
            rustls::pki_types::pem::Error::NoItemsFound => TlsFault::NoKey,
            _ => TlsFault::BadKey,
        })?;
        let builder = ServerConfig::builder_with_details(provider(), Arc::new(WallClock));
        let builder =
            builder.with_safe_default_protocol_versions().map_err(|_| TlsFault::Internal)?;
        let builder = builder.with_no_client_auth();
        let config = builder.with_single_cert(chain, key);
        let mut config = config.map_err(|_| TlsFault::WrongKey)?;
        config.alpn_protocols = [ALPN, ALPN_OLDER].map(<[u8]>::to_vec).to_vec();
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(|_| TlsFault::Internal)?;
        Ok(ServerTls(Arc::new(config)))
    }

    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.0.clone()
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match found {
        Ok(found) if found.is_empty() => Err(TlsFault::NoCertificate),
        Ok(found) => Ok(found),
        Err(_) => Err(TlsFault::BadPem),
    }
}

// === what may be shown ===

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TlsFault::NoCertificate => "there is no certificate in it",
            TlsFault::BadPem | TlsFault::BadKey => "a PEM block in it is broken",
            TlsFault::BadRoot => "a certificate in it cannot be a root",
            TlsFault::NoKey => "there is no private key in it",
            TlsFault::WrongKey => "the key is not that of the certificate, or of an unknown kind",
            TlsFault::BadName => "no certificate can have this name",
            TlsFault::Internal => "TLS cannot be set up",
        })
    }
}

impl std::error::Error for TlsFault {}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trust")
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls")
    }
}
