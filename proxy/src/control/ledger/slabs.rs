//! Where slabs are, and what an earlier start left in them.
//!
//! Slabs of a node live in `tollgate-<its hex>` below `slab_dir`, else `$RUNTIME_DIRECTORY`, else
//! `/dev/shm`. Which one it was is remembered, since a folder that is not looked into again is
//! money that is not settled: a service and a shell have different environments.

use super::Options;
use super::error::{LedgerError, Part};
use super::home::{Home, make_private};
use super::orphans;
use crate::exchange::rules::OrphanRule;
use crate::exchange::time::UnixMs;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use store::appender::Appender;
use store::disk::Disk;
use store::record::Head;
use store::recover::{Recovered, recover};
use store::slab::{Collector, Files, Opened, Slab, SlabId};
use store::tail::Tail;

/// Where slabs are made if nobody says otherwise: a tmpfs on every Linux.
const MEMORY: &str = "/dev/shm";

/// The file that remembers the folders.
pub(super) const REMEMBERED: &str = "slabs";

/// A folder of slabs.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) folder: PathBuf,
    pub(super) files: Files,
}

/// What an earlier start left.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) recovered: Vec<(SlabId, Recovered)>,
    pub(super) live: Vec<(Place, Collector)>,
    pub(super) lost: Vec<SlabId>,
}

/// The folders of a node's slabs: the one that new slabs are made in first.
#[derive(Debug)]
pub(super) struct Places(Vec<Place>);

// === impl Places ===

impl Places {
    /// Makes the folder of new slabs, and finds those of before.
    pub(super) fn find(home: &Home, options: &Options, node: u64) -> Result<Places, LedgerError> {
        let base = options.slab_dir.as_deref().or(options.runtime_dir.as_deref());
        let folder =
            base.unwrap_or_else(|| Path::new(MEMORY)).join(format!("tollgate-{node:016x}"));
        let mut places = vec![place(folder, node)?];
        for before in remembered(&home.path(REMEMBERED))? {
            if before.is_dir() && places.iter().all(|known| known.folder != before) {
                places.push(place(before, node)?);
            }
        }
        let places = Places(places);
        places.remember(home)?;
        Ok(places)
    }

    fn remember(&self, home: &Home) -> Result<(), LedgerError> {
        let folders = self.0.iter().map(|place| place.folder.as_os_str().as_bytes());
        let mut text = folders.collect::<Vec<_>>().join(&b'\n');
        text.push(b'\n');
        home.write(REMEMBERED, &text)
    }

    /// Settles every slab whose process is gone, and takes up those whose process is not.
    pub(super) fn settle<D: Disk + Clone>(
        &self,
        appender: &mut Appender<D>,
        rule: OrphanRule,
        now: UnixMs,
    ) -> Result<Left, LedgerError> {
        let mut left = Left::default();
        for place in &self.0 {
            let listed = place.files.list();
            for id in listed.map_err(LedgerError::store(Part::Slabs, &place.folder))? {
                // What cannot be read is named alone: its neighbours are to be settled.
                let path = place.files.path(id);
                let failed = LedgerError::store(Part::Slabs, &path);
                match place.files.open(id).map_err(&failed)? {
                    Opened::Dead(dead) => {
                        let charge = |head: &mut Head, _: &Tail<'_>| orphans::charge(rule, head);
                        let recovered = recover(dead, appender, now.0, charge);
                        left.recovered.push((id, recovered.map_err(&failed)?));
                    }
                    Opened::Live(mut collector) => {
                        let settled = appender.settled(id.number());
                        collector.skip_to(settled).map_err(&failed)?;
                        left.live.push((place.clone(), collector));
                    }
                    Opened::Nothing => {}
                }
            }
        }
        left.lost = self.retire(appender)?;
        Ok(left)
    }

