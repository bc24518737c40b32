//! The three transports a check runs on, behind one trait.

use crate::io::buffers::Buffers;
use crate::io::listen::RingListener;
use crate::io::ring::RingIo;
use crate::io::runtime::{Choice, ShardRuntime};
use crate::io::script::{Order, ScriptIo, ScriptListener, ScriptWorld};
use crate::io::{Io, TICK};
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

/// How long a check may take before it counts as hung, in ticks: a minute.
const WATCHDOG_TICKS: u32 = 600;

/// Orders by chance that a check sees on the scripted transport.
const SEEDS: u64 = 4;

/// A transport and the places a check needs on it.
pub(super) trait Stage {
    type Io: Io;

    /// Whether the end of a connection is told from the end of what was sent on it.
    const TELLS_CUTS: bool = false;

    /// Connections of the check that makes the most of them.
    const ROUNDS: u32 = 10_000;

    fn io(&self) -> Self::Io;

    /// The buffers that those of dropped streams come back to.
    fn buffers(&self) -> Rc<Buffers> {
        Buffers::of_thread()
    }

    /// What two ends do before the first byte of a check.
    async fn greet(
        &self,
        _near: &mut <Self::Io as Io>::Stream,
        _far: &mut <Self::Io as Io>::Stream,
    ) {
    }

    /// A listener on an address of its own.
    fn listen(&self) -> (<Self::Io as Io>::Listener, SocketAddr);

    /// An address where a connect hangs.
    fn black_hole(&self) -> BlackHole;
}

/// An address where a connect hangs as long as this lives.
pub(super) struct BlackHole {
    pub(super) at: SocketAddr,
    _held: Vec<socket2::Socket>,
}

/// Runs `check` on the scripted transport, in the usual order of tasks and in some by chance; a
/// hang is an error with its place in virtual time.
pub(super) fn on_script<F: Future<Output = ()>>(check: impl Fn(ScriptStage) -> F) {
    let hole = SocketAddr::from(([192, 0, 2, 1], 443));
    let chances = (1..=SEEDS).map(|seed| (seed, Order::Seeded));
    for (seed, order) in [(0, Order::Fifo)].into_iter().chain(chances) {
        let world = ScriptWorld::new(seed);
        world.set_order(order);
        world.set_black_hole(hole);
        let stage = ScriptStage(world.io(), hole);
        let outcome = world.run_within(TICK * WATCHDOG_TICKS, check(stage));
        assert_eq!(outcome, Ok(()), "seed {seed}");
    }
}

/// Runs `check` on the real one. io_uring may be refused by the kernel: said, and passed over.
pub(super) fn on_ring<F: Future<Output = ()>>(choice: Choice, check: impl FnOnce(RingStage) -> F) {
    let mut runtime = match ShardRuntime::build(choice) {
        Ok(runtime) => runtime,
        Err(e) if choice == Choice::Uring => {
            return eprintln!("the kernel refuses io_uring ({e}): checked on epoll only");
        }
        Err(e) => panic!("no runtime: {e}"),
    };
    runtime.block_on(async {
        let mut check = pin!(check(RingStage));
        let mut watchdog = pin!(async {
            for _ in 0..WATCHDOG_TICKS {
                RingIo.tick().await;
            }
        });
        poll_fn(|cx| {
            if check.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            assert!(watchdog.as_mut().poll(cx).is_pending(), "hung");
            Poll::Pending
        })
        .await;
    });
}

pub(super) struct ScriptStage(ScriptIo, SocketAddr);

impl Stage for ScriptStage {
    type Io = ScriptIo;

    fn io(&self) -> ScriptIo {
        self.0.clone()
    }

    fn listen(&self) -> (ScriptListener, SocketAddr) {
        let listener = self.0.listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let at = listener.local_addr();
        (listener, at)
    }

    fn black_hole(&self) -> BlackHole {
        BlackHole { at: self.1, _held: Vec::new() }
    }
}

pub(super) struct RingStage;

impl Stage for RingStage {
    type Io = RingIo;

    fn io(&self) -> RingIo {
        RingIo
    }

    fn listen(&self) -> (RingListener, SocketAddr) {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let listener = RingListener::from_std(listener).unwrap();
        let at = listener.local_addr();
        (listener, at)
    }

    /// A listener whose backlog is full: the kernel drops the handshake without a word.
    fn black_hole(&self) -> BlackHole {
        let tcp = || {
            let socket = socket2::Socket::new(
                socket2::Domain::IPV4,
                socket2::Type::STREAM.nonblocking(),
                Some(socket2::Protocol::TCP),
            );
            socket.unwrap()
        };
        let listener = tcp();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let mut held = vec![listener];
        // A backlog of 0 takes one; the rest make sure.
        for _ in 0..4 {
            let dialer = tcp();
            let _ = dialer.connect(&address);
            held.push(dialer);
        }
        BlackHole { at: address.as_socket().unwrap(), _held: held }
    }
}
