//! Names of the providers' hosts → addresses, off the shards.
//!
//! All names are resolved before the node is ready and again every [`REFRESH`]. A look-up that
//! fails or brings nothing keeps the addresses that were known.

use crate::config::snapshot::{Host, Snapshot};
use crate::upstream::addresses::{ADDRESSES_MAX, Addresses};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How often names are looked up again: well within the age of a pooled connection, so that a
/// moved host is followed by the time old connections are gone.
pub const REFRESH: Duration = Duration::from_secs(30);

/// Longest a look-up may take before the name counts as failed this time.
const LOOKUP_MAX: Duration = Duration::from_secs(5);

/// Looks every name up that the snapshot needs. `known` is what was known before.
pub async fn resolve(snapshot: &Snapshot, known: &Addresses) -> Addresses {
    let mut found: HashMap<Box<str>, Box<[IpAddr]>> = HashMap::new();
    for provider in &snapshot.providers {
        let Host::Name(name) = &provider.host else { continue };
        if found.contains_key(name) {
            continue;
        }
        let fresh = lookup(name).await;
        let list = if fresh.is_empty() { known.of_name(name).to_vec() } else { fresh };
        found.insert(name.clone(), list.into());
    }
    Addresses::new(found)
}

/// Looks the names up again every [`REFRESH`] for as long as the process lives, and publishes
/// what has changed.
pub async fn follow(
    snapshot: Arc<Snapshot>,
    mut known: Arc<Addresses>,
    publish: impl Fn(&Arc<Addresses>),
) {
    if !snapshot.providers.iter().any(|provider| matches!(provider.host, Host::Name(_))) {
        return;
    }
    loop {
        tokio::time::sleep(REFRESH).await;
        let fresh = resolve(&snapshot, &known).await;
        if fresh != *known {
            known = Arc::new(fresh);
            publish(&known);
        }
    }
}

async fn lookup(name: &str) -> Vec<IpAddr> {
    let looked_up = tokio::time::timeout(LOOKUP_MAX, tokio::net::lookup_host((name, 0))).await;
    let mut list: Vec<IpAddr> = match looked_up {
        Ok(Ok(addresses)) => addresses.map(|address| address.ip()).collect(),
        Ok(Err(_)) | Err(_) => Vec::new(),
    };
    list.dedup();
    list.truncate(ADDRESSES_MAX);
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::snapshot::{Provider, ProviderKind};
    use std::net::Ipv4Addr;

    fn snapshot(name: &str) -> Snapshot {
        let provider = Provider {
            name: "p".into(),
            kind: ProviderKind::OpenAi,
            authority: name.into(),
            host: Host::Name(name.into()),
            port: 80,
            tls: None,
            base_path: "".into(),
            credentials: Box::new([]),
            serves: Box::new([]),
            mode: Default::default(),
            breaker: Default::default(),
            choices: Default::default(),
        };
        Snapshot {
            version: 1,
            providers: Box::new([provider]),
            models: HashMap::new(),
            aliases: HashMap::new(),
            prices: Default::default(),
            terms: Default::default(),
            when_full: Default::default(),
            deadlines: Default::default(),
            bounds: Default::default(),
            retry: Default::default(),
            breaker: Default::default(),
            endings: Default::default(),
        }
    }

    #[tokio::test]
    async fn a_failed_look_up_keeps_what_was_known() {
        let name = "no-such-host.invalid";
        let old: Box<[IpAddr]> = Box::new([Ipv4Addr::new(127, 0, 0, 9).into()]);
        let known = Addresses::new(HashMap::from([(name.into(), old.clone())]));
        let after = resolve(&snapshot(name), &known).await;
        assert_eq!(after.of_name(name), &*old);
    }

    #[tokio::test]
    async fn localhost_is_found() {
        let after = resolve(&snapshot("localhost"), &Addresses::default()).await;
        assert!(after.of_name("localhost").iter().all(IpAddr::is_loopback));
        assert!(!after.of_name("localhost").is_empty());
    }
}
