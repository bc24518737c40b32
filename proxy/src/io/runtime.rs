//! Builds a shard's runtime: the ring with its flags said explicitly, or epoll.
//!
//! Task-work delivery decides whether io_uring is worth having (ADR 0001): with
//! `COOP_TASKRUN` completions wait for the next system call instead of interrupting the core.
//! The order tried is coop + single issuer, the bare ring, epoll; the caller says on its
//! start-up line and in a metric which one it is.

use monoio::{IoUringDriver, LegacyDriver, Runtime, RuntimeBuilder, time::TimeDriver};
use std::fmt;
use std::future::Future;
use std::io;

/// Submission entries of a ring: every operation started between two turns needs one, and a
/// full ring only costs one more system call.
const RING_ENTRIES: u32 = 4096;

/// Which driver was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// io_uring if the kernel lets us, else epoll.
    #[default]
    Auto,
    /// io_uring or an error.
    Uring,
    /// epoll.
    Epoll,
}

/// Which driver is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// io_uring with cooperative task work.
    UringCoop,
    /// io_uring with the kernel's default task work.
    UringBare,
    /// epoll.
    Epoll,
}

impl Driver {
    /// Its name on the start-up line and in the metric's label.
    pub fn name(self) -> &'static str {
        match self {
            Driver::UringCoop => "io_uring+coop",
            Driver::UringBare => "io_uring",
            Driver::Epoll => "epoll",
        }
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A runtime for the calling thread.
pub enum ShardRuntime {
    /// On io_uring.
    Uring(Runtime<TimeDriver<IoUringDriver>>, Driver),
    /// On epoll.
    Epoll(Runtime<TimeDriver<LegacyDriver>>),
}

impl ShardRuntime {
    /// Builds what `choice` allows. The error of the last thing tried is the one reported.
    pub fn build(choice: Choice) -> io::Result<ShardRuntime> {
        match choice {
            Choice::Epoll => epoll(),
            Choice::Uring => uring(),
            Choice::Auto => uring().or_else(|_| epoll()),
        }
    }

    /// Which driver it is.
    pub fn driver(&self) -> Driver {
        match self {
            ShardRuntime::Uring(_, driver) => *driver,
            ShardRuntime::Epoll(_) => Driver::Epoll,
        }
    }

    /// Runs the thread until `future` is done.
    pub fn block_on<F: Future>(&mut self, future: F) -> F::Output {
        match self {
            ShardRuntime::Uring(runtime, _) => runtime.block_on(future),
            ShardRuntime::Epoll(runtime) => runtime.block_on(future),
        }
    }
}

fn uring() -> io::Result<ShardRuntime> {
    let mut coop = io_uring::IoUring::builder();
    coop.setup_coop_taskrun().setup_single_issuer();
    if let Ok(runtime) = ring_with(coop) {
        return Ok(ShardRuntime::Uring(runtime, Driver::UringCoop));
    }
    let bare = io_uring::IoUring::builder();
    ring_with(bare).map(|runtime| ShardRuntime::Uring(runtime, Driver::UringBare))
}

fn ring_with(builder: io_uring::Builder) -> io::Result<Runtime<TimeDriver<IoUringDriver>>> {
    RuntimeBuilder::<IoUringDriver>::new()
        .uring_builder(builder)
        .with_entries(RING_ENTRIES)
        .enable_timer()
        .build()
}

fn epoll() -> io::Result<ShardRuntime> {
    RuntimeBuilder::<LegacyDriver>::new().enable_timer().build().map(ShardRuntime::Epoll)
}
