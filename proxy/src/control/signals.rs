//! What the operator asks of a running process: SIGINT and SIGTERM, which mean the same, and
//! SIGHUP. Of the former the first one drains, the second one stops at once; who waits for them
//! decides that.

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
