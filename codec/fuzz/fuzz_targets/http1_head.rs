//! Any bytes as the head of a request or a response.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| codec::http1::fuzz_head(data));
