//! What passes between a stream and its loops: a buffer in, the result out. Each place holds at
//! most one buffer; nothing here waits.

use super::buffers::come_home;
use super::{Chunk, ReadDone, Recall, WriteDone};
use monoio::io::Canceller;
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::RawFd;

/// The places of one stream.
pub(super) struct Mail {
    /// Its descriptor, which the loops own.
    pub(super) fd: RawFd,
    /// Whether it is connected; taken once.
    pub(super) connected: RefCell<Option<io::Result<()>>>,
    pub(super) read: RefCell<ReadPlace>,
    /// Set while a cancelable read is in flight; taken by a recall.
    pub(super) canceller: RefCell<Canceller>,
    pub(super) write: RefCell<WritePlace>,
    /// A read was lent and not taken back.
    pub(super) reading: Cell<bool>,
    /// A write was lent and not taken back.
    pub(super) writing: Cell<bool>,
}

/// Between a stream and its reader loop.
pub(super) enum ReadPlace {
    Empty,
    Lent(Vec<u8>, Recall),
    Watch,
    Done(ReadDone),
    Ready(io::Result<()>),
}

/// Between a stream and its writer loop.
pub(super) enum WritePlace {
    Empty,
    Lent(Chunk),
    Done(WriteDone),
}

impl Mail {
    /// Empty places.
    pub(super) fn new(fd: RawFd, connecting: bool) -> Mail {
        Mail {
            fd,
            connected: RefCell::new(if connecting { None } else { Some(Ok(())) }),
            read: RefCell::new(ReadPlace::Empty),
            canceller: RefCell::new(Canceller::new()),
            write: RefCell::new(WritePlace::Empty),
            reading: Cell::new(false),
            writing: Cell::new(false),
        }
    }
}

/// A buffer that was lent and not begun with, or is back and was not asked for.
impl Drop for Mail {
    fn drop(&mut self) {
        if let ReadPlace::Lent(buffer, _) | ReadPlace::Done(ReadDone { buffer, .. }) =
            std::mem::replace(self.read.get_mut(), ReadPlace::Empty)
        {
            come_home(buffer);
        }
        if let WritePlace::Lent(chunk) | WritePlace::Done(WriteDone { chunk, .. }) =
            std::mem::replace(self.write.get_mut(), WritePlace::Empty)
        {
            come_home(chunk.bytes);
        }
    }
}
