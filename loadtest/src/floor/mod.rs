//! The floor: a raw relay on one thread and one epoll instance, the least a proxy can cost here.
//! It reads of a message what framing needs and nothing else, and not even that of one that looks
//! like the last. It forwards every byte as it came and keeps upstream connections for reuse.
//! Deliberately not: replay, deadlines, header edits, HEAD.
//!
//! Invariants: one exchange at a time per connection; a side is not read while its peer cannot
//! take what was read. Bounds: `IDLE_MAX` idle upstream connections, one read held per side.

mod relay;
mod side;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use crate::loopback;
use relay::Relay;

/// A floor on a thread of its own; dropping it stops it.
#[derive(Debug)]
pub struct Floor {
    addr: SocketAddr,
    alive: Option<UnixStream>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Floor {
    /// Starts one; it accepts connections when this returns.
    pub fn start(listen: SocketAddr, upstream: SocketAddr) -> io::Result<Floor> {
        let listener = open(listen, upstream)?;
        let addr = listener.local_addr()?;
        let (alive, watched) = UnixStream::pair()?;
        let thread = std::thread::Builder::new()
            .name("floor".to_owned())
            .spawn(move || Relay::new(listener, upstream, &watched)?.run())?;
        Ok(Floor { addr, alive: Some(alive), thread: Some(thread) })
    }

    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Runs on until it fails; for the process of its own.
    pub(crate) fn wait(mut self) -> io::Result<()> {
        self.thread.take().map_or(Ok(()), join)
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        // the closed end of the pair is what the loop ends by
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // nobody is left to hear of it
            let _failed = join(thread).is_err();
        }
    }
}

fn join(thread: JoinHandle<io::Result<()>>) -> io::Result<()> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the floor panicked")))
}

fn open(listen: SocketAddr, upstream: SocketAddr) -> io::Result<TcpListener> {
    for addr in [listen, upstream] {
        loopback::check(&addr.to_string(), addr).map_err(io::Error::other)?;
    }
    loopback::listen(listen)
}
