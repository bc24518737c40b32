//! Streams by hand, each whole, byte by byte and at every two-way split.

use super::split_proof::{StreamRead, stream_split};
use super::*;
use crate::usage::{Provenance, UsageFlags};
use Dialect::{Chat, Gemini, Messages, Responses};

const DIALECTS: [Dialect; 4] = [Chat, Messages, Responses, Gemini];

fn read(dialect: Dialect, stream: &str) -> StreamRead {
    let bytes = stream.as_bytes();
    let whole = stream_split(dialect, bytes, bytes.len(), 1);
    assert_eq!(stream_split(dialect, bytes, 0, 1), whole, "{stream}");
    for head in 0..bytes.len() {
        assert_eq!(stream_split(dialect, bytes, head, bytes.len()), whole, "{stream} at {head}");
    }
    whole
}

/// The kinds of the events, with a mark behind the terminator's.
fn kinds(dialect: Dialect, stream: &str) -> String {
    let word = |event: &split_proof::EventRead| {
        format!("{:?}{}", event.kind, if event.terminator { "!" } else { "" })
    };
    read(dialect, stream).events.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn data(payload: &str) -> String {
    format!("data: {payload}\n\n")
}

fn named(name: &str, payload: &str) -> String {
    format!("event: {name}\ndata: {payload}\n\n")
}

/// An event whose data names itself, as all messages and responses events do.
fn typed(name: &str, rest: &str) -> String {
    named(name, &format!(r#"{{"type":"{name}"{rest}}}"#))
}

#[test]
fn chat_chunks_by_kind() {
    for (payload, kind) in [
        (r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#, "Preamble"),
        (r#"{"choices":[{"delta":{"content":null}}],"usage":null}"#, "Preamble"),
        (r#"{"choices":[],"prompt_filter_results":[{"a":1}]}"#, "Preamble"),
        (r#"{"choices":[],"usage":{}}"#, "Preamble"),
        (r#"{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}"#, "Content"),
        (r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#, "Content"),
        (r#"{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}"#, "Content"),
        (r#"{"choices":[{"delta":{"reasoning":"hm"}}]}"#, "Content"),
        (r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#, "Finish"),
        (r#"{"choices":[{"delta":{},"finish_reason":""}]}"#, "Preamble"),
        (r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#, "Usage"),
        (r#"{"usage":{"prompt_tokens":1,"completion_tokens":2},"choices":null}"#, "Usage"),
        (r#"{"choices":[{"delta":{}}],"usage":{"prompt_tokens":1}}"#, "Preamble"),
        (r#"{"error":{"message":"x","code":429}}"#, "Error"),
        (r#"{"choices":[],"usage":{"prompt_tokens":1},"error":"x"}"#, "Error"),
        (r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"error"}]}"#, "Error"),
        (r#"{"type":"error","message":"x"}"#, "Error"),
        ("[DONE]", "End!"),
        (" [DONE] \t", "End!"),
        ("[DONE]x", "Preamble"),
        ("[DONE", "Preamble"),
        ("[DO NE]", "Preamble"),
        ("[DO\ndata: NE]", "Preamble"),
        ("[DONE]\ndata: [DONE]", "Preamble"),
        ("nothing like JSON", "Preamble"),
        ("", "Preamble"),
    ] {
        assert_eq!(kinds(Chat, &data(payload)), kind, "{payload}");
    }
    assert_eq!(kinds(Chat, &named("error", r#"{"message":"x"}"#)), "Error");
}

#[test]
fn messages_events_by_kind() {
    for (name, rest, kind) in [
        ("message_start", r#","message":{"usage":{"input_tokens":3}}"#, "Preamble"),
        ("ping", "", "Preamble"),
        ("content_block_start", r#","content_block":{"type":"text","text":""}"#, "Content"),
        ("content_block_delta", r#","delta":{"type":"text_delta","text":"a"}"#, "Content"),
        ("content_block_stop", "", "Content"),
        ("message_delta", r#","delta":{"stop_reason":"end_turn"}"#, "Finish"),
        ("error", r#","error":{"type":"overloaded_error"}"#, "Error"),
        ("message_stop", "", "End!"),
        ("something_new", "", "Content"),
    ] {
        assert_eq!(kinds(Messages, &typed(name, rest)), kind, "{name}");
        assert_eq!(kinds(Messages, &data(&format!(r#"{{"type":"{name}"{rest}}}"#))), kind);
        assert_eq!(kinds(Messages, &named(name, "{}")), kind, "{name} by its line alone");
        assert_eq!(kinds(Messages, &format!("data: {{}}\nevent: {name}\n\n")), kind);
    }
    let disagree = named("message_stop", r#"{"type":"content_block_delta"}"#);
    assert_eq!(kinds(Messages, &disagree), "Content", "clients read the type in the data");
    assert_eq!(kinds(Messages, "event: message_stop\n\n"), "Silent", "no data, no event");
    assert_eq!(kinds(Messages, "event: ping\nevent:\nevent: error\ndata: {}\n\n"), "Error");
}

#[test]
fn responses_events_by_kind() {
    for (name, kind) in [
        ("response.created", "Preamble"),
        ("response.queued", "Preamble"),
        ("response.in_progress", "Preamble"),
        ("response.output_item.added", "Content"),
        ("response.output_text.delta", "Content"),
        ("keepalive", "Content"),
        ("error", "Error"),
        ("response.completed", "End!"),
        ("response.incomplete", "End!"),
        ("response.cancelled", "End!"),
        ("response.failed", "Error!"),
    ] {
        assert_eq!(kinds(Responses, &typed(name, "")), kind, "{name}");
    }
    let fine = typed("response.completed", r#","response":{"error":null}"#);
    assert_eq!(kinds(Responses, &fine), "End!");
}

#[test]
fn gemini_chunks_by_kind() {
    for (payload, kind) in [
        (r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#, "Content"),
        (r#"{"candidates":[{"content":{"role":"model"}}]}"#, "Preamble"),
        (
            r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#,
            "Finish!",
        ),
        (
            r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}"#,
            "Finish!",
        ),
        (r#"{"usageMetadata":{"promptTokenCount":4}}"#, "Preamble"),
        (r#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#, "Error"),
    ] {
        assert_eq!(kinds(Gemini, &data(payload)), kind, "{payload}");
    }
}

#[test]
fn what_no_reader_gets_is_silent_and_a_boundary() {
    for dialect in DIALECTS {
        for stream in [": hi\n\n", ":\n", "\n", "\r\n\r", ": a\r\n\r\n", "id: 4\n\n", "x\n\n"] {
            let found = read(dialect, stream);
            assert!(found.events.iter().all(|event| event.kind == Kind::Silent), "{stream:?}");
            assert!(found.at_boundary && found.empty, "{stream:?}");
        }
        for stream in [": hi", "\u{feff}: hi", "e", "id: 4\n", "data: [DONE]\r", "{}\n", "\r\nda"] {
            assert!(!read(dialect, stream).at_boundary, "{stream:?}");
        }
    }
    assert_eq!(kinds(Chat, "\u{feff}: a\n\u{feff}data: [DONE]\n\n"), "Mark Silent Silent");
    assert_eq!(kinds(Chat, "\u{feff}data: [DONE]\n\n"), "Mark End!");
}

#[test]
fn a_comment_inside_an_event_belongs_to_it() {
    let found = read(Messages, ": a\nevent: ping\n: b\ndata: {}\n\n: c\n\n");
    let spans: Vec<_> = found.events.iter().map(|event| (event.start, event.end)).collect();
    assert_eq!(spans, [(0, 4), (4, 30), (30, 34), (34, 35)]);
    assert_eq!(kinds(Messages, ": a\nevent: ping\n: b\ndata: {}\n\n"), "Silent Preamble");
}

#[test]
fn a_chat_stream_and_its_account() {
    let content = |text| data(&format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#));
    let finish = data(r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#);
    let usage = data(
        r#"{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3,
data: "prompt_tokens_details":{"cached_tokens":4}}}"#,
    );
    let stream = [content("ab"), content("é"), finish.clone(), usage.clone()].concat();
    let found = read(Chat, &(stream.clone() + &data("[DONE]")));
    assert!(found.terminated && found.succeeded && found.reported && !found.empty);
    assert_eq!(found.usage.provenance, Provenance::Reported);
    assert_eq!((found.usage.input_fresh, found.usage.input_cache_read), (8, 4));
    assert_eq!((found.said.ascii, found.said.non_ascii), (2, 2));
    assert!(found.finish.is_some_and(|finish| finish.is("stop")));

    let found = read(Chat, &stream);
    assert!(!found.terminated && found.succeeded && found.reported);
    let found = read(Chat, &content("ab"));
    assert!(!found.terminated && !found.succeeded && !found.reported && !found.empty);
    let found = read(Chat, &data("[DONE]"));
    assert!(found.terminated && found.succeeded && found.empty);
    let found =
        read(Chat, &(content("a") + &data(r#"{"error":{"code":503}}"#) + "data: [DONE]\n\n"));
    assert!(found.terminated && !found.succeeded, "a failure overrides");
    assert!(found.error.is_some_and(|error| error.code.is_some_and(|code| code.is("503"))));
    // The exchange is priced by then.
    let found = read(Chat, &(data("[DONE]") + &usage + &data(r#"{"error":"x"}"#)));
    assert!(found.succeeded && !found.reported && found.usage.output == 0);
}

#[test]
fn running_totals_are_noted_and_final_only_at_the_end() {
    let chunk = |delta: &str, finish: &str, output: u32| {
        data(&format!(
            r#"{{"choices":[{{"delta":{delta},"finish_reason":{finish}}}],
data: "usage":{{"prompt_tokens":9,"completion_tokens":{output}}}}}"#
        ))
    };
    let cut = chunk(r#"{"content":"a"}"#, "null", 1) + &chunk(r#"{"content":"b"}"#, "null", 2);
    let found = read(Chat, &cut);
    assert!(!found.reported);
    assert_eq!(found.usage.provenance, Provenance::Missing);
    assert_eq!((found.usage.input_fresh, found.usage.output), (9, 2), "noted all the same");
    let found = read(Chat, &(cut + &chunk("{}", r#""stop""#, 3)));
    assert!(found.reported);
    assert_eq!((found.usage.provenance, found.usage.output), (Provenance::Reported, 3));
}

#[test]
fn a_messages_stream_notes_its_input_and_reports_with_its_delta() {
    let start = typed(
        "message_start",
        r#","message":{"usage":{"input_tokens":50,"cache_read_input_tokens":8,"output_tokens":1}}"#,
    );
    let text = typed("content_block_delta", r#","delta":{"type":"text_delta","text":"abc"}"#);
    let delta = typed(
        "message_delta",
        r#","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}"#,
    );
    let stop = typed("message_stop", "");
    let found = read(Messages, &[start.clone(), text.clone(), delta.clone(), stop].concat());
    assert!(found.terminated && found.succeeded && found.reported);
    let usage = found.usage;
    assert_eq!((usage.input_fresh, usage.input_cache_read, usage.output), (50, 8, 7));

    let found = read(Messages, &(start.clone() + &text));
    assert!(!found.terminated && !found.succeeded && !found.reported && !found.empty);
    assert_eq!((found.usage.input_fresh, found.usage.output), (50, 1));
    assert_eq!((found.usage.provenance, found.said.ascii), (Provenance::Missing, 3));

    let error = typed("error", r#","error":{"type":"overloaded_error","message":"x"}"#);
    let found = read(Messages, &(start + &text + &delta + &error));
    assert!(!found.terminated && !found.succeeded && found.reported);
    assert!(
        found
            .error
            .is_some_and(|error| error.kind.is_some_and(|kind| { kind.is("overloaded_error") }))
    );
}

#[test]
fn a_responses_stream_ends_with_its_terminal_event() {
    let usage = r#""usage":{"input_tokens":9,"output_tokens":12,
data: "input_tokens_details":{"cached_tokens":4}}"#;
    let created = typed("response.created", r#","response":{"usage":null}"#);
    let delta = typed("response.output_text.delta", r#","delta":"héllo""#);
    for (name, succeeded) in [
        ("response.completed", true),
        ("response.incomplete", true),
        ("response.cancelled", false),
        ("response.failed", false),
    ] {
        let end = typed(name, &format!(r#","response":{{"output":[{{"text":"héllo"}}],{usage}}}"#));
        let found = read(Responses, &[created.clone(), delta.clone(), end].concat());
        assert!(found.terminated && found.reported, "{name}");
        assert_eq!(found.succeeded, succeeded, "{name}");
        assert_eq!((found.usage.input_fresh, found.usage.input_cache_read), (5, 4));
        assert_eq!((found.said.ascii, found.said.non_ascii), (4, 2));
        let found = read(Responses, &typed(name, r#","response":{"usage":null}"#));
        assert!(!found.reported);
        assert_eq!(found.empty, !succeeded);
    }
    let found = read(Responses, &typed("error", r#","code":"rate_limit_exceeded""#));
    assert!(!found.terminated && !found.succeeded);
    assert!(
        found
            .error
            .is_some_and(|error| { error.code.is_some_and(|code| code.is("rate_limit_exceeded")) })
    );
}

#[test]
fn a_gemini_stream_may_go_on_behind_a_reason_to_finish() {
    let chunk = |finish: &str, output: u32| {
        data(&format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"ab"}}]}}{finish}}}],
data: "usageMetadata":{{"promptTokenCount":7,"candidatesTokenCount":{output}}}}}"#
        ))
    };
    let stop = r#","finishReason":"STOP""#;
    let found = read(Gemini, &(chunk("", 4) + &chunk(stop, 9)));
    assert!(found.terminated && found.succeeded && found.reported);
    assert_eq!((found.usage.output, found.said.ascii), (9, 4));
    let found = read(Gemini, &(chunk(stop, 4) + &chunk(stop, 9)));
    assert_eq!((found.usage.output, found.said.ascii), (9, 4));
    let found = read(Gemini, &chunk("", 4));
    assert!(!found.terminated && !found.reported && found.usage.output == 4);
    let found = read(Gemini, &(chunk(stop, 4) + &data(r#"{"error":{"code":500}}"#)));
    assert!(!found.succeeded);
}

#[test]
fn zero_output_with_content_is_doubtful() {
    let found = read(
        Chat,
        &(data(r#"{"choices":[{"delta":{"content":"a"}}]}"#)
            + &data(r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":0}}"#)),
    );
    assert!(found.reported && found.usage.flags.contains(UsageFlags::ZERO_WITH_CONTENT));
}

#[test]
fn what_the_end_of_the_stream_cuts_counts_as_far_as_it_is_whole() {
    let usage = r#"data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":3}}"#;
    for end in ["", "\n", "\r\n"] {
        let found = read(Chat, &format!("{usage}{end}"));
        assert!(found.reported && !found.at_boundary && !found.terminated, "{end:?}");
        let found = read(Chat, &format!("data: [DONE]{end}"));
        assert!(found.terminated && !found.at_boundary, "{end:?}");
    }
    let found = read(Chat, usage.trim_end_matches('}'));
    assert!(!found.reported && found.usage.input_fresh == 11, "noted");
    let found = read(Messages, "event: message_stop\ndata: {\"type\":\"message_stop\"");
    assert!(!found.terminated && !found.succeeded);
    assert!(!read(Messages, "event: message_stop\n").terminated);
    let found = read(Gemini, r#"data: {"candidates":[{"finishReason":"STOP"}"#);
    assert!(!found.terminated && found.finish.is_none());
}

#[test]
fn malformed_data_says_what_it_said_before() {
    let found = read(
        Chat,
        &(data(r#"{"choices":[{"delta":{"content":"a"}}]} trailing"#)
            + &data(r#"{"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":9}"#)
            + &data("[DONE]")),
    );
    assert!(found.succeeded && !found.reported, "a document without its end is no report");
    // What follows the document may be text as well: all but the byte that showed it.
    assert_eq!((found.usage.output, found.said.ascii), (9, 1 + "railing".len() as u64));
}

#[test]
fn lines_of_data_are_joined_by_a_line_end() {
    let usage = |digits| {
        read(Chat, &data(&format!(r#"{{"usage":{{"completion_tokens":{digits}}}}}"#))).usage.output
    };
    assert_eq!((usage("12"), usage("12\ndata\ndata:"), usage("\ndata: 12")), (12, 12, 12));
    assert_eq!(usage("1\ndata: 2"), 1, "no twelve");
}

#[test]
fn an_event_passes_as_soon_as_it_cannot_be_the_last() {
    let reach = |dialect, begin: &str| {
        let mut scan = StreamScan::new(dialect);
        let part = scan.next(begin.as_bytes()).expect("bytes");
        assert_eq!(part.len, begin.len());
        part.reach
    };
    for (dialect, begin, expected) in [
        (Chat, "da", Reach::Open),
        (Chat, "data: {\"choices\":[", Reach::Open),
        (Chat, "data: {\"choices\":[{\"delta\":{\"content\":\"abc", Reach::Passing),
        (Chat, "data: [DONE]\n", Reach::Open),
        (Messages, "event: content_block_delta\n", Reach::Open),
        (
            Messages,
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\"",
            Reach::Passing,
        ),
        (Messages, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n", Reach::Open),
        (Responses, "data: {\"type\":\"response.image\",\"b64\":\"AAAA", Reach::Passing),
        (Responses, "data: {\"type\":\"response.completed\",\"response\":{", Reach::Open),
        (Gemini, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a", Reach::Open),
        (Chat, ": a comment", Reach::Passing),
        (Chat, "\u{feff}", Reach::Whole),
    ] {
        assert_eq!(reach(dialect, begin), expected, "{begin}");
    }
}

#[test]
fn a_scan_owns_no_memory_but_its_own() {
    fn inline<T: Copy + 'static>() -> usize {
        size_of::<T>()
    }
    let (scan, splitter) = (inline::<StreamScan>(), inline::<Splitter>());
    println!("stream scan {scan} B, splitter {splitter} B");
    assert!(scan <= 1024 && splitter <= 64, "{scan} {splitter}");
}
