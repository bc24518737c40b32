//! Addresses: who listens where, how long a connect takes, and which addresses never answer.
//!
//! Bounds: [`BACKLOG_MAX`] connections wait at a listener; beyond it a connect hangs, as on
//! Linux, where the handshake is dropped without a word.

use super::World;
use super::link::{Link, LinkOptions, Shared, Side};
use super::stream::ScriptStream;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Connections waiting to be accepted at one listener; the kernel's usual `somaxconn`.
pub const BACKLOG_MAX: usize = 4096;

/// First of the ports given to diallers and to listeners on port 0; the kernel's usual range.
const PORT_FIRST: u16 = 32_768;

#[derive(Default)]
pub(super) struct Net {
    listeners: BTreeMap<SocketAddr, Rc<RefCell<Backlog>>>,
    routes: BTreeMap<SocketAddr, Route>,
    pub(super) options: LinkOptions,
    ports_given: u16,
}

#[derive(Clone, Copy, Default)]
struct Route {
    black_hole: bool,
    delay: Duration,
}

/// What waits at a listener.
#[derive(Default)]
struct Backlog {
    waiting: VecDeque<(Shared, SocketAddr)>,
    /// Errors that the next accepts return instead.
    failures: VecDeque<i32>,
    acceptor: Option<Waker>,
    stopped: bool,
}

impl Net {
    pub(super) fn set_black_hole(&mut self, at: SocketAddr) {
        self.routes.entry(at).or_default().black_hole = true;
    }

    pub(super) fn set_delay(&mut self, at: SocketAddr, delay: Duration) {
        self.routes.entry(at).or_default().delay = delay;
    }

    /// The next `count` accepts at `at` fail with `errno`.
    pub(super) fn fail_accepts(
        &mut self,
        at: SocketAddr,
        count: usize,
        errno: i32,
    ) -> io::Result<()> {
        let backlog = self.listeners.get(&at).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let mut backlog = backlog.borrow_mut();
        backlog.failures.extend(std::iter::repeat_n(errno, count));
        backlog.wake();
        Ok(())
    }

    fn give_port(&mut self) -> u16 {
        let port = PORT_FIRST + self.ports_given % (u16::MAX - PORT_FIRST);
        self.ports_given = self.ports_given.wrapping_add(1);
        port
    }

    /// The end of a handshake to `to`, unless whoever began it has gone.
    fn arrive(&mut self, link: &Shared, to: SocketAddr) {
        if !link.borrow().is_connecting() {
            return;
        }
        let from = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), self.give_port());
        let Some(backlog) = self.listeners.get(&to) else {
            return link.borrow_mut().fail(io::ErrorKind::ConnectionRefused);
        };
        let mut backlog = backlog.borrow_mut();
        if backlog.waiting.len() < BACKLOG_MAX {
            link.borrow_mut().open();
            backlog.waiting.push_back((link.clone(), from));
            backlog.wake();
        }
    }
}

impl Backlog {
    fn wake(&mut self) {
        if let Some(waker) = self.acceptor.take() {
            waker.wake();
        }
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        // The kernel resets what nobody accepted.
        for (link, _) in &self.waiting {
            link.borrow_mut().reset(Side::Acceptor);
            link.borrow_mut().close(Side::Acceptor);
        }
    }
}

impl World {
    /// Binds `at`; port 0 is given a free one.
    pub(super) fn listen(self: &Rc<World>, mut at: SocketAddr) -> io::Result<ScriptListener> {
        let mut net = self.net.borrow_mut();
        while at.port() == 0 || (at.port() >= PORT_FIRST && net.listeners.contains_key(&at)) {
            at.set_port(net.give_port());
        }
        if net.listeners.contains_key(&at) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let backlog = Rc::new(RefCell::new(Backlog::default()));
        net.listeners.insert(at, backlog.clone());
        Ok(ScriptListener { world: self.clone(), at, backlog })
    }

    /// A connection to `to` that stands already, without the delay set for it.
    pub(super) fn dial_link(&self, to: SocketAddr) -> io::Result<Shared> {
        let mut net = self.net.borrow_mut();
        let link = Link::connecting(&net.options, &self.seed);
        net.arrive(&link, to);
        match link.borrow().outcome() {
            Some(result) => result?,
            None => return Err(io::ErrorKind::TimedOut.into()),
        }
        Ok(link)
    }

    /// Begins a connection to `to`.
    pub(super) fn begin_connect(self: &Rc<World>, to: SocketAddr) -> Shared {
        let mut net = self.net.borrow_mut();
        let link = Link::connecting(&net.options, &self.seed);
        let route = net.routes.get(&to).copied().unwrap_or_default();
        if route.black_hole {
            return link;
        }
        if route.delay.is_zero() {
            net.arrive(&link, to);
            return link;
        }
        let (world, late) = (self.clone(), link.clone());
        self.executor.spawn(Box::pin(async move {
            world.sleep(route.delay).await;
            world.net.borrow_mut().arrive(&late, to);
        }));
        link
    }
}

/// A bound address. Dropping it resets what was not accepted and refuses what comes.
pub struct ScriptListener {
    world: Rc<World>,
    at: SocketAddr,
    backlog: Rc<RefCell<Backlog>>,
}

impl ScriptListener {
    /// The address it is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.at
    }

    /// Refuses what comes, and ends every accept with the error Linux gives after a shutdown.
    pub(super) fn stop(&self) {
        self.world.net.borrow_mut().listeners.remove(&self.at);
        let mut backlog = self.backlog.borrow_mut();
        backlog.stopped = true;
        if let Some(waker) = backlog.acceptor.take() {
            waker.wake();
        }
    }

    pub(super) fn poll_accept(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<(ScriptStream, SocketAddr)>> {
        let mut backlog = self.backlog.borrow_mut();
        if backlog.stopped {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        if let Some(errno) = backlog.failures.pop_front() {
            return Poll::Ready(Err(io::Error::from_raw_os_error(errno)));
        }
        match backlog.waiting.pop_front() {
            Some((link, from)) => Poll::Ready(Ok((ScriptStream::new(link, Side::Acceptor), from))),
            None => {
                backlog.acceptor = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for ScriptListener {
    fn drop(&mut self) {
        self.world.net.borrow_mut().listeners.remove(&self.at);
    }
}
