//! Certificates for a run: a CA of its own and one certificate that it signed, for loopback.
//! Deliberately short of everything a real CA does; they are worth nothing outside of a test.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};

/// The CA's certificate: what `ca_file` of a provider names.
pub const CA_FILE: &str = "ca.pem";

/// What is shown.
pub const CHAIN_FILE: &str = "chain.pem";

/// Its private key.
pub const KEY_FILE: &str = "key.pem";

/// A CA's certificate, one that it signed for `localhost` and loopback's addresses, and the key of
/// that; all PEM, keys on P-256.
pub struct Papers {
    /// Whom to believe.
    pub ca: String,
    /// What is shown.
    pub chain: String,
    /// Its private key.
    pub key: String,
}

impl Papers {
    /// Fresh ones.
    pub fn made() -> io::Result<Papers> {
        made().map_err(io::Error::other)
    }

    /// Writes all three into `folder`, which is made if need be.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        for (name, text) in [(CA_FILE, &self.ca), (CHAIN_FILE, &self.chain), (KEY_FILE, &self.key)]
        {
            std::fs::write(folder.join(name), text)?;
        }
        Ok(())
    }
}

fn made() -> Result<Papers, rcgen::Error> {
    let mut ca = CertificateParams::new(Vec::new())?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_key = KeyPair::generate()?;
    // two of one name would be taken for each other until a signature is looked at
    let own = format!("loadtest {:x?}", ca_key.public_key_raw().get(1..9).unwrap_or_default());
    ca.distinguished_name.push(DnType::CommonName, own);
    let ca = CertifiedIssuer::self_signed(ca, ca_key)?;
    let key = KeyPair::generate()?;
    let mut leaf = CertificateParams::new(vec!["localhost".to_owned()])?;
    for address in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
        leaf.subject_alt_names.push(SanType::IpAddress(address));
    }
    let leaf = leaf.signed_by(&key, &ca)?;
    Ok(Papers { ca: ca.pem(), chain: leaf.pem(), key: key.serialize_pem() })
}
