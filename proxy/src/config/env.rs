//! The world a configuration refers to, as a parameter: tests need neither a process
//! environment nor files.

use std::io::{self, Read};
use std::path::Path;

/// Largest file that is read: a configuration of thousands of models, or a full price list.
pub const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// What a configuration may ask for while it is compiled.
pub trait Env {
    /// An environment variable; `None` also when it is not UTF-8.
    fn var(&self, name: &str) -> Option<String>;

    /// A whole file as text.
    fn read_file(&self, path: &Path) -> io::Result<String>;

    /// Cores this process may use: the default number of shards.
    fn cores(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
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
        let mut text = String::new();
        let file = std::fs::File::open(path)?;
        file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 8 MiB"));
        }
        Ok(text)
    }
}
