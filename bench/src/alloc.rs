//! An allocator that counts. A test binary installs it and asks how much a piece of work took:
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: bench::alloc::Counting = bench::alloc::Counting;
//!
//! let (counts, _boxed) = bench::alloc::count(|| Box::new(1_u64));
//! assert_eq!((counts.allocations, counts.bytes), (1, 8));
//! ```
//!
//! Counts belong to the thread that allocates, so tests that run beside each other do not see
//! one another. It deliberately keeps no addresses: it finds allocations, not leaks.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counted.
#[derive(Debug)]
pub struct Counting;

/// What a thread has asked of the allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// New places, and places that grew or shrank.
    pub allocations: u64,
    /// Bytes asked for by those.
    pub bytes: u64,
    /// Places given back.
    pub frees: u64,
}

impl Counts {
    /// What was asked since `earlier`, on the same thread.
    pub fn since(self, earlier: Counts) -> Counts {
        Counts {
            allocations: self.allocations - earlier.allocations,
            bytes: self.bytes - earlier.bytes,
            frees: self.frees - earlier.frees,
        }
    }
}

/// What this thread has asked so far; all zero unless [`Counting`] is installed. For work that
/// spans awaits, where [`count`] cannot be put around it.
pub fn counted() -> Counts {
    COUNTS.get()
}

/// Runs `work` and says what it asked of the allocator on this thread.
pub fn count<T>(work: impl FnOnce() -> T) -> (Counts, T) {
    let before = counted();
    let output = work();
    (counted().since(before), output)
}

thread_local! {
    /// Constant and without a destructor, so that counting itself never allocates and works
    /// until the thread's last breath.
    static COUNTS: Cell<Counts> =
        const { Cell::new(Counts { allocations: 0, bytes: 0, frees: 0 }) };
}

fn note(size: usize) {
    let mut counts = COUNTS.get();
    counts.allocations += 1;
    counts.bytes += size as u64;
    COUNTS.set(counts);
}

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is handed to the system's allocator unchanged; the counting around it
// neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        let mut counts = COUNTS.get();
        counts.frees += 1;
        COUNTS.set(counts);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(place, layout) }
    }
}
