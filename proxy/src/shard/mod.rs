//! One thread, one ring. Shared with the shard from outside: its mailbox (in), its records (out),
//! counters that others only read, and the bundles' state words.
//!
//! A `Shard` is not `Send`: everything a core owns lives and dies on it.

pub mod allowance;
pub mod chance;
pub mod clock;
pub mod draws;
pub mod mailbox;
pub mod refused;
pub mod snapshot;
pub mod told;

use crate::exchange::ids::IdMint;
use crate::exchange::keys::KeyTable;
use crate::exchange::time::{MonoNs, Now, UnixMs};
use crate::io::Io;
use crate::io::buffers::Buffers;
use crate::io::tls::ServerTls;
use crate::io::wheel::Wheel;
use crate::observe::counters::Counters;
use crate::observe::ledger::LedgerGauges;
use crate::upstream::addresses::Addresses;
use crate::upstream::pool::Pool;
use allowance::Allowance;
use chance::Chance;
use draws::Draws;
use refused::RefusedBook;
use snapshot::SnapshotCell;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use store::slab::Slab;
use told::Told;

/// All that a core owns.
pub struct Shard<I: Io> {
    /// The world.
    pub io: I,
    /// Deadlines.
    pub wheel: Rc<Wheel>,
    /// Configuration.
    pub snapshot: SnapshotCell,
    /// Who the listener is; none if clients call plainly.
    pub identity: RefCell<Option<Arc<ServerTls>>>,
    /// Where the providers are.
    pub addresses: RefCell<Arc<Addresses>>,
    /// The keys of the node.
    pub keys: Arc<KeyTable>,
    /// Free buffers.
    pub buffers: Rc<Buffers>,
    /// Body bytes that may be held.
    pub allowance: Rc<Allowance>,
    /// Idle upstream connections.
    pub pool: Pool<I::Stream>,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// Request ids.
    pub mint: RefCell<IdMint>,
    /// Draws among equal candidates.
    pub draws: Draws,
    /// What is left to chance.
    pub chance: Chance,
    /// Names of traces and their spans.
    pub spans: Chance,
    /// Where records live until they are in the log; none if the ledger is off.
    pub slab: Option<RefCell<Slab>>,
    /// What the ledger thread tells.
    pub ledger: Arc<LedgerGauges>,
    /// Refusals of the second at hand.
    pub refused: RefCell<RefusedBook>,
    /// Where copies of settled records go, if somebody listens.
    pub records: Option<Arc<Told>>,
    /// Both clocks at the last tick.
    pub ticked: Cell<Now>,
    /// The node will stop: clients are to go elsewhere for their next request.
    pub noticed: Cell<bool>,
    /// Accept no more; finish what is under way.
    pub draining: Cell<bool>,
    /// The time to finish is over: what is under way ends now.
    pub cut: Cell<bool>,
    /// Answers read on for nobody.
    pub drains: Cell<usize>,
    /// Connections with a request under way.
    pub busy: Cell<usize>,
}

impl<I: Io> Shard<I> {
    /// The monotonic clock, read now.
    pub fn mono(&self) -> MonoNs {
        self.io.mono()
    }

    /// Both clocks for one reading of the monotonic one: the wall clock goes on from the last
    /// tick, at most a tick behind a step of it.
    pub fn now(&self) -> Now {
        let mono = self.io.mono();
        let ticked = self.ticked.get();
        Now { mono, wall: UnixMs(ticked.wall.0 + mono.since(ticked.mono) / 1_000_000) }
    }
}
