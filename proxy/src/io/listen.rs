//! A bound port on monoio. As with reads, an accept in flight is never dropped with the future
//! that waits for it: on io_uring the connection it took would be lost with it. So the accept
//! belongs to the listener, which owns one boxed loop, and a wait only asks for its result.
//!
//! It deliberately neither binds nor sets options: that is done on the socket of `std`.
//! Bound: one accept in flight, one connection taken and not yet asked for.

use monoio::net::{TcpListener, TcpStream};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

type Accepted = io::Result<(TcpStream, SocketAddr)>;

/// A listener with its accept loop.
pub struct RingListener {
    at: SocketAddr,
    fd: RawFd,
    accepted: Rc<RefCell<Option<Accepted>>>,
    accepting: RefCell<Pin<Box<dyn Future<Output = ()>>>>,
}

impl RingListener {
    /// Takes over a bound listener. Must be called on the thread of the runtime.
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<RingListener> {
        // On epoll a blocking one would stop the whole thread.
        listener.set_nonblocking(true)?;
        let at = listener.local_addr()?;
        let fd = listener.as_raw_fd();
        let listener = TcpListener::from_std(listener)?;
        let accepted = Rc::new(RefCell::new(None));
        let accepting = RefCell::new(Box::pin(accept_loop(listener, accepted.clone())) as _);
        Ok(RingListener { at, fd, accepted, accepting })
    }

    /// The address it is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.at
    }

    /// The descriptor, owned by the accept loop for as long as this listener lives.
    pub(super) fn fd(&self) -> RawFd {
        self.fd
    }

    /// The next connection. One waiter at a time.
    pub(super) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<Accepted> {
        let _ = self.accepting.borrow_mut().as_mut().poll(cx);
        self.accepted.borrow_mut().take().map_or(Poll::Pending, Poll::Ready)
    }
}

async fn accept_loop(listener: TcpListener, accepted: Rc<RefCell<Option<Accepted>>>) {
    loop {
        let result = listener.accept().await;
        *accepted.borrow_mut() = Some(result);
        poll_fn(|_| match *accepted.borrow() {
            None => Poll::Ready(()),
            Some(_) => Poll::Pending,
        })
        .await;
    }
}
