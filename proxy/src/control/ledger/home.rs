//! The folder of a node on disk: who has it, whose it is, and what is in it.
//!
//! ```text
//! lock         held by the one process that appends, recovers and collects
//! node         the node's identity as 16 hexadecimal digits, minted once
//! state.redb   keys, counters, the checkpoint
//! slabs        where slabs were made last, a path a line
//! ledger/      the log
//! ```
//!
//! The identity stands twice: a state store that was lost is made again for the same node, whose
//! slabs and log are then found; two that differ are refused. Everything is its user's alone.

use super::error::{LedgerError, Part};
use ring::rand::{SecureRandom, SystemRandom};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use store::disk::Folder;
use store::error::Error;
use store::lock::Lock;
use store::state::State;

/// The folder, ours until dropped.
#[derive(Debug)]
pub(super) struct Home {
    state_dir: PathBuf,
    #[expect(dead_code, reason = "held until dropped")]
    lock: Lock,
}

// === impl Home ===

impl Home {
    /// Makes the folder if it is not there, and takes it.
    pub(super) fn enter(state_dir: &Path) -> Result<Home, LedgerError> {
        make_private(state_dir).map_err(LedgerError::io(state_dir))?;
        let path = state_dir.join("lock");
        let lock = Lock::take(&path).map_err(|error| match error {
            Error::Locked => LedgerError::Locked { state_dir: state_dir.to_owned() },
            other => LedgerError::store(Part::Home, &path)(other),
        })?;
        Ok(Home { state_dir: state_dir.to_owned(), lock })
    }

    /// The state store, of the node whose folder this is.
    pub(super) fn state(&self) -> Result<State, LedgerError> {
        let known = identity(&self.state_dir)?;
        let fresh = known.map_or_else(mint, Ok)?;
        let path = self.path("state.redb");
        if known.is_some() && std::fs::metadata(&path).is_ok_and(|found| found.len() == 0) {
            // A new one would be made of it, and budgets would begin anew.
            let why = "state.redb has lost all that was in it; put it back from a copy, or remove \
                       it: keys are gone then";
            return Err(LedgerError::Identity { state_dir: self.state_dir.clone(), why });
        }
        // Made here and not by redb, which has no say in who may read it.
        let mut file = OpenOptions::new();
        let file = file.create(true).truncate(false).write(true).mode(0o600).open(&path);
        drop(file.map_err(LedgerError::io(&path))?);
        let state = State::open(&path, || fresh);
        let state = state.map_err(LedgerError::store(Part::State, &path))?;
        match known {
            Some(known) if known != state.node() => {
                let why = "node and state.redb are of two nodes; put the right one back";
                return Err(LedgerError::Identity { state_dir: self.state_dir.clone(), why });
            }
            Some(_) => {}
            None => self.write("node", format!("{:016x}\n", state.node()).as_bytes())?,
        }
        Ok(state)
    }

    /// The log's folder.
    pub(super) fn log(&self) -> Result<(PathBuf, Folder), LedgerError> {
        let path = self.path("ledger");
        make_private(&path).map_err(LedgerError::io(&path))?;
        let folder = Folder::make(&path).map_err(LedgerError::io(&path))?;
        Ok((path, folder))
    }

    /// A file of the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.state_dir.join(name)
    }

    /// Writes a small file whole, or leaves it as it was.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), LedgerError> {
        let (path, new) = (self.path(name), self.path("new.tmp"));
        let write = || {
            let mut file = OpenOptions::new();
            let mut file = file.create(true).truncate(true).write(true).mode(0o600).open(&new)?;
            file.write_all(bytes)?;
            file.sync_data()?;
            std::fs::rename(&new, &path)?;
            File::open(&self.state_dir)?.sync_all()
        };
        write().map_err(LedgerError::io(&path))
    }
}

/// The identity of the node whose folder this is; `None` in a new one. Needs no lock: whoever
/// reads the log beside a running process starts here.
pub fn identity(state_dir: &Path) -> Result<Option<u64>, LedgerError> {
    let path = state_dir.join("node");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LedgerError::io(&path)(error)),
    };
    let digits = text.trim_end();
    let plain = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let node = u64::from_str_radix(digits, 16).ok().filter(|_| plain);
    let why = "node is not 16 hexadecimal digits; removed, it is written anew from state.redb";
    node.map(Some).ok_or_else(|| LedgerError::Identity { state_dir: state_dir.to_owned(), why })
}

fn mint() -> Result<u64, LedgerError> {
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes).map_err(|_| LedgerError::Random)?;
    Ok(u64::from_be_bytes(bytes))
}

/// Makes a folder that only its user can enter; one that is there stays as it is.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests;
