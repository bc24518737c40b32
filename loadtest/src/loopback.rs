//! Addresses this package may speak to or listen on: loopback alone. Load aimed anywhere else
//! would be an attack, and a stand-in open to a network an open provider.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// Connections that may wait in the kernel to be accepted; `mix` opens hundreds at once.
const BACKLOG: i32 = 1024;

/// Why an address was refused.
#[derive(Debug)]
pub(crate) enum AddressError {
    /// It has no meaning as `host:port`.
    Unknown(String, io::Error),
    /// It resolves to something that is not loopback.
    NotLoopback(String, SocketAddr),
}

impl fmt::Display for AddressError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::Unknown(text, error) => write!(out, "{text}: not host:port: {error}"),
            AddressError::NotLoopback(text, addr) => {
                write!(out, "{text} is {addr}, not loopback: refused")
            }
        }
    }
}

impl std::error::Error for AddressError {}

/// Reads `host:port`; all addresses it resolves to must be loopback.
pub(crate) fn address(text: &str) -> Result<SocketAddr, AddressError> {
    let unknown = |error| AddressError::Unknown(text.to_owned(), error);
    let mut chosen = None;
    for addr in text.to_socket_addrs().map_err(unknown)? {
        check(text, addr)?;
        chosen = chosen.or(Some(addr));
    }
    chosen.ok_or_else(|| unknown(io::ErrorKind::NotFound.into()))
}

/// Refuses an address that is not loopback.
pub(crate) fn check(text: &str, addr: SocketAddr) -> Result<(), AddressError> {
    if addr.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(AddressError::NotLoopback(text.to_owned(), addr))
}

/// A non-blocking listener.
pub(crate) fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(OwnedFd::from(socket).into())
}

/// Begins a connection without waiting for it.
pub(crate) fn connect(addr: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    match socket.connect(&addr.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    Ok(OwnedFd::from(socket).into())
}

/// Makes an open connection one of a loop: nothing waits, and nothing waits for more to send.
pub(crate) fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)
}

/// Makes the close of `stream` a reset instead of an orderly end.
pub(crate) fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO))
}

/// From now on `stream` has room to write once all that was written is on its way to the peer.
pub(crate) fn room_once_sent(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_tcp_notsent_lowat(1)
}

/// A connect under way; `io::ErrorKind` has no stable name for it.
const EINPROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn loopback_alone_is_accepted() {
        for good in ["127.0.0.1:1", "127.9.9.9:80", "[::1]:80", "[::ffff:127.0.0.1]:1"] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in ["0.0.0.0:1", "192.0.2.1:80", "[::]:80", "[2001:db8::1]:80"] {
            let text = address(bad).expect_err(bad).to_string();
            assert!(text.contains("not loopback"), "{text}");
        }
        assert!(address("nonsense").is_err());
    }
}
