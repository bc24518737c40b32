//! The buffers of one shard: plain vectors in sizes that double, taken for an operation and given
//! back when it has completed. A body that grows moves from one size to a larger one, so that in
//! steady state neither small nor large ones are asked of the allocator: a fresh 400 KiB would
//! cost a hundred page faults, and large pieces of all lengths would tear up the heap.
//!
//! Bounds: the smallest has [`BUFFER_BYTES`], the largest [`LARGEST_BYTES`]; of each size
//! [`KEPT_BYTES`] are kept. What is larger, or of no such size, goes back to the allocator.

use std::cell::RefCell;

/// Room for a head and the body of an ordinary call in one read. Real clients' heads are below
/// 2 KB and the small calls of tools below 4 KB.
pub const BUFFER_BYTES: usize = 8 * 1024;

/// Sizes: each twice the one before.
const SIZES: usize = 9;

/// The largest size that is kept: text in a context window stays below it. A longer body brings
/// pictures and is rare; its pages come from the kernel and go back there.
pub const LARGEST_BYTES: usize = BUFFER_BYTES << (SIZES - 1);

/// Bytes of each size that are kept for the next taker: of the smallest 256, three each for some
/// 80 busy connections, of the largest one. All sizes together: 18 MiB a shard. What a burst of
/// connections needed beyond that goes back to the allocator.
const KEPT_BYTES: usize = 2 * 1024 * 1024;

/// Free lists, one a size.
#[derive(Default)]
pub struct Buffers {
    free: RefCell<[Vec<Vec<u8>>; SIZES]>,
}

impl Buffers {
    /// An empty buffer of [`BUFFER_BYTES`].
    pub fn take(&self) -> Vec<u8> {
        self.take_room(BUFFER_BYTES)
    }

    /// An empty buffer with room for `bytes`.
    pub fn take_room(&self, bytes: usize) -> Vec<u8> {
        let room = room(bytes);
        let kept = size_of_room(room).and_then(|size| self.free.borrow_mut().get_mut(size)?.pop());
        kept.unwrap_or_else(|| Vec::with_capacity(room))
    }

    /// Moves the content to where there is room for `bytes` in all, if there is not.
    pub fn grow(&self, buffer: &mut Vec<u8>, bytes: usize) {
        if bytes <= buffer.capacity() {
            return;
        }
        if buffer.capacity() > LARGEST_BYTES {
            // The kernel moves pages of this many, not bytes.
            return buffer.reserve_exact(bytes - buffer.len());
        }
        let mut larger = self.take_room(bytes);
        larger.extend_from_slice(buffer);
        self.give(std::mem::replace(buffer, larger));
    }

    /// Gives a buffer back. One of no size of ours is let go.
    pub fn give(&self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        let mut free = self.free.borrow_mut();
        if let Some(list) = size_of_room(capacity).and_then(|size| free.get_mut(size))
            && list.len() < KEPT_BYTES / capacity
        {
            buffer.clear();
            list.push(buffer);
        }
    }
}

/// The capacity that a buffer with room for `bytes` gets: the next size, or just that many where
/// there is none.
pub fn room(bytes: usize) -> usize {
    let bytes = bytes.max(BUFFER_BYTES);
    if bytes > LARGEST_BYTES { bytes } else { bytes.next_power_of_two() }
}

/// The list for buffers of exactly this capacity.
fn size_of_room(capacity: usize) -> Option<usize> {
    let ours = (BUFFER_BYTES..=LARGEST_BYTES).contains(&capacity) && capacity.is_power_of_two();
    ours.then(|| (capacity / BUFFER_BYTES).trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_to_the_next_taker_of_its_size() {
        let buffers = Buffers::default();
        let sizes = (0..SIZES).map(|size| BUFFER_BYTES << size);
        let taken: Vec<(usize, *const u8)> = sizes
            .map(|bytes| {
                let mut buffer = buffers.take_room(bytes);
                buffer.push(1);
                let place = buffer.as_ptr();
                buffers.give(buffer);
                (bytes, place)
            })
            .collect();
        for (bytes, place) in taken {
            // One more than the size below has room for.
            let again = buffers.take_room(bytes / 2 + 1);
            assert_eq!((again.len(), again.capacity(), again.as_ptr()), (0, bytes, place));
        }
    }

    #[test]
    fn a_grown_buffer_keeps_its_content_and_gives_the_old_one_back() {
        let buffers = Buffers::default();
        let mut buffer = buffers.take();
        buffer.extend_from_slice(b"head");
        let old = buffer.as_ptr();
        let mut at = BUFFER_BYTES;
        while at <= 4 * LARGEST_BYTES {
            buffers.grow(&mut buffer, at + 1);
            assert!(buffer == b"head" && buffer.capacity() > at, "{at}");
            at = buffer.capacity();
        }
        let again = buffers.take();
        assert_eq!(again.as_ptr(), old);
    }

    #[test]
    fn what_is_kept_of_each_size_is_bounded_and_odd_ones_are_let_go() {
        let buffers = Buffers::default();
        for size in 0..SIZES {
            let bytes = BUFFER_BYTES << size;
            let many = KEPT_BYTES / bytes + 1;
            let taken: Vec<_> = (0..many).map(|_| buffers.take_room(bytes)).collect();
            taken.into_iter().for_each(|buffer| buffers.give(buffer));
        }
        for odd in [0, 100, BUFFER_BYTES + 1, 2 * LARGEST_BYTES] {
            buffers.give(Vec::with_capacity(odd));
        }
        let free = buffers.free.borrow();
        let kept: Vec<usize> = free.iter().map(|list| list.len() * list[0].capacity()).collect();
        assert_eq!(kept, [KEPT_BYTES; SIZES]);
    }
}
