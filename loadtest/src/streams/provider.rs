//! The upstream's end of one stream: reads requests as far as it must know which stream they are
//! for, and writes. What finds no room is kept. Bounds: `HELD_MAX` of a request.

use std::io::{self, ErrorKind};

use super::text::Text;
use crate::poll::Interest;
use crate::tls::Socket;
use crate::wire::{BodyReader, Fault, Framing, Head};

/// Bytes of a request that are waited for: far above what a gateway makes of ours.
const HELD_MAX: usize = 256 << 10;

/// One connection.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) stream: Socket,
    pub(super) interest: Interest,
    /// The stream it serves.
    pub(super) of: Option<usize>,
    held: Vec<u8>,
    out: Vec<u8>,
}

impl Provider {
    pub(super) fn new(stream: Socket) -> Provider {
        let (held, out) = (Vec::new(), Vec::new());
        Provider { stream, interest: Interest::Read, of: None, held, out }
    }

    /// Takes bytes of a request; the stream it is for once it is whole.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        self.held.extend_from_slice(bytes);
        let Some(head) = Head::find(&self.held) else {
            return if self.held.len() > HELD_MAX { Err(Fault::Line) } else { Ok(None) };
        };
        let mut body = BodyReader::new(Framing::of_request(&head)?);
        let mut content = Vec::new();
        let rest = &self.held[head.len()..];
        let used = body.feed(rest, |piece| content.extend_from_slice(piece))?;
        if !body.done() {
            return if self.held.len() > HELD_MAX { Err(Fault::Length) } else { Ok(None) };
        }
        let pipelined = used < rest.len();
        self.held.clear();
        match Text::asked(&content) {
            Some(stream) if !pipelined => Ok(Some(stream)),
            _ => Err(Fault::Line),
        }
    }

    /// Writes, behind what is still to be written.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sent = if self.out.is_empty() { write(&mut self.stream, bytes)? } else { 0 };
        self.out.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    /// Writes what was kept.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let sent = write(&mut self.stream, &self.out)?;
        self.out.drain(..sent);
        Ok(())
    }

    /// What it must be watched for.
    pub(super) fn wanted(&self) -> Interest {
        if self.out.is_empty() { Interest::Read } else { Interest::Both }
    }
}

fn write(stream: &mut Socket, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(n) => sent += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}
