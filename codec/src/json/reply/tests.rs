//! Answers by hand, each whole, byte by byte and at every two-way split.

use super::*;
use crate::json::split_proof::reply_split;
use crate::usage::UsageField;

fn read(answer: &str) -> ReplyFacts {
    let bytes = answer.as_bytes();
    let whole = reply_split(bytes, bytes.len(), 1);
    assert_eq!(reply_split(bytes, 0, 1), whole, "{answer}");
    for head in 0..bytes.len() {
        assert_eq!(reply_split(bytes, head, bytes.len()), whole, "{answer} at {head}");
    }
    whole
}

fn text(text: Option<ShortText>) -> String {
    String::from_utf8(text.unwrap().as_bytes().to_vec()).unwrap()
}

#[test]
fn a_chat_answer() {
    let facts = read(
        r#" {"id":"c-1","object":"chat.completion","choices":[{"index":0,"logprobs":NaN,
        "message":{"role":"assistant",
        "content":"say \"usage\":{\"prompt_tokens\":9} ä","refusal":null},
        "finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":3,
        "prompt_tokens_details":{"cached_tokens":4}},"error":null} "#,
    );
    assert!(facts.complete && !facts.malformed);
    assert!(facts.content);
    assert_eq!(facts.error, None);
    assert_eq!(text(facts.finish), "stop");
    assert_eq!(facts.usage.count(UsageField::Prompt), Some(12));
    assert_eq!(facts.usage.count(UsageField::Cached), Some(4));
}

