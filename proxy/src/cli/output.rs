//! The only place that writes to the process's standard output and error.
//!
//! Results go to the output, what is told about them to the error. A pipe that nobody reads any
//! more is not a failure of the command.

use std::io::{self, Write};

/// Writes text to the standard output and flushes it.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a line to the standard output; a reader that is gone has heard enough.
pub fn say(line: &str) {
    let _ = print(&format!("{line}\n"));
}

/// Writes a line to the standard error.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
