//! The loop of the floor: which side an event concerns and what goes where.

use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;

use super::side::{Framed, Role, Side};
use crate::loopback;
use crate::poll::{Interest, Poller, Ready};
use crate::slots::{RESERVED, Slots};
use crate::wire::Shape;

/// Idle upstream connections kept: above the connections of any measurement here.
const IDLE_MAX: usize = 1024;

/// Bytes of one read.
const SCRATCH_BYTES: usize = 64 << 10;

const LISTENER: u64 = RESERVED;
const STOP: u64 = RESERVED | 1;

/// The relay.
pub(super) struct Relay {
    poller: Poller,
    listener: TcpListener,
    upstream: SocketAddr,
    sides: Slots<Side>,
    idle: Vec<u64>,
    /// How the last request and the last answer looked.
    request: Option<Shape>,
    answer: Option<Shape>,
}

impl Relay {
    pub(super) fn new(
        listener: TcpListener,
        upstream: SocketAddr,
        stop: &UnixStream,
    ) -> io::Result<Relay> {
        let poller = Poller::new()?;
        poller.add(&listener, LISTENER, Interest::Read)?;
        poller.add(stop, STOP, Interest::Read)?;
        let (sides, idle) = (Slots::new(), Vec::new());
        Ok(Relay { poller, listener, upstream, sides, idle, request: None, answer: None })
    }

    /// Runs until the stop stream ends.
    pub(super) fn run(mut self) -> io::Result<()> {
        let mut scratch = vec![0; SCRATCH_BYTES];
        let mut ready = Vec::new();
        loop {
            self.poller.wait(&mut ready, None)?;
            for event in ready.drain(..) {
                match event.token {
                    LISTENER => self.accept(),
                    STOP => return Ok(()),
                    token => {
                        if self.event(event, &mut scratch).is_none() {
                            self.drop_pair(token);
                        }
                    }
                }
            }
        }
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok() {
                // a connection that cannot be watched is closed by being dropped
                let _watched = self.add(Side::new(stream, Role::Client)).is_some();
            }
        }
    }

    fn add(&mut self, side: Side) -> Option<u64> {
        let interest = side.interest;
        let token = self.sides.insert_with(|_| side);
        let side = self.sides.get_mut(token)?;
        if self.poller.add(&side.stream, token, interest).is_err() {
            self.sides.remove(token);
            return None;
        }
        Some(token)
    }

    /// `None` ends the side and its peer.
    fn event(&mut self, event: Ready, scratch: &mut [u8]) -> Option<()> {
        let Some(side) = self.sides.get_mut(event.token) else { return Some(()) };
        if event.broken && !event.readable {
            return None;
        }
        if event.writable {
            side.flush().ok()?;
            if side.out.is_empty() {
                if side.closing {
                    return None;
                }
                let peer = side.peer;
                self.watch(event.token, Interest::Read)?;
                if let Some(peer) = peer {
                    self.watch(peer, Interest::Read)?;
                }
            }
        }
        if event.readable {
            return self.readable(event.token, scratch);
        }
        Some(())
    }

    fn readable(&mut self, token: u64, scratch: &mut [u8]) -> Option<()> {
        let side = self.sides.get_mut(token)?;
        let n = match side.stream.read(scratch) {
            Ok(0) => return self.ended(token),
            Ok(n) => n,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Some(()),
            Err(_) => return None,
        };
        if side.held.is_empty() && !side.asked {
            return self.forward(token, &scratch[..n]);
        }
        side.held.extend_from_slice(&scratch[..n]);
        if side.asked {
            return self.watch(token, Interest::Nothing);
        }
        let held = std::mem::take(&mut side.held);
        self.forward(token, &held)
    }

    /// Sends what belongs to the message of `token` to its peer and keeps the rest.
    fn forward(&mut self, token: u64, bytes: &[u8]) -> Option<()> {
        let side = self.sides.get_mut(token)?;
        let role = side.role;
        let shape = match role {
            Role::Client => &mut self.request,
            Role::Upstream => &mut self.answer,
        };
        let Framed { forward, over } = side.frame(shape, bytes).ok()?;
        side.held.extend_from_slice(&bytes[forward..]);
        side.asked = role == Role::Client && over;
        if forward == 0 {
            return Some(());
        }
        let peer = match side.peer {
            Some(peer) => peer,
            None if role == Role::Client => self.pair(token)?,
            None => return None,
        };
        let to = self.sides.get_mut(peer)?;
        to.send(&bytes[..forward]).ok()?;
        if !to.out.is_empty() {
            self.watch(peer, Interest::Both)?;
            self.watch(token, Interest::Nothing)?;
        }
        if over && role == Role::Upstream {
            return self.answered(token, peer);
        }
        Some(())
    }

    /// An upstream connection for the client `token`.
    fn pair(&mut self, token: u64) -> Option<u64> {
        let upstream = match self.idle.pop() {
            Some(idle) => idle,
            None => {
                let stream = loopback::connect(self.upstream).ok()?;
                self.add(Side::new(stream, Role::Upstream))?
            }
        };
        self.sides.get_mut(upstream)?.peer = Some(token);
        self.sides.get_mut(token)?.peer = Some(upstream);
        Some(upstream)
    }

    /// The answer is over: the upstream connection is free, the client may ask again.
    fn answered(&mut self, upstream: u64, client: u64) -> Option<()> {
        let side = self.sides.get_mut(upstream)?;
        side.peer = None;
        // bytes that belong to no answer, or a request still on its way: not a connection to keep
        let keep = side.held.is_empty() && side.out.is_empty() && self.idle.len() < IDLE_MAX;
        let side = self.sides.get_mut(client)?;
        side.peer = None;
        let asked = std::mem::take(&mut side.asked);
        let blocked = !side.out.is_empty();
        let held = std::mem::take(&mut side.held);
        if keep && asked {
            self.idle.push(upstream);
            self.watch(upstream, Interest::Read)?;
        } else {
            self.sides.remove(upstream);
        }
        if !asked {
            // answered before it was sent whole: what follows cannot be told from the body
            return self.close_client(client);
        }
        if !blocked {
            self.watch(client, Interest::Read)?;
        }
        if !held.is_empty() && self.forward(client, &held).is_none() {
            self.drop_pair(client);
        }
        Some(())
    }

    /// The connection of `token` has ended.
    fn ended(&mut self, token: u64) -> Option<()> {
        let side = self.sides.get_mut(token)?;
        if side.role == Role::Client || !side.ends_with_close() {
            return None;
        }
        let client = side.peer.take();
        self.sides.remove(token);
        if let Some(client) = client {
            self.sides.get_mut(client)?.peer = None;
            self.close_client(client);
        }
        Some(())
    }

    fn close_client(&mut self, client: u64) -> Option<()> {
        let side = self.sides.get_mut(client)?;
        side.closing = true;
        if side.out.is_empty() {
            self.sides.remove(client);
            return Some(());
        }
        self.watch(client, Interest::Write)
    }

    fn watch(&mut self, token: u64, interest: Interest) -> Option<()> {
        let side = self.sides.get_mut(token)?;
        if side.interest != interest {
            self.poller.change(&side.stream, token, interest).ok()?;
            side.interest = interest;
        }
        Some(())
    }

    fn drop_pair(&mut self, token: u64) {
        let Some(side) = self.sides.remove(token) else { return };
        if side.role == Role::Upstream {
            self.idle.retain(|&idle| idle != token);
        }
        if let Some(peer) = side.peer {
            self.sides.remove(peer);
        }
    }
}