    /// Takes slabs that are gone, with a reboot, out of the log's table: each frame carries it
    /// whole, and its room is bounded.
    fn retire<D: Disk + Clone>(
        &self,
        appender: &mut Appender<D>,
    ) -> Result<Vec<SlabId>, LedgerError> {
        let mut there = Vec::new();
        for place in &self.0 {
            let list = place.files.list();
            there.extend(list.map_err(LedgerError::store(Part::Slabs, &place.folder))?);
        }
        let table = appender.changes().map(|changes| changes.slabs).unwrap_or_default();
        let known = table.iter().filter_map(|mark| SlabId::from_number(mark.slab));
        let gone: Vec<SlabId> = known.filter(|id| !there.contains(id)).collect();
        gone.iter().for_each(|id| appender.retire_slab(id.number()));
        Ok(gone)
    }

    /// Makes a slab for each shard of this start.
    pub(super) fn make<D: Disk + Clone>(
        &self,
        appender: &mut Appender<D>,
        options: &Options,
        start: u32,
    ) -> Result<Vec<(Slab, Place, Collector)>, LedgerError> {
        let mut made = Vec::new();
        let Some(place) = self.0.first() else { return Ok(made) };
        for shard in 0..options.shards {
            match place.files.create(SlabId { shard, start }, options.geometry) {
                Ok((slab, collector)) => made.push((slab, place.clone(), collector)),
                Err(error) => {
                    // Those made before hold nothing and must not fill what is short; what fails
                    // here too is found by the next start.
                    drop(made);
                    let _ = self.settle(appender, options.orphans, UnixMs(0));
                    return Err(LedgerError::store(Part::Slabs, &place.folder)(error));
                }
            }
        }
        Ok(made)
    }
}

// === impl Place ===

impl Place {
    /// Removes the folder if nothing is in it any more.
    pub(super) fn leave(&self) {
        // Whoever still has slabs in it keeps it.
        let _ = std::fs::remove_dir(&self.folder);
    }
}

fn place(folder: PathBuf, node: u64) -> Result<Place, LedgerError> {
    make_private(&folder).map_err(LedgerError::io(&folder))?;
    if !is_ours(&folder).map_err(LedgerError::io(&folder))? {
        return Err(LedgerError::Foreign { path: folder });
    }
    match Files::make(&folder, node) {
        Ok(files) => Ok(Place { folder, files }),
        Err(error) => {
            let _ = std::fs::remove_dir(&folder);
            Err(LedgerError::store(Part::Slabs, &folder)(error))
        }
    }
}

/// Whether it is a folder that nobody else can enter: `/dev/shm` is everybody's, and a folder that
/// somebody else has made there first would be theirs to read and to change.
fn is_ours(folder: &Path) -> io::Result<bool> {
    let found = std::fs::symlink_metadata(folder)?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Ok(false);
    }
    if found.mode() & 0o077 != 0 {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(true)
}

/// The folders a start would look into, as far as they are remembered, and where slabs are unless
/// somebody says otherwise: for readers.
pub fn slab_folders(state_dir: &Path, node: u64) -> Vec<PathBuf> {
    let mut folders = remembered(&state_dir.join(REMEMBERED)).unwrap_or_default();
    let usual = Path::new(MEMORY).join(format!("tollgate-{node:016x}"));
    if !folders.contains(&usual) {
        folders.push(usual);
    }
    folders
}

/// The folders that were remembered; none in a new one.
pub(super) fn remembered(path: &Path) -> Result<Vec<PathBuf>, LedgerError> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(LedgerError::io(path)(error)),
    };
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(|line| PathBuf::from(OsStr::from_bytes(line))).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    /// Files two folders down.
    pub(in super::super) fn slab_files(memory: &Path) -> usize {
        let Ok(nodes) = std::fs::read_dir(memory) else { return 0 };
        let folders = nodes.filter_map(|node| std::fs::read_dir(node.unwrap().path()).ok());
        folders.map(Iterator::count).sum()
    }
}
