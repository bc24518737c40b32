//! Any bytes as a chunked body; the first one chooses the rule for trailers and a size of pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| codec::http1::fuzz_body(data));
