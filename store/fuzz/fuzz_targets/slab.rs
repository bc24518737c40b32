//! Any bytes as a slab on tmpfs; the first one says whether its header is made right, whether a
//! process holds it, and whether the log has some of it.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

/// This process's alone.
static FOLDER: LazyLock<PathBuf> =
    LazyLock::new(|| PathBuf::from(format!("/dev/shm/store-fuzz-{}", std::process::id())));

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    store::fuzz::slab(&FOLDER, data);
});
