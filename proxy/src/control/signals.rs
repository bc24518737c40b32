//! What the operator asks of a running process: SIGINT and SIGTERM, which mean the same, and
//! SIGHUP. Of the former the first one drains, the second one stops at once; who waits for them
//! decides that.
//!
//! A file that has reached the size the process may write ends a process that does not ask: here it
//! is a write that fails, as on a full disk.

use rustix::process::Signal as Number;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both signals, taken from the moment this exists.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Takes the signals over; needs a runtime.
    pub fn install() -> io::Result<Signals> {
        // Taken for good, and nobody has to look: the write says what it was.
        drop(signal(SignalKind::from_raw(Number::XFSZ.as_raw()))?);
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The next one, by name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// SIGHUP: files are to be read again. Taken from the moment this exists.
pub struct Hangup(Signal);

impl Hangup {
    /// Takes the signal over; needs a runtime.
    pub fn install() -> io::Result<Hangup> {
        signal(SignalKind::hangup()).map(Hangup)
    }

    /// The next one.
    pub async fn next(&mut self) {
        self.0.recv().await;
    }
}
