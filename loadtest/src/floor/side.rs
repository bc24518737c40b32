//! One connection of the relay and the framing of what it sends. No peer is touched here.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;

use crate::poll::Interest;
use crate::wire::{BodyReader, Fault, Framing, Head, Shape};

/// Largest head that is waited for; larger ones end the connection.
const HEAD_BYTES_MAX: usize = 2 << 20;

/// Which way a connection faces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Upstream,
}

/// How much of what arrived goes to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Framed {
    pub(super) forward: usize,
    /// The message is over behind these bytes.
    pub(super) over: bool,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) stream: TcpStream,
    pub(super) role: Role,
    /// The other side of the exchange under way.
    pub(super) peer: Option<u64>,
    /// Received and not forwarded: a head that is not whole, or what follows the message.
    pub(super) held: Vec<u8>,
    /// To be written once there is room.
    pub(super) out: Vec<u8>,
    pub(super) interest: Interest,
    /// The request was forwarded whole: nothing is read until its answer is.
    pub(super) asked: bool,
    /// To be closed once `out` is written.
    pub(super) closing: bool,
    reader: Option<BodyReader>,
}

impl Side {
    pub(super) fn new(stream: TcpStream, role: Role) -> Side {
        Side {
            stream,
            role,
            peer: None,
            held: Vec::new(),
            out: Vec::new(),
            interest: Interest::Read,
            asked: false,
            closing: false,
            reader: None,
        }
    }

    /// Frames what arrived; `bytes` begin where the last forwarded byte ended. `shape` is that of
    /// the last message of this role.
    pub(super) fn frame(
        &mut self,
        shape: &mut Option<Shape>,
        bytes: &[u8],
    ) -> Result<Framed, Fault> {
        if self.reader.is_none()
            && let Some(shape) = shape.as_ref().filter(|shape| shape.fits(bytes))
        {
            let (forward, total) = (bytes.len().min(shape.total()), shape.total());
            if forward < total {
                let left = Framing::Length((total - forward) as u64);
                self.reader = Some(BodyReader::new(left));
            }
            return Ok(Framed { forward, over: forward == total });
        }
        let mut forward = 0;
        while self.reader.is_none() {
            let rest = &bytes[forward..];
            let Some(head) = Head::find(rest) else {
                return if rest.len() > HEAD_BYTES_MAX {
                    Err(Fault::Line)
                } else {
                    Ok(Framed { forward, over: false })
                };
            };
            let framing = match self.role {
                Role::Client => Framing::of_request(&head)?,
                Role::Upstream => {
                    let status = head.status().ok_or(Fault::Line)?;
                    if status < 200 {
                        forward += head.len();
                        continue;
                    }
                    Framing::of_answer(&head, status)?
                }
            };
            *shape = Shape::of(&head, framing);
            self.reader = Some(BodyReader::new(framing));
            forward += head.len();
        }
        let Some(reader) = &mut self.reader else { return Ok(Framed { forward, over: false }) };
        forward += reader.feed(&bytes[forward..], |_| {})?;
        let over = reader.done();
        if over {
            self.reader = None;
        }
        Ok(Framed { forward, over })
    }

    /// Whether the end of the connection ends its message well.
    pub(super) fn ends_with_close(&self) -> bool {
        self.reader.as_ref().is_some_and(BodyReader::ends_with_close)
    }

    /// Writes `bytes`; what finds no room is kept.
    pub(super) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let mut sent = 0;
        if self.out.is_empty() {
            sent = write(&self.stream, bytes)?;
        }
        self.out.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    /// Writes what was kept.
    pub(super) fn flush(&mut self) -> std::io::Result<()> {
        let sent = write(&self.stream, &self.out)?;
        self.out.drain(..sent);
        Ok(())
    }
}

fn write(mut stream: &TcpStream, bytes: &[u8]) -> std::io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(n) => sent += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // a connect under way takes bytes once it is done
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) =>
            {
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}
