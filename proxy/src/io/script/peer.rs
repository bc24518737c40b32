//! The other side of a connection, played by a test: a client or an upstream in a few lines.
//!
//! Every wait has a time-out in virtual time ([`PATIENCE`]) and ends with a value, never with a
//! hang; the value carries what had been read by then.

use super::World;
use super::chop::Chop;
use super::link::{Gone, Shared, Side};
use super::net::ScriptListener;
use super::stream::ScriptStream;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// How long a peer waits for one thing: longer than the longest deadline of the code under
/// test (900 s), so that it is that deadline which is seen to act.
pub const PATIENCE: Duration = Duration::from_secs(1_000);

/// Time moves only when nothing else can run; so after the shortest sleep all others have done
/// what they could.
const SETTLE: Duration = Duration::from_nanos(1);

/// Room for one read.
const READ_ROOM: usize = 64 * 1024;

/// A wait of a peer that did not end as asked.
#[derive(Debug)]
pub struct PeerError {
    /// What happened instead.
    pub fault: PeerFault,
    /// Virtual milliseconds since the world began.
    pub at_ms: u64,
    /// What had been read for the same call.
    pub got: Vec<u8>,
}

/// What can happen to a wait.
#[derive(Debug)]
pub enum PeerFault {
    /// Patience ran out.
    TimedOut,
    /// The stream ended first.
    Ended,
    /// The connection broke.
    Broken(io::ErrorKind),
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            PeerFault::TimedOut => write!(f, "peer timed out")?,
            PeerFault::Ended => write!(f, "stream ended early")?,
            PeerFault::Broken(kind) => write!(f, "connection broke ({kind})")?,
        }
        let text = String::from_utf8_lossy(&self.got);
        write!(f, " at {} virtual ms, after {} bytes: {text:?}", self.at_ms, self.got.len())
    }
}

impl std::error::Error for PeerError {}

/// An upstream's port.
pub struct PeerListener {
    world: Rc<World>,
    listener: ScriptListener,
}

impl PeerListener {
    pub(super) fn new(world: Rc<World>, listener: ScriptListener) -> PeerListener {
        PeerListener { world, listener }
    }

    /// The address it is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// The next connection.
    pub async fn accept(&self) -> Result<Peer, PeerError> {
        let accepted = poll_fn(|cx| self.listener.poll_accept(cx));
        match patiently(&self.world, PATIENCE, accepted).await {
            Some(Ok((stream, _))) => Ok(Peer::new(self.world.clone(), stream)),
            Some(Err(e)) => Err(fault(&self.world, PeerFault::Broken(e.kind()), Vec::new())),
            None => Err(fault(&self.world, PeerFault::TimedOut, Vec::new())),
        }
    }
}

/// One end of a connection in a test's hands. Dropping it closes it, with a reset if bytes are
/// left unread, as the kernel does.
///
/// It can send and read at the same time; of each kind one call at a time, and `closed` counts
/// as a read.
pub struct Peer {
    world: Rc<World>,
    link: Shared,
    side: Side,
    patience: Cell<Duration>,
    /// Read past what a call asked for.
    ahead: RefCell<Vec<u8>>,
    _stream: ScriptStream,
}

impl World {
    /// A client connected to `to`.
    pub(super) fn dial(self: &Rc<World>, to: SocketAddr) -> io::Result<Peer> {
        let link = self.dial_link(to)?;
        Ok(Peer::new(self.clone(), ScriptStream::new(link, Side::Dialer)))
    }
}

impl Peer {
    fn new(world: Rc<World>, stream: ScriptStream) -> Peer {
        let (link, side) = stream.place();
        Peer {
            world,
            link,
            side,
            patience: Cell::new(PATIENCE),
            ahead: RefCell::default(),
            _stream: stream,
        }
    }

    /// How long each wait from now on may take.
    pub fn set_patience(&self, patience: Duration) {
        self.patience.set(patience);
    }

    /// How what this peer sends is cut into the other side's reads.
    pub fn chop(&self, chop: Chop) {
        self.link.borrow_mut().set_chop(self.side.other(), chop);
    }

