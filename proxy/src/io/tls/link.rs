//! A connection that is plain or secured: one branch for the plain one.

use super::stream::Tls;
use crate::io::{Chunk, ReadDone, Recall, Stream, WriteDone};
use std::io;
use std::task::{Context, Poll};

/// A connection.
pub enum Link<S> {
    /// As the transport made it.
    Plain(S),
    /// With TLS over it; in a box, so that plain ones are no larger for it.
    Tls(Box<Tls<S>>),
}

/// The same call on whichever it is.
macro_rules! on {
    ($link:expr, $stream:ident => $call:expr) => {
        match $link {
            Link::Plain($stream) => $call,
            Link::Tls($stream) => $call,
        }
    };
}

impl<S: Stream> Stream for Link<S> {
    fn poll_connected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => stream.poll_connected(cx))
    }

    fn poll_secured(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => stream.poll_secured(cx))
    }

    fn start_read(&mut self, buffer: Vec<u8>, recall: Recall) {
        on!(self, stream => stream.start_read(buffer, recall))
    }

    fn reading(&self) -> bool {
        on!(self, stream => stream.reading())
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<ReadDone> {
        on!(self, stream => stream.poll_read(cx))
    }

    fn recall_read(&mut self) {
        on!(self, stream => stream.recall_read())
    }

    fn start_watch(&mut self) {
        on!(self, stream => stream.start_watch())
    }

    fn poll_watch(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => stream.poll_watch(cx))
    }

    fn start_write(&mut self, chunk: Chunk) {
        on!(self, stream => stream.start_write(chunk))
    }

    fn writing(&self) -> bool {
        on!(self, stream => stream.writing())
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<WriteDone> {
        on!(self, stream => stream.poll_write(cx))
    }

    fn part_with(&self, bytes: &[u8]) -> usize {
        on!(self, stream => stream.part_with(bytes))
    }

    fn shutdown(&self) {
        on!(self, stream => stream.shutdown())
    }

    fn shutdown_write(&self) {
        on!(self, stream => stream.shutdown_write())
    }

    fn abort(&self) {
        on!(self, stream => stream.abort())
    }
}
