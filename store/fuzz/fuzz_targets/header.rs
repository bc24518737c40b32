//! Any bytes as the header of a segment, as they are and with a right checksum.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    store::fuzz::header(data);
});