    /// Sends all of `bytes`; waits while the other side does not read.
    pub async fn send(&self, bytes: &[u8]) -> Result<(), PeerError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let put = poll_fn(|cx| self.link.borrow_mut().poll_put(self.side, rest, cx));
            match patiently(&self.world, self.patience.get(), put).await {
                Some(Ok(count)) => rest = rest.get(count..).unwrap_or_default(),
                Some(Err(e)) => return Err(self.fault(PeerFault::Broken(e.kind()), Vec::new())),
                None => return Err(self.fault(PeerFault::TimedOut, Vec::new())),
            }
        }
        Ok(())
    }

    /// Sends `bytes` in pieces that end at `cuts` (ascending); before each next piece everyone
    /// else has done what the one before made possible.
    pub async fn send_split(&self, bytes: &[u8], cuts: &[usize]) -> Result<(), PeerError> {
        let mut start = 0;
        for cut in cuts.iter().copied().chain([bytes.len()]) {
            let cut = cut.clamp(start, bytes.len());
            self.send(bytes.get(start..cut).unwrap_or_default()).await?;
            self.world.sleep(SETTLE).await;
            start = cut;
        }
        Ok(())
    }

    /// What is there, at least one byte; nothing at the end of the stream.
    pub async fn read_some(&self) -> Result<Vec<u8>, PeerError> {
        let ahead = self.ahead.take();
        if !ahead.is_empty() {
            return Ok(ahead);
        }
        let mut got = Vec::with_capacity(READ_ROOM);
        let take = poll_fn(|cx| self.link.borrow_mut().poll_take(self.side, &mut got, cx));
        match patiently(&self.world, self.patience.get(), take).await {
            Some(Ok(_)) => Ok(got),
            Some(Err(e)) => Err(self.fault(PeerFault::Broken(e.kind()), got)),
            None => Err(self.fault(PeerFault::TimedOut, got)),
        }
    }

    /// Everything up to the end of the stream.
    pub async fn read_until_eof(&self) -> Result<Vec<u8>, PeerError> {
        self.read_exact_or_eof(usize::MAX).await
    }

    /// `count` bytes, or fewer if the stream ends before.
    pub async fn read_exact_or_eof(&self, count: usize) -> Result<Vec<u8>, PeerError> {
        let mut got = Vec::new();
        while got.len() < count && self.append(&mut got).await? {}
        self.ahead.replace(got.split_off(count.min(got.len())));
        Ok(got)
    }

    /// Everything up to and including `pattern`.
    pub async fn read_until(&self, pattern: &[u8]) -> Result<Vec<u8>, PeerError> {
        let mut got = Vec::new();
        let mut searched = 0;
        loop {
            let fresh = got.get(searched..).unwrap_or_default();
            let found = fresh.windows(pattern.len().max(1)).position(|w| w.starts_with(pattern));
            if let Some(at) = found {
                self.ahead.replace(got.split_off(searched + at + pattern.len()));
                return Ok(got);
            }
            // The pattern may begin in the last bytes and end in the next read.
            searched = (got.len() + 1).saturating_sub(pattern.len().max(1));
            if !self.append(&mut got).await? {
                return Err(self.fault(PeerFault::Ended, got));
            }
        }
    }

    /// Ends this side's direction.
    pub fn fin(&self) {
        self.link.borrow_mut().end_writing(self.side);
    }

    /// Resets the connection, now.
    pub fn rst(&self) {
        self.link.borrow_mut().reset(self.side);
    }

    /// How the other side went; takes no bytes.
    pub async fn closed(&self) -> Result<Gone, PeerError> {
        let gone = poll_fn(|cx| self.link.borrow_mut().poll_gone(self.side, cx));
        let gone = patiently(&self.world, self.patience.get(), gone).await;
        gone.ok_or_else(|| self.fault(PeerFault::TimedOut, Vec::new()))
    }

    /// Appends the next bytes; false at the end. On a fault the bytes so far go into it.
    async fn append(&self, got: &mut Vec<u8>) -> Result<bool, PeerError> {
        match self.read_some().await {
            Ok(more) => {
                got.extend_from_slice(&more);
                Ok(!more.is_empty())
            }
            Err(e) => Err(PeerError { got: std::mem::take(got), ..e }),
        }
    }

    fn fault(&self, what: PeerFault, got: Vec<u8>) -> PeerError {
        fault(&self.world, what, got)
    }
}

fn fault(world: &World, fault: PeerFault, got: Vec<u8>) -> PeerError {
    PeerError { fault, at_ms: world.clock.mono().0 / 1_000_000, got }
}

/// The output of `wait`, or nothing once `patience` has passed.
async fn patiently<F: Future>(world: &Rc<World>, patience: Duration, wait: F) -> Option<F::Output> {
    let mut wait = pin!(wait);
    let mut alarm = pin!(world.sleep(patience));
    poll_fn(|cx| match wait.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => alarm.as_mut().poll(cx).map(|()| None),
    })
    .await
}
