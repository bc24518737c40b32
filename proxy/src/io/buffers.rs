//! The buffers of one shard: plain vectors in sizes that double, taken for an operation and given
//! back when it has completed. A body that grows moves from one size to a larger one, so that in
//! steady state neither small nor large ones are asked of the allocator: a fresh 400 KiB costs a
//! hundred page faults, and pieces of all lengths tear up the heap (ADR 0009).
//!
//! A buffer whose operation is in flight when its connection is dropped comes home by itself, when
//! the kernel is done with it: else closed connections would hand the buffers kept here, one by
//! one, to the allocator, which cuts them up.
//!
//! Bounds: [`BUFFER_BYTES`] the smallest, [`LARGEST_BYTES`] the largest; [`KEPT_MAX`] of the
//! smallest are kept and [`LARGER_KEPT_BYTES`] of each other size. What is longer, or of no size
//! of ours, goes back to the allocator.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// Room for a head and the body of an ordinary call in one read. Real clients' heads are below
/// 2 KB and the small calls of tools below 4 KB.
pub const BUFFER_BYTES: usize = 8 * 1024;

/// Sizes above the smallest, each twice the one before.
const LARGER_SIZES: usize = 8;

/// The largest size: a context window full of text stays below it. A longer body brings pictures;
/// its pages come from the kernel and go back there.
pub const LARGEST_BYTES: usize = BUFFER_BYTES << LARGER_SIZES;

/// Buffers of the smallest size that are kept, and there from the start: three each for some 340
/// busy connections. 8 MiB a shard, which a busy one needs anyway; fetched one by one as bursts
/// come, they would be spread over the heap between what lives longer, and resident memory would
/// follow the largest burst so far.
const KEPT_MAX: usize = 1024;

/// Bytes of each larger size that are kept, but one buffer at least: what is free between two
/// calls, not what calls hold. 9 MiB a shard, if all sizes are used.
const LARGER_KEPT_BYTES: usize = 1024 * 1024;

/// Free lists, one a size.
#[derive(Default)]
pub struct Buffers {
    /// Of the smallest size, which nearly every operation takes.
    free: RefCell<Vec<Vec<u8>>>,
    /// Of the others.
    larger: RefCell<[Vec<Vec<u8>>; LARGER_SIZES]>,
    lent: Cell<u64>,
}

thread_local! {
    /// The buffers of this thread's shard; an operation that outlives its stream knows no shard.
    static HOME: RefCell<Weak<Buffers>> = const { RefCell::new(Weak::new()) };
}

/// Gives a buffer of a dropped stream back to this thread's shard, if there is one.
#[inline]
pub(super) fn come_home(buffer: Vec<u8>) {
    // Every operation that ends as it should leaves an empty one behind.
    if buffer.capacity() > 0 {
        lead_home(buffer);
    }
}

#[cold]
fn lead_home(buffer: Vec<u8>) {
    // Without a home, or at the thread's end, it is let go.
    let _ = HOME.try_with(|home| {
        if let Some(buffers) = home.borrow().upgrade() {
            buffers.give(buffer);
        }
    });
}

impl Buffers {
    /// Free lists without a buffer; from now on the buffers of this thread's dropped streams come
    /// to them.
    pub fn of_thread() -> Rc<Buffers> {
        let buffers = Rc::new(Buffers::default());
        HOME.set(Rc::downgrade(&buffers));
        buffers
    }

    /// Buffers that were taken and not yet given back. Of a shard at rest 0: each was taken once
    /// and comes back once, whatever became of its call.
    pub fn lent(&self) -> u64 {
        self.lent.get()
    }

    /// Takes what is kept of the smallest size from the allocator, and its pages from the kernel.
    pub fn fill(&self) {
        self.free.borrow_mut().resize_with(KEPT_MAX, || {
            let mut buffer = vec![1; BUFFER_BYTES];
            buffer.clear();
            buffer
        });
    }

