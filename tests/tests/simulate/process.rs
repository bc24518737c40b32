//! The gateway's process as the world sees it: its tasks, its sockets, and the instant it dies.
//!
//! A kill can fall on any operation of the transport and on any reading of the clock, before it or
//! after it, so also between two stores of one poll. At that instant what outlives a process is
//! taken (a copy of its slabs), its sockets are closed as the kernel does it, and nothing it does
//! later reaches anybody: its tasks are never polled again, and what the poll under way still does
//! goes nowhere. Destructors that run afterwards find a world that does not listen and memory that
//! nobody will look at.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};
use tollgate::exchange::time::Now;
use tollgate::io::script::{ScriptIo, ScriptListener, ScriptStream};
use tollgate::io::{Chunk, Io, ReadDone, Recall, Stream, WriteDone};

type Socket = Rc<RefCell<Option<ScriptStream>>>;
type Port = Rc<RefCell<Option<ScriptListener>>>;
type Task = Rc<RefCell<Option<Pin<Box<dyn Future<Output = ()>>>>>>;
type Will = Box<dyn FnOnce(&'static str)>;

/// One process.
pub(crate) struct Process {
    dead: Cell<bool>,
    /// Operations until it is killed.
    left: Cell<Option<u64>>,
    operations: Cell<u64>,
    sockets: RefCell<Vec<Weak<RefCell<Option<ScriptStream>>>>>,
    ports: RefCell<Vec<Port>>,
    tasks: RefCell<Vec<Task>>,
    /// What is done at the instant of death: it gets the operation that was met.
    will: RefCell<Option<Will>>,
}

// === impl Process ===

impl Process {
    /// A process that is killed after so many operations, if it is.
    pub(crate) fn new(left: Option<u64>) -> Rc<Process> {
        Rc::new(Process {
            dead: Cell::new(false),
            left: Cell::new(left),
            operations: Cell::new(0),
            sockets: RefCell::default(),
            ports: RefCell::default(),
            tasks: RefCell::default(),
            will: RefCell::default(),
        })
    }

    pub(crate) fn at_death(&self, will: impl FnOnce(&'static str) + 'static) {
        *self.will.borrow_mut() = Some(Box::new(will));
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.get()
    }

    pub(crate) fn operations(&self) -> u64 {
        self.operations.get()
    }

    /// An operation; true if the process does not live to see the next line.
    pub(crate) fn point(&self, what: &'static str) -> bool {
        if self.dead.get() {
            return true;
        }
        self.operations.set(self.operations.get() + 1);
        match self.left.get() {
            Some(0) => {
                self.die(what);
                true
            }
            Some(left) => {
                self.left.set(Some(left - 1));
                false
            }
            None => false,
        }
    }

    /// `SIGKILL`.
    pub(crate) fn die(&self, what: &'static str) {
        if self.dead.replace(true) {
            return;
        }
        if let Some(will) = self.will.borrow_mut().take() {
            will(what);
        }
        self.close_all();
    }

    /// The end of its runtime: tasks that are left are dropped, as the runtime drops them.
    pub(crate) fn end(&self) {
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        for task in tasks {
            let future = task.borrow_mut().take();
            drop(future);
        }
        self.dead.set(true);
        self.close_all();
    }

    /// Drops what a dead process has left in our memory.
    pub(crate) fn bury(&self) {
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        for task in tasks {
            let future = task.borrow_mut().take();
            drop(future);
        }
    }

    fn close_all(&self) {
        for socket in self.sockets.borrow_mut().drain(..) {
            let stream = socket.upgrade().and_then(|socket| socket.borrow_mut().take());
            drop(stream);
        }
        for port in self.ports.borrow_mut().drain(..) {
            let listener = port.borrow_mut().take();
            drop(listener);
        }
    }
}

/// The transport of a process.
#[derive(Clone)]
pub(crate) struct SimIo {
    inner: ScriptIo,
    process: Rc<Process>,
}

/// A connection of a process.
pub(crate) struct SimStream {
    socket: Socket,
    process: Rc<Process>,
}

/// A bound port of a process.
pub(crate) struct SimListener(Port);

// === impl SimIo ===

impl SimIo {
    pub(crate) fn new(inner: ScriptIo, process: Rc<Process>) -> SimIo {
        SimIo { inner, process }
    }

    pub(crate) fn listener(&self, listener: ScriptListener) -> SimListener {
        let port = Rc::new(RefCell::new(Some(listener)));
        self.process.ports.borrow_mut().push(port.clone());
        SimListener(port)
    }

    fn adopt(&self, stream: ScriptStream) -> SimStream {
        let socket = Rc::new(RefCell::new(Some(stream)));
        let mut sockets = self.process.sockets.borrow_mut();
        if sockets.len().is_power_of_two() {
            sockets.retain(|socket| socket.strong_count() > 0);
        }
        sockets.push(Rc::downgrade(&socket));
        SimStream { socket, process: self.process.clone() }
    }
}

/// Never ready, and nobody wakes it.
async fn nothing<T>() -> T {
    std::future::pending().await
}

impl Io for SimIo {
    type Stream = SimStream;
    type Listener = SimListener;

    async fn accept(&self, listener: &SimListener) -> io::Result<(SimStream, SocketAddr)> {
        if self.process.point("accept") {
            return nothing().await;
        }
        let accepted = std::future::poll_fn(|cx| {
            let port = listener.0.borrow();
            let Some(inner) = &*port else { return Poll::Pending };
            let mut accepting = std::pin::pin!(self.inner.accept(inner));
            accepting.as_mut().poll(cx)
        })
        .await;
        let (stream, peer) = accepted?;
        let stream = self.adopt(stream);
        if self.process.point("accepted") {
            return nothing().await;
        }
        Ok((stream, peer))
    }

    fn stop_listening(&self, listener: &SimListener) {
        if self.process.point("stop listening") {
            return;
        }
        if let Some(inner) = &*listener.0.borrow() {
            self.inner.stop_listening(inner);
        }
    }

    fn connect(&self, to: SocketAddr) -> io::Result<SimStream> {
        if self.process.point("connect") {
            return Err(io::ErrorKind::NetworkDown.into());
        }
        Ok(self.adopt(self.inner.connect(to)?))
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        if self.process.point("spawn") {
            return;
        }
        let slot: Task = Rc::new(RefCell::new(Some(Box::pin(task))));
        let mut tasks = self.process.tasks.borrow_mut();
        if tasks.len().is_power_of_two() {
            tasks.retain(|task| Rc::strong_count(task) > 1 || task.borrow().is_some());
        }
        tasks.push(slot.clone());
        self.inner.spawn(Alive { slot, process: self.process.clone() });
    }

    async fn tick(&self) {
        if self.process.point("tick") {
            return nothing().await;
        }
        self.inner.tick().await;
    }

    fn now(&self) -> Now {
        self.process.point("clock");
        self.inner.now()
    }
}

/// A task for as long as its process lives.
struct Alive {
    slot: Task,
    process: Rc<Process>,
}

impl Future for Alive {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.process.is_dead() {
            return Poll::Ready(());
        }
        // Out of its place: nobody drops it while it runs.
        let Some(mut task) = self.slot.borrow_mut().take() else { return Poll::Ready(()) };
        match task.as_mut().poll(cx) {
            // Its end has settled what it held, or the world has not heard of it.
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => {
                *self.slot.borrow_mut() = Some(task);
                Poll::Pending
            }
        }
    }
}

// === impl SimStream ===

impl SimStream {
    fn poll<T>(
        &self,
        what: &'static str,
        poll: impl FnOnce(&mut ScriptStream) -> Poll<T>,
    ) -> Poll<T> {
        if self.process.is_dead() {
            return Poll::Pending;
        }
        let polled = match &mut *self.socket.borrow_mut() {
            Some(stream) => poll(stream),
            None => return Poll::Pending,
        };
        // Only what has happened is a place to die at: polls that wait are without number.
        if polled.is_ready() && self.process.point(what) {
            return Poll::Pending;
        }
        polled
    }

    fn act(&self, what: &'static str, act: impl FnOnce(&mut ScriptStream)) {
        if self.process.point(what) {
            return;
        }
        if let Some(stream) = &mut *self.socket.borrow_mut() {
            act(stream);
        }
    }

    fn ask(&self, ask: impl FnOnce(&ScriptStream) -> bool) -> bool {
        self.socket.borrow().as_ref().is_some_and(ask)
    }
}

impl Stream for SimStream {
    fn poll_connected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll("connected", |stream| stream.poll_connected(cx))
    }

    fn start_read(&mut self, buffer: Vec<u8>, recall: Recall) {
        self.act("start read", |stream| stream.start_read(buffer, recall));
    }

    fn reading(&self) -> bool {
        self.ask(Stream::reading)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<ReadDone> {
        self.poll("read", |stream| stream.poll_read(cx))
    }

    fn recall_read(&mut self) {
        self.act("recall", Stream::recall_read);
    }

    fn start_watch(&mut self) {
        self.act("watch", Stream::start_watch);
    }

    fn poll_watch(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll("watched", |stream| stream.poll_watch(cx))
    }

    fn start_write(&mut self, chunk: Chunk) {
        self.act("start write", |stream| stream.start_write(chunk));
    }

    fn writing(&self) -> bool {
        self.ask(Stream::writing)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<WriteDone> {
        // The bytes are with the peer, and this process may not live to hear of it.
        self.poll("written", |stream| stream.poll_write(cx))
    }

    fn part_with(&self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        self.act("part with", |stream| taken = stream.part_with(bytes));
        taken
    }

    fn shutdown(&self) {
        self.act("shutdown", |stream| stream.shutdown());
    }

    fn shutdown_write(&self) {
        self.act("shutdown write", |stream| stream.shutdown_write());
    }

    fn abort(&self) {
        self.act("abort", |stream| stream.abort());
    }
}
