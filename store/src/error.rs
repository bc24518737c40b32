//! What can go wrong with durable records: whose fault, and whether waiting helps.

use std::fmt;
use std::io;

/// Where in the log something was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Ordinal of the segment, as in its file's name.
    pub segment: u64,
    /// Byte in that file.
    pub offset: u64,
}

/// What is wrong with bytes of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A segment's header does not check out.
    Header,
    /// A segment belongs to another node.
    ForeignNode,
    /// A segment between two others is not there.
    MissingSegment,
    /// A segment does not continue where the one before ended.
    Discontinued,
    /// A frame does not check out, and it is not the last.
    Frame,
    /// A frame does not continue the chain.
    Chain,
    /// A frame's content contradicts itself: `records` that are none, or counts that do not match.
    Content,
    /// A slab's settle sequence has a gap or comes twice.
    SettleSequence,
    /// The totals a frame states are not the sum of the records.
    Totals,
    /// The totals of the state store's checkpoint are not the sum of the records up to it.
    Checkpoint,
}

/// The failure of a store operation.
#[derive(Debug)]
pub enum Error {
    /// The disk refused. Waiting may help; see [`Error::is_full`].
    Io {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The log is damaged where it must not be: never continued, never skipped.
    Damaged {
        /// Where.
        place: Place,
        /// How.
        damage: Damage,
    },
    /// The log ends before the state store's checkpoint: acknowledged records are gone.
    BelowCheckpoint {
        /// The last sequence the log has.
        log: u64,
        /// The sequence the checkpoint vouches for.
        checkpoint: u64,
    },
    /// Another process holds the lock.
    Locked,
    /// A slab is not what this build can read, or not this node's.
    Slab(&'static str),
    /// The slabs' file system is not tmpfs: writes could put a shard to sleep.
    NotMemory,
    /// The state store refused.
    State {
        /// What was attempted.
        what: &'static str,
        /// What it said.
        message: String,
    },
    /// The state store's file is damaged, in a way that its own checks stop at.
    StateDamaged,
    /// A row of the state store is not readable.
    Row(&'static str),
}

/// The result of a store operation.
pub type Result<T> = std::result::Result<T, Error>;

// === impl Error ===

impl Error {
    /// Names what was attempted.
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { what, source }
    }

    pub(crate) fn damaged(segment: u64, offset: u64, damage: Damage) -> Error {
        Error::Damaged { place: Place { segment, offset }, damage }
    }

    /// Whether the disk has no room: a state that ends by itself when there is room again.
    pub fn is_full(&self) -> bool {
        match self {
            Error::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            _ => false,
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Damage::Header => "the segment's header does not check out",
            Damage::ForeignNode => "the segment belongs to another node",
            Damage::MissingSegment => "the segment is missing",
            Damage::Discontinued => "the segment does not continue the one before",
            Damage::Frame => "a frame does not check out and is not the last",
            Damage::Chain => "a frame does not continue the chain",
            Damage::Content => "a frame contradicts itself",
            Damage::SettleSequence => "a settle sequence is missing or comes twice",
            Damage::Totals => "stated totals are not the sum of the records",
            Damage::Checkpoint => {
                "the state store's totals are not the sum of the records up to here"
            }
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { what, source } => write!(f, "{what}: {source}"),
            Error::Damaged { place, damage } => {
                write!(f, "segment {} at byte {}: {damage}", place.segment, place.offset)
            }
            Error::BelowCheckpoint { log, checkpoint } => write!(
                f,
                "the log ends at record {log}, but record {checkpoint} was acknowledged: records \
                 are gone"
            ),
            Error::Locked => f.write_str("another process holds the lock"),
            Error::Slab(why) => write!(f, "slab: {why}"),
            Error::NotMemory => f.write_str("slabs need a tmpfs (/dev/shm or $RUNTIME_DIRECTORY)"),
            Error::State { what, message } => write!(f, "state store, {what}: {message}"),
            Error::StateDamaged => f.write_str("state store: its file is damaged"),
            Error::Row(what) => write!(f, "state store: a row of {what} is not readable"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
