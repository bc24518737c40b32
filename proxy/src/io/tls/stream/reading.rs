//! The half of a secured connection that reads: records from the network, plaintext to the caller.
//!
//! Bounds: [`INBOX_MAX`] bytes of records that are not whole; one record of plaintext that did not
//! fit the caller's buffer.

use super::{Phase, Reading, Tls, broken};
use crate::io::buffers::BUFFER_BYTES;
use crate::io::tls::session::{Room, has_record, record_len};
use crate::io::{ReadDone, Stream};
use std::io;
use std::task::Poll;

/// Bytes of records that are held because one of them, or the message they carry, is not whole: a
/// message of a handshake has 64 KiB at most, and records around it.
const INBOX_MAX: usize = 128 * 1024;

impl<S: Stream> Tls<S> {
    /// A buffer for the network to read records into.
    pub(super) fn lend(&mut self) -> io::Result<Vec<u8>> {
        let inbox = self.inbox.get_mut();
        if inbox.len() >= INBOX_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if inbox.capacity() == 0 || self.session.get_mut().keeps_place() {
            return Ok(self.buffers.take());
        }
        if inbox.len() == inbox.capacity() {
            let whole = record_len(inbox).unwrap_or_default();
            self.buffers.grow(inbox, whole.max(2 * inbox.capacity()));
        }
        Ok(std::mem::take(inbox))
    }

    /// Takes a buffer of records back from the network.
    pub(super) fn keep(&mut self, buffer: Vec<u8>) {
        let inbox = self.inbox.get_mut();
        if inbox.is_empty() {
            self.buffers.give(std::mem::replace(inbox, buffer));
        } else {
            self.buffers.grow(inbox, inbox.len() + buffer.len());
            inbox.extend_from_slice(&buffer);
            self.buffers.give(buffer);
        }
        self.tidy();
    }

    /// Lets go of what is empty.
    pub(super) fn tidy(&mut self) {
        let inbox = self.inbox.get_mut();
        if inbox.is_empty() {
            self.buffers.give(std::mem::take(inbox));
        }
        if self.spilled == self.spill.len() {
            self.buffers.give(std::mem::take(&mut self.spill));
            self.spilled = 0;
        }
    }

    /// What a read brings without the network, if anything.
    pub(super) fn deliver(&mut self) -> Option<io::Result<usize>> {
        let Reading::Lent(buffer, _) = &mut self.read else { return None };
        let begin = buffer.len();
        let left = self.spill.get(self.spilled..).unwrap_or_default();
        let fits = left.len().min(buffer.capacity() - begin);
        buffer.extend_from_slice(left.get(..fits).unwrap_or_default());
        self.spilled += fits;
        if self.spilled == self.spill.len() && buffer.len() < buffer.capacity() {
            self.unseal();
        }
        self.tidy();
        let Reading::Lent(buffer, _) = &self.read else { return None };
        let got = buffer.len() - begin;
        if got > 0 {
            return Some(Ok(got));
        }
        if let Some(fault) = self.fault.take() {
            return Some(Err(fault));
        }
        if self.phase == Phase::Failed {
            return Some(Err(io::ErrorKind::BrokenPipe.into()));
        }
        (self.over || self.session.get_mut().heard_end()).then_some(Ok(0))
    }

    /// Reads the records that are here into the caller's buffer.
    fn unseal(&mut self) {
        let Tls { session, inbox, read, spill, spilled, buffers, owed, phase, fault, .. } = self;
        let (session, inbox) = (session.get_mut(), inbox.get_mut());
        let Reading::Lent(buffer, _) = read else { return };
        if inbox.is_empty() || *phase != Phase::Open {
            return;
        }
        let opened = session.open(inbox, owed, |plain| {
            let fits = plain.len().min(buffer.capacity() - buffer.len());
            let (now, later) = plain.split_at(fits);
            buffer.extend_from_slice(now);
            if !later.is_empty() {
                buffers.give(std::mem::replace(spill, buffers.take_room(later.len())));
                spill.extend_from_slice(later);
                *spilled = 0;
            }
            if buffer.len() == buffer.capacity() { Room::Full } else { Room::Left }
        });
        inbox.drain(..opened.consumed.min(inbox.len()));
        if let Some(error) = opened.fault {
            session.alert(owed);
            *phase = Phase::Failed;
            *fault = Some(broken(error));
        }
        self.pay();
    }

    /// Asks the network for more.
    pub(super) fn ask(&mut self) -> io::Result<()> {
        let Reading::Lent(buffer, recall) = &mut self.read else { return Ok(()) };
        let recall = *recall;
        let plain = buffer.is_empty() && buffer.capacity() == BUFFER_BYTES;
        if plain && self.inbox.get_mut().is_empty() {
            let buffer = std::mem::take(buffer);
            self.read = Reading::Under(recall);
            self.under.start_read(buffer, recall);
        } else {
            let lent = self.lend()?;
            self.under.start_read(lent, recall);
        }
        Ok(())
    }

    /// Takes in what the network brought.
    pub(super) fn take_in(&mut self, done: ReadDone) {
        let came = matches!(done.result, Ok(count) if count > 0);
        match self.read {
            Reading::Under(recall) if came => {
                self.keep(done.buffer);
                self.read = Reading::Lent(self.buffers.take(), recall);
            }
            Reading::Under(recall) => self.read = Reading::Lent(done.buffer, recall),
            _ => self.keep(done.buffer),
        }
        match done.result {
            Ok(0) if self.shut.get() => self.over = true,
            // Whatever it was that was cut off, it was not said to be all.
            Ok(0) => self.fault = Some(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => self.fault = Some(error),
        }
    }

    pub(super) fn finish_read(&mut self, result: io::Result<usize>) -> Poll<ReadDone> {
        self.recalled = false;
        match std::mem::replace(&mut self.read, Reading::Empty) {
            Reading::Lent(buffer, _) => Poll::Ready(ReadDone { result, buffer }),
            other => {
                debug_assert!(false, "a read ends with its buffer at home");
                self.read = other;
                Poll::Pending
            }
        }
    }

    /// Whether a read would not wait.
    pub(super) fn has_news(&mut self) -> bool {
        let session = self.session.get_mut();
        self.spilled < self.spill.len()
            || self.fault.is_some()
            || self.over
            || session.heard_end()
            || has_record(self.inbox.get_mut()) && !session.keeps_place()
    }
}
