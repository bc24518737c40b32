//! What a node has before its shards: identity, keys, and the ledger with everything a former
//! process left in it.

use crate::config::Config;
use crate::control::keys::{self, Declared, KeyFault, Keys};
use crate::control::ledger::{self, Found, LedgerError, Opened, Running};
use crate::exchange::keys::KeyTable;
use crate::shard::clock;
use std::fmt;
use std::io;
use std::sync::Arc;
use store::slab::{Geometry, Slab};

/// What is durable of a node.
pub struct Books {
    /// The node's identity.
    pub node: u64,
    /// The ledger's thread.
    pub ledger: Running,
    /// Who makes and changes keys.
    pub keys: Arc<Keys>,
    /// What the configuration's keys have changed.
    pub declared: Declared,
    /// What was found at the start.
    pub found: Found,
}

/// Why a node does not start.
#[derive(Debug)]
pub enum StartError {
    /// A port, a name, a thread.
    Io(io::Error),
    /// The ledger.
    Ledger(LedgerError),
    /// The keys.
    Keys(KeyFault),
}

/// What the shards are given.
pub(super) struct Stock {
    /// Three bytes that tell nodes apart.
    pub(super) node: [u8; 3],
    /// How often the node was started, as far as ids say it.
    pub(super) start: u16,
    pub(super) keys: Arc<KeyTable>,
    pub(super) slabs: Vec<Slab>,
    pub(super) books: Option<Books>,
}

/// Opens the ledger, recovers what is in it, and makes the keys.
pub(super) fn open(config: &Config) -> Result<Stock, StartError> {
    let now = clock::now().wall;
    let Some(settings) = &config.ledger else {
        return Ok(Stock {
            node: mint_node()?,
            start: 0,
            keys: Arc::new(keys::declared(&config.keys, now)),
            slabs: Vec::new(),
            books: None,
        });
    };
    let options = ledger::Options {
        state_dir: settings.state_dir.clone(),
        slab_dir: settings.slab_dir.clone(),
        runtime_dir: settings.runtime_dir.clone(),
        shards: u16::try_from(config.shards).unwrap_or(u16::MAX),
        geometry: Geometry::default(),
        segment_bytes: settings.segment_bytes,
        orphans: settings.orphans,
        clock: clock::now,
    };
    let opened = ledger::open(&options).map_err(StartError::Ledger)?;
    let Opened { node, start, state, slabs, found, ledger } = opened;
    let (keys, declared) =
        Keys::load(state, ledger.balances(), &config.keys, now).map_err(StartError::Keys)?;
    let [first, second, third, ..] = node.to_le_bytes();
    let [low, high, ..] = start.to_le_bytes();
    Ok(Stock {
        node: [first, second, third],
        start: u16::from_le_bytes([low, high]),
        keys: keys.table().clone(),
        slabs,
        books: Some(Books { node, ledger: ledger.start()?, keys: Arc::new(keys), declared, found }),
    })
}

/// Three random bytes that tell this node's request ids from others'.
fn mint_node() -> io::Result<[u8; 3]> {
    let mut node = [0; 3];
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, &mut node).map_err(|_| io::ErrorKind::Other)?;
    Ok(node)
}

// === impl StartError ===

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> StartError {
        StartError::Io(error)
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Io(error) => error.fmt(f),
            StartError::Ledger(error) => error.fmt(f),
            StartError::Keys(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}
