//! The reply scan: any split finds the same, and whatever is JSON can be followed to its end.
#![no_main]

use codec::json::split_proof::reply_split;
use codec::usage::envelope;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (head, step, answer) = input;
    let whole = reply_split(answer, answer.len(), 1);
    assert_eq!(reply_split(answer, head.into(), step.into()), whole);
    if matches!(answer.first(), Some(b'{'))
        && serde_json::from_slice::<serde::de::IgnoredAny>(answer).is_ok()
    {
        assert!(whole.complete && !whole.malformed);
    }
    let usage = envelope(&whole.usage);
    assert!(usage.reasoning_of_output <= usage.output);
});
