//! Plain buffers of one shard. A buffer is taken for an operation and given back when the
//! operation has completed; the list only spares the allocator.
//!
//! Bounds: [`BUFFER_BYTES`] each, [`KEPT_MAX`] kept; a buffer that has grown is let go.

use std::cell::RefCell;

/// Room for a head and the body of an ordinary call in one read. Real clients' heads are below
/// 2 KB and the small calls of tools below 4 KB.
pub const BUFFER_BYTES: usize = 8 * 1024;

/// Buffers kept for the next taker: 2 MiB a shard, three buffers each for some 80 busy connections.
/// What a burst of connections needed beyond that goes back to the allocator, or resident memory
/// would only ever follow the largest burst.
const KEPT_MAX: usize = 256;

/// A free list of equal buffers.
#[derive(Default)]
pub struct Buffers {
    free: RefCell<Vec<Vec<u8>>>,
}

impl Buffers {
    /// An empty buffer of [`BUFFER_BYTES`].
    pub fn take(&self) -> Vec<u8> {
        let kept = self.free.borrow_mut().pop();
        kept.unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES))
    }

    /// Gives a buffer back. One that never was ours, or has grown, is let go.
    pub fn give(&self, mut buffer: Vec<u8>) {
        let mut free = self.free.borrow_mut();
        if buffer.capacity() == BUFFER_BYTES && free.len() < KEPT_MAX {
            buffer.clear();
            free.push(buffer);
        }
    }
}
