//! Idle upstream connections of one shard, last in first out.
//!
//! An idle connection has a read posted, so an end that arrives while it waits is seen without a
//! system call: at check-out, and at the sweep every second. What is seen too late is the replay's
//! affair (`govern::walk`).
//!
//! Bounds: [`IDLE_MAX`] a host; an age limit from the configuration.

use super::Upstream;
use crate::io::buffers::Buffers;
use crate::io::tls::ClientTls;
use crate::io::{Recall, Stream};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Idle connections kept for a host. With as many clients at once as this, an upstream of the same
/// speed is asked over connections that stand already: at 64, 128 busy clients made a new one for
/// every eleventh call (ADR 0008). Each holds one buffer of 8 KiB.
pub const IDLE_MAX: usize = 256;

/// Addresses whose (maybe empty) lists are kept.
const HOSTS_MAX: usize = 256;

/// The pool.
pub struct Pool<S> {
    hosts: RefCell<Vec<Host<S>>>,
}

/// Connections that lead to one address and are secured alike: many a host has its address from
/// somebody who answers there for others too.
struct Host<S> {
    address: SocketAddr,
    tls: Option<Arc<ClientTls>>,
    idle: Vec<Upstream<S>>,
}

impl<S> Host<S> {
    fn is(&self, address: SocketAddr, tls: Option<&Arc<ClientTls>>) -> bool {
        let alike = match (&self.tls, tls) {
            (None, None) => true,
            (Some(ours), Some(tls)) => Arc::ptr_eq(ours, tls),
            _ => false,
        };
        alike && self.address == address
    }
}

impl<S> Default for Pool<S> {
    fn default() -> Pool<S> {
        Pool { hosts: RefCell::new(Vec::new()) }
    }
}

impl<S: Stream> Pool<S> {
    /// The youngest idle connection to `address`, secured by `tls`, that is still alive and not
    /// older than `age_max` ticks at `tick`.
    pub fn check_out(
        &self,
        (address, tls): (SocketAddr, Option<&Arc<ClientTls>>),
        tick: u64,
        age_max: u64,
        buffers: &Buffers,
    ) -> Option<Upstream<S>> {
        let mut hosts = self.hosts.borrow_mut();
        let host = hosts.iter_mut().find(|host| host.is(address, tls))?;
        while let Some(mut upstream) = host.idle.pop() {
            if tick.saturating_sub(upstream.born_tick) <= age_max && is_silent(&mut upstream) {
                upstream.uses += 1;
                return Some(upstream);
            }
            upstream.discard(buffers);
        }
        None
    }

    /// Takes a connection back whose answer ended cleanly.
    pub fn check_in(&self, mut upstream: Upstream<S>, buffers: &Buffers) {
        if !upstream.stream.reading() {
            let mut buffer = std::mem::take(&mut upstream.inbox);
            buffer.clear();
            if buffer.capacity() != crate::io::buffers::BUFFER_BYTES {
                buffers.give(buffer);
                buffer = buffers.take();
            }
            upstream.stream.start_read(buffer, Recall::Never);
        }
        let mut hosts = self.hosts.borrow_mut();
        let (address, tls) = (upstream.address, upstream.tls.as_ref());
        let place = hosts.iter().position(|host| host.is(address, tls));
        let place = place.unwrap_or_else(|| {
            hosts.push(Host { address, tls: tls.cloned(), idle: Vec::with_capacity(IDLE_MAX) });
            hosts.len() - 1
        });
        let idle = &mut hosts[place].idle;
        // Posts the read, and finds the end that came together with the answer.
        if idle.len() < IDLE_MAX && is_silent(&mut upstream) {
            idle.push(upstream);
        } else {
            upstream.discard(buffers);
        }
    }

    /// Lets go of what has ended or grown old.
    pub fn sweep(&self, tick: u64, age_max: u64, buffers: &Buffers) {
        let mut hosts = self.hosts.borrow_mut();
        for Host { idle, .. } in hosts.iter_mut() {
            let mut at = 0;
            while at < idle.len() {
                let old = tick.saturating_sub(idle[at].born_tick) > age_max;
                if old || !is_silent(&mut idle[at]) {
                    idle.swap_remove(at).discard(buffers);
                } else {
                    at += 1;
                }
            }
        }
        // An address that is no longer used leaves an empty list behind; a few cost nothing, and
        // dropping those of hosts in use would allocate again with every burst.
        if hosts.len() > HOSTS_MAX {
            hosts.retain(|host| !host.idle.is_empty());
        }
    }

    /// Lets go of everything: the shard ends.
    pub fn clear(&self, buffers: &Buffers) {
        let hosts = self.hosts.take();
        for upstream in hosts.into_iter().flat_map(|host| host.idle) {
            upstream.discard(buffers);
        }
    }

    /// Idle connections, all hosts.
    pub fn len(&self) -> usize {
        self.hosts.borrow().iter().map(|host| host.idle.len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Whether the read of an idle connection still waits. Anything it brings, an end or bytes nobody
/// asked for, makes the connection useless.
fn is_silent<S: Stream>(upstream: &mut Upstream<S>) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    match upstream.stream.poll_read(&mut cx) {
        Poll::Pending => true,
        Poll::Ready(done) => {
            upstream.inbox = done.buffer;
            false
        }
    }
}
