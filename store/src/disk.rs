//! The only way of this package to the disk: a flat folder of files, real or simulated.
//!
//! Small on purpose: what is not here (append mode, memory maps, buffered writers) cannot be got
//! wrong. A write is durable after [`DiskFile::sync`] returned `Ok`, a name after
//! [`Disk::sync_names`]. After a failed sync nothing is known about what was written before it:
//! the kernel marks the pages clean and a second sync reports success for bytes that are lost.

use rustix::fs::{FallocateFlags, OFlags};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub mod simulated;

/// A folder.
pub trait Disk {
    /// A file of it.
    type File: DiskFile;

    /// Makes a file that must not exist yet.
    fn create(&self, name: &str) -> io::Result<Self::File>;
    /// Opens a file to read and write.
    fn open(&self, name: &str) -> io::Result<Self::File>;
    /// Opens a file to read.
    fn open_to_read(&self, name: &str) -> io::Result<Self::File>;
    /// Gives a file another name; one of that name is replaced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// The names, in no order.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Makes names durable.
    fn sync_names(&self) -> io::Result<()>;

    /// Opens a file to write past the system's cache, whole pages from aligned memory; not every
    /// file system can.
    fn open_past_cache(&self, _name: &str) -> io::Result<Self::File> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Whoever is lent a folder can use it as one.
impl<D: Disk> Disk for &D {
    type File = D::File;

    fn create(&self, name: &str) -> io::Result<D::File> {
        (**self).create(name)
    }

    fn open(&self, name: &str) -> io::Result<D::File> {
        (**self).open(name)
    }

    fn open_to_read(&self, name: &str) -> io::Result<D::File> {
        (**self).open_to_read(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        (**self).rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        (**self).remove(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        (**self).names()
    }

    fn sync_names(&self) -> io::Result<()> {
        (**self).sync_names()
    }

    fn open_past_cache(&self, name: &str) -> io::Result<D::File> {
        (**self).open_past_cache(name)
    }
}

/// A file.
pub trait DiskFile {
    /// Reads what is there; fewer bytes than asked for at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes some bytes and says how many.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Makes content durable.
    fn sync(&self) -> io::Result<()>;
    /// Makes the file this long with its blocks reserved: later writes cannot run out of room.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Its length.
    fn len(&self) -> io::Result<u64>;

    /// Whether it is empty.
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }

    /// Writes all bytes. A write that takes none is an error of its own, not a loop.
    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write_at(bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => {
                    bytes = bytes.get(taken..).unwrap_or_default();
                    offset += taken as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Fills the buffer, or as much of it as the file has.
    fn read_full_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read_at(rest, offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

// === impl Folder ===

impl Folder {
    /// The folder, made if it is not there.
    pub fn make(path: &Path) -> io::Result<Folder> {
        std::fs::create_dir_all(path)?;
        Ok(Folder(path.to_owned()))
    }

    /// The folder, which must be there.
    pub fn existing(path: &Path) -> io::Result<Folder> {
        if !path.is_dir() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Folder(path.to_owned()))
    }
}

impl Disk for Folder {
    type File = File;

    fn create(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(self.0.join(name))
    }

    fn open(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(self.0.join(name))
    }

    fn open_to_read(&self, name: &str) -> io::Result<File> {
        File::open(self.0.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.0.join(from), self.0.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.0.join(name))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.0)? {
            // A name that is not text is none of ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }

    fn open_past_cache(&self, name: &str) -> io::Result<File> {
        let direct = i32::try_from(OFlags::DIRECT.bits()).map_err(io::Error::other)?;
        OpenOptions::new().write(true).custom_flags(direct).open(self.0.join(name))
    }
}

impl DiskFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()?;
        // Removed beside us, it ends with this process: what was written is on no disk.
        if self.metadata()?.nlink() == 0 {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the file was removed"));
        }
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        Ok(rustix::fs::fallocate(self, FallocateFlags::empty(), 0, len)?)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::tests::Memory;

    #[test]
    fn what_is_written_to_a_file_that_was_removed_is_not_synced() {
        let memory = Memory::new();
        let folder = Folder::make(&memory.0).unwrap();
        let file = folder.create("segment").unwrap();
        DiskFile::write_all_at(&file, b"record", 0).unwrap();
        file.sync().unwrap();
        std::fs::remove_dir_all(&memory.0).unwrap();
        DiskFile::write_all_at(&file, b"record", 6).unwrap();
        assert_eq!(file.sync().unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
