//! One connection of the rig. What it writes is always the same message, so what is left to write
//! is a number. Bounds: one message is written at a time, a peer's pipelined ones are counted.

use std::io::{self, ErrorKind};

use super::framing::Reader;
use crate::poll::Interest;
use crate::tls::Socket;

/// What a read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Got {
    Bytes(usize),
    /// Nothing is there.
    Nothing,
    /// The connection is over, in order or not.
    End,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) stream: Socket,
    pub(super) reader: Reader,
    pub(super) interest: Interest,
    /// Messages to be written, the one under way included.
    due: u32,
    /// How much of the one under way is written.
    at: usize,
}

impl Side {
    pub(super) fn new(stream: Socket) -> Side {
        Side { stream, reader: Reader::default(), interest: Interest::Read, due: 0, at: 0 }
    }

    /// Whether everything due is written.
    pub(super) fn written(&self) -> bool {
        self.due == 0
    }

    pub(super) fn read(&mut self, scratch: &mut [u8]) -> Got {
        match self.stream.read(scratch) {
            Ok(0) => Got::End,
            Ok(n) => Got::Bytes(n),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Got::Nothing,
                _ => Got::End,
            },
        }
    }

    /// One more `message` is due; writes what finds room.
    pub(super) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.due += 1;
        self.flush(message)
    }

    /// Writes what finds room.
    pub(super) fn flush(&mut self, message: &[u8]) -> io::Result<()> {
        while self.due > 0 {
            match self.stream.write(&message[self.at..]) {
                Ok(n) => self.at += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.at == message.len() {
                self.at = 0;
                self.due -= 1;
            }
        }
        Ok(())
    }

    /// What it must be watched for.
    pub(super) fn wanted(&self) -> Interest {
        if self.written() { Interest::Read } else { self.stream.blocked() }
    }
}
