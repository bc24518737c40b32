//! A file that lines are added to, beside whoever rotates it: it is opened anew when its path leads
//! to another file, or to none, so that nobody has to send a signal. What cannot be written is
//! counted, told nowhere else, and not tried again; the next lines are.
//!
//! Nobody is waited for: a pipe has to have a reader to be opened, and one that takes nothing for
//! [`STALL_MAX`] costs the lines at hand. What is neither a file, a pipe nor a character device is
//! refused.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

/// Its owner's: lines tell who called what, and when.
const MODE: u32 = 0o600;

/// How long a reader of a pipe may take nothing: as long as what waits meanwhile has room.
const STALL_MAX: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// What cannot be opened since nobody is at its other end.
const UNREAD: &str = "a pipe that nobody reads, or a socket";

/// A file of lines.
pub struct LogFile {
    path: PathBuf,
    file: Option<(File, Id)>,
    /// The file whose last line was written in part.
    torn: Option<Id>,
}

/// Which file it is: device and number.
type Id = (u64, u64);

impl LogFile {
    /// Opens it.
    pub fn open(path: PathBuf) -> io::Result<LogFile> {
        let mut log = LogFile { path, file: None, torn: None };
        log.current()?;
        Ok(log)
    }

    /// Adds whole lines. How many of them are lost.
    pub fn write(&mut self, lines: &str) -> u64 {
        let torn = self.torn;
        let Ok((file, id)) = self.current() else { return count(lines.as_bytes()) };
        // What there is of a broken line must not run into the next one.
        let mended = torn != Some(id) || put(file, b"\n").0.is_empty();
        let nothing = (lines.as_bytes(), Broken(false));
        let (left, Broken(broken)) = if mended { put(file, lines.as_bytes()) } else { nothing };
        let done = lines.as_bytes().get(..lines.len() - left.len()).unwrap_or_default();
        if mended {
            self.torn = done.last().is_some_and(|last| *last != b'\n').then_some(id);
        }
        if broken {
            self.file = None;
        }
        count(left)
    }

    /// The file that the path leads to now.
    fn current(&mut self) -> io::Result<(&mut File, Id)> {
        let there = std::fs::metadata(&self.path).ok().map(|found| (found.dev(), found.ino()));
        if there.is_none() || self.file.as_ref().map(|(_, id)| *id) != there {
            self.file = None;
        }
        let open = match self.file.take() {
            Some(open) => open,
            None => {
                // Without these a pipe that nobody reads is never open, and one that is full takes
                // for ever; a terminal would become the process's own.
                let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
                let mut options = OpenOptions::new();
                options.append(true).create(true).mode(MODE).custom_flags(flags);
                let file = options.open(&self.path).map_err(unread)?;
                let found = file.metadata()?;
                let kind = found.file_type();
                if !kind.is_file() && !kind.is_fifo() && !kind.is_char_device() {
                    let why = "neither a file, a pipe nor a character device";
                    return Err(io::Error::new(ErrorKind::InvalidInput, why));
                }
                (file, (found.dev(), found.ino()))
            }
        };
        let (file, id) = self.file.insert(open);
        Ok((file, *id))
    }
}

/// What the system calls no device is a pipe without a reader, or a socket.
fn unread(error: io::Error) -> io::Error {
    match Errno::from_io_error(&error) {
        Some(Errno::NXIO) => io::Error::new(ErrorKind::NotConnected, UNREAD),
        _ => error,
    }
}

/// Whether a file is of no more use. A pipe that is full is: who closed it would end its reader.
struct Broken(bool);

/// Writes; what could not be written.
fn put<'t>(file: &mut File, mut bytes: &'t [u8]) -> (&'t [u8], Broken) {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return (bytes, Broken(true)),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if !has_room(file) {
                    return (bytes, Broken(false));
                }
            }
            Err(_) => return (bytes, Broken(true)),
        }
    }
    (bytes, Broken(false))
}

/// Whether something can be written, before the reader has taken nothing for too long.
fn has_room(file: &File) -> bool {
    rustix::event::poll(&mut [PollFd::new(file, PollFlags::OUT)], Some(&STALL_MAX))
        .is_ok_and(|ready| ready > 0)
}

fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn folder(name: &str) -> PathBuf {
        let name = format!("tollgate-logfile-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn pipe(path: &std::path::Path) {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
    }

    fn reader(path: &std::path::Path) -> File {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        OpenOptions::new().read(true).custom_flags(flags).open(path).unwrap()
    }

    #[test]
    fn lines_go_where_the_path_leads() {
        let folder = folder("path");
        let (path, old) = (folder.join("access.log"), folder.join("access.log.1"));
        let mut log = LogFile::open(path.clone()).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, MODE);
        assert_eq!(log.write("a\n"), 0);
        std::fs::rename(&path, &old).unwrap();
        assert_eq!(log.write("b\nc\n"), 0);
        let read = |path| std::fs::read_to_string(path).unwrap();
        assert_eq!((read(&old), read(&path)), ("a\n".to_owned(), "b\nc\n".to_owned()));
        // Its folder is gone: nothing can be written, nothing is held, and it is counted.
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(log.write("d\ne\n"), 2);
        assert!(LogFile::open(path.clone()).is_err());
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(log.write("f\n"), 0);
        assert_eq!(read(&path), "f\n");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_pipe_without_a_reader_costs_lines_and_stops_nothing() {
        let folder = folder("pipe");
        let path = folder.join("access.log");
        pipe(&path);
        let refused = LogFile::open(path.clone()).err().unwrap();
        assert_eq!(refused.to_string(), UNREAD);
        let mut read = reader(&path);
        let mut log = LogFile::open(path.clone()).unwrap();
        assert_eq!(log.write("a\n"), 0);
        let mut got = [0; 8];
        assert_eq!((read.read(&mut got).unwrap(), &got[..2]), (2, b"a\n".as_slice()));
        drop(read);
        assert_eq!((log.write("b\n"), log.write("c\nd\n")), (1, 2));
        // A file is in its place, and the log goes on.
        std::fs::remove_file(&path).unwrap();
        assert_eq!(log.write("e\n"), 0);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "e\n");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_pipe_that_is_full_loses_whole_lines_and_the_next_begins_anew() {
        let folder = folder("full");
        let path = folder.join("access.log");
        pipe(&path);
        let mut read = reader(&path);
        let mut log = LogFile::open(path.clone()).unwrap();
        let long = format!("{}\n", "x".repeat(4095 + 7));
        let lost = log.write(&long.repeat(64));
        assert!((1..64).contains(&lost), "{lost}");
        let mut got = Vec::new();
        // Until it is empty.
        assert_eq!(read.read_to_end(&mut got).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(log.write("next\n"), 0);
        assert_eq!(read.read_to_end(&mut got).unwrap_err().kind(), ErrorKind::WouldBlock);
        let text = String::from_utf8(got).unwrap();
        assert!(text.ends_with("x\nnext\n"), "a line of its own");
        let whole = text.lines().filter(|line| line.len() + 1 == long.len()).count() as u64;
        assert_eq!(whole + lost, 64);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_is_no_log() {
        assert!(LogFile::open(std::env::temp_dir()).is_err());
    }
}
