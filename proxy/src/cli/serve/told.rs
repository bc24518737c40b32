//! What a start tells: every line has a word and its value, for people and for `grep`. All of it
//! goes to the standard error but the first key, which is a result. No line of the error has a
//! key or a credential in it, unless records have the standard output to themselves.

use super::{clients, output};
use crate::config::check::provider_line;
use crate::config::snapshot::Host;
use crate::config::{Config, LedgerSettings};
use crate::control::keys::{Declared, KeyFault, Keys, NewKey};
use crate::exchange::time::UnixMs;
use crate::server::Node;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// The name of a first key.
const FIRST: &str = "first";

/// Tells a fact.
pub(super) fn line(word: &str, value: &str) {
    output::tell(&format!("{word:<12}{value}"));
}

/// Tells what was started.
pub(super) fn start(config: &Config, node: &Node, limit: &str, admin: SocketAddr) {
    for warning in &config.warnings {
        line("warning", &warning.located(&config.file));
    }
    let snapshot = &config.snapshot;
    line("tollgate", env!("CARGO_PKG_VERSION"));
    line("config", &format!("{}, snapshot {}", config.file, snapshot.version));
    if let Some(name) = &config.node {
        line("node", name);
    }
    line("descriptors", limit);
    line("shards", &node.drivers.len().to_string());
    for (number, driver) in node.drivers.iter().enumerate() {
        let core = node.cores.get(number).map_or_else(String::new, |core| format!(", core {core}"));
        line("shard", &format!("{number}, driver {driver}{core}"));
    }
    for provider in &snapshot.providers {
        line("provider", &provider_line(provider));
    }
    for provider in &snapshot.providers {
        if let Host::Name(host) = &provider.host
            && node.addresses.of_name(host).is_empty()
        {
            let name = &provider.name;
            line("warning", &format!("{name}: no address of {host} yet; calls get 502 until then"));
        }
    }
    line("models", &format!("{}, aliases {}", snapshot.models.len(), snapshot.aliases.len()));
    line("keys", &node.keys.len().to_string());
    line("prices", &format!("version {}", snapshot.prices.version));
    ledger(config, node);
    listeners(config, node, admin);
    line("ready", "stop with SIGINT or SIGTERM");
}

/// Where the ledger is, and what its opening found.
fn ledger(config: &Config, node: &Node) {
    let (Some(settings), Some(books)) = (&config.ledger, &node.books) else {
        return line("ledger", "none");
    };
    line("state", &absolute(&settings.state_dir).display().to_string());
    let last = books.ledger.position().durable.next_seq.saturating_sub(1);
    let place = settings.state_dir.display();
    line("ledger", &format!("{place}, {last} records; {}", books.found));
    for warning in books.found.warnings() {
        line("warning", &warning);
    }
    let Declared { added, changed, disabled, revoked } = &books.declared;
    for (names, what) in [(added, "added"), (changed, "changed"), (disabled, "switched off")] {
        if !names.is_empty() {
            line("keys", &format!("{what} by the configuration: {}", names.join(", ")));
        }
    }
    for name in revoked {
        line("warning", &format!("key {name} of the configuration is revoked and stays so"));
    }
}

/// Everywhere it can be reached, and how clients do.
fn listeners(config: &Config, node: &Node, admin: SocketAddr) {
    if let Some(LedgerSettings { state_dir, .. }) = &config.ledger {
        line("socket", &absolute(state_dir).join("admin.sock").display().to_string());
    }
    line("admin", &format!("http://{admin}"));
    if let Some(listen) = &config.listen_tls {
        line("certificate", &absolute(&listen.cert_file).display().to_string());
    }
    let scheme = if config.listen_tls.is_some() { "https" } else { "http" };
    line("data", &format!("{scheme}://{}", node.data));
    for (client, paste) in clients::lines(config, node.data) {
        line("client", &format!("{client:<15}{paste}"));
    }
}

/// Whoever reads a line later may be in another folder.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The text of a first key, if the node has none at all; a key that was revoked is one. It is in
/// the state before this returns, and never told again.
pub(super) fn first_key(node: &Node, now: UnixMs) -> Result<Option<String>, KeyFault> {
    let Some(books) = node.books.as_ref().filter(|_| node.keys.is_empty()) else {
        return Ok(None);
    };
    let keys: &Keys = &books.keys;
    let new = NewKey { name: FIRST.to_owned(), ..NewKey::default() };
    let (_, text) = keys.create(&new, now)?;
    Ok(Some(text.reveal().to_owned()))
}

/// Stands above a first key on the standard output, which may be the only one that is looked at.
/// To a shell it is nothing.
const COMMENT: &str = "# the first key of this node, without limits; it is shown this once";

/// Tells it, once. As a line of a shell, for the clients' lines read this variable. Records that
/// are printed have the standard output to themselves. It is written by the thread that is
/// given back: nobody else waits for whoever reads.
pub(super) fn tell_first_key(text: &str, output_is_taken: bool) -> Option<JoinHandle<()>> {
    line("key", &format!("{FIRST}, without limits; its text is shown this once:"));
    let export = format!("export TOLLGATE_KEY={text}");
    if output_is_taken {
        output::tell(&export);
        return None;
    }
    let lines = format!("{COMMENT}\n{export}\n");
    let told = std::thread::Builder::new().name("first-key".to_owned()).spawn(move || {
        if output::print(&lines).is_err() {
            first_key_is_lost();
        }
    });
    told.map_err(|_| first_key_is_lost()).ok()
}

/// Says so: the text is nowhere else.
pub(super) fn first_key_is_lost() {
    let how = "`tollgate keys revoke first`, then `tollgate keys create`";
    line("warning", &format!("nobody reads the standard output, and the key is lost: {how}"));
}
