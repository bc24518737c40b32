//! Whether state and lines can be kept where a configuration says, asked of the file system
//! without writing: what `serve` would end with is told with the rest of the file.
//!
//! It says what holds now, for whoever asks; a disk that fills up or a lock of another process is
//! found by the start. Bound: the folders of a path.

use rustix::fs::{Access, access};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Whether files can be made in a folder, or it can be made itself with those above it.
pub(super) fn folder(path: &Path) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    for above in path.ancestors() {
        match std::fs::metadata(above) {
            Ok(found) if !found.is_dir() => return Err(not_a_folder(above)),
            Ok(_) => return takes_files(above),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::NotFound.into())
}

/// Whether lines can be added to a file, or it can be made. Its folder has to be there.
pub(super) fn file(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(_) => Ok(access(path, Access::WRITE_OK)?),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let path = std::path::absolute(path)?;
            let folder = path.parent().ok_or(ErrorKind::NotFound)?;
            match std::fs::metadata(folder) {
                Ok(found) if !found.is_dir() => Err(not_a_folder(folder)),
                Ok(_) => takes_files(folder),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let why = format!("{} is not there", folder.display());
                    Err(io::Error::new(ErrorKind::NotFound, why))
                }
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

fn takes_files(folder: &Path) -> io::Result<()> {
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| {
        let error = io::Error::from(errno);
        io::Error::new(error.kind(), format!("{}: {error}", folder.display()))
    })
}

fn not_a_folder(path: &Path) -> io::Error {
    io::Error::new(ErrorKind::NotADirectory, format!("{} is not a folder", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_made_is_told_from_what_cannot_and_nothing_is_made() {
        let home = std::env::temp_dir().join(format!("tollgate-writable-{}", std::process::id()));
        std::fs::create_dir_all(home.join("there")).unwrap();
        std::fs::write(home.join("file"), "").unwrap();
        for (path, folder_is, file_is) in [
            ("there", None, Some("is a directory")),
            ("new", None, None),
            ("new/below", None, Some("new is not there")),
            ("there/new/below", None, Some("new is not there")),
            ("file", Some("file is not a folder"), None),
            ("file/below", Some("Not a directory"), Some("Not a directory")),
        ] {
            for (asked, expected) in
                [(folder(&home.join(path)), folder_is), (file(&home.join(path)), file_is)]
            {
                let said = asked.err().map(|error| error.to_string());
                let same = match (&said, expected) {
                    (Some(said), Some(part)) => said.contains(part),
                    (said, part) => said.is_none() && part.is_none(),
                };
                assert!(same, "{path}: {said:?}, not {expected:?}");
            }
        }
        // Whoever may do everything may not write here either.
        let proc = Path::new("/proc/sys/kernel/tollgate");
        assert!(file(proc).is_err() || std::fs::metadata("/proc/sys/kernel").is_err());
        assert_eq!(std::fs::read_dir(&home).unwrap().count(), 2);
        std::fs::remove_dir_all(&home).unwrap();
    }
}
