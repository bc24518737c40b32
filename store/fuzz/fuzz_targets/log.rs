//! Any bytes as a folder of segments; the first one says what is made right before it is read.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    store::fuzz::log(data);
});
