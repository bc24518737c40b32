//! The scripted stream: the same promises as the ring's, kept by plain state. An operation
//! belongs to the stream, so a wait that is dropped takes nothing with it.

use super::link::{Shared, Side};
use crate::io::buffers::come_home;
use crate::io::{Chunk, ReadDone, Recall, Stream, WriteDone};
use std::io;
use std::task::{Context, Poll, Waker};

/// One end of a scripted connection, as the code under test sees it.
pub struct ScriptStream {
    link: Shared,
    side: Side,
    /// [`Stream::poll_connected`] has told its result; like the ring, it tells it once.
    told: bool,
    read: ReadPlace,
    write: Option<Writing>,
}

enum ReadPlace {
    Empty,
    Lent(Vec<u8>, Recall),
    Recalled(Vec<u8>),
    Watch,
}

struct Writing {
    chunk: Chunk,
    /// Position in the chunk of the first byte not taken yet.
    next: usize,
}

impl ScriptStream {
    pub(super) fn new(link: Shared, side: Side) -> ScriptStream {
        ScriptStream { link, side, told: false, read: ReadPlace::Empty, write: None }
    }

    /// Which end of which connection it is.
    pub(super) fn place(&self) -> (Shared, Side) {
        (self.link.clone(), self.side)
    }

    fn poll_chunk(&self, writing: &mut Writing, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut link = self.link.borrow_mut();
        while writing.next < writing.chunk.end {
            let rest = writing.chunk.bytes.get(writing.next..writing.chunk.end);
            let Some(rest) = rest else {
                return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
            };
            match link.poll_put(self.side, rest, cx) {
                Poll::Ready(Ok(count)) => writing.next += count,
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Stream for ScriptStream {
    fn poll_connected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.told {
            return Poll::Pending;
        }
        let result = self.link.borrow_mut().poll_connected(self.side, cx);
        self.told = result.is_ready();
        result
    }

    fn start_read(&mut self, buffer: Vec<u8>, recall: Recall) {
        debug_assert!(buffer.len() < buffer.capacity(), "a read needs room");
        debug_assert!(!self.reading(), "one read at a time");
        self.read = ReadPlace::Lent(buffer, recall);
    }

    fn reading(&self) -> bool {
        !matches!(self.read, ReadPlace::Empty)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<ReadDone> {
        let (mut buffer, recall) = match std::mem::replace(&mut self.read, ReadPlace::Empty) {
            ReadPlace::Lent(buffer, recall) => (buffer, Some(recall)),
            ReadPlace::Recalled(buffer) => (buffer, None),
            ReadPlace::Watch => {
                self.read = ReadPlace::Watch;
                return Poll::Pending;
            }
            ReadPlace::Empty => return Poll::Pending,
        };
        match (self.link.borrow_mut().poll_take(self.side, &mut buffer, cx), recall) {
            (Poll::Ready(result), _) => Poll::Ready(ReadDone { result, buffer }),
            (Poll::Pending, None) => {
                Poll::Ready(ReadDone { result: Err(io::ErrorKind::Interrupted.into()), buffer })
            }
            (Poll::Pending, Some(recall)) => {
                self.read = ReadPlace::Lent(buffer, recall);
                Poll::Pending
            }
        }
    }

    fn recall_read(&mut self) {
        self.read = match std::mem::replace(&mut self.read, ReadPlace::Empty) {
            ReadPlace::Lent(buffer, Recall::Able) => ReadPlace::Recalled(buffer),
            other => other,
        };
    }

    fn start_watch(&mut self) {
        debug_assert!(!self.reading(), "one read at a time");
        self.read = ReadPlace::Watch;
    }

    fn poll_watch(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !matches!(self.read, ReadPlace::Watch) {
            return Poll::Pending;
        }
        if self.link.borrow_mut().poll_readable(self.side, cx).is_pending() {
            return Poll::Pending;
        }
        self.read = ReadPlace::Empty;
        Poll::Ready(Ok(()))
    }

    fn start_write(&mut self, chunk: Chunk) {
        debug_assert!(self.write.is_none(), "one write at a time");
        let next = chunk.start;
        self.write = Some(Writing { chunk, next });
    }

    fn writing(&self) -> bool {
        self.write.is_some()
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<WriteDone> {
        let Some(mut writing) = self.write.take() else { return Poll::Pending };
        match self.poll_chunk(&mut writing, cx) {
            Poll::Ready(result) => Poll::Ready(WriteDone { result, chunk: writing.chunk }),
            Poll::Pending => {
                self.write = Some(writing);
                Poll::Pending
            }
        }
    }

    fn part_with(&self, bytes: &[u8]) -> usize {
        let mut nobody = Context::from_waker(Waker::noop());
        match self.link.borrow_mut().poll_put(self.side, bytes, &mut nobody) {
            Poll::Ready(Ok(count)) => count,
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        }
    }

    fn shutdown(&self) {
        self.link.borrow_mut().end_both(self.side);
    }

    fn shutdown_write(&self) {
        self.link.borrow_mut().end_writing(self.side);
    }

    fn abort(&self) {
        self.link.borrow_mut().set_abort(self.side);
    }
}

impl Drop for ScriptStream {
    fn drop(&mut self) {
        self.link.borrow_mut().close(self.side);
        if let ReadPlace::Lent(buffer, _) | ReadPlace::Recalled(buffer) =
            std::mem::replace(&mut self.read, ReadPlace::Empty)
        {
            come_home(buffer);
        }
        if let Some(writing) = self.write.take() {
            come_home(writing.chunk.bytes);
        }
    }
}
