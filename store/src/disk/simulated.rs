//! A disk in memory that fails the way disks do, by seed: power cuts that keep any part of what
//! was not synced, sector by sector and in any order; failed syncs after which the lost bytes can
//! still be read until the power goes; short writes; a disk without room.
//!
//! Not modelled: a disk that lies about a sync, rot at rest (tests flip bits themselves). Renames
//! and removals that were not synced survive a cut as a prefix of their order, as on a journaled
//! file system. One thread.

use super::{Disk, DiskFile};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;

/// A torn write ends at a multiple of this.
const SECTOR: usize = 512;

/// What the next operations meet, each at most once, counted in operations of its kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The sync that fails; 1 = the next.
    pub sync_fails_at: u64,
    /// The write that fails with an I/O error.
    pub write_fails_at: u64,
    /// The write that takes only half.
    pub short_write_at: u64,
}

/// A simulated folder; clones share it.
#[derive(Clone, Debug)]
pub struct Simulated(Rc<RefCell<State>>);

/// An open file of it.
#[derive(Clone, Debug)]
pub struct SimulatedFile {
    disk: Rc<RefCell<State>>,
    inode: u64,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<u64, Content>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    /// The directory after each change that was not synced, oldest first.
    unsynced_names: Vec<BTreeMap<String, u64>>,
    next_inode: u64,
    capacity: u64,
    faults: Faults,
    chance: u64,
}

#[derive(Debug, Default)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// Sectors written since the last sync.
    dirty: BTreeSet<usize>,
}

// === impl Simulated ===

impl Simulated {
    /// An empty disk of this many bytes; `seed` decides what a cut keeps.
    pub fn new(capacity: u64, seed: u64) -> Simulated {
        let chance = seed | 1;
        Simulated(Rc::new(RefCell::new(State { capacity, chance, ..State::default() })))
    }

    /// What the next operations meet.
    pub fn arm(&self, faults: Faults) {
        self.0.borrow_mut().faults = faults;
    }

    /// Changes the size of the disk.
    pub fn resize(&self, capacity: u64) {
        self.0.borrow_mut().capacity = capacity;
    }

    /// Cuts the power: of what was not synced, each sector and a prefix of the renames survive by
    /// chance. Files that were open must not be used any more.
    pub fn cut_power(&self) {
        let mut state = self.0.borrow_mut();
        let mut chance = state.chance;
        let kept = usize::try_from(next(&mut chance)).unwrap_or_default()
            % (state.unsynced_names.len() + 1);
        let history = std::mem::take(&mut state.unsynced_names);
        if let Some(names) = kept.checked_sub(1).and_then(|last| history.into_iter().nth(last)) {
            state.durable_names = names;
        }
        for content in state.files.values_mut() {
            content.settle_by_chance(&mut chance);
        }
        state.names = state.durable_names.clone();
        let named: BTreeSet<u64> = state.names.values().copied().collect();
        state.files.retain(|inode, _| named.contains(inode));
        state.chance = chance;
        state.faults = Faults::default();
    }

    /// Changes the bytes of a file behind everyone's back, durably.
    pub fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.0.borrow_mut();
        let Some(inode) = state.names.get(name).copied() else { return };
        if let Some(content) = state.files.get_mut(&inode) {
            change(&mut content.now);
            content.durable.clone_from(&content.now);
        }
    }

    /// The bytes of a file as they can be read now.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.0.borrow();
        let inode = state.names.get(name)?;
        Some(state.files.get(inode)?.now.clone())
    }
}

impl Content {
    fn settle_by_chance(&mut self, chance: &mut u64) {
        // An unsynced length comes or does not come, as the file system likes.
        if self.now.len() > self.durable.len() && next(chance).is_multiple_of(2) {
            self.durable.resize(self.now.len(), 0);
        }
        for sector in std::mem::take(&mut self.dirty) {
            if next(chance).is_multiple_of(2) {
                self.keep(sector);
            }
        }
        self.now.clone_from(&self.durable);
    }

    fn keep(&mut self, sector: usize) {
        let from = sector * SECTOR;
        let to = (from + SECTOR).min(self.now.len()).min(self.durable.len());
        if let (Some(place), Some(bytes)) = (self.durable.get_mut(from..to), self.now.get(from..to))
        {
            place.copy_from_slice(bytes);
        }
    }
}

/// xorshift: chance that a seed repeats.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
}

// === impl State ===

