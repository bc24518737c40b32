//! The scripted transport with a defect: the first accepted connection panics at a chosen read or
//! write. Everything else is passed through.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use tollgate::exchange::time::Now;
use tollgate::io::script::{ScriptIo, ScriptListener, ScriptStream};
use tollgate::io::{Chunk, Io, ReadDone, Recall, Stream, WriteDone};

/// Where the first accepted connection panics, counted from 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// When this read is done.
    pub client_read: Option<u32>,
    /// When this write begins.
    pub client_write: Option<u32>,
}

/// The transport.
#[derive(Clone)]
pub(crate) struct FaultyIo {
    inner: ScriptIo,
    /// Taken by the first connection.
    faults: Rc<Cell<Faults>>,
}

/// A connection.
pub(crate) struct FaultyStream {
    inner: ScriptStream,
    faults: Faults,
}

impl FaultyIo {
    pub(crate) fn new(inner: ScriptIo, faults: Faults) -> FaultyIo {
        FaultyIo { inner, faults: Rc::new(Cell::new(faults)) }
    }
}

impl Io for FaultyIo {
    type Stream = FaultyStream;
    type Listener = ScriptListener;

    async fn accept(&self, listener: &ScriptListener) -> io::Result<(FaultyStream, SocketAddr)> {
        let (inner, peer) = self.inner.accept(listener).await?;
        Ok((FaultyStream { inner, faults: self.faults.take() }, peer))
    }

    fn stop_listening(&self, listener: &ScriptListener) {
        self.inner.stop_listening(listener);
    }

    fn connect(&self, to: SocketAddr) -> io::Result<FaultyStream> {
        Ok(FaultyStream { inner: self.inner.connect(to)?, faults: Faults::default() })
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.inner.spawn(task);
    }

    async fn tick(&self) {
        self.inner.tick().await;
    }

    fn now(&self) -> Now {
        self.inner.now()
    }
}

fn count_down(left: &mut Option<u32>) {
    *left = left.map(|left| left - 1);
    assert!(*left != Some(0), "a defect, on purpose");
}

impl Stream for FaultyStream {
    fn poll_connected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.poll_connected(cx)
    }

    fn start_read(&mut self, buffer: Vec<u8>, recall: Recall) {
        self.inner.start_read(buffer, recall);
    }

    fn reading(&self) -> bool {
        self.inner.reading()
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<ReadDone> {
        let done = self.inner.poll_read(cx);
        if done.is_ready() {
            count_down(&mut self.faults.client_read);
        }
        done
    }

    fn recall_read(&mut self) {
        self.inner.recall_read();
    }

    fn start_watch(&mut self) {
        self.inner.start_watch();
    }

    fn poll_watch(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.poll_watch(cx)
    }

    fn start_write(&mut self, chunk: Chunk) {
        count_down(&mut self.faults.client_write);
        self.inner.start_write(chunk);
    }

    fn writing(&self) -> bool {
        self.inner.writing()
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<WriteDone> {
        self.inner.poll_write(cx)
    }

    fn part_with(&self, bytes: &[u8]) -> usize {
        self.inner.part_with(bytes)
    }

    fn shutdown(&self) {
        self.inner.shutdown();
    }

    fn shutdown_write(&self) {
        self.inner.shutdown_write();
    }

    fn abort(&self) {
        self.inner.abort();
    }
}
