//! TLS for the load and the stand-in: [`Socket`] is a connection that is plain or secured,
//! [`Papers`] are a CA's certificate and one that it signed, [`Identity`] and [`Trust`] who is
//! shown and who is believed. By rustls' own buffered connections, so that nothing of the gateway's
//! adapter is in it.
//!
//! One version, one cipher and one group (TLS 1.3, AES-128-GCM, X25519): whoever stands between two
//! of us has no choice, so two servers are compared over the same. Certificates have P-256 keys.
//! Deliberately not: early data, client certificates. Bound: `SEALED_MAX` of a connection's bytes.

mod options;
mod papers;
mod socket;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

pub(crate) use options::Secured;
pub use papers::{CA_FILE, CHAIN_FILE, KEY_FILE, Papers};
pub(crate) use socket::Socket;

/// Who is shown to those that call.
#[derive(Clone)]
pub struct Identity(Arc<ServerConfig>);

/// Who is believed of those that are called.
#[derive(Clone)]
pub(crate) struct Trust(Arc<ClientConfig>);

impl Identity {
    /// From a chain, leaf first, and its key, both PEM.
    pub fn of_pem(chain: &str, key: &str) -> io::Result<Identity> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain.as_bytes()).collect();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(io::Error::other)?;
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_no_client_auth();
        let config = builder.with_single_cert(chain.map_err(io::Error::other)?, key);
        let mut config = config.map_err(io::Error::other)?;
        config.ticketer = ring::Ticketer::new().map_err(io::Error::other)?;
        Ok(Identity(Arc::new(config)))
    }

    /// From the files that [`Papers::write`] writes into a folder.
    pub fn of_folder(folder: &Path) -> io::Result<Identity> {
        let [chain, key] = [CHAIN_FILE, KEY_FILE].map(|name| read(&folder.join(name)));
        Identity::of_pem(&chain?, &key?)
    }
}

impl Trust {
    /// The roots in a PEM file.
    pub(crate) fn of_file(path: &Path) -> io::Result<Trust> {
        Trust::of_pem(&read(path)?)
    }

    /// The roots in a text of PEM blocks.
    pub(crate) fn of_pem(text: &str) -> io::Result<Trust> {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(text.as_bytes()) {
            roots.add(root.map_err(io::Error::other)?).map_err(io::Error::other)?;
        }
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?;
        Ok(Trust(Arc::new(builder.with_root_certificates(roots).with_no_client_auth())))
    }

    /// A session with whoever has this address in its certificate.
    fn session(&self, with: IpAddr) -> io::Result<rustls::Connection> {
        let name = ServerName::IpAddress(with.into());
        let session = rustls::ClientConnection::new(self.0.clone(), name);
        session.map(Into::into).map_err(io::Error::other)
    }
}

/// Reads a file; an error names it.
fn read(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn provider() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
    provider.kx_groups = vec![ring::kx_group::X25519];
    Arc::new(provider)
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trust")
    }
}
