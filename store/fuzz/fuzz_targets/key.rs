//! Any bytes as the row of a key.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    store::fuzz::key(data);
});
