//! The scripted twin of the transport: a network, an executor and a clock inside one thread,
//! for tests and simulation. The code that ships runs on it unchanged.
//!
//! A test builds a [`ScriptWorld`], gives [`ScriptWorld::io`] to the code under test, plays
//! clients ([`ScriptWorld::dial`]) and upstreams ([`ScriptWorld::serve`]) as [`Peer`]s, and
//! drives all of it with [`ScriptWorld::run_until`]. Time passes only when nothing can run.
//! The same seed gives the same run.
//!
//! It deliberately has no latency of bytes: what is sent has arrived; `Chop` and sleeps
//! between sends make the boundaries. How a connection behaves is written down in `link`.
//!
//! Bounds: a run ends with [`Stuck`] after [`RUN_TIME_MAX`] of virtual time or
//! [`RUN_STEPS_MAX`] polls, so that a hang is a value a test can assert.

mod chop;
mod clock;
mod executor;
mod link;
mod net;
mod peer;
mod seed;
mod stream;

pub use chop::Chop;
pub use clock::{Sleep, WALL_START};
pub use executor::Order;
pub use link::{CAPACITY, Gone, LinkOptions};
pub use net::{BACKLOG_MAX, ScriptListener};
pub use peer::{PATIENCE, Peer, PeerError, PeerFault, PeerListener};
pub use stream::ScriptStream;

use super::{Io, TICK};
use crate::exchange::time::{MonoNs, Now, UnixMs};
use clock::Clock;
use executor::{Executor, Next};
use link::Side;
use net::Net;
use seed::Seed;
use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Virtual time one run may take: twice the longest deadline (900 s) and then some. A shard
/// that ticks every 100 ms makes 36,000 rounds of it, well below a second of real time.
pub const RUN_TIME_MAX: Duration = Duration::from_secs(3600);

/// Polls one run may take; what spins without time passing ends here, after some seconds.
pub const RUN_STEPS_MAX: u64 = 20_000_000;

/// A run that did not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Virtual milliseconds since the world began.
    pub at_ms: u64,
    /// Polls of this run.
    pub steps: u64,
    /// Tasks that have not ended, the awaited future apart.
    pub tasks: usize,
    /// What ran out.
    pub cause: StuckCause,
}

/// Why a run was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StuckCause {
    /// Nothing is ready and nobody sleeps: it would never end.
    NobodySleeps,
    /// The virtual time allowed has passed.
    Time,
    /// The polls allowed are used up: something spins.
    Steps,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stuck { at_ms, steps, tasks, cause } = self;
        let cause = match cause {
            StuckCause::NobodySleeps => "nothing is ready and nobody sleeps",
            StuckCause::Time => "the time allowed for the run has passed",
            StuckCause::Steps => "the polls allowed for the run are used up",
        };
        write!(f, "stuck at {at_ms} virtual ms: {cause} ({steps} polls, {tasks} tasks alive)")
    }
}

impl std::error::Error for Stuck {}

/// What a world consists of.
struct World {
    executor: Executor,
    clock: Clock,
    net: RefCell<Net>,
    seed: Seed,
}

impl World {
    fn sleep(self: &Rc<World>, span: Duration) -> Sleep {
        Sleep::new(self.clone(), span)
    }
}

/// A world of its own. Dropping it drops its tasks.
pub struct ScriptWorld {
    io: ScriptIo,
}

/// The transport of a world, and what else its tasks may ask of it.
#[derive(Clone)]
pub struct ScriptIo {
    world: Rc<World>,
}

// === impl ScriptWorld ===

impl ScriptWorld {
    /// A world without listeners at virtual time 0.
    pub fn new(seed: u64) -> ScriptWorld {
        let world = World {
            executor: Executor::new(),
            clock: Clock::new(),
            net: RefCell::default(),
            seed: Seed::new(seed),
        };
        ScriptWorld { io: ScriptIo { world: Rc::new(world) } }
    }

    /// The transport for the code under test; also the handle for tasks that play a part.
    pub fn io(&self) -> ScriptIo {
        self.io.clone()
    }

