//! Any bytes as a stream; the first three say whose it is and how it is cut.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| codec::sse::split_proof::fuzz_stream(data));
