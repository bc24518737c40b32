//! How a published configuration is adopted by a shard: between two turns, by the mailbox. An
//! exchange pins the version it began with; pinning is a plain increment on this thread.

use crate::config::snapshot::Snapshot;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A pinned snapshot. The outer count is this thread's; the inner one is touched once a version.
pub type Pinned = Rc<Arc<Snapshot>>;

/// The version that new exchanges get.
pub struct SnapshotCell(RefCell<Pinned>);

impl SnapshotCell {
    /// Starts with a version.
    pub fn new(first: Arc<Snapshot>) -> SnapshotCell {
        SnapshotCell(RefCell::new(Rc::new(first)))
    }

    /// The version in force, held for as long as the exchange lasts.
    pub fn pin(&self) -> Pinned {
        self.0.borrow().clone()
    }

    /// Adopts a newer version.
    pub fn adopt(&self, next: Arc<Snapshot>) {
        *self.0.borrow_mut() = Rc::new(next);
    }
}
