//! Small bodies by hand: what is found, what is refused, what a splice keeps.

use super::*;

pub(super) fn scan(body: &str) -> Result<RequestSpans, JsonError> {
    RequestScan::new().finish(body.as_bytes())
}

fn kind(body: &str) -> JsonErrorKind {
    scan(body).expect_err(body).kind
}

fn spliced(body: &str, model: &str, usage: bool) -> String {
    let spans = scan(body).expect(body);
    let mut name = Vec::new();
    write_string(model, &mut name);
    let mut edits = Edits::new(body.as_bytes());
    edits.replace_model(&spans, &name).unwrap();
    if usage {
        edits.force_usage(&spans).unwrap();
    }
    let segments = edits.segments();
    let mut out = Vec::new();
    segments.write_into(&mut out);
    assert_eq!(out.len(), segments.total_len());
    String::from_utf8(out).unwrap()
}

#[test]
fn finds_the_top_level_and_nothing_else() {
    let body = r#"{"metadata":{"model":"no","user_id":"u1"},"model":"m\/x","stream":true,
        "stream_options":{"a":[{"include_usage":1}],"include_usage":false},"max_tokens":10,
        "max_completion_tokens":-1,"max_output_tokens":1.5,"n":18446744073709551616,
        "user":"u","prompt_cache_key":"p","tools":[{"model":"t"}],"cache_control":null}"#;
    let spans = scan(body).unwrap();
    let bytes = body.as_bytes();
    assert_eq!(spans.model.text.of(bytes), br"m\/x");
    assert!(spans.model.escaped);
    assert!(spans.is_stream());
    assert!(!spans.asks_for_usage());
    let options = spans.stream_options.unwrap();
    assert!(!options.is_null && !options.is_empty);
    assert_eq!(options.span.of(bytes), br#"{"a":[{"include_usage":1}],"include_usage":false}"#);
    assert_eq!(options.include_usage.unwrap().span.of(bytes), b"false");
    assert_eq!(spans.max_tokens.unwrap().count, Count::Value(10));
    assert_eq!(spans.max_tokens.unwrap().span.of(bytes), b"10");
    assert_eq!(spans.max_completion_tokens.unwrap().count, Count::Negative);
    assert_eq!(spans.max_output_tokens.unwrap().count, Count::NotWhole);
    assert_eq!(spans.n.unwrap().count, Count::TooLarge);
    assert_eq!(spans.user.unwrap().text.of(bytes), b"u");
    assert_eq!(spans.prompt_cache_key.unwrap().text.of(bytes), b"p");
    assert_eq!(spans.metadata.unwrap().of(bytes), br#"{"model":"no","user_id":"u1"}"#);
    assert_eq!(spans.metadata_user_id.unwrap().text.of(bytes), b"u1");
    assert!(spans.has_tools);
    assert!(!spans.has_cache_control);
    assert_eq!(spans.object, Span { start: 0, end: body.len() });
}

#[test]
fn hints_may_repeat_and_the_last_one_counts() {
    let spans =
        scan(r#"{"user":"a","model":"m","user":7,"metadata":{"user_id":"x"},"metadata":{}}"#);
    let spans = spans.unwrap();
    assert_eq!(spans.user, None);
    assert_eq!(spans.metadata_user_id, None);
    assert!(spans.metadata.is_some());
}

#[test]
fn judged_keys_stand_once_and_plainly() {
    for key in [
        RequestKey::Model,
        RequestKey::Stream,
        RequestKey::StreamOptions,
        RequestKey::MaxTokens,
        RequestKey::MaxCompletionTokens,
        RequestKey::MaxOutputTokens,
        RequestKey::N,
    ] {
        let value = if key == RequestKey::Model { "\"m\"" } else { "null" };
        let name = key.name();
        let twice = format!(r#"{{"{name}":{value},"x":1,"{name}":{value}}}"#);
        assert_eq!(kind(&twice), JsonErrorKind::DuplicateKey(key));
        assert!(scan(&twice).unwrap_err().message().contains(name));
        let escaped =
            format!(r#"{{"\u{:04x}{}":{value}}}"#, name.as_bytes()[0], name.get(1..).unwrap());
        assert_eq!(kind(&escaped), JsonErrorKind::EscapedKey(key));
    }
    let inside = r#"{"model":"m","stream_options":{"include_usage":true,"include_usage":false}}"#;
    assert_eq!(kind(inside), JsonErrorKind::DuplicateKey(RequestKey::IncludeUsage));
    let inside = r#"{"model":"m","stream_options":{"include\u005fusage":false}}"#;
    assert_eq!(kind(inside), JsonErrorKind::EscapedKey(RequestKey::IncludeUsage));
    let hidden = r#"{"model":"m","\u006dessages":[]}"#;
    assert_eq!(kind(hidden), JsonErrorKind::EscapedKey(RequestKey::Messages));
    assert!(scan(r#"{"model":"m","x":{"model":"a","model":"b","mod\u0065l":1}}"#).is_ok());
    assert!(scan(r#"{"model":"m","\ud800":1,"a\nb":2,"x":1,"x":2}"#).is_ok());
}

#[test]
fn judged_keys_stand_in_lower_case() {
    for key in [
        RequestKey::Model,
        RequestKey::Stream,
        RequestKey::StreamOptions,
        RequestKey::MaxTokens,
        RequestKey::MaxCompletionTokens,
        RequestKey::MaxOutputTokens,
        RequestKey::N,
    ] {
        let upper = key.name().to_uppercase();
        let first = format!("{}{}", &upper[..1], &key.name()[1..]);
        let escaped = format!("\\u{:04x}{}", upper.as_bytes()[0], &upper[1..]);
        for spelling in [upper, first, escaped] {
            for body in [
                format!(r#"{{"{spelling}":null}}"#),
                format!(r#"{{"model":"m","x":1,"{spelling}":1}}"#),
            ] {
                let error = scan(&body).expect_err(&body);
                assert_eq!(error.kind, JsonErrorKind::MiscasedKey(key), "{body}");
                assert_eq!(error.param(), Some(key.name()));
                assert!(error.message().contains(key.name()));
            }
        }
    }
    let inside = r#"{"model":"m","stream_options":{"Include_Usage":false}}"#;
    assert_eq!(kind(inside), JsonErrorKind::MiscasedKey(RequestKey::IncludeUsage));
    // Hints, what stands elsewhere, and what is no key of ours but for its length.
    for body in [
        r#"{"model":"m","Messages":[],"USER":"u","Tools":[],"Metadata":{"User_Id":"u"}}"#,
        r#"{"model":"m","x":{"Model":1},"metadata":{"Model":1,"N":1},"Include_Usage":1}"#,
        r#"{"model":"m","stream_options":{"Model":1,"x":{"Include_Usage":1}},"User_Id":1}"#,
        r#"{"model":"m","Modem":1,"Streams":1,"M":1,"":1,"nN":1}"#,
    ] {
        assert!(scan(body).is_ok(), "{body}");
    }
}

#[test]
fn the_estimate_counts_text_and_items() {
    let body = r#"{"model":"mmmm","system":"äb","messages":[
        {"role":"user","content":[{"type":"text","text":"a\n"},
        {"type":"image_url","image_url":{"url":"https://x"}},{"image_url":"data:x"},
        "data:zz",{"data":["plain"]}]}],"tools":[{"url":{"a":"b"}}],"functions":[{"name":"fff"}],
        "function_call":{"name":"not counted"},"other":"not counted"}"#;
    let estimate = scan(body).unwrap().estimate;
    // b user text a\n image_url plain b fff
    assert_eq!(estimate.ascii, 1 + 4 + 4 + 3 + 9 + 5 + 1 + 3);
    assert_eq!(estimate.non_ascii, 2);
    assert_eq!(estimate.items, 3);
}

#[test]
fn a_model_is_judged() {
    assert_eq!(kind(r#"{"model":"\ud800"}"#), JsonErrorKind::ModelUnreadable);
    assert_eq!(kind(r#"{"model":"a\u0000"}"#), JsonErrorKind::ModelUnreadable);
    assert_eq!(kind(r#"{"model":"\u0020\t"}"#), JsonErrorKind::ModelEmpty);
    let long = "m".repeat(MODEL_BYTES_MAX);
    assert!(scan(&format!(r#"{{"model":"{long}"}}"#)).is_ok());
    assert_eq!(kind(&format!(r#"{{"model":"{long}m"}}"#)), JsonErrorKind::ModelTooLong);
    let escaped = "\\u006d".repeat(MODEL_BYTES_MAX);
    assert!(scan(&format!(r#"{{"model":"{escaped}"}}"#)).is_ok());
    assert_eq!(kind(&format!(r#"{{"model":"{escaped}m"}}"#)), JsonErrorKind::ModelTooLong);
}

#[test]
fn depth_is_bounded_both_ways() {
    let nested = |depth: usize| {
        format!(r#"{{"model":"m","x":{}{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1))
    };
    assert!(scan(&nested(DEPTH_MAX)).is_ok());
    assert_eq!(kind(&nested(DEPTH_MAX + 1)), JsonErrorKind::TooDeep);
}

#[test]
fn the_first_error_is_final() {
    let mut scan = RequestScan::new();
    let first = scan.advance(b"{]").unwrap_err();
    assert_eq!(first, JsonError { kind: JsonErrorKind::UnexpectedByte, offset: 1 });
    assert_eq!(scan.advance(b"{\"model\":\"m\"}"), Err(first));
    assert_eq!(scan.finish(b"{\"model\":\"m\"}"), Err(first));
}

#[test]
fn usage_is_forced_by_the_smallest_edit() {
    let cases = [
        (r#"{"model":"a"}"#, r#"{"stream_options":{"include_usage":true},"model":"b"}"#),
        (
            r#"{"stream_options":null,"model":"a"}"#,
            r#"{"stream_options":{"include_usage":true},"model":"b"}"#,
        ),
        (
            r#"{"stream_options":{ },"model":"a"}"#,
            r#"{"stream_options":{"include_usage":true},"model":"b"}"#,
        ),
        (
            r#"{"model":"a","stream_options":{"x":1}}"#,
            r#"{"model":"b","stream_options":{"include_usage":true,"x":1}}"#,
        ),
        (
            r#"{"model":"a","stream_options":{"include_usage":false}}"#,
            r#"{"model":"b","stream_options":{"include_usage":true}}"#,
        ),
        (
            r#"{"model":"a","stream_options":{"include_usage":null}}"#,
            r#"{"model":"b","stream_options":{"include_usage":true}}"#,
        ),
        (
            r#"{"model":"a","stream_options":{"include_usage":true}}"#,
            r#"{"model":"b","stream_options":{"include_usage":true}}"#,
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(spliced(body, "b", true), expected);
    }
    assert_eq!(
        spliced(r#"{"model":"a"}"#, "q\"\\\n\u{1}é", false),
        r#"{"model":"q\"\\\n\u0001é"}"#
    );
}

#[test]
fn edits_are_bounded_and_do_not_overlap() {
    let body = b"0123456789";
    let mut edits = Edits::new(body);
    let span = |start, end| Span { start, end };
    edits.replace(span(4, 6), b"x").unwrap();
    edits.replace(span(0, 1), b"a").unwrap();
    assert_eq!(edits.replace(span(5, 7), b""), Err(SpliceError::Misplaced));
    assert_eq!(edits.replace(span(3, 5), b""), Err(SpliceError::Misplaced));
    assert_eq!(edits.replace(span(9, 11), b""), Err(SpliceError::Misplaced));
    edits.replace(span(10, 10), b"z").unwrap();
    edits.replace(span(6, 6), b"y").unwrap();
    assert_eq!(edits.replace(span(7, 7), b"w"), Err(SpliceError::Full));
    let mut out = Vec::new();
    edits.segments().write_into(&mut out);
    assert_eq!(out, b"a123xy6789z");
    assert_eq!(edits.segments().pieces().len(), 6);
}
