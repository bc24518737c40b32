//! The durable state of a node that does not run: for commands that look at it, or make a key,
//! while nobody else has it. The log and the slabs are only read.

use super::error::{LedgerError, Part};
use super::home::Home;
use super::slabs::{REMEMBERED, remembered};
use std::io;
use std::path::Path;
use std::sync::Arc;
use store::appender::Checkpoint;
use store::balance::Balances;
use store::disk::Folder;
use store::query;
use store::slab::{Files, Seen};
use store::state::State;

/// The state of a node, ours until dropped.
pub struct Resting {
    home: Home,
    state: Arc<State>,
    log: Folder,
}

// === impl Resting ===

impl Resting {
    /// Takes the state that is in a folder.
    pub fn enter(state_dir: &Path) -> Result<Resting, LedgerError> {
        let path = state_dir.join("state.redb");
        if !path.exists() {
            let why = "there is no state here; a node or `tollgate keys create` makes it";
            return Err(LedgerError::io(&path)(io::Error::new(io::ErrorKind::NotFound, why)));
        }
        Resting::make(state_dir)
    }

    /// Takes the state that is in a folder, or makes it for a node that will start there.
    pub fn make(state_dir: &Path) -> Result<Resting, LedgerError> {
        let home = Home::enter(state_dir)?;
        let state = Arc::new(home.state()?);
        let (_, log) = home.log()?;
        Ok(Resting { home, state, log })
    }

    /// The node's identity.
    pub fn node(&self) -> u64 {
        self.state.node()
    }

    /// Keys and checkpoint.
    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// The log.
    pub fn log(&self) -> &Folder {
        &self.log
    }

    /// What the state store vouches for.
    pub fn checkpoint(&self) -> Result<Option<Checkpoint>, LedgerError> {
        let path = self.home.path("state.redb");
        self.state.checkpoint().map_err(LedgerError::store(Part::State, &path))
    }

    /// What was settled up to the end of the log.
    pub fn balances(&self) -> Result<Balances, LedgerError> {
        let (checkpoint, path) = (self.checkpoint()?, self.home.path("ledger"));
        query::balances(&self.log, self.node(), checkpoint.as_ref())
            .map_err(LedgerError::store(Part::Log, &path))
    }

    /// Exchanges that a process left when it died, and that the next start will settle.
    pub fn unrecovered(&self) -> Result<Vec<Seen>, LedgerError> {
        let mut seen = Vec::new();
        for folder in remembered(&self.home.path(REMEMBERED))? {
            if folder.is_dir() {
                let failed = LedgerError::store(Part::Slabs, &folder);
                let files = Files::make(&folder, self.node()).map_err(&failed)?;
                seen.extend(files.unrecovered().map_err(&failed)?);
            }
        }
        Ok(seen)
    }
}

impl std::fmt::Debug for Resting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resting").field("node", &self.node()).finish_non_exhaustive()
    }
}