impl State {
    fn file(&mut self, inode: u64) -> io::Result<&mut Content> {
        self.files.get_mut(&inode).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn room_for(&self, inode: u64, len: usize) -> io::Result<()> {
        // Bytes that are there already have their room.
        if self.files.get(&inode).is_some_and(|content| len <= content.now.len()) {
            return Ok(());
        }
        let others = self.files.iter().filter(|(other, _)| **other != inode);
        let used: usize = others.map(|(_, content)| content.now.len()).sum();
        if (used + len) as u64 > self.capacity {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn renamed(&mut self) {
        let names = self.names.clone();
        self.unsynced_names.push(names);
        // A removed file gives its room back once nobody can come back to its name.
        let reachable: BTreeSet<u64> = self
            .unsynced_names
            .iter()
            .chain([&self.durable_names])
            .flat_map(|names| names.values().copied())
            .collect();
        self.files.retain(|inode, _| reachable.contains(inode));
    }
}

/// Whether the fault counted down by this operation strikes now.
fn strikes(countdown: &mut u64) -> bool {
    let now = *countdown == 1;
    *countdown = countdown.saturating_sub(1);
    now
}

impl Disk for Simulated {
    type File = SimulatedFile;

    fn create(&self, name: &str) -> io::Result<SimulatedFile> {
        let mut state = self.0.borrow_mut();
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.next_inode += 1;
        let inode = state.next_inode;
        state.files.insert(inode, Content::default());
        state.names.insert(name.to_owned(), inode);
        state.renamed();
        Ok(SimulatedFile { disk: Rc::clone(&self.0), inode })
    }

    fn open(&self, name: &str) -> io::Result<SimulatedFile> {
        let state = self.0.borrow();
        let inode = state.names.get(name).copied().ok_or(io::ErrorKind::NotFound)?;
        Ok(SimulatedFile { disk: Rc::clone(&self.0), inode })
    }

    fn open_to_read(&self, name: &str) -> io::Result<SimulatedFile> {
        self.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        let inode = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), inode);
        state.renamed();
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        state.renamed();
        Ok(())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.borrow().names.keys().cloned().collect())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        if strikes(&mut state.faults.sync_fails_at) {
            return Err(io::Error::other("injected: names not synced"));
        }
        state.durable_names = state.names.clone();
        state.unsynced_names.clear();
        let named: BTreeSet<u64> = state.names.values().copied().collect();
        state.files.retain(|inode, _| named.contains(inode));
        Ok(())
    }
}

// === impl SimulatedFile ===

impl DiskFile for SimulatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.borrow_mut();
        let content = state.file(self.inode)?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = content.now.get(from..).unwrap_or_default();
        let read = bytes.len().min(buffer.len());
        for (to, byte) in buffer.iter_mut().zip(bytes) {
            *to = *byte;
        }
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.borrow_mut();
        if strikes(&mut state.faults.write_fails_at) {
            return Err(io::Error::other("injected: write"));
        }
        let taken = match strikes(&mut state.faults.short_write_at) {
            true => bytes.len().div_ceil(2),
            false => bytes.len(),
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let to = from.saturating_add(taken);
        state.room_for(self.inode, to)?;
        let content = state.file(self.inode)?;
        if content.now.len() < to {
            content.now.resize(to, 0);
        }
        if let (Some(place), Some(kept)) = (content.now.get_mut(from..to), bytes.get(..taken)) {
            place.copy_from_slice(kept);
        }
        content.dirty.extend(from / SECTOR..to.div_ceil(SECTOR));
        Ok(taken)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.borrow_mut();
        let fails = strikes(&mut state.faults.sync_fails_at);
        let mut chance = state.chance;
        let content = state.file(self.inode)?;
        if content.durable.len() != content.now.len() {
            content.durable.resize(content.now.len(), 0);
        }
        // After a failed sync every page counts as clean: what did not get there never will.
        for sector in std::mem::take(&mut content.dirty) {
            if !fails || next(&mut chance).is_multiple_of(2) {
                content.keep(sector);
            }
        }
        state.chance = chance;
        if fails { Err(io::Error::other("injected: sync")) } else { Ok(()) }
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut state = self.disk.borrow_mut();
        state.room_for(self.inode, len)?;
        let content = state.file(self.inode)?;
        if content.now.len() < len {
            content.now.resize(len, 0);
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let mut state = self.disk.borrow_mut();
        Ok(state.file(self.inode)?.now.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_synced_survives_and_the_rest_may_not() {
        let (mut kept_some, mut lost_some) = (false, false);
        for seed in 1..50 {
            let disk = Simulated::new(1 << 20, seed);
            let file = disk.create("a").unwrap();
            file.write_all_at(&[1; 4096], 0).unwrap();
            file.sync().unwrap();
            disk.sync_names().unwrap();
            file.write_all_at(&[2; 4096], 2048).unwrap();
            disk.cut_power();
            let bytes = disk.bytes("a").unwrap();
            assert!(bytes[..2048].iter().all(|byte| *byte == 1));
            kept_some |= bytes.contains(&2);
            lost_some |= bytes[2048..4096].contains(&1);
        }
        assert!(kept_some && lost_some);
    }

    #[test]
    fn a_failed_sync_loses_for_ever_what_can_still_be_read() {
        let lost = (1..20).any(|seed| {
            let disk = Simulated::new(1 << 20, seed);
            let file = disk.create("a").unwrap();
            disk.sync_names().unwrap();
            file.write_all_at(&[1; 8192], 0).unwrap();
            disk.arm(Faults { sync_fails_at: 1, ..Faults::default() });
            assert!(file.sync().is_err());
            assert_eq!(disk.bytes("a").unwrap(), vec![1; 8192]);
            file.sync().unwrap();
            disk.cut_power();
            disk.bytes("a").unwrap().contains(&0)
        });
        assert!(lost);
    }

    #[test]
    fn a_full_disk_and_a_short_write_say_so() {
        let disk = Simulated::new(1000, 1);
        let file = disk.create("a").unwrap();
        let error = file.allocate(1001).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        disk.arm(Faults { short_write_at: 1, ..Faults::default() });
        assert_eq!(file.write_at(&[1; 10], 0).unwrap(), 5);
        file.write_all_at(&[1; 10], 0).unwrap();
        assert_eq!(file.len().unwrap(), 10);
    }
}
