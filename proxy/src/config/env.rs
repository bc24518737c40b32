//! The world a configuration refers to, as a parameter: tests need neither a process
//! environment nor files.

use super::writable;
use crate::exchange::time::UnixMs;
use crate::shard::clock;
use rustix::fs::OFlags;
use rustls::pki_types::CertificateDer;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Largest file that is read: a configuration of thousands of models, or a full price list.
pub const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// What a configuration may ask for while it is compiled.
pub trait Env {
    /// An environment variable; `None` also when it is not UTF-8.
    fn var(&self, name: &str) -> Option<String>;

    /// A whole file as text. What is no regular file is refused: whoever reads a pipe or a device
    /// waits for somebody.
    fn read_file(&self, path: &Path) -> io::Result<String>;

    /// The same of the file that the command line names, which may be a pipe: whoever started the
    /// command waits for it, and nothing else does.
    fn read_named(&self, path: &Path) -> io::Result<String> {
        self.read_file(path)
    }

    /// Why no files can be made in a folder, or it cannot be made itself.
    fn takes_files(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Why no lines can be added to a file, or it cannot be made.
    fn takes_lines(&self, _file: &Path) -> io::Result<()> {
        Ok(())
    }

    /// The time of day.
    fn now(&self) -> UnixMs {
        clock::now().wall
    }

    /// The roots that the system trusts; none if it says nothing of any.
    fn system_roots(&self) -> Vec<CertificateDer<'static>> {
        Vec::new()
    }

    /// Cores this process may use: the default number of shards.
    fn cores(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// Memory this process may use: the machine's, or what its control group leaves it.
    fn memory_bytes(&self) -> u64 {
        let read = |path| self.read_file(Path::new(path)).unwrap_or_default();
        let machine = total_of(&read("/proc/meminfo")).unwrap_or(MEMORY_UNKNOWN);
        let group = read("/sys/fs/cgroup/memory.max").trim().parse().unwrap_or(u64::MAX);
        machine.min(group)
    }
}

/// What is taken for the machine's memory where it does not say: a small machine's.
const MEMORY_UNKNOWN: u64 = 2 << 30;

/// `MemTotal` of `/proc/meminfo`, in bytes.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The process's own environment and file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessEnv;

impl Env for ProcessEnv {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads it")]
    fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read_file(&self, path: &Path) -> io::Result<String> {
        // Without this flag a pipe that nobody writes to is never open.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        whole(file)
    }

    fn read_named(&self, path: &Path) -> io::Result<String> {
        whole(File::open(path)?)
    }

    fn takes_files(&self, folder: &Path) -> io::Result<()> {
        writable::folder(folder)
    }

    fn takes_lines(&self, file: &Path) -> io::Result<()> {
        writable::file(file)
    }

    /// From the places that systems have for them, or from `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    fn system_roots(&self) -> Vec<CertificateDer<'static>> {
        // Single ones that cannot be read are none; whoever has none at all is told so.
        rustls_native_certs::load_native_certs().certs
    }
}

/// No more than [`FILE_BYTES_MAX`] of it.
fn whole(file: File) -> io::Result<String> {
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 8 MiB"));
    }
    Ok(text)
}

/// For tests: every variable holds a secret, and there is no file.
#[cfg(test)]
pub(crate) struct AnyVariable;

#[cfg(test)]
impl Env for AnyVariable {
    fn var(&self, _: &str) -> Option<String> {
        Some("sk-secret".to_owned())
    }

    fn read_file(&self, _: &Path) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Files(&'static [(&'static str, &'static str)]);

    impl Env for Files {
        fn var(&self, _: &str) -> Option<String> {
            None
        }

        fn read_file(&self, path: &Path) -> io::Result<String> {
            let found = self.0.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
        }
    }

    #[test]
    fn memory_is_the_machines_or_the_groups() {
        const MACHINE: (&str, &str) =
            ("/proc/meminfo", "MemTotal:       16384 kB\nMemFree:  1 kB\n");
        let group = |text| ("/sys/fs/cgroup/memory.max", text);
        assert_eq!(Files(&[MACHINE]).memory_bytes(), 16 << 20);
        assert_eq!(Files(Box::leak(Box::new([MACHINE, group("max\n")]))).memory_bytes(), 16 << 20);
        assert_eq!(Files(Box::leak(Box::new([MACHINE, group("4096\n")]))).memory_bytes(), 4096);
        assert_eq!(Files(&[]).memory_bytes(), MEMORY_UNKNOWN);
        assert!(ProcessEnv.memory_bytes() > 1 << 20);
    }

    #[test]
    fn what_is_no_regular_file_is_refused_and_nobody_is_waited_for() {
        let folder = std::env::temp_dir().join(format!("tollgate-env-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        for path in [pipe.as_path(), Path::new("/dev/zero"), &folder] {
            let refused = ProcessEnv.read_file(path).unwrap_err();
            assert_eq!(refused.to_string(), "not a regular file", "{path:?}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