#[test]
fn content_is_what_says_something() {
    for (answer, content) in [
        (r#"{"choices":[]}"#, false),
        (r#"{"choices":[{"message":{"content":""}}]}"#, false),
        (r#"{"choices":[{"message":{"content":null,"tool_calls":[]}}]}"#, false),
        (r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a"}]}}]}"#, true),
        (r#"{"choices":[{"message":{"refusal":"no"}}]}"#, true),
        (r#"{"choices":[{"message":{"content":[{"type":"text"}]}}]}"#, true),
        (r#"{"choices":[{"delta":{"content":"a"}}]}"#, true),
        (r#"{"type":"message","content":[]}"#, false),
        (r#"{"type":"message","content":[{"type":"text","text":"a"}]}"#, true),
        (r#"{"object":"response","output":[{"type":"message"}]}"#, true),
        (r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#, true),
        (r#"[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}]"#, true),
        (r#"{"x":{"choices":[{"message":{"content":"a"}}]}}"#, false),
    ] {
        assert_eq!(read(answer).content, content, "{answer}");
    }
}

#[test]
fn what_the_model_said_is_counted_in_bytes_as_written() {
    for (answer, ascii, non_ascii) in [
        (r#"{"choices":[{"delta":{"role":"assistant","content":"abc"}}]}"#, 3, 0),
        (r#"{"choices":[{"delta":{"content":"é雨"}},{"delta":{"content":"x"}}]}"#, 1, 5),
        (r#"{"choices":[{"delta":{"content":"\"\u00e9\n"}}]}"#, 10, 0),
        (r#"{"choices":[{"delta":{"reasoning_content":"ab","content":null}}]}"#, 2, 0),
        (
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function",
            "function":{"name":"find","arguments":"{\"a\":1}"}}]}}]}"#,
            9,
            0,
        ),
        (r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"abcd"}}"#, 4, 0),
        (r#"{"type":"content_block_delta","delta":{"thinking":"ab"}}"#, 2, 0),
        (r#"{"type":"content_block_delta","delta":{"partial_json":"{\"a"}}"#, 4, 0),
        (r#"{"type":"content_block_delta","delta":{"signature":"abcd"}}"#, 0, 0),
        (r#"{"type":"response.output_text.delta","delta":"abé"}"#, 2, 2),
        // What is said again at the end is not counted again.
        (r#"{"type":"response.output_text.done","text":"abcd"}"#, 0, 0),
        (r#"{"type":"response.completed","response":{"output":[{"text":"abcd"}]}}"#, 0, 0),
        (r#"{"candidates":[{"content":{"parts":[{"text":"ab"},{"text":"c"}]}}]}"#, 3, 0),
        (
            r#"[{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f",
            "args":{"k":["é\"}",1]}}}]}}]}]"#,
            14,
            2,
        ),
        (r#"{"candidates":[{"content":{"parts":[{"inlineData":{"data":"AAAA"}}]}}]}"#, 0, 0),
        (r#"{"content":[{"type":"tool_use","input":{"q":"ab"}}]}"#, 9, 0),
        (r#"{"error":{"message":"long text"}}"#, 0, 0),
    ] {
        assert_eq!(read(answer).said, SaidText { ascii, non_ascii }, "{answer}");
    }
}

#[test]
fn an_event_names_itself_once() {
    for (answer, event) in [
        (r#"{"type":"message_stop"}"#, Some(EventType::MessageStop)),
        (
            r#"{"response":{"type":"error"},"type":"response.completed"}"#,
            Some(EventType::ResponseCompleted),
        ),
        (r#"{"type":"content_block_delta","delta":{"type":"text_delta"}}"#, Some(EventType::Other)),
        (r#"{"type":"ping","type":"message_stop"}"#, Some(EventType::Ping)),
        (r#"{"type":null}"#, None),
        (r#"{"message":{"type":"message"}}"#, None),
    ] {
        assert_eq!(read(answer).event, event, "{answer}");
    }
    let long = format!(r#"{{"type":"response.{}"}}"#, "a".repeat(100));
    assert_eq!(read(&long).event, Some(EventType::Other));
    for name in ["response.cancelled", "response.canceled"] {
        assert_eq!(EventType::of(name.as_bytes()), EventType::ResponseCancelled);
    }
}

#[test]
fn choices_and_the_code_beside_a_type() {
    for (answer, choice) in [
        (r#"{"choices":[]}"#, false),
        (r#"{"choices":null}"#, false),
        (r#"{}"#, false),
        (r#"{"choices":[{}]}"#, true),
    ] {
        assert_eq!(read(answer).choice, choice, "{answer}");
    }
    let facts = read(r#"{"type":"error","code":"rate_limit_exceeded","message":"x"}"#);
    assert_eq!(text(facts.code), "rate_limit_exceeded");
    assert_eq!(facts.error, None, "that is for those to say who know the dialect");
    assert_eq!(text(read(r#"{"code":429}"#).code), "429");
    assert_eq!(read(r#"{"code":null}"#).code, None);
    let blocked = read(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#);
    assert_eq!(text(blocked.finish), "SAFETY");
}

#[test]
fn a_scan_that_is_started_again_has_seen_nothing() {
    let mut scan = ReplyScan::new();
    for left in [r#"{"a":[{"choices":[{"delta":{"content":"x"#, "{}", "<", r#"{"error":"a"}"#] {
        scan.feed(left.as_bytes());
        scan.restart();
        assert_eq!(*scan.finish(), ReplyFacts::default());
        scan.feed(br#"{"usage":{"input_tokens":7}}"#);
        assert_eq!(*scan.finish(), read(r#"{"usage":{"input_tokens":7}}"#), "{left}");
        scan.restart();
    }
}

#[test]
fn an_error_and_its_names() {
    let facts = read(
        r#"{"error":{"message":"x","type":"server_error","code":503,"status":"UNAVAILABLE"}}"#,
    );
    let error = facts.error.unwrap();
    assert_eq!(text(error.code), "503");
    assert_eq!(text(error.kind), "server_error");
    assert_eq!(text(error.status), "UNAVAILABLE");
    assert!(read(r#"{"error":"no"}"#).error.is_some());
    assert!(read(r#"{"error":{}}"#).error.is_some());
    for answer in [r#"{"error":null}"#, r#"{"error":false}"#, r#"{"x":{"error":{"code":1}}}"#] {
        assert_eq!(read(answer).error, None, "{answer}");
    }
    let long = format!(r#"{{"error":{{"code":"{}"}}}}"#, "c".repeat(SHORT_TEXT_MAX + 1));
    assert!(read(&long).error.unwrap().code.unwrap().is_cut());
}

#[test]
fn every_place_of_usage() {
    for answer in [
        r#"{"usage":{"input_tokens":7}}"#,
        r#"{"type":"message_start","message":{"usage":{"input_tokens":7}}}"#,
        r#"{"type":"response.completed","response":{"usage":{"input_tokens":7}}}"#,
        r#"{"choices":[{"usage":{"input_tokens":7}}]}"#,
        r#"{"a":[{"usage":{"input_tokens":1}},"usage\\"],"usage":{"input_tokens":7},"b":{}}"#,
    ] {
        assert_eq!(read(answer).usage.count(UsageField::Input), Some(7), "{answer}");
    }
    assert!(read(r#"{"data":{"usage":{"input_tokens":7}}}"#).usage.is_empty());
    assert!(read(r#"{"us\u0061ge":{"input_tokens":7}}"#).usage.is_empty());
}

#[test]
fn what_cannot_be_followed_is_said_and_left() {
    for answer in ["<html>", r#"{"usage" 1}"#, r#"{"choices":[}"#, "{} x", r#"{"a":1]"#, "{,}"] {
        let facts = read(answer);
        assert!(facts.malformed && !facts.complete, "{answer}");
    }
    let facts = read(r#"{"usage":{"prompt_tokens":3},#"usage":{"prompt_tokens":4}}"#);
    assert!(facts.malformed);
    assert_eq!(facts.usage.count(UsageField::Prompt), Some(3));
    for answer in ["", "  ", "{", r#"{"usage":{"prompt_tokens":3"#, r#"{"a":"\"#] {
        let facts = read(answer);
        assert!(!facts.malformed && !facts.complete, "{answer}");
    }
}

#[test]
fn depth_is_skipped_not_followed() {
    let deep = format!(
        r#"{}{{"content":[{}1{}],"usage":{{"output_tokens":2}}}}{}"#,
        "[".repeat(PATH_MAX - 1),
        "[".repeat(5000),
        "]".repeat(5000),
        "]".repeat(PATH_MAX - 1)
    );
    let facts = reply_split(deep.as_bytes(), 0, 7);
    assert!(facts.complete);
    let wide = format!(
        r#"{{"content":[{}1{}],"usage":{{"output_tokens":2}}}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    let facts = reply_split(wide.as_bytes(), 0, 7);
    assert!(facts.complete);
    assert_eq!(facts.usage.count(UsageField::Output), Some(2));
}
