//! Keeps a thread on a core.

/// Pins the calling thread to `core`. Best effort: a core that does not exist, or is not ours,
/// leaves the thread where it is. Says whether it worked.
pub fn pin(core: usize) -> bool {
    if core >= libc::CPU_SETSIZE as usize {
        return false;
    }
    #[expect(unsafe_code, reason = "the C interface of sched_setaffinity")]
    // SAFETY: an all-zero cpu_set_t is the empty set; `core` is below CPU_SETSIZE, so CPU_SET stays
    // inside it; pid 0 is the calling thread and the size is that of the set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}
