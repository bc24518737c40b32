//! A node: shards, the control thread, and what they share. Used by `serve`, by `demo` and by the
//! tests that need a whole process.

pub mod thread;
pub mod upstreams;

mod stock;

use crate::config::Config;
use crate::control::ledger::LedgerError;
use crate::control::resolver;
use crate::exchange::keys::KeyTable;
use crate::io::affinity;
use crate::io::runtime::Driver;
use crate::observe::counters::Counters;
use crate::observe::ledger::LedgerGauges;
use crate::shard::mailbox::{Letter, Mailbox};
use crate::shard::told::Told;
use crate::upstream::addresses::Addresses;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
pub use stock::{Books, StartError};
use store::record::Settled;
use thread::Setup;

/// Records that wait for whoever prints them, a shard: a tenth of a second at 40,000 a second.
const RECORDS_WAITING: usize = 4096;

/// Connections the kernel keeps for a shard that is busy: what `somaxconn` allows by default.
const BACKLOG: i32 = 4096;

/// How often a port that is in use is looked at again: for a second, far longer than a kernel takes
/// to let a dead process's sockets go, and short enough for somebody who waits for the refusal.
const TAKEN_LOOKS: u32 = 20;

/// Between two of these looks.
const TAKEN_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// How a node is started.
pub struct Options {
    /// Which settled records are kept for whoever asks [`Node::records`].
    pub keep_records: Keep,
    /// Whether each shard stays on a core of its own, if there are as many shards as cores. On a
    /// machine with more of them others run too, and all of them would pin the first cores.
    pub pin: bool,
}

/// Which settled records are kept for whoever tells of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// None.
    None,
    /// Those in which something went wrong.
    Troubled,
    /// All.
    All,
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
    /// What is durable of it; none if it keeps no ledger.
    pub books: Option<Books>,
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
pub struct Records(Vec<Arc<Told>>);

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
    pub fn start(config: &Config, options: &Options) -> Result<Node, StartError> {
        let addresses = Arc::new(resolve_once(config)?);
        let listeners = bind(config.listen_data, config.shards)?;
        let first =
            listeners.first().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let stock = stock::open(config)?;
        let cores = if options.pin { affinity::allowed() } else { Vec::new() };
        let cores = if cores.len() == config.shards { cores } else { Vec::new() };
        let mut node = Node {
            data: first.local_addr()?,
            counters: Vec::new(),
            drivers: Vec::new(),
            cores,
            addresses: addresses.clone(),
            keys: stock.keys,
            books: stock.books,
            post: Post::default(),
            records: Records::default(),
            threads: Vec::new(),
        };
        let mut slabs = stock.slabs.into_iter();
        let ledger = node.gauges();
        let (started, starting) = mpsc::channel();
        for (number, listener) in listeners.into_iter().enumerate() {
            let records = match options.keep_records {
                Keep::None => None,
                Keep::Troubled => Some(Arc::new(Told::troubled(RECORDS_WAITING))),
                Keep::All => Some(Arc::new(Told::all(RECORDS_WAITING))),
            };
            let setup = Setup {
                number: u8::try_from(number).unwrap_or(u8::MAX),
                node: stock.node,
                start: stock.start,
                driver: config.driver,
                core: node.cores.get(number).copied(),
                snapshot: config.snapshot.clone(),
                identity: config.listen_tls.as_ref().map(|listen| listen.papers.tls.clone()),
                addresses: addresses.clone(),
                keys: node.keys.clone(),
                mailbox: Mailbox::default(),
                counters: Arc::default(),
                slab: slabs.next(),
                ledger: ledger.clone(),
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

    /// Tells every shard that the node will stop: it is not ready from now on.
    pub fn notice(&self) {
        self.post.tell(|| Letter::Notice);
    }

    /// Asks every shard to take no more connections and to end when its exchanges have.
    pub fn begin_drain(&self) {
        self.post.tell(|| Letter::Drain);
    }

    /// Asks every shard to end now: exchanges under way are told so, settled and cut.
    pub fn cut(&self) {
        self.post.tell(|| Letter::Cut);
    }

    /// Shards that have ended.
    pub fn ended(&self) -> usize {
        self.threads.iter().filter(|thread| thread.is_finished()).count()
    }

    /// Whether every shard has ended.
    pub fn is_over(&self) -> bool {
        self.ended() == self.threads.len()
    }

    /// Leaves the shards to the end of the process, which is near: exchanges are cut, and their
    /// slots are found by the next start.
    pub fn abandon(mut self) {
        self.threads.clear();
        self.books = None;
    }

    /// What its ledger tells; of a node without one, that all is well.
    pub fn gauges(&self) -> Arc<LedgerGauges> {
        self.books.as_ref().map_or_else(Arc::default, |books| books.ledger.gauges())
    }

    /// Lets exchanges under way end, then stops. An error is the ledger's: what could not be made
    /// durable stays in the slabs, and the next start finds it.
    pub fn drain(&mut self) -> Result<(), LedgerError> {
        self.begin_drain();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let Some(books) = self.books.take() else { return Ok(()) };
        // The state store is closed with its last holder, before the lock is given back.
        drop(books.keys);
        books.ledger.finish().map(drop)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Whoever wants to know asks before.
        let _ = self.drain();
    }
}

fn resolve_once(config: &Config) -> io::Result<Addresses> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let found = runtime.block_on(resolver::resolve(&config.snapshot, &Addresses::default()));
    // Dropping it would wait for a look-up that was given up.
    runtime.shutdown_background();
    Ok(found)
}

/// One listener a shard on the same port: the kernel spreads connections over them. It would also
/// give a share to another node that came to the same port, and so the first one is alone when it
/// begins to listen: where anybody listens already it is refused. What is left of connections, and
/// a listener that has been stopped, are in nobody's way.
fn bind(address: SocketAddr, shards: usize) -> io::Result<Vec<TcpListener>> {
    let mut listeners: Vec<TcpListener> = Vec::new();
    let mut address = address;
    for number in 0..shards {
        let listener = patiently(|| listen(address, number > 0))?;
        // Port 0 is chosen once and shared.
        address = listener.local_addr()?;
        listeners.push(listener);
    }
    Ok(listeners)
}

fn listen(address: SocketAddr, joins: bool) -> io::Result<TcpListener> {
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(address),
        socket2::Type::STREAM.cloexec(),
        Some(socket2::Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(joins)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    // From here on those that follow may join it.
    socket.set_reuse_port(true)?;
    Ok(TcpListener::from(socket))
}

/// Takes a port, which a process that was killed may still seem to have: what its ring held is let
/// go by the kernel some time after whoever waits for it has heard of its end.
#[expect(clippy::disallowed_methods, reason = "a start: no shard runs yet")]
fn patiently<T>(mut take: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut left = TAKEN_LOOKS;
    loop {
        match take() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && left > 0 => {
                left -= 1;
                std::thread::sleep(TAKEN_PAUSE);
            }
            taken => return taken,
        }
    }
}

#[cfg(test)]
mod tests;
