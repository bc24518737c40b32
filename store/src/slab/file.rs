//! The files slabs live in: `slab-<shard>-<start>` in a folder on tmpfs, each locked by the
//! process whose shard it is.

use super::collector::Collector;
use super::map::{Layout, Map, Seen};
use super::shard::Slab;
use super::{Geometry, SlabId, State};
use crate::error::{Error, Result};
use crate::record::Head;
use rustix::fs::FallocateFlags;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The `f_type` of tmpfs, from the kernel's magic numbers.
const TMPFS: rustix::fs::FsWord = 0x0102_1994;

/// The folder of a node's slabs.
#[derive(Clone, Debug)]
pub struct Files {
    folder: PathBuf,
    node: u64,
}

/// What stands in the way of a slab, or does not.
#[derive(Debug)]
pub enum Opened {
    /// Its process is gone: it can be recovered.
    Dead(Dead),
    /// Its process is alive: it can be collected.
    Live(Collector),
    /// Its making was interrupted: it holds nothing and has been removed.
    Nothing,
}

/// A slab whose process is gone, locked by us.
#[derive(Debug)]
pub struct Dead {
    pub(super) map: Arc<Map>,
    path: PathBuf,
}

// === impl Files ===

impl Files {
    /// The slabs of a node in a folder, which is made if it is not there. Refused where it is not
    /// on tmpfs.
    pub fn make(folder: &Path, node: u64) -> Result<Files> {
        std::fs::create_dir_all(folder).map_err(Error::io("making the folder of slabs"))?;
        let system = rustix::fs::statfs(folder)
            .map_err(|error| Error::io("asking for the file system")(error.into()))?;
        if system.f_type != TMPFS {
            return Err(Error::NotMemory);
        }
        Ok(Files { folder: folder.to_owned(), node })
    }

    /// Makes a shard's slab for this start: allocated whole, so that a full tmpfs is an error now
    /// and not a SIGBUS later, and locked.
    pub fn create(&self, id: SlabId, geometry: Geometry) -> Result<(Slab, Collector)> {
        let layout = Layout::of(geometry)?;
        let path = self.path(id);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(Error::io("making a slab"))?;
        let made = self.lay_out(file, id, geometry, layout.bytes);
        if made.is_err() {
            // What could not be made must not fill what is short.
            let _ = std::fs::remove_file(&path);
        }
        let map = Arc::new(made?);
        Ok((Slab::new(Arc::clone(&map)), Collector::new(map)))
    }

    fn lay_out(&self, file: File, id: SlabId, geometry: Geometry, bytes: usize) -> Result<Map> {
        lock(&file)?;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes as u64)
            .map_err(|error| Error::io("reserving a slab")(error.into()))?;
        Map::lay_out(file, self.node, id, geometry)
    }

    /// The slabs that are there, oldest start first.
    pub fn list(&self) -> Result<Vec<SlabId>> {
        let what = "listing slabs";
        let mut slabs = Vec::new();
        for entry in std::fs::read_dir(&self.folder).map_err(Error::io(what))? {
            let name = entry.map_err(Error::io(what))?.file_name();
            slabs.extend(name.to_str().and_then(id_of));
        }
        slabs.sort_by_key(|id| (id.start, id.shard));
        Ok(slabs)
    }

    /// Opens a slab of an earlier start, for whoever holds the ledger's lock.
    pub fn open(&self, id: SlabId) -> Result<Opened> {
        let path = self.path(id);
        let file = open_to_write(&path)?;
        let dead = match lock(&file) {
            Ok(()) => true,
            Err(Error::Locked) => false,
            Err(error) => return Err(error),
        };
        match Map::attach(file, self.node, id)? {
            Some(map) if dead => Ok(Opened::Dead(Dead { map: Arc::new(map), path })),
            Some(map) => Ok(Opened::Live(Collector::new(Arc::new(map)))),
            None if dead => {
                std::fs::remove_file(&path).map_err(Error::io("removing a slab"))?;
                Ok(Opened::Nothing)
            }
            // Its process is just making it.
            None => Ok(Opened::Nothing),
        }
    }

    /// Slots of dead processes that hold exchanges, for `verify`: nothing is changed.
    pub fn unrecovered(&self) -> Result<Vec<Seen>> {
        let mut seen = Vec::new();
        for id in self.list()? {
            let file = open_to_write(&self.path(id))?;
            if lock(&file).is_err() {
                continue;
            }
            if let Some(map) = Map::attach(file, self.node, id)? {
                let dead = Dead { map: Arc::new(map), path: self.path(id) };
                dead.each(|index, state, head| {
                    seen.push(Seen { slab: id, index, state, head });
                })?;
            }
        }
        Ok(seen)
    }

    /// The file of a slab.
    pub fn path(&self, id: SlabId) -> PathBuf {
        self.folder.join(format!("slab-{:05}-{:010}", id.shard, id.start))
    }
}

// === impl Dead ===

impl Dead {
    /// Which slab it is.
    pub fn id(&self) -> SlabId {
        self.map.id
    }

    /// Every slot that is not free.
    pub(crate) fn each(&self, mut each: impl FnMut(u32, State, Head)) -> Result<()> {
        for index in 0..self.map.layout.geometry.slots() {
            let Some((at, bytes)) = self.map.layout.slot(index) else { break };
            let state = self.map.state(at)?;
            if state != State::Free {
                let head = self.map.head(at, bytes);
                each(index, state, head.map_err(|_| Error::Slab("a slot without a record"))?);
            }
        }
        Ok(())
    }

    /// A copy of a slot's record.
    pub(crate) fn record(&self, index: u32) -> Vec<u8> {
        let place = self.map.layout.slot(index);
        place.map_or_else(Vec::new, |(at, bytes)| self.map.copy_of_record(at, bytes))
    }

    /// Empties a tail that cannot be read, and says so in the head.
    pub(crate) fn cut_tail(&self, index: u32, head: &Head) {
        if let Some((at, _)) = self.map.layout.slot(index) {
            let head = Head { flags: head.flags | crate::record::flag::TAIL_CUT, ..*head };
            self.map.write_head(at, &head);
            self.map.write_tail(at, &[]);
        }
    }

    /// The highest settle sequence the shard published.
    pub(crate) fn published(&self) -> u64 {
        self.map.published().load(std::sync::atomic::Ordering::Acquire)
    }

    /// Settles a slot: its head, then DONE.
    pub(crate) fn settle(&self, index: u32, head: &Head) {
        if let Some((at, _)) = self.map.layout.slot(index) {
            self.map.write_head(at, head);
            self.map.set_state(at, State::Done);
        }
    }

    /// Frees a slot.
    pub(crate) fn free(&self, index: u32) {
        if let Some((at, _)) = self.map.layout.slot(index) {
            self.map.set_state(at, State::Free);
        }
    }

    /// Removes the slab, all of whose slots are free.
    pub(crate) fn remove(self) -> Result<()> {
        std::fs::remove_file(&self.path).map_err(Error::io("removing a slab"))
    }
}

fn id_of(name: &str) -> Option<SlabId> {
    let (shard, start) = name.strip_prefix("slab-")?.split_once('-')?;
    if shard.len() != 5 || start.len() != 10 {
        return None;
    }
    Some(SlabId { shard: shard.parse().ok()?, start: start.parse().ok()? })
}

fn open_to_write(path: &Path) -> Result<File> {
    OpenOptions::new().read(true).write(true).open(path).map_err(Error::io("opening a slab"))
}

fn lock(file: &File) -> Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Error::Locked),
        Err(TryLockError::Error(error)) => Err(Error::io("locking a slab")(error)),
    }
}
