//! Generated streams, well-formed and damaged: any cut finds the same, the lines are those of the
//! standard, and bytes put in at a boundary harm no event.

use codec::sse::split_proof::{lines_naive, lines_split, stream_split};
use codec::sse::{Dialect, Kind, Reach, StreamScan};
use proptest::prelude::*;

use crate::corpus::DIALECTS;
use crate::reader::Reader;
use crate::relay;

/// Payloads of all dialects, and of none.
const PAYLOADS: &[&str] = &[
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"h\u00e9 \"雨\""},"finish_reason":null}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\"a\":1}"}}]}}]}"#,
    r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    r#"{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":3}}"#,
    r#"{"error":{"code":429,"message":"x"}}"#,
    "[DONE]",
    " [DONE] ",
    r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}}"#,
    r#"{"type":"content_block_delta","delta":{"text":"ab"}}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}"#,
    r#"{"type":"message_stop"}"#,
    r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
    r#"{"type":"response.created","response":{"usage":null}}"#,
    r#"{"type":"response.output_text.delta","delta":"abé"}"#,
    r#"{"response":{"usage":{"input_tokens":2,"output_tokens":4}},"type":"response.completed"}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#,
    r#"{"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":6}}"#,
    "{",
    "}",
    "\"usage\":{\"prompt_tokens\":7}",
    "",
    "null",
];

const FIELDS: &[&str] = &[
    "data: ",
    "data:",
    "data",
    "event: ",
    "event:",
    "id: ",
    "retry: ",
    ":",
    ": ",
    "datax:",
    " data:",
    "\u{feff}data:",
    "",
];

const NAMES: &[&str] =
    &["message_stop", "message_delta", "error", "ping", "response.completed", "other", ""];

const ENDS: &[&str] = &["\n", "\r\n", "\r"];

/// One line, mostly of data.
fn line() -> impl Strategy<Value = String> {
    let payload = prop::sample::select(PAYLOADS).prop_map(str::to_owned);
    let field = prop::sample::select(FIELDS);
    let name = prop::sample::select(NAMES).prop_map(str::to_owned);
    prop_oneof![
        6 => payload.clone().prop_map(|payload| format!("data: {payload}")),
        2 => name.prop_map(|name| format!("event: {name}")),
        1 => (field, payload).prop_map(|(field, text)| field.to_owned() + &text),
        1 => "[a-z:{}\"\u{0}é ]{0,40}",
    ]
}

/// A stream: lines with ends of one kind, or of any.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let end = prop::sample::select(ENDS);
    let lines = prop::collection::vec((line(), 1..3_usize, end.clone()), 0..14);
    (any::<bool>(), any::<bool>(), end, lines).prop_map(|(mark, mixed, one, lines)| {
        let mut text = if mark { "\u{feff}".to_owned() } else { String::new() };
        for (line, count, own) in lines {
            text.push_str(&line);
            text.push_str(&if mixed { own } else { one }.repeat(count));
        }
        text.into_bytes()
    })
}

/// Where, which byte, and whether it is put in, cuts the rest off or replaces.
fn wound() -> impl Strategy<Value = (prop::sample::Index, u8, u8)> {
    (
        any::<prop::sample::Index>(),
        prop::sample::select(&b"\r\n:{}[]\", d\x00\xef\xff"[..]),
        0..3_u8,
    )
}

fn damage(bytes: &mut Vec<u8>, wounds: Vec<(prop::sample::Index, u8, u8)>) {
    for (place, byte, how) in wounds {
        let at = place.index(bytes.len() + 1);
        match how {
            0 => bytes.insert(at, byte),
            1 => bytes.truncate(at),
            _ => {
                if let Some(old) = bytes.get_mut(at) {
                    *old = byte;
                }
            }
        }
    }
}

fn pieces<'b>(mut bytes: &'b [u8], sizes: &[usize]) -> Vec<&'b [u8]> {
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let (piece, rest) = bytes.split_at((*size).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

fn given(bytes: &[u8]) -> Vec<(String, String)> {
    let reader = Reader::of(&lines_naive(bytes));
    reader.events.into_iter().map(|event| (event.event, event.data)).collect()
}

/// Puts a ping in wherever the scan says that it may go, and looks what a client makes of it.
fn beats_harm_nothing(dialect: Dialect, bytes: &[u8]) -> Result<(), TestCaseError> {
    const BEAT: &[u8] = b"event: ping\ndata: {}\n\n";
    let events = given(bytes);
    let mut scan = StreamScan::new(dialect);
    for at in 0..=bytes.len() {
        if scan.at_boundary() {
            // A mark that is not first would be no mark: whoever puts in a beat leaves it out.
            let (head, mut rest) = bytes.split_at(at);
            if at == 0 {
                rest = rest.strip_prefix("\u{feff}".as_bytes()).unwrap_or(rest);
            }
            let mut found = given(&[head, BEAT, rest].concat());
            let before = given(head).len();
            prop_assert_eq!(found.remove(before), ("ping".to_owned(), "{}".to_owned()));
            prop_assert_eq!(&found, &events, "{:?} at {}", dialect, at);
        }
        if let Some(byte) = bytes.get(at..=at) {
            let part = scan.next(byte).expect("a byte is a part");
            prop_assert_eq!(
                part.reach == Reach::Whole || part.reach == Reach::Trailing,
                scan.at_boundary()
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_cut_finds_the_same(
        bytes in stream(),
        wounds in prop::collection::vec(wound(), 0..4),
        head in 0..200_usize,
        step in 1..60_usize,
    ) {
        let mut bytes = bytes;
        damage(&mut bytes, wounds);
        let lines = lines_naive(&bytes);
        prop_assert_eq!(&lines_split(&bytes, head, step), &lines);
        prop_assert_eq!(&lines_split(&bytes, 0, 1), &lines);
        for dialect in DIALECTS {
            let whole = stream_split(dialect, &bytes, bytes.len(), 1);
            prop_assert_eq!(&stream_split(dialect, &bytes, head, step), &whole);
            prop_assert_eq!(&stream_split(dialect, &bytes, 0, 1), &whole);
        }
    }

    #[test]
    fn events_are_those_a_reader_is_given(bytes in stream()) {
        let given = given(&bytes);
        for dialect in DIALECTS {
            let read = stream_split(dialect, &bytes, bytes.len(), 1);
            let spoken = read.events.iter().filter(|event| {
                event.whole && !matches!(event.kind, Kind::Silent | Kind::Mark)
            });
            prop_assert_eq!(spoken.count(), given.len());
            let end = read.events.last().map_or(0, |event| event.end);
            prop_assert_eq!(end, bytes.len());
        }
    }

    #[test]
    fn a_relay_removes_usage_chunks_and_nothing_else(
        bytes in stream(),
        sizes in prop::collection::vec(1..50_usize, 1..8),
    ) {
        for dialect in DIALECTS {
            relay::check(dialect, &bytes, &pieces(&bytes, &sizes));
        }
    }

    #[test]
    fn a_beat_at_a_boundary_harms_no_event(bytes in stream()) {
        for dialect in DIALECTS {
            beats_harm_nothing(dialect, &bytes)?;
        }
    }
}
