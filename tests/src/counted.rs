//! A shard on a thread of its own, which says what its thread has asked of the allocator; and the
//! messages that go to and fro. The counts are those of the program's allocator, if it counts.
//!
//! Its ledger has slots for every call of a test and nobody who frees any.

use crate::books::Books;
use bench::alloc::{Counts, counted};
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use store::slab::{Geometry, Slab};
use tollgate::config::Config;
use tollgate::control::keys;
use tollgate::exchange::time::UnixMs;
use tollgate::io::Io;
use tollgate::io::listen::RingListener;
use tollgate::io::ring::RingIo;
use tollgate::io::runtime::{Choice, ShardRuntime};
use tollgate::observe::counters::Counters;
use tollgate::server::thread::{Setup, serve, shard};
use tollgate::shard::mailbox::{Letter, Mailbox};

/// No answer of a test takes this long.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A shard that is asked for its counts.
pub struct Counted {
    /// Where it takes connections.
    pub at: SocketAddr,
    /// What it counts itself.
    pub counters: Arc<Counters>,
    ask: SyncSender<()>,
    answers: Receiver<Counts>,
    mailbox: Mailbox,
    thread: Option<JoinHandle<()>>,
    _books: Books,
}

impl Counted {
    /// `None` where the kernel refuses the driver.
    #[must_use]
    pub fn start(choice: Choice, config: &Config) -> Option<Counted> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let (slab, books) = Books::open(Geometry::default());
        let setup = setup(config, slab);
        let (counters, mailbox) = (setup.counters.clone(), setup.mailbox.clone());
        // Bounded ones allocate once, here.
        let (ask, asked) = sync_channel(1);
        let (answer, answers) = sync_channel(1);
        // On a thread of its own: closing a ring interrupts the thread that made it.
        std::thread::spawn(move || ShardRuntime::build(choice).is_ok())
            .join()
            .ok()
            .filter(|ok| *ok)?;
        let inbox = mailbox.clone();
        let thread = std::thread::spawn(move || {
            let mut runtime = ShardRuntime::build(choice).unwrap();
            runtime.block_on(async {
                let listener = RingListener::from_std(listener).unwrap();
                RingIo.spawn(report(asked, answer));
                serve(shard(RingIo, setup), listener, inbox).await;
            });
        });
        let thread = Some(thread);
        Some(Counted { at, counters, ask, answers, mailbox, thread, _books: books })
    }

    /// What its thread has asked of the allocator so far; it answers at its next tick.
    pub fn counts(&self) -> Counts {
        self.ask.send(()).unwrap();
        self.answers.recv_timeout(PATIENCE).unwrap()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let _ = self.mailbox.send(Letter::Drain);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn report(asked: Receiver<()>, answer: SyncSender<Counts>) {
    loop {
        RingIo.tick().await;
        // One a tick: whoever asks again at once waits for the next one.
        if asked.try_recv().is_ok() {
            let _ = answer.send(counted());
        }
    }
}

fn setup(config: &Config, slab: Slab) -> Setup {
    Setup {
        number: 0,
        node: [1, 2, 3],
        start: 0,
        driver: Choice::Auto,
        core: None,
        snapshot: config.snapshot.clone(),
        identity: config.listen_tls.as_ref().map(|listen| listen.papers.tls.clone()),
        addresses: Arc::default(),
        keys: Arc::new(keys::declared(&config.keys, UnixMs(0))),
        mailbox: Mailbox::default(),
        counters: Arc::default(),
        slab: Some(slab),
        ledger: Arc::default(),
        shards: 1,
        records: None,
    }
}

/// One message, whole, by its length or its chunks; `None` where the connection ends before.
pub fn message(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        if head.contains("transfer-encoding: chunked") {
            if bytes.ends_with(b"\r\n0\r\n\r\n") {
                return Some(bytes);
            }
            continue;
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        if bytes.len() == end + 4 + length?.trim().parse::<usize>().ok()? {
            return Some(bytes);
        }
    }
}
