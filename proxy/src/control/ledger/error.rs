//! Why the ledger cannot be opened, or ended: what, where, and what to do about it. Whatever
//! stands here, nothing was lost and nothing was changed that a next start would not find.

use std::fmt;
use std::io;
use std::path::PathBuf;
use store::error::Error;

/// Which piece of durable state it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The folder of the node, its lock, its identity.
    Home,
    /// Keys and checkpoint.
    State,
    /// The log.
    Log,
    /// The slabs in memory.
    Slabs,
}

/// The ledger cannot be opened, or not be ended.
#[derive(Debug)]
pub enum LedgerError {
    /// A folder or file cannot be had.
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process has the folder.
    Locked {
        /// The folder.
        state_dir: PathBuf,
    },
    /// The system gives no random bytes.
    Random,
    /// The files of a folder are not of one node.
    Identity {
        /// The folder.
        state_dir: PathBuf,
        /// What is wrong.
        why: &'static str,
    },
    /// A folder of slabs is another user's.
    Foreign {
        /// Which.
        path: PathBuf,
    },
    /// The store refused.
    Store {
        /// Which piece of it.
        part: Part,
        /// Where that is.
        path: PathBuf,
        /// What it said.
        source: Error,
    },
    /// The ledger's thread has died: a defect of ours.
    Died,
}

// === impl LedgerError ===

impl LedgerError {
    /// Names the file or folder.
    pub(super) fn io(path: &std::path::Path) -> impl FnOnce(io::Error) -> LedgerError + '_ {
        move |source| LedgerError::Io { path: path.to_owned(), source }
    }

    /// Names the piece and its place.
    pub(super) fn store(
        part: Part,
        path: &std::path::Path,
    ) -> impl Fn(Error) -> LedgerError + Clone + '_ {
        move |source| LedgerError::Store { part, path: path.to_owned(), source }
    }
}

/// What helps, beside what was said.
fn advice(part: Part, error: &Error) -> &'static str {
    match (part, error) {
        (_, error) if error.is_full() && part == Part::Slabs => {
            "; make room in memory, or have fewer shards"
        }
        (_, error) if error.is_full() => "; make room and start again, nothing is lost",
        (_, Error::BelowCheckpoint { .. }) => {
            "; put the missing segments back: state.redb and ledger/ belong together"
        }
        (_, Error::Damaged { .. }) => {
            "; put the segment back from a copy, a damaged log is never continued"
        }
        (_, Error::NotMemory) => "; name a folder on tmpfs as slab_dir in [ledger]",
        (Part::Slabs, Error::Slab(_)) => {
            "; moved aside it no longer hinders the start, and what it holds stays unsettled"
        }
        (_, Error::StateDamaged) => {
            "; put it back from a copy; without it keys are gone, and the log stays what it is"
        }
        (
            _,
            Error::Io { .. } | Error::Locked | Error::Slab(_) | Error::State { .. } | Error::Row(_),
        ) => "",
    }
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LedgerError::Io { path, source } => write!(f, "{}: {source}", path.display()),
            LedgerError::Locked { state_dir } => write!(
                f,
                "{}: another tollgate has this folder; stop that one, or give this one a \
                 state_dir of its own",
                state_dir.display()
            ),
            LedgerError::Random => f.write_str("the system gives no random bytes"),
            LedgerError::Identity { state_dir, why } => {
                write!(f, "{}: {why}", state_dir.display())
            }
            LedgerError::Foreign { path } => write!(
                f,
                "{}: not a folder of this user alone; remove it or name another slab_dir in \
                 [ledger]",
                path.display()
            ),
            LedgerError::Store { part, path, source } => {
                write!(f, "{}: {source}{}", path.display(), advice(*part, source))
            }
            LedgerError::Died => f.write_str("the ledger's thread has died, which is a defect"),
        }
    }
}

impl std::error::Error for LedgerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LedgerError::Io { source, .. } => Some(source),
            LedgerError::Store { source, .. } => Some(source),
            LedgerError::Locked { .. }
            | LedgerError::Random
            | LedgerError::Identity { .. }
            | LedgerError::Foreign { .. }
            | LedgerError::Died => None,
        }
    }
}
