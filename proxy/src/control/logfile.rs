//! A file that lines are added to, beside whoever rotates it: it is opened anew when its path leads
//! to another file, or to none, so that nobody has to send a signal. What cannot be written is
//! counted, told nowhere else, and not tried again; the next lines are.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Its owner's: lines tell who called what, and when.
const MODE: u32 = 0o600;

/// A file of lines.
pub struct LogFile {
    path: PathBuf,
    file: Option<(File, Id)>,
    lost: Arc<AtomicU64>,
}

/// Which file it is: device and number.
type Id = (u64, u64);

impl LogFile {
    /// Opens it; lines that cannot be written later are counted in `lost`.
    pub fn open(path: PathBuf, lost: Arc<AtomicU64>) -> io::Result<LogFile> {
        let mut log = LogFile { path, file: None, lost };
        log.current()?;
        Ok(log)
    }

    /// Adds whole lines.
    pub fn write(&mut self, lines: &str) {
        let written = self.current().and_then(|file| file.write_all(lines.as_bytes()));
        if written.is_err() {
            self.file = None;
            self.lost
                .fetch_add(lines.bytes().filter(|byte| *byte == b'\n').count() as u64, Relaxed);
        }
    }

    /// The file that the path leads to now.
    fn current(&mut self) -> io::Result<&mut File> {
        let there = std::fs::metadata(&self.path).ok().map(|found| (found.dev(), found.ino()));
        if there.is_none() || self.file.as_ref().map(|(_, id)| *id) != there {
            self.file = None;
        }
        let (file, _) = match self.file.take() {
            Some(open) => self.file.insert(open),
            None => {
                let mut options = OpenOptions::new();
                let file = options.append(true).create(true).mode(MODE).open(&self.path)?;
                let found = file.metadata()?;
                self.file.insert((file, (found.dev(), found.ino())))
            }
        };
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_where_the_path_leads() {
        let folder = std::env::temp_dir().join(format!("tollgate-logfile-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (path, old) = (folder.join("access.log"), folder.join("access.log.1"));
        let lost = Arc::new(AtomicU64::new(0));
        let mut log = LogFile::open(path.clone(), lost.clone()).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, MODE);
        log.write("a\n");
        std::fs::rename(&path, &old).unwrap();
        log.write("b\nc\n");
        let read = |path| std::fs::read_to_string(path).unwrap();
        assert_eq!((read(&old), read(&path)), ("a\n".to_owned(), "b\nc\n".to_owned()));
        // Its folder is gone: nothing can be written, nothing is held, and it is counted.
        std::fs::remove_dir_all(&folder).unwrap();
        log.write("d\ne\n");
        assert_eq!(lost.load(Relaxed), 2);
        assert!(LogFile::open(path.clone(), lost.clone()).is_err());
        std::fs::create_dir_all(&folder).unwrap();
        log.write("f\n");
        assert_eq!((read(&path), lost.load(Relaxed)), ("f\n".to_owned(), 2));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
