//! redb's file, opened again after the disk was full.
//!
//! After any failed write redb takes nothing more until it is closed and opened, which is right
//! for a disk that fails: after a failed sync the cache shows what the disk never got, and only a
//! restart may judge that. A write refused for want of room harms nothing, and a node must not
//! have to be restarted because its disk was full for a minute. So the file notes what it refused
//! first, and where that was room, the next transaction opens it again.
//!
//! Bound: one attempt to open a transaction.

use super::CACHE_BYTES;
use redb::backends::FileBackend;
use redb::{
    BackendError, Database, ReadTransaction, ReadableDatabase, StorageBackend, WriteTransaction,
};
use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, PoisonError};

#[expect(clippy::disallowed_types, reason = "no shard comes here; redb has locks of its own")]
type Lock<T> = std::sync::RwLock<T>;

/// A database that a full disk does not end.
#[derive(Debug)]
pub(super) struct Base {
    path: PathBuf,
    /// `None` while it could not be opened again.
    open: Lock<Option<Database>>,
    refused: Arc<Refused>,
}

/// What the file has refused since it was opened.
#[derive(Debug, Default)]
struct Refused {
    what: AtomicU8,
    /// What it is told to refuse.
    #[cfg(test)]
    told: AtomicU8,
}

const NOTHING: u8 = 0;
const ROOM: u8 = 1;
const MORE: u8 = 2;

// === impl Base ===

impl Base {
    /// Opens the file, or makes it.
    pub(super) fn open(path: &Path) -> Result<Base, redb::Error> {
        let refused = Arc::default();
        let open = Lock::new(Some(open(path, &refused)?));
        Ok(Base { path: path.to_owned(), open, refused })
    }

    pub(super) fn begin_write(&self) -> Result<WriteTransaction, redb::Error> {
        self.begin(|database| Ok(database.begin_write()?))
    }

    pub(super) fn begin_read(&self) -> Result<ReadTransaction, redb::Error> {
        self.begin(|database| Ok(database.begin_read()?))
    }

    fn begin<T>(
        &self,
        begin: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, redb::Error> {
        if self.refused.room() {
            self.open_again()?;
        }
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        begin(open.as_ref().ok_or(redb::Error::DatabaseClosed)?)
    }

    fn open_again(&self) -> Result<(), redb::Error> {
        let mut held = self.open.write().unwrap_or_else(PoisonError::into_inner);
        if self.refused.room() {
            // Closed first: the file has one opener. A transaction that is just failing keeps it
            // open, and this attempt fails; the next one finds it closed.
            drop(held.take());
            self.refused.what.store(NOTHING, Ordering::Release);
            let opened = open(&self.path, &self.refused);
            if opened.is_err() && !self.refused.more() {
                self.refused.what.store(ROOM, Ordering::Release);
            }
            *held = Some(opened?);
        }
        Ok(())
    }
}

fn open(path: &Path, refused: &Arc<Refused>) -> Result<Database, redb::Error> {
    let mut file = OpenOptions::new();
    let file = file.read(true).write(true).create(true).truncate(false).open(path)?;
    let file = File { inner: FileBackend::new(file)?, refused: refused.clone() };
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    Ok(builder.create_with_backend(file)?)
}

// === impl Refused ===

impl Refused {
    fn room(&self) -> bool {
        self.what.load(Ordering::Acquire) == ROOM
    }

    fn more(&self) -> bool {
        self.what.load(Ordering::Acquire) == MORE
    }

    /// Notes what a write answers; anything but want of room counts for good.
    fn note<T>(&self, answer: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &answer {
            let full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
            self.what.fetch_max(if full { ROOM } else { MORE }, Ordering::AcqRel);
        }
        answer
    }

    #[cfg(test)]
    fn told(&self) -> io::Result<()> {
        match self.told.load(Ordering::Acquire) {
            NOTHING => Ok(()),
            ROOM => Err(ErrorKind::StorageFull.into()),
            _ => Err(ErrorKind::Other.into()),
        }
    }

    #[cfg(not(test))]
    fn told(&self) -> io::Result<()> {
        Ok(())
    }
}

/// redb's own way to a file, watched.
#[derive(Debug)]
struct File {
    inner: FileBackend,
    refused: Arc<Refused>,
}

type Answer<T> = Result<T, BackendError>;

impl StorageBackend for File {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.refused.note(self.inner.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        let synced = self.inner.sync_data();
        // Whatever a sync says is missing, pages of it may be lost.
        self.refused.note(synced.map_err(|error| io::Error::other(error.to_string())))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let told = self.refused.told();
        self.refused.note(told.and_then(|()| self.inner.write(offset, data)))
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Answer<bool> {
        self.inner.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Answer<bool> {
        self.inner.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Answer<()> {
        self.inner.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Answer<()> {
        self.inner.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Answer<()> {
        self.inner.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Answer<bool> {
        self.inner.query_lock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::tests::Memory;
    use redb::TableDefinition;

    const TABLE: TableDefinition<'_, u64, u64> = TableDefinition::new("numbers");

    fn put(base: &Base, number: u64) -> Result<(), redb::Error> {
        let write = base.begin_write()?;
        write.open_table(TABLE)?.insert(number, number)?;
        Ok(write.commit()?)
    }

    fn has(base: &Base, number: u64) -> Result<bool, redb::Error> {
        Ok(base.begin_read()?.open_table(TABLE)?.get(number)?.is_some())
    }

    fn base(memory: &Memory) -> Base {
        std::fs::create_dir_all(&memory.0).unwrap();
        Base::open(&memory.0.join("base.redb")).unwrap()
    }

    #[test]
    fn a_full_disk_ends_nothing_once_there_is_room() {
        let memory = Memory::new();
        let base = base(&memory);
        put(&base, 1).unwrap();
        for _ in 0..3 {
            base.refused.told.store(ROOM, Ordering::Release);
            for _ in 0..3 {
                assert!(put(&base, 2).is_err());
            }
            base.refused.told.store(NOTHING, Ordering::Release);
            assert!(has(&base, 1).unwrap());
        }
        assert!(!has(&base, 2).unwrap(), "what was refused is not there");
        put(&base, 3).unwrap();
        assert!(has(&base, 3).unwrap());
        drop(base);
        let base = self::base(&memory);
        assert_eq!([1, 2, 3].map(|number| has(&base, number).unwrap()), [true, false, true]);
    }

    #[test]
    fn a_disk_that_fails_is_not_believed_again_without_a_restart() {
        let memory = Memory::new();
        let base = base(&memory);
        put(&base, 1).unwrap();
        base.refused.told.store(MORE, Ordering::Release);
        assert!(put(&base, 2).is_err());
        base.refused.told.store(NOTHING, Ordering::Release);
        assert!(matches!(put(&base, 2), Err(redb::Error::PreviousIo)));
        drop(base);
        let base = self::base(&memory);
        assert!(has(&base, 1).unwrap());
    }
}
