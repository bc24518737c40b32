//! How the C library's allocator is told to behave, once, before there are threads.
//!
//! Left alone it learns: each mapping that is freed raises the length from which on pieces get a
//! mapping of their own, up to 32 MiB. After a second of traffic bodies of a megabyte are then cut
//! out of the same heap as futures and buffers, which keep it from ever shrinking (ADR 0009).
//!
//! It deliberately counts and trims nothing: what is kept is the affair of `buffers`.

/// From this length on a piece is mapped for itself and goes back to the kernel when it is freed:
/// above the buffers that most calls use, below the bodies that would tear up a heap.
pub const MAPPED_BYTES_MIN: i32 = 64 * 1024;

/// Free bytes at a heap's end that are kept. With the length above fixed, the allocator stays at
/// 128 KiB: the end of every burst would give pages back that the next one fetches again.
pub const END_BYTES_KEPT: i32 = 4 * 1024 * 1024;

/// Fixes both. Says whether the allocator took them; one of another kind is left as it is.
#[cfg(target_env = "gnu")]
pub fn settle() -> bool {
    let set = |parameter, value| {
        #[expect(unsafe_code, reason = "the C interface of mallopt")]
        // SAFETY: mallopt takes two integers, checks them and locks the heap for itself.
        unsafe {
            libc::mallopt(parameter, value) == 1
        }
    };
    set(libc::M_MMAP_THRESHOLD, MAPPED_BYTES_MIN) && set(libc::M_TRIM_THRESHOLD, END_BYTES_KEPT)
}

/// Other C libraries have no such parameters.
#[cfg(not(target_env = "gnu"))]
pub fn settle() -> bool {
    false
}
