//! Keeps a thread on a core, out of those it was given.

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

/// The cores the calling thread may run on, lowest first; none if the kernel does not say.
pub fn allowed() -> Vec<usize> {
    #[expect(unsafe_code, reason = "the C interface of sched_getaffinity")]
    // SAFETY: an all-zero cpu_set_t is a valid value that the kernel overwrites, with the size of
    // that set; pid 0 is the calling thread. CPU_ISSET is asked of cores inside the set only.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|core| libc::CPU_ISSET(*core, &set)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_run_on_its_core_only() {
        let given = allowed();
        let last = *given.last().expect("this test runs on a core");
        let pinned = std::thread::spawn(move || pin(last).then(allowed));
        assert_eq!(pinned.join().unwrap(), Some(vec![last]));
        assert_eq!(allowed(), given, "only that thread was pinned");
    }

    #[test]
    fn a_core_beyond_the_set_is_refused() {
        assert!(!pin(usize::MAX));
    }
}
