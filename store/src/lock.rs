//! The ledger's lock: one process appends, recovers and collects. Whoever waits for it takes over
//! from a draining predecessor; the kernel lets it go with the process, however that ends.

use crate::error::{Error, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

/// The lock, held until dropped.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "the open file is the lock")] File);

// === impl Lock ===

impl Lock {
    /// Takes it, or says that another process has it.
    pub fn take(path: &Path) -> Result<Lock> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(Error::io("opening the lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(TryLockError::WouldBlock) => Err(Error::Locked),
            Err(TryLockError::Error(error)) => Err(Error::io("taking the lock")(error)),
        }
    }
}
