//! A node: shards, the control thread, and what they share. Used by `serve`, by `demo` and by the
//! tests that need a whole process.

pub mod thread;

use crate::config::Config;
use crate::control::{keys, resolver};
use crate::exchange::keys::KeyTable;
use crate::io::affinity;
use crate::io::runtime::Driver;
use crate::observe::counters::Counters;
use crate::shard::clock;
use crate::shard::mailbox::{Letter, Mailbox};
use crate::upstream::addresses::Addresses;
use crossbeam_queue::ArrayQueue;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use store::record::Settled;
use thread::Setup;

/// Records that wait for whoever prints them, a shard: a tenth of a second at 40,000 a second.
const RECORDS_WAITING: usize = 4096;

/// Connections the kernel keeps for a shard that is busy: what `somaxconn` allows by default.
const BACKLOG: i32 = 4096;

/// How a node is started.
pub struct Options {
    /// Whether settled records are kept for [`Node::take_records`].
    pub keep_records: bool,
    /// Whether each shard stays on a core of its own, if there are as many shards as cores. On a
    /// machine with more of them others run too, and all of them would pin the first cores.
    pub pin: bool,
}

/// A running node.
pub struct Node {
    /// Where clients connect.
    pub data: SocketAddr,
    /// What each shard counts.
    pub counters: Vec<Arc<Counters>>,
    /// What each shard runs on.
    pub drivers: Vec<Driver>,
    /// The core of each shard; empty if the kernel moves them.
    pub cores: Vec<usize>,
    /// Where the providers were when it started.
    pub addresses: Arc<Addresses>,
    /// The keys it knows.
    pub keys: Arc<KeyTable>,
    /// The way to every shard.
    pub post: Post,
    /// What the shards have settled.
    pub records: Records,
    threads: Vec<JoinHandle<()>>,
}

/// The way to every shard, for whoever has something to tell them.
#[derive(Clone, Default)]
pub struct Post(Vec<Mailbox>);

impl Post {
    /// Tells every shard something.
    pub fn tell(&self, letter: impl Fn() -> Letter) {
        for mailbox in &self.0 {
            // A full mailbox belongs to a shard that is gone.
            let _ = mailbox.send(letter());
        }
    }
}

/// The settled records of every shard, for whoever prints them.
#[derive(Clone, Default)]
pub struct Records(Vec<Arc<ArrayQueue<Settled>>>);

impl Records {
    /// Records settled since the last call.
    pub fn take(&self, mut each: impl FnMut(Settled)) {
        for queue in &self.0 {
            while let Some(record) = queue.pop() {
                each(record);
            }
        }
    }
}

impl Node {
    /// Binds, resolves and starts every shard; returns when all of them take connections.
    pub fn start(config: &Config, options: &Options) -> io::Result<Node> {
        let addresses = Arc::new(resolve_once(config)?);
        let listeners = bind(config.listen_data, config.shards)?;
        let first = listeners.first().ok_or(io::ErrorKind::InvalidInput)?;
        let cores = if options.pin { affinity::allowed() } else { Vec::new() };
        let cores = if cores.len() == config.shards { cores } else { Vec::new() };
        let mut node = Node {
            data: first.local_addr()?,
            counters: Vec::new(),
            drivers: Vec::new(),
            cores,
            addresses: addresses.clone(),
            keys: Arc::new(keys::declared(&config.keys, clock::now().wall)),
            post: Post::default(),
            records: Records::default(),
            threads: Vec::new(),
        };
        let identity = mint_node()?;
        let (started, starting) = mpsc::channel();
        for (number, listener) in listeners.into_iter().enumerate() {
            let records = options.keep_records.then(|| Arc::new(ArrayQueue::new(RECORDS_WAITING)));
            let setup = Setup {
                number: u8::try_from(number).unwrap_or(u8::MAX),
                node: identity,
                start: 0,
                driver: config.driver,
                core: node.cores.get(number).copied(),
                snapshot: config.snapshot.clone(),
                addresses: addresses.clone(),
                keys: node.keys.clone(),
                mailbox: Mailbox::default(),
                counters: Arc::default(),
                slab: None,
                ledger: Arc::default(),
                shards: config.shards,
                records,
            };
            node.spawn(setup, listener, started.clone())?;
        }
        drop(started);
        for _ in 0..node.threads.len() {
            let driver = starting.recv().map_err(|_| io::Error::other("a shard died"))?;
            node.drivers.push(driver?);
        }
        Ok(node)
    }

    fn spawn(
        &mut self,
        setup: Setup,
        listener: TcpListener,
        started: mpsc::Sender<io::Result<Driver>>,
    ) -> io::Result<()> {
        self.counters.push(setup.counters.clone());
        self.post.0.push(setup.mailbox.clone());
        self.records.0.extend(setup.records.clone());
        let thread = std::thread::Builder::new().name(format!("shard-{}", setup.number));
        self.threads.push(thread.spawn(move || {
            thread::run(setup, listener, |driver| drop(started.send(driver)));
        })?);
        Ok(())
    }

    /// Asks every shard to take no more connections and to end when its exchanges have.
    pub fn begin_drain(&self) {
        self.post.tell(|| Letter::Drain);
    }

    /// Shards that have ended.
    pub fn ended(&self) -> usize {
        self.threads.iter().filter(|thread| thread.is_finished()).count()
    }

    /// Whether every shard has ended.
    pub fn is_over(&self) -> bool {
        self.ended() == self.threads.len()
    }

    /// Leaves the shards to the end of the process, which is near: exchanges are cut.
    pub fn abandon(mut self) {
        self.threads.clear();
    }

    /// Lets exchanges under way end, then stops.
    pub fn drain(&mut self) {
        self.begin_drain();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.drain();
    }
}

fn resolve_once(config: &Config) -> io::Result<Addresses> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let found = runtime.block_on(resolver::resolve(&config.snapshot, &Addresses::default()));
    // Dropping it would wait for a look-up that was given up.
    runtime.shutdown_background();
    Ok(found)
}

/// One listener a shard on the same port: the kernel spreads connections over them.
fn bind(address: SocketAddr, shards: usize) -> io::Result<Vec<TcpListener>> {
    let mut listeners: Vec<TcpListener> = Vec::new();
    let mut address = address;
    for _ in 0..shards {
        let socket = socket2::Socket::new(
            socket2::Domain::for_address(address),
            socket2::Type::STREAM.cloexec(),
            Some(socket2::Protocol::TCP),
        )?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let listener = TcpListener::from(socket);
        // Port 0 is chosen once and shared.
        address = listener.local_addr()?;
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Three random bytes that tell this node's request ids from others'.
fn mint_node() -> io::Result<[u8; 3]> {
    let mut node = [0; 3];
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, &mut node).map_err(|_| io::ErrorKind::Other)?;
    Ok(node)
}
