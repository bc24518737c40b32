//! Where the providers' hosts are. Resolved off the shards and handed over whole; a shard only
//! looks up.

use crate::config::snapshot::{Host, Provider};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// Addresses tried for one name: what a connect deadline of seconds has room for.
pub const ADDRESSES_MAX: usize = 8;

/// Name → addresses, in the resolver's order. A name whose look-up failed keeps the addresses it
/// had.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Addresses(HashMap<Box<str>, Box<[IpAddr]>>);

impl Addresses {
    /// From resolved names.
    pub fn new(names: HashMap<Box<str>, Box<[IpAddr]>>) -> Addresses {
        Addresses(names)
    }

    /// The addresses last known of a name.
    pub fn of_name(&self, name: &str) -> &[IpAddr] {
        self.0.get(name).map_or(&[], |list| list)
    }

    /// The `nth` address to try for a provider.
    pub fn nth(&self, provider: &Provider, nth: usize) -> Option<SocketAddr> {
        match &provider.host {
            Host::Address(address) => (nth == 0).then_some(*address),
            Host::Name(name) => {
                let list = self.0.get(name)?;
                let ip = list.get(nth).filter(|_| nth < ADDRESSES_MAX)?;
                Some(SocketAddr::new(*ip, provider.port))
            }
        }
    }
}
