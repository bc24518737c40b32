//! Buffers as monoio sees them while they are lent to the kernel. The only place where a pointer
//! into a buffer leaves safe code; nothing here reads, writes or waits.
//!
//! An operation whose stream is dropped keeps its buffer until the kernel is done with it; dropped
//! then, the buffer comes home.

use super::Chunk;
use super::buffers::come_home;
use monoio::buf::{IoBuf, IoBufMut};

/// A lent buffer seen as its spare capacity.
pub(super) struct Tail(pub(super) Vec<u8>);

impl Tail {
    /// The buffer, after its operation.
    pub(super) fn into_buffer(mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        come_home(std::mem::take(&mut self.0));
    }
}

#[expect(unsafe_code, reason = "owned buffers are lent to the kernel here and nowhere else")]
// SAFETY: the pointer is that of the vector's allocation, which does not move while the vector
// is owned by the operation; `bytes_total` is exactly the room behind `len`, and `set_init` is
// called by monoio with the number of bytes the kernel wrote into that room.
unsafe impl IoBufMut for Tail {
    fn write_ptr(&mut self) -> *mut u8 {
        self.0.spare_capacity_mut().as_mut_ptr().cast()
    }

    fn bytes_total(&mut self) -> usize {
        (self.0.capacity() - self.0.len()).min(super::READ_BYTES_MAX)
    }

    unsafe fn set_init(&mut self, pos: usize) {
        let len = self.0.len() + pos;
        debug_assert!(len <= self.0.capacity());
        // SAFETY: the kernel has written `pos` bytes behind `len`, within the capacity.
        unsafe { self.0.set_len(len) }
    }
}

/// A lent chunk seen as what of it is still to be written.
pub(super) struct Rest(pub(super) Chunk);

impl Rest {
    /// The buffer, after its operation.
    pub(super) fn into_buffer(mut self) -> Vec<u8> {
        std::mem::take(&mut self.0.bytes)
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        come_home(std::mem::take(&mut self.0.bytes));
    }
}

#[expect(unsafe_code, reason = "owned buffers are lent to the kernel here and nowhere else")]
// SAFETY: the slice lies inside the vector's initialised bytes (indexing checks it), and the
// allocation does not move while the chunk is owned by the operation.
unsafe impl IoBuf for Rest {
    fn read_ptr(&self) -> *const u8 {
        self.0.bytes[self.0.start..self.0.end].as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.0.end - self.0.start
    }
}
