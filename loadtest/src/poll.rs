//! Level-triggered epoll behind a safe interface. Holds no state about its sources: tokens belong
//! to the caller. Bound: at most `EVENTS_MAX` events are taken per wait; the rest stay ready.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};

/// Events per wait: more than the connections of any measurement here, so one wait suffices.
const EVENTS_MAX: usize = 1024;

/// What a source is watched for. Errors and hang-ups are always reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Only errors and hang-ups.
    Nothing,
    /// Bytes to read, or the peer's end.
    Read,
    /// Room to write.
    Write,
    /// Both.
    Both,
}

/// One report of a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// The token the source was added with.
    pub(crate) token: u64,
    /// Bytes or an end can be read.
    pub(crate) readable: bool,
    /// Bytes can be written.
    pub(crate) writable: bool,
    /// The connection is broken or closed both ways.
    pub(crate) broken: bool,
}

/// An epoll instance.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Poller {
    /// A fresh instance.
    pub(crate) fn new() -> io::Result<Poller> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Poller { epoll, events: Vec::with_capacity(EVENTS_MAX) })
    }

    /// Watches `source`; closing its descriptor ends the watch.
    pub(crate) fn add(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        epoll::add(&self.epoll, source, EventData::new_u64(token), flags(interest))?;
        Ok(())
    }

    /// Watches `source` for something else from now on.
    pub(crate) fn change(
        &self,
        source: impl AsFd,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        epoll::modify(&self.epoll, source, EventData::new_u64(token), flags(interest))?;
        Ok(())
    }

    /// Waits and appends what is ready to `ready`. A signal counts as an empty wait.
    pub(crate) fn wait(
        &mut self,
        ready: &mut Vec<Ready>,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let timeout = timeout.map(|limit| Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(limit.subsec_nanos()),
        });
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        ready.extend(self.events.iter().map(|event| {
            let (flags, token) = (event.flags, event.data);
            Ready {
                token: token.u64(),
                readable: flags.intersects(EventFlags::IN),
                writable: flags.intersects(EventFlags::OUT),
                broken: flags.intersects(EventFlags::HUP | EventFlags::ERR),
            }
        }));
        Ok(())
    }
}

fn flags(interest: Interest) -> EventFlags {
    match interest {
        Interest::Nothing => EventFlags::empty(),
        Interest::Read => EventFlags::IN,
        Interest::Write => EventFlags::OUT,
        Interest::Both => EventFlags::IN | EventFlags::OUT,
    }
}
