//! What secures connections: whom providers' certificates are trusted by, and who a listener is.
//!
//! Files are read once, here; a listener's are also read again by the control thread, through
//! [`ListenTls::read`], so that what holds at the start holds then.

use super::base_url::BaseUrl;
use super::env::Env;
use super::file;
use super::findings::{Findings, Text};
use super::ledger;
use super::snapshot::Host;
use super::validity::Validity;
use crate::exchange::time::UnixMs;
use crate::io::tls::{ClientTls, ServerTls, Trust};
use ring::digest::{SHA256, digest};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Who a listener is, and where that is written.
#[derive(Clone, Debug)]
pub struct ListenTls {
    /// The chain of certificates.
    pub cert_file: PathBuf,
    /// The private key.
    pub key_file: PathBuf,
    /// What was in them.
    pub papers: Papers,
}

/// What was in a listener's files.
#[derive(Clone, Debug)]
pub struct Papers {
    /// To be shown to clients.
    pub tls: Arc<ServerTls>,
    /// Of both files: whether they have changed.
    pub digest: [u8; 32],
    /// From when to when the certificate holds, if that can be read.
    pub validity: Option<Validity>,
}

/// Trust that providers share: who trusts the same roots also shares their tickets, and who calls
/// the same host so also shares its connections.
#[derive(Default)]
pub(super) struct Trusts {
    /// By file; the system's has none.
    by_file: HashMap<Option<PathBuf>, Option<Trust>>,
    by_host: HashMap<(Option<PathBuf>, Host), Arc<ClientTls>>,
}

// === impl Trusts ===

impl Trusts {
    /// How a provider is called; nothing if it is called plainly, or if that was refused.
    pub(super) fn client(
        &mut self,
        url: &BaseUrl,
        written: &file::Provider,
        (folder, env): (&Path, &dyn Env),
        findings: &mut Findings<'_>,
    ) -> Option<Arc<ClientTls>> {
        let what = "\"ca_file\" in [[provider]]";
        let ca_file = written.ca_file.as_ref();
        let path = ledger::path(ca_file, what, folder, findings);
        if !url.secured {
            if let Some(ca_file) = ca_file {
                let why = "has no effect: base_url begins with http://";
                findings.error(ca_file.at, format!("{what} {why}"));
            }
            return None;
        }
        if path.is_none() && ca_file.is_some() {
            return None;
        }
        let at = ca_file.or(written.base_url.as_ref()).map_or(written.at, |text| text.at);
        let trust = self.trust(path.clone(), at, env, findings)?;
        let place = (path, url.host.clone());
        if let Some(known) = self.by_host.get(&place) {
            return Some(known.clone());
        }
        let tls = match &url.host {
            Host::Address(address) => Ok(trust.of_address(address.ip())),
            Host::Name(name) => trust.of_name(name),
        };
        let tls = tls.map_err(|why| findings.error(at, format!("base_url: {why}"))).ok()?;
        Some(self.by_host.entry(place).or_insert_with(|| Arc::new(tls)).clone())
    }

    /// Of each file, and of the system, a fault is told once.
    fn trust(
        &mut self,
        path: Option<PathBuf>,
        at: usize,
        env: &dyn Env,
        findings: &mut Findings<'_>,
    ) -> Option<Trust> {
        if let Some(known) = self.by_file.get(&path) {
            return known.clone();
        }
        let trust = match &path {
            Some(path) => of_file(path, env),
            None => Trust::of_system(env.system_roots()).map_err(|_| NO_ROOTS.to_owned()),
        };
        let trust = trust.map_err(|why| findings.error(at, why)).ok();
        self.by_file.insert(path, trust.clone());
        trust
    }
}

/// A small image or a bare machine has none.
const NO_ROOTS: &str = "base_url: this system has no root certificates: install them \
                        (ca-certificates), name theirs in SSL_CERT_FILE, or set ca_file";

fn of_file(path: &Path, env: &dyn Env) -> Result<Trust, String> {
    let shown = path.display();
    let text = env.read_file(path);
    let text = text.map_err(|error| format!("ca_file {shown} cannot be read: {error}"))?;
    Trust::of_pem(&text).map_err(|why| format!("ca_file {shown}: {why}"))
}

// === impl ListenTls ===

impl ListenTls {
    /// Reads both files again.
    pub fn read(&self, env: &dyn Env) -> Result<Papers, String> {
        papers(&self.cert_file, &self.key_file, env).map_err(|faults| {
            let faults: Vec<String> = faults.into_iter().map(|(_, why)| why).collect();
            faults.join("; ")
        })
    }

    /// What clients will mind in the certificate, if they do.
    pub fn doubt(&self, now: UnixMs) -> Option<String> {
        let doubt = match &self.papers.validity {
            Some(validity) => validity.doubt(now)?,
            None => "from when to when it holds cannot be read".to_owned(),
        };
        Some(format!("cert_file {}: {doubt}", self.cert_file.display()))
    }
}

/// Whose fault an error is.
enum Of {
    Cert,
    Key,
}

/// Who the listener is; nothing if it listens plainly, or if that was refused.
pub(super) fn listener(
    written: Option<&file::ListenTls>,
    folder: &Path,
    env: &dyn Env,
    findings: &mut Findings<'_>,
) -> Option<ListenTls> {
    let file::ListenTls { cert_file, key_file } = written?;
    let mut path = |text: &Option<Text>, key| {
        ledger::path(text.as_ref(), &format!("\"{key}\" in tls of [listen]"), folder, findings)
    };
    let (cert, key) = (path(cert_file, "cert_file"), path(key_file, "key_file"));
    let (cert, key) = (cert?, key?);
    match papers(&cert, &key, env) {
        Ok(papers) => {
            let listen = ListenTls { cert_file: cert, key_file: key, papers };
            if let Some(doubt) = listen.doubt(env.now()) {
                findings.warn(cert_file.as_ref().map_or(0, |text| text.at), doubt);
            }
            Some(listen)
        }
        Err(faults) => {
            for (of, why) in faults {
                let text = match of {
                    Of::Cert => cert_file,
                    Of::Key => key_file,
                };
                findings.error(text.as_ref().map_or(0, |text| text.at), why);
            }
            None
        }
    }
}

/// No error shows what is in a file.
fn papers(cert: &Path, key: &Path, env: &dyn Env) -> Result<Papers, Vec<(Of, String)>> {
    let read = |of, what, path: &Path| {
        let text = env.read_file(path);
        text.map_err(|error| (of, format!("{what} {} cannot be read: {error}", path.display())))
    };
    let (chain, secret) = match (read(Of::Cert, "cert_file", cert), read(Of::Key, "key_file", key))
    {
        (Ok(chain), Ok(secret)) => (chain, secret),
        (chain, secret) => return Err(chain.err().into_iter().chain(secret.err()).collect()),
    };
    let tls = ServerTls::of_pem(&chain, &secret).map_err(|why| {
        let (of, what, path) = match why.is_of_the_key() {
            true => (Of::Key, "key_file", key),
            false => (Of::Cert, "cert_file", cert),
        };
        vec![(of, format!("{what} {}: {why}", path.display()))]
    })?;
    let both = [chain.as_bytes(), &[0], secret.as_bytes()].concat();
    let mut digest_of_both = [0; 32];
    digest_of_both.copy_from_slice(digest(&SHA256, &both).as_ref());
    let validity = Validity::of_pem(&chain);
    Ok(Papers { tls: Arc::new(tls), digest: digest_of_both, validity })
}
