//! The half of a secured connection that writes: the caller's chunk as records to the network, and
//! the end of our direction.
//!
//! Bound: [`WRITE_MAX`] bytes of a chunk are sealed at once.

use super::{Phase, Tls, Writing, broken};
use crate::io::tls::session::{RECORD_PLAIN, Session, sealed_room};
use crate::io::{Chunk, Stream, WriteDone};
use std::io;
use std::task::Poll;

/// Plaintext that is sealed for one write: three whole records fit a buffer of 64 KiB.
const WRITE_MAX: usize = 3 * RECORD_PLAIN;

impl<S: Stream> Tls<S> {
    /// Seals the next part of the chunk and starts to write it; false if nothing is left.
    pub(super) fn seal(&mut self) -> io::Result<bool> {
        let Tls { session, inbox, write, owed, buffers, under, .. } = self;
        let Some(Writing { chunk, next }) = write else { return Ok(false) };
        if *next >= chunk.end {
            return Ok(false);
        }
        if self.silent.get() || self.shut.get() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let end = chunk.end.min(*next + WRITE_MAX);
        let plain = chunk.bytes.get(*next..end).ok_or(io::ErrorKind::InvalidInput)?;
        let mut out = buffers.take_room(owed.len() + sealed_room(plain.len()));
        out.append(owed);
        let session = session.get_mut();
        let sealed = session.seal(held(session, inbox.get_mut()), plain, &mut out);
        if let Err(error) = sealed {
            buffers.give(out);
            self.phase = Phase::Failed;
            return Err(broken(error));
        }
        *next = end;
        under.start_write(Chunk::whole(out));
        Ok(true)
    }

    pub(super) fn finish_write(&mut self, result: io::Result<()>) -> Poll<WriteDone> {
        if result.is_err() {
            // Part of it may have gone out: nothing that follows may make it look whole.
            self.silent.set(true);
        }
        match self.write.take() {
            Some(Writing { chunk, .. }) => Poll::Ready(WriteDone { result, chunk }),
            None => Poll::Pending,
        }
    }

    /// Hands out what the session owes the peer, if nothing else is on its way.
    pub(super) fn pay(&mut self) {
        if self.owed.is_empty() || self.silent.get() || self.under.writing() {
            return;
        }
        let taken = self.under.part_with(&self.owed);
        self.owed.drain(..taken.min(self.owed.len()));
    }

    /// Ends our direction, as TLS ends one: at once or not at all.
    pub(super) fn say_end(&self) {
        let early = self.phase != Phase::Open || self.silent.replace(true);
        if early || self.write.is_some() || self.under.writing() {
            return;
        }
        let mut out = self.buffers.take();
        out.extend_from_slice(&self.owed);
        let (mut session, mut inbox) = (self.session.borrow_mut(), self.inbox.borrow_mut());
        let held = held(&session, &mut inbox);
        if session.bye(held, &mut out).is_ok() {
            self.under.part_with(&out);
        }
        self.buffers.give(out);
    }
}

/// What rustls has to be given for whatever it does next.
fn held<'i>(session: &Session, inbox: &'i mut [u8]) -> &'i mut [u8] {
    if session.keeps_place() { inbox } else { Default::default() }
}
