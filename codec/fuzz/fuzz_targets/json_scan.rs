//! The request scan: any split finds the same, and what passes is JSON by another reader too.
#![no_main]

use codec::json::JsonErrorKind as Kind;
use codec::json::split_proof::{request_split, request_whole};
use libfuzzer_sys::fuzz_target;

fn is_json(body: &[u8]) -> bool {
    std::str::from_utf8(body).is_ok()
        && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (head, step, body) = input;
    let whole = request_whole(body);
    assert_eq!(request_split(body, head.into(), step.into()), whole);
    match whole {
        Ok(spans) => {
            assert!(is_json(body));
            assert!(spans.object.end <= body.len());
            assert!(serde_json::from_slice::<String>(spans.model.quoted().of(body)).is_ok());
        }
        Err(error) => match error.kind {
            Kind::UnexpectedEnd
            | Kind::UnexpectedByte
            | Kind::TrailingBytes
            | Kind::ControlInString
            | Kind::BadEscape
            | Kind::BadUtf8
            | Kind::BadNumber
            | Kind::BadLiteral => assert!(!is_json(body)),
            _ => {}
        },
    }
});
