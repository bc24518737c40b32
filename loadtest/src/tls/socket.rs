//! A connection that is plain or secured, read and written like a non-blocking TCP stream on a
//! level-triggered poller.
//!
//! Two rules make that so. A write that would block has to be repeated with the same bytes: they
//! are sealed already, and count as written once the network has them. A read is given [`READ_MIN`]
//! of room, which is more than one read of the network can bring, so nothing is left behind that no
//! event will tell of. An end of the connection that was not said is an error; an end is said by
//! [`Socket::end`] alone.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use rustls::Connection;

use super::{Identity, Trust};
use crate::poll::Interest;

/// Room for a read: half of it takes records, to the other half and what was read of the first
/// their plaintext fits, and that of a record of which a part lay here.
const READ_MIN: usize = 64 << 10;

/// Bytes that are sealed for one write.
const SEALED_MAX: usize = 48 << 10;

/// Bytes of a record's head, and of an alert behind it in TLS 1.3: two, its kind, and a tag. No
/// request is as short.
const HEAD: usize = 5;
const ALERT: u8 = 2 + 1 + 16;

/// One connection.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    session: Option<Box<Session>>,
}

#[derive(Debug)]
struct Session {
    tls: Connection,
    /// Bytes of the caller's that are sealed and not all out.
    sealed: usize,
}

// === impl Socket ===

impl Socket {
    /// Plain, or the end that calls if somebody is to be believed to be `whom`; it may still be
    /// connecting.
    pub(crate) fn calling(
        stream: TcpStream,
        whom: IpAddr,
        trust: Option<&Trust>,
    ) -> io::Result<Socket> {
        let Some(trust) = trust else { return Ok(Socket { stream, session: None }) };
        let tls = trust.session(whom)?;
        let mut session = Box::new(Session { tls, sealed: 0 });
        match session.flush(&stream) {
            Err(error) if !waits(&error) => Err(error),
            Ok(()) | Err(_) => Ok(Socket { stream, session: Some(session) }),
        }
    }

    /// Plain, or the end that is called if there is somebody to show.
    pub(crate) fn called(stream: TcpStream, identity: Option<&Identity>) -> io::Result<Socket> {
        let Some(Identity(config)) = identity else { return Ok(Socket { stream, session: None }) };
        let tls = rustls::ServerConnection::new(config.clone()).map_err(io::Error::other)?;
        Ok(Socket { stream, session: Some(Box::new(Session { tls: tls.into(), sealed: 0 })) })
    }

    /// The connection below.
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether a handshake is under way: no byte of the caller's goes out before its end.
    pub(crate) fn shaking(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.tls.is_handshaking())
    }

    /// What a write that would block waits for. The end of a handshake comes with a read.
    pub(crate) fn blocked(&self) -> Interest {
        match &self.session {
            Some(session) if session.tls.is_handshaking() && !session.tls.wants_write() => {
                Interest::Read
            }
            _ => Interest::Both,
        }
    }

    /// Reads what is there; zero at the end that was said.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.session {
            Some(session) => session.read(&self.stream, into),
            None => (&self.stream).read(into),
        }
    }

    /// Writes some of `bytes`.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.session {
            Some(session) => session.write(&self.stream, bytes),
            None => (&self.stream).write(bytes),
        }
    }

    /// Says that nothing more comes, and ends our direction.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        if let Some(session) = &mut self.session {
            session.tls.send_close_notify();
            session.flush(&self.stream)?;
        }
        self.stream.shutdown(Shutdown::Write)
    }

    /// Whether the peer has ended its direction, without reading what it may have sent.
    pub(crate) fn peer_left(&self) -> bool {
        let mut head = [0; HEAD];
        match self.stream.peek(&mut head) {
            Ok(0) => true,
            Ok(HEAD) if self.session.is_some() => head == [23, 3, 3, 0, ALERT],
            Ok(_) | Err(_) => false,
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

// === impl Session ===

impl Session {
    /// Writes what the session has to say.
    fn flush(&mut self, mut stream: &TcpStream) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut stream) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write(&mut self, stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
        if self.tls.is_handshaking() {
            self.flush(stream)?;
            return Err(ErrorKind::WouldBlock.into());
        }
        if self.sealed == 0 {
            let part = &bytes[..bytes.len().min(SEALED_MAX)];
            self.sealed = self.tls.writer().write(part)?;
        }
        self.flush(stream)?;
        Ok(std::mem::take(&mut self.sealed))
    }

    fn read(&mut self, mut stream: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
        debug_assert!(into.len() >= READ_MIN, "room for a whole read");
        match self.tls.reader().read(into) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            result => return result,
        }
        let half = into.len() / 2;
        let count = stream.read(&mut into[half..])?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let (mut taken, mut plain) = (half, 0);
        while taken < half + count {
            let (front, back) = into.split_at_mut(taken);
            taken += self.tls.read_tls(&mut &back[..half + count - front.len()])?;
            let result = self.tls.process_new_packets();
            // whoever it is for may have gone, which the next write tells
            let _unsent = self.flush(stream).is_err();
            result.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            while let Ok(count) = self.tls.reader().read(&mut front[plain..])
                && count > 0
            {
                plain += count;
            }
        }
        match plain {
            // the end may have been said: then there is no more to wait for
            0 => self.tls.reader().read(into),
            plain => Ok(plain),
        }
    }
}

fn waits(error: &io::Error) -> bool {
    // a connect under way takes bytes once it is done
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected)
}