    /// Runs `task` beside whatever [`ScriptWorld::run_until`] awaits.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.io.spawn(task);
    }

    /// Drives every task until `future` is done.
    pub fn run_until<F: Future>(&self, future: F) -> Result<F::Output, Stuck> {
        self.run_within(RUN_TIME_MAX, future)
    }

    /// The same within `span` of virtual time.
    pub fn run_within<F: Future>(&self, span: Duration, future: F) -> Result<F::Output, Stuck> {
        let World { executor, clock, seed, .. } = &*self.io.world;
        let span_ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let end = MonoNs(clock.mono().0.saturating_add(span_ns));
        let mut future = pin!(future);
        let root = executor.root();
        let waker = root.waker();
        let mut steps = 0;
        let cause = loop {
            match executor.step(&root, seed) {
                Next::Root => {
                    let mut cx = Context::from_waker(&waker);
                    if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                        return Ok(output);
                    }
                }
                Next::Polled => {}
                Next::Idle => match clock.next_alarm() {
                    None => break StuckCause::NobodySleeps,
                    Some(at) if at > end => break StuckCause::Time,
                    Some(at) => clock.advance(at),
                },
            }
            steps += 1;
            if steps == RUN_STEPS_MAX {
                break StuckCause::Steps;
            }
        };
        let at_ms = clock.mono().0 / 1_000_000;
        Err(Stuck { at_ms, steps, tasks: executor.live(), cause })
    }

    /// In which order ready tasks run.
    pub fn set_order(&self, order: Order) {
        self.io.world.executor.set_order(order);
    }

    /// Tasks that have not ended: after a test's last connection none of the code under test
    /// should be left but its accept loop.
    pub fn tasks(&self) -> usize {
        self.io.world.executor.live()
    }

    /// Both clocks, read now.
    pub fn now(&self) -> Now {
        self.io.now()
    }

    /// Puts the wall clock to `wall`, backwards too; the monotonic clock does not notice.
    pub fn set_wall(&self, wall: UnixMs) {
        self.io.world.clock.set_wall(wall);
    }

    /// Ready once `span` of virtual time has passed.
    pub fn sleep(&self, span: Duration) -> Sleep {
        self.io.sleep(span)
    }

    /// Binds `at` for the code under test; port 0 is given a free one.
    pub fn listen(&self, at: SocketAddr) -> io::Result<ScriptListener> {
        self.io.world.listen(at)
    }

    /// A client connected to `to`.
    pub fn dial(&self, to: SocketAddr) -> io::Result<Peer> {
        self.io.dial(to)
    }

    /// An upstream bound to `at`.
    pub fn serve(&self, at: SocketAddr) -> io::Result<PeerListener> {
        self.io.serve(at)
    }

    /// How connections begun from now on behave.
    pub fn set_link(&self, options: LinkOptions) {
        self.io.world.net.borrow_mut().options = options;
    }

    /// Connects to `at` hang from now on.
    pub fn set_black_hole(&self, at: SocketAddr) {
        self.io.world.net.borrow_mut().set_black_hole(at);
    }

    /// Connects to `at` take `delay` from now on, refusals too.
    pub fn set_connect_delay(&self, at: SocketAddr, delay: Duration) {
        self.io.world.net.borrow_mut().set_delay(at, delay);
    }

    /// The next `count` accepts at `at` fail with `errno` (`libc::EMFILE`, say), at once and
    /// before any connection waiting there, as the kernel's do.
    pub fn fail_accepts(&self, at: SocketAddr, count: usize, errno: i32) -> io::Result<()> {
        self.io.world.net.borrow_mut().fail_accepts(at, count, errno)
    }
}

impl Drop for ScriptWorld {
    fn drop(&mut self) {
        // Tasks hold the world they live in; without this neither would ever go.
        self.io.world.executor.clear();
    }
}

// === impl ScriptIo ===

impl ScriptIo {
    /// Ready once `span` of virtual time has passed.
    pub fn sleep(&self, span: Duration) -> Sleep {
        self.world.sleep(span)
    }

    /// Binds `at` for the code under test; port 0 is given a free one.
    pub fn listen(&self, at: SocketAddr) -> io::Result<ScriptListener> {
        self.world.listen(at)
    }

    /// A client connected to `to`, at once whatever delay is set for it.
    pub fn dial(&self, to: SocketAddr) -> io::Result<Peer> {
        self.world.dial(to)
    }

    /// An upstream bound to `at`; port 0 is given a free one.
    pub fn serve(&self, at: SocketAddr) -> io::Result<PeerListener> {
        Ok(PeerListener::new(self.world.clone(), self.world.listen(at)?))
    }
}

impl Io for ScriptIo {
    type Stream = ScriptStream;
    type Listener = ScriptListener;

    async fn accept(&self, listener: &ScriptListener) -> io::Result<(ScriptStream, SocketAddr)> {
        poll_fn(|cx| listener.poll_accept(cx)).await
    }

    fn stop_listening(&self, listener: &ScriptListener) {
        listener.stop();
    }

    fn connect(&self, to: SocketAddr) -> io::Result<ScriptStream> {
        Ok(ScriptStream::new(self.world.begin_connect(to), Side::Dialer))
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.world.executor.spawn(Box::pin(task));
    }

    async fn tick(&self) {
        self.sleep(TICK).await;
    }

    fn now(&self) -> Now {
        self.world.clock.now()
    }
}

#[cfg(test)]
mod tests;
