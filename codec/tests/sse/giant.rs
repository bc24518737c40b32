//! Events of megabytes: their usage is found, their bytes go on, and nothing grows.

use codec::sse::{Dialect, Kind, Part, Reach, StreamScan};
use codec::usage::Provenance;

use crate::cases;
use crate::relay::relay;

/// What one receive brings.
const RECEIVE_BYTES: usize = 16 * 1024;

/// The last key of the last event, behind three megabytes of output.
fn completed() -> Vec<u8> {
    let item = r#"{"type":"message","content":[{"type":"output_text","text":"ab \" \\ é"}]},"#;
    let output = item.repeat(3 * 1024 * 1024 / item.len() + 1);
    let output = output.trim_end_matches(',');
    format!(
        "event: response.completed\ndata: {{\"type\":\"response.completed\",\"response\":{{\
         \"output\":[{output}],\"usage\":{{\"input_tokens\":10,\"output_tokens\":20}}}}}}\n\n"
    )
    .into_bytes()
}

fn parts(scan: &mut StreamScan, piece: &[u8]) -> Vec<Part> {
    let mut rest = piece;
    let next = || {
        let part = scan.next(rest)?;
        rest = &rest[part.len..];
        Some(part)
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn a_terminal_event_of_three_megabytes_yields_its_usage() {
    let event = completed();
    assert!(event.len() > 3 * 1024 * 1024);
    for receive in [1, 997, RECEIVE_BYTES, event.len()] {
        let mut scan = StreamScan::new(Dialect::Responses);
        let mut last = None;
        for piece in event.chunks(receive) {
            let parts = parts(&mut scan, piece);
            assert_eq!(parts.len(), 1, "one part a receive");
            last = parts.first().copied().inspect(|part| assert_ne!(part.reach, Reach::Passing));
        }
        let last = last.expect("an event");
        assert_eq!((last.kind, last.terminator, last.reach), (Kind::End, true, Reach::Whole));
        assert_eq!(last.before + last.len as u64, event.len() as u64);
        assert!(scan.is_terminated() && scan.is_succeeded() && scan.is_reported());
        let usage = scan.usage();
        assert_eq!((usage.input_fresh, usage.output), (10, 20));
        assert_eq!(usage.provenance, Provenance::Reported);
    }
}

#[test]
fn a_giant_line_goes_on_as_it_comes() {
    let rows = cases::rows(&["sse"]);
    let row = rows.iter().find(|row| row["id"] == "sse-giant-line").expect("the row");
    let bytes = cases::inputs(row).remove(0);
    assert!(bytes.len() > 4 * 1024 * 1024);
    let relayed = relay(Dialect::Responses, bytes.chunks(RECEIVE_BYTES), true);
    assert_eq!(relayed.bytes, bytes);
    assert!(relayed.held_max <= RECEIVE_BYTES, "{}", relayed.held_max);
    let mut scan = StreamScan::new(Dialect::Responses);
    let first = bytes.chunks(RECEIVE_BYTES).next().expect("bytes");
    assert_eq!(parts(&mut scan, first)[0].reach, Reach::Passing, "before its last byte has come");
}

/// Chat content of any length: counted, and let go as soon as there is some.
#[test]
fn a_giant_text_is_counted_as_it_comes() {
    let text = "é a\\n".repeat(500_000);
    let event =
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}},\"index\":0}}]}}\n\n");
    let mut scan = StreamScan::new(Dialect::Chat);
    for piece in event.as_bytes().chunks(RECEIVE_BYTES) {
        let part = parts(&mut scan, piece)[0];
        assert_eq!(part.kind, Kind::Content);
        assert_ne!(part.reach, Reach::Open);
    }
    assert_eq!((scan.said().ascii, scan.said().non_ascii), (2_000_000, 1_000_000));
    assert!(!scan.is_empty() && scan.at_boundary());
}
