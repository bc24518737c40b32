//! Any bytes as a frame, as they are and with a right head and checksum.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    store::fuzz::frame(data);
});