    /// An empty buffer of [`BUFFER_BYTES`].
    pub fn take(&self) -> Vec<u8> {
        self.lent.set(self.lent.get().wrapping_add(1));
        let kept = self.free.borrow_mut().pop();
        kept.unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES))
    }

    /// An empty buffer with room for `bytes`.
    pub fn take_room(&self, bytes: usize) -> Vec<u8> {
        if bytes <= BUFFER_BYTES {
            return self.take();
        }
        self.lent.set(self.lent.get().wrapping_add(1));
        let room = room(bytes);
        let kept = size_of(room).and_then(|size| self.larger.borrow_mut().get_mut(size)?.pop());
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

    /// Gives a buffer back. One that has grown to no size of ours is let go.
    pub fn give(&self, mut buffer: Vec<u8>) {
        if buffer.capacity() == 0 {
            return;
        }
        self.lent.set(self.lent.get().wrapping_sub(1));
        if buffer.capacity() != BUFFER_BYTES {
            return self.give_larger(buffer);
        }
        let mut free = self.free.borrow_mut();
        if free.len() < KEPT_MAX {
            buffer.clear();
            free.push(buffer);
        }
    }

    #[inline(never)]
    fn give_larger(&self, mut buffer: Vec<u8>) {
        let mut larger = self.larger.borrow_mut();
        let list = size_of(buffer.capacity()).and_then(|size| larger.get_mut(size));
        if let Some(list) = list
            && list.len() < (LARGER_KEPT_BYTES / buffer.capacity()).max(1)
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

/// The place of the list for larger buffers of exactly this capacity.
fn size_of(capacity: usize) -> Option<usize> {
    let ours = (2 * BUFFER_BYTES..=LARGEST_BYTES).contains(&capacity);
    let doubled = capacity / (2 * BUFFER_BYTES);
    (ours && capacity.is_power_of_two()).then(|| doubled.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_to_the_next_taker_of_its_size() {
        let buffers = Buffers::default();
        let sizes = (0..=LARGER_SIZES).map(|size| BUFFER_BYTES << size);
        let given: Vec<(usize, *const u8)> = sizes
            .map(|bytes| {
                let mut buffer = buffers.take_room(bytes);
                buffer.push(1);
                let place = buffer.as_ptr();
                buffers.give(buffer);
                (bytes, place)
            })
            .collect();
        for (bytes, place) in given {
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
        for size in 0..=LARGER_SIZES {
            let many = (2 * KEPT_MAX) >> size;
            let taken: Vec<_> =
                (0..many).map(|_| buffers.take_room(BUFFER_BYTES << size)).collect();
            taken.into_iter().for_each(|buffer| buffers.give(buffer));
        }
        for odd in [0, 100, BUFFER_BYTES + 1, 2 * LARGEST_BYTES] {
            buffers.give(Vec::with_capacity(odd));
        }
        assert_eq!(buffers.free.borrow().len(), 1024);
        assert_eq!(buffers.larger.borrow().each_ref().map(Vec::len), [64, 32, 16, 8, 4, 2, 1, 1]);
    }

    #[test]
    fn what_is_lent_is_what_was_taken_and_not_given_back() {
        let buffers = Buffers::default();
        let mut taken: Vec<_> = [1, BUFFER_BYTES + 1, LARGEST_BYTES + 1]
            .into_iter()
            .map(|bytes| buffers.take_room(bytes))
            .collect();
        assert_eq!(buffers.lent(), 3);
        // However it grows it stays the same loan; what never was a buffer is none.
        taken[0].reserve_exact(3 * BUFFER_BYTES);
        buffers.grow(&mut taken[1], LARGEST_BYTES);
        buffers.grow(&mut taken[2], 2 * LARGEST_BYTES);
        buffers.give(Vec::new());
        assert_eq!(buffers.lent(), 3);
        taken.into_iter().for_each(|buffer| buffers.give(buffer));
        assert_eq!(buffers.lent(), 0);
    }

    #[test]
    fn buffers_come_home_to_the_shard_of_their_thread() {
        let buffers = Buffers::of_thread();
        come_home(buffers.take());
        come_home(Vec::new());
        assert_eq!((buffers.lent(), buffers.free.borrow().len()), (0, 1));
        drop(buffers);
        come_home(vec![0; BUFFER_BYTES]);
    }

    #[test]
    fn a_shard_begins_with_what_it_keeps() {
        let buffers = Buffers::default();
        buffers.fill();
        let taken: Vec<_> = (0..KEPT_MAX).map(|_| buffers.take()).collect();
        assert!(taken.iter().all(|buffer| buffer.is_empty() && buffer.capacity() == BUFFER_BYTES));
        assert!(buffers.free.borrow().is_empty());
    }
}
