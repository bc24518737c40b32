//! What a shard is told from outside. Bounded, never waited on: drained at every tick.

use crate::config::snapshot::Snapshot;
use crate::io::tls::ServerTls;
use crate::upstream::addresses::Addresses;
use crossbeam_queue::ArrayQueue;
use std::sync::Arc;

/// Letters a mailbox holds. The control thread sends a handful a minute and a shard empties it
/// ten times a second; a full mailbox means a dead shard.
const LETTERS_MAX: usize = 64;

/// Something a shard should know.
pub enum Letter {
    /// A new configuration.
    Publish(Arc<Snapshot>),
    /// New addresses of the providers' hosts.
    Addresses(Arc<Addresses>),
    /// Who the listener is from now on.
    Identity(Arc<ServerTls>),
    /// The node will stop: it is not ready any more, and takes connections for a last while.
    Notice,
    /// Stop accepting; finish what is under way.
    Drain,
    /// Stop accepting; end what is under way.
    Cut,
}

/// The way into one shard.
#[derive(Clone)]
pub struct Mailbox(Arc<ArrayQueue<Letter>>);

impl Default for Mailbox {
    fn default() -> Mailbox {
        Mailbox(Arc::new(ArrayQueue::new(LETTERS_MAX)))
    }
}

impl Mailbox {
    /// Leaves a letter; gives it back when the box is full.
    pub fn send(&self, letter: Letter) -> Result<(), Letter> {
        self.0.push(letter)
    }

    /// The oldest letter.
    pub fn take(&self) -> Option<Letter> {
        self.0.pop()
    }
}
