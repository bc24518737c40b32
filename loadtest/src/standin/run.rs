//! A script being played on a connection: how far it is, and its writes. Knows nothing of epoll.

use std::io::ErrorKind;
use std::rc::Rc;

use super::context::Context;
use super::script::Script;
use crate::loopback;
use crate::tls::Socket;

/// How far a script is.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) script: Rc<Script>,
    /// The present action.
    pub(super) at: usize,
    /// Its number in the tally; pages about the stand-in have none.
    pub(super) sequence: Option<u64>,
    /// The request asked for the end of the connection.
    pub(super) last: bool,
    /// Bytes of the present action that were written.
    offset: usize,
    sent_bytes: u64,
    /// Room to write means from now on that nothing is left to send.
    leaving: bool,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    All,
    Blocked,
    /// The script wants a pause between two pieces.
    Pause,
    Failed,
}

impl Run {
    /// At the first action.
    pub(super) fn new(script: Rc<Script>, sequence: Option<u64>, last: bool) -> Run {
        Run { script, at: 0, sequence, last, offset: 0, sent_bytes: 0, leaving: false }
    }

    /// Writes what is left of the present action's `bytes` and goes on to the next action.
    pub(super) fn write(&mut self, stream: &mut Socket, bytes: &[u8]) -> Written {
        while self.offset < bytes.len() {
            let rest = &bytes[self.offset..];
            let piece = &rest[..self.script.split.unwrap_or(rest.len()).min(rest.len())];
            match stream.write(piece) {
                Ok(n) => {
                    self.offset += n;
                    self.sent_bytes += n as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Written::Blocked,
                Err(_) => return Written::Failed,
            }
            if self.script.pace_ms > 0 && self.offset < bytes.len() {
                return Written::Pause;
            }
        }
        self.offset = 0;
        self.at += 1;
        Written::All
    }

    /// Whether all that was written is on its way. A reset throws away what is not, and the kernel
    /// keeps back what the peer's window, or the congestion window, has no room for. The first
    /// answer is no: it is to be asked again once the stream has room.
    pub(super) fn has_left(&mut self, stream: &Socket) -> bool {
        let asked = std::mem::replace(&mut self.leaving, true);
        asked || loopback::room_once_sent(stream.stream()).is_err()
    }

    /// Notes in the tally that it is over.
    pub(super) fn end(&self, whole: bool, context: &mut Context) {
        if let Some(sequence) = self.sequence {
            context.tally.end(sequence, &self.script, self.sent_bytes, whole);
        }
    }
}

/// Whether a read or write has to wait.
pub(super) fn would_wait(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
