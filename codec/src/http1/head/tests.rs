use super::{
    EMPTY_LINES_MAX, HEAD_BYTES_MAX, Method, RequestHead, ResponseHead, START_LINE_BYTES_MAX,
    parse_request, parse_response,
};
use crate::http1::{Expect, FIELDS_MAX, Fields, Framing, HeadError, HeadScan, connection_lists};

fn request(text: &str) -> Result<Option<RequestHead>, HeadError> {
    parse_request(text.as_bytes(), &mut Fields::new())
}

fn response(text: &str) -> Result<Option<ResponseHead>, HeadError> {
    parse_response(text.as_bytes(), &mut Fields::new(), false)
}

/// A POST with these field lines besides `Host`.
fn post(lines: &str) -> Result<Option<RequestHead>, HeadError> {
    request(&format!("POST /v1 HTTP/1.1\r\nHost: gw.test\r\n{lines}\r\n"))
}

#[test]
fn a_usual_head_is_read_whole() {
    let text = "\r\nPOST /v1/chat/completions?a=b HTTP/1.1\r\nHost: gw.test\r\n\
        Authorization:\tBearer sk-test \r\nX-Empty:\r\nConnection: x-a, Keep-Alive\r\n\
        X-Text: caf\u{e9}\tau lait\r\nContent-Length: 0027\r\nExpect: 100-Continue\r\n\r\nbody";
    let buf = text.as_bytes();
    let mut fields = Fields::new();
    let head = parse_request(buf, &mut fields).unwrap().unwrap();
    assert_eq!(&text[head.head_len..], "body");
    assert_eq!(head.method, Method::Post);
    assert_eq!(head.target.path().unwrap().of(buf), b"/v1/chat/completions?a=b");
    assert_eq!((head.minor, head.framing), (1, Framing::Length(27)));
    assert!(head.keep_alive && head.host && !head.upgrade);
    assert_eq!((head.expect, head.authorizations), (Expect::Continue, 1));
    assert_eq!(fields.first(buf, "AUTHORIZATION"), Some(&b"Bearer sk-test"[..]));
    assert_eq!(fields.first(buf, "x-empty"), Some(&b""[..]));
    assert_eq!(fields.first(buf, "x-text"), Some("caf\u{e9}\tau lait".as_bytes()));
    assert_eq!(fields.len(), 7);
    assert!(connection_lists(buf, &fields, b"X-A") && !connection_lists(buf, &fields, b"host"));
}

#[test]
fn request_faults_are_told_apart() {
    let host = "Host: gw.test\r\n\r\n";
    for (text, fault) in [
        ("\r\n\r\n\r\nGET / HTTP/1.1\r\n", HeadError::EmptyLines),
        ("\nGET / HTTP/1.1\r\n", HeadError::LineEnd),
        ("\rGET / HTTP/1.1\r\n", HeadError::LineEnd),
        ("\x16\x03\x01\x02\x00\x01", HeadError::Tls),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HeadError::Http2),
        ("GET\r\n", HeadError::RequestLine),
        ("GET /\r\n", HeadError::RequestLine),
        ("GET  / HTTP/1.1\r\n", HeadError::RequestLine),
        ("GET /  HTTP/1.1\r\n", HeadError::VersionSyntax),
        ("GET / HTTP/1.1 \r\n", HeadError::LineEnd),
        ("GET\t/ HTTP/1.1\r\n", HeadError::RequestLine),
        ("G@T / HTTP/1.1\r\n", HeadError::RequestLine),
        (" GET / HTTP/1.1\r\n", HeadError::RequestLine),
        ("GET /a b HTTP/1.1\r\n", HeadError::VersionSyntax),
        ("GET / http/1.1\r\n", HeadError::VersionSyntax),
        ("GET / HTTP/x.1\r\n", HeadError::VersionSyntax),
        ("GET / HTTP/1x1\r\n", HeadError::VersionSyntax),
        ("GET / HTTP/2.0\r\n", HeadError::VersionUnsupported),
        ("GET / HTTP/1.2\r\n", HeadError::VersionUnsupported),
        ("GET / HTTP/0.9\r\n", HeadError::VersionUnsupported),
        ("GET / HTTP/1.10\r\n", HeadError::LineEnd),
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", HeadError::LineEnd),
        ("GET / HTTP/1.0\n\r\n", HeadError::LineEnd),
        ("GET / HTTP/1.0\r\n\n", HeadError::LineEnd),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", HeadError::LineEnd),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", HeadError::LineEnd),
        ("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", HeadError::LineEnd),
        ("GET / HTTP/1.1\r\nHost: a\r\nX:\nY: b\r\n\r\n", HeadError::LineEnd),
        ("GET / HTTP/1.1\r\nHost: a\r\nX:\r\r\n\r\n", HeadError::FieldValue),
        ("GET / HTTP/1.1\r\nX: a\rb\r\n", HeadError::FieldValue),
        ("GET / HTTP/1.1\r\nX: a\0b\r\n", HeadError::FieldValue),
        ("GET / HTTP/1.1\r\nX: a\u{7f}b\r\n", HeadError::FieldValue),
        ("GET / HTTP/1.1\r\nX : a\r\n", HeadError::FieldName),
        ("GET / HTTP/1.1\r\n: a\r\n", HeadError::FieldName),
        ("GET / HTTP/1.1\r\nX\r\n", HeadError::FieldName),
        ("GET / HTTP/1.1\r\nX(a): b\r\n", HeadError::FieldName),
        ("GET / HTTP/1.1\r\nX\u{e9}: b\r\n", HeadError::FieldName),
        ("GET / HTTP/1.1\r\n X: b\r\n", HeadError::FieldName),
        ("GET / HTTP/1.1\r\nX: b\r\n\tc\r\n", HeadError::FieldName),
        ("GET / HTTP/1.1\r\n\r\n", HeadError::HostMissing),
        ("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", HeadError::HostRepeated),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", HeadError::HostMalformed),
        ("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", HeadError::HostMalformed),
        ("GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::TargetByte),
        ("GET /#a HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::TargetByte),
        ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::TargetForm),
        ("CONNECT /a HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::TargetForm),
    ] {
        assert_eq!(request(text), Err(fault), "{text:?}");
        assert!((400..600).contains(&fault.status()) && !fault.text().is_empty());
    }
    assert!(request(&format!("GET / HTTP/1.1\r\n{host}")).unwrap().is_some());
}

/// What one reader of a chain would take for framing and another would not.
#[test]
fn ambiguous_framing_is_refused() {
    for (lines, fault) in [
        ("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", HeadError::LengthWithEncoding),
        ("Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", HeadError::LengthWithEncoding),
        ("Content-Length: 6\r\nContent-Length: 6\r\n", HeadError::LengthRepeated),
        ("Content-Length: 6\r\ncontent-length: 7\r\n", HeadError::LengthRepeated),
        ("Content-Length: 6, 6\r\n", HeadError::LengthMalformed),
        ("Content-Length:\r\n", HeadError::LengthMalformed),
        ("Content-Length: +6\r\n", HeadError::LengthMalformed),
        ("Content-Length: 0x6\r\n", HeadError::LengthMalformed),
        ("Content-Length: 6 6\r\n", HeadError::LengthMalformed),
        ("Content-Length: 6_0\r\n", HeadError::LengthMalformed),
        ("Content-Length: \u{0b}6\r\n", HeadError::FieldValue),
        ("Content-Length : 6\r\n", HeadError::FieldName),
        ("Content-Length\t: 6\r\n", HeadError::FieldName),
        ("X: a\r\n Content-Length: 6\r\n", HeadError::FieldName),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            HeadError::EncodingRepeated,
        ),
        ("Transfer-Encoding: chunked, chunked\r\n", HeadError::EncodingMalformed),
        ("Transfer-Encoding: gzip, chunked\r\n", HeadError::EncodingUnsupported),
        ("Transfer-Encoding: x, GZip ,\tChunked\r\n", HeadError::EncodingUnsupported),
        ("Transfer-Encoding: chunked, gzip\r\n", HeadError::EncodingMalformed),
        ("Transfer-Encoding: chunked, gzip, chunked\r\n", HeadError::EncodingMalformed),
        ("Transfer-Encoding: gzip;q=1, chunked\r\n", HeadError::EncodingMalformed),
        ("Transfer-Encoding: , chunked\r\n", HeadError::EncodingMalformed),
        ("Transfer-Encoding: gzip\r\n", HeadError::EncodingMalformed),
        ("Transfer-Encoding: chunked,\r\n", HeadError::EncodingMalformed),
        ("Transfer-Encoding: \"chunked\"\r\n", HeadError::EncodingMalformed),
        ("Transfer-Encoding: chunked;a\r\n", HeadError::EncodingMalformed),
        ("Transfer-Encoding: xchunked\r\n", HeadError::EncodingMalformed),
        ("Transfer-Encoding: identity\r\n", HeadError::EncodingMalformed),
        ("Transfer-Encoding:\r\n", HeadError::EncodingMalformed),
        ("Transfer-Encoding:\u{0b}chunked\r\n", HeadError::FieldValue),
        ("Transfer-Encoding: chunked\0\r\n", HeadError::FieldValue),
        ("Transfer-Encoding\r\n : chunked\r\n", HeadError::FieldName),
        ("Transfer-Encoding:\n chunked\r\n", HeadError::FieldName),
        ("X: a\nTransfer-Encoding: chunked\r\n", HeadError::LineEnd),
        ("Connection: Transfer-Encoding\r\n", HeadError::ConnectionListsFraming),
        ("Connection: close,content-length\r\n", HeadError::ConnectionListsFraming),
        ("Connection: close\r\nConnection: host\r\n", HeadError::ConnectionListsFraming),
    ] {
        assert_eq!(post(lines), Err(fault), "{lines:?}");
    }
    let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(request(old), Err(HeadError::EncodingInHttp10));
    let old = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(response(old), Err(HeadError::EncodingInHttp10));
}

#[test]
fn names_that_only_look_like_framing_frame_nothing() {
    let lines = "Content_Length: 6\r\nTransfer_Encoding: chunked\r\nX-Content-Length: 6\r\n\
        Content-Length-: 6\r\nTransfer-Encodin: chunked\r\n";
    assert_eq!(post(lines).unwrap().unwrap().framing, Framing::None);
}

#[test]
fn connection_options_decide_on_keeping_it() {
    for (version, lines, keep_alive, upgrade) in [
        ("1.1", "", true, false),
        ("1.1", "Connection: CLOSE\r\n", false, false),
        ("1.1", "Connection: keep-alive\r\nConnection: x ,\tclose\r\n", false, false),
        ("1.1", "Connection: closed, not-close\r\n", true, false),
        ("1.0", "", false, false),
        ("1.0", "Connection: ,, Keep-Alive\r\n", true, false),
        ("1.0", "Connection: keep-alive, close\r\n", false, false),
        ("1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\n", true, true),
        ("1.1", "Upgrade: websocket\r\n", true, false),
        ("1.1", "Connection: upgrade\r\n", true, false),
        ("1.0", "Connection: upgrade\r\nUpgrade: websocket\r\n", false, false),
    ] {
        let text = format!("GET / HTTP/{version}\r\nHost: a\r\n{lines}\r\n");
        let head = request(&text).unwrap().unwrap();
        assert_eq!((head.keep_alive, head.upgrade), (keep_alive, upgrade), "{text:?}");
    }
}

#[test]
fn expectations_are_told_apart() {
    for (version, lines, expect) in [
        ("1.1", "", Expect::None),
        ("1.1", "Expect: 100-CONTINUE\r\n", Expect::Continue),
        ("1.1", "Expect: 100-continue\r\nExpect: 100-continue\r\n", Expect::Continue),
        ("1.1", "Expect: 100-continue, x\r\n", Expect::Other),
        ("1.1", "Expect:\r\n", Expect::Other),
        ("1.1", "Expect: x\r\nExpect: 100-continue\r\n", Expect::Other),
        ("1.0", "Expect: 100-continue\r\n", Expect::None),
    ] {
        let text = format!("GET / HTTP/{version}\r\nHost: a\r\n{lines}\r\n");
        assert_eq!(request(&text).unwrap().unwrap().expect, expect, "{text:?}");
    }
}

#[test]
fn responses_are_framed_by_status_before_fields() {
    for (start, lines, framing, keep_alive) in [
        ("HTTP/1.1 200 OK", "Content-Length: 5\r\n", Framing::Length(5), true),
        ("HTTP/1.1 200", "Transfer-Encoding: Chunked\r\n", Framing::Chunked, true),
        ("HTTP/1.1 200 ", "", Framing::UntilClose, false),
        ("HTTP/1.0 200 OK", "Connection: keep-alive\r\n", Framing::UntilClose, false),
        ("HTTP/1.0 200 OK", "Content-Length: 5\r\n", Framing::Length(5), false),
        ("HTTP/1.1 204 No Content", "Content-Length: 5\r\n", Framing::None, true),
        ("HTTP/1.1 304 Not Modified", "Transfer-Encoding: chunked\r\n", Framing::None, true),
        ("HTTP/1.1 100 Continue", "", Framing::None, true),
        ("HTTP/1.1 101 Switching Protocols", "Upgrade: x\r\n", Framing::None, false),
    ] {
        let text = format!("{start}\r\n{lines}\r\n");
        let head = response(&text).unwrap().unwrap();
        assert_eq!((head.framing, head.keep_alive), (framing, keep_alive), "{text:?}");
        assert_eq!(head.head_len, text.len());
    }
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
    let head = parse_response(text, &mut Fields::new(), true).unwrap().unwrap();
    assert_eq!((head.framing, head.keep_alive), (Framing::None, true));
}

#[test]
fn reasons_are_found_whatever_is_in_them() {
    for reason in ["", "OK", "Not  Found ", "Ori\u{eb}ntatie"] {
        let text = format!("\r\nHTTP/1.1 500 {reason}\r\nA: b\r\n\r\n");
        let head = response(&text).unwrap().unwrap();
        assert_eq!(head.reason.of(text.as_bytes()), reason.as_bytes());
    }
    assert!(response("HTTP/1.1 500\r\n\r\n").unwrap().unwrap().reason.is_empty());
}

#[test]
fn response_faults_are_told_apart() {
    for (text, fault) in [
        ("HTTP/1.1 20 OK\r\n", HeadError::StatusLine),
        ("HTTP/1.1 OK 200\r\n", HeadError::StatusLine),
        ("HTTP/1.1 2000 OK\r\n", HeadError::StatusLine),
        ("HTTP/1.1  200 OK\r\n", HeadError::StatusLine),
        ("HTTP/1.1 200 a\0b\r\n", HeadError::StatusLine),
        ("HTTP/1.1 099 Low\r\n\r\n", HeadError::StatusLine),
        ("HTTP/1.1 600 High\r\n\r\n", HeadError::StatusLine),
        ("HTTP/2 200 OK\r\n", HeadError::VersionUnsupported),
        ("HTTP/1.1\t200 OK\r\n", HeadError::VersionSyntax),
        ("ICY 200 OK\r\n", HeadError::VersionSyntax),
        ("HTTP/1.1 200 OK\nA: b\r\n\r\n", HeadError::LineEnd),
        ("HTTP/1.1 200 OK\n\n", HeadError::LineEnd),
        ("HTTP/1.1 200\n\r\n", HeadError::LineEnd),
        ("HTTP/1.1 200 OK\r\nen US: x\r\n", HeadError::FieldName),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n \t\r\nX: v\r\n\r\n", HeadError::FieldName),
        ("HTTP/1.1 204 No\r\nContent-Length: x\r\n\r\n", HeadError::LengthMalformed),
    ] {
        assert_eq!(response(text), Err(fault), "{text:?}");
    }
}

#[test]
fn bounds_are_judged_on_what_has_come() {
    let mut fields = Fields::new();
    let line = format!("GET /{}", "a".repeat(START_LINE_BYTES_MAX));
    let too_long = |len| parse_request(&line.as_bytes()[..len], &mut Fields::new());
    assert_eq!(too_long(START_LINE_BYTES_MAX - 1), Ok(None));
    assert_eq!(too_long(START_LINE_BYTES_MAX), Err(HeadError::StartLineTooLong));

    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "a".repeat(HEAD_BYTES_MAX));
    let too_large = |len| parse_request(&head.as_bytes()[..len], &mut Fields::new());
    assert_eq!(too_large(HEAD_BYTES_MAX - 1), Ok(None));
    assert_eq!(too_large(HEAD_BYTES_MAX), Err(HeadError::HeadTooLarge));
    let fits = format!("{}\r\n\r\n", &head[..HEAD_BYTES_MAX - 4]);
    let parsed = parse_request(fits.as_bytes(), &mut fields).unwrap().unwrap();
    assert_eq!(parsed.head_len, HEAD_BYTES_MAX);
    assert_eq!(fields.lines()[1].value.end(), HEAD_BYTES_MAX - 4);

    let lines = "Host: a\r\n".to_owned() + &"X: a\r\n".repeat(FIELDS_MAX - 1);
    let full = format!("GET / HTTP/1.1\r\n{lines}");
    let parsed = request(&format!("{full}\r\n"));
    assert!(parsed.unwrap().is_some());
    assert_eq!(request(&format!("{full}X: a\r")), Ok(None));
    assert_eq!(request(&format!("{full}X: a\r\n")), Err(HeadError::TooManyFields));

    let empty = "\r\n".repeat(EMPTY_LINES_MAX);
    assert_eq!(request(&empty), Ok(None));
    assert_eq!(request(&format!("{empty}\r\n")), Err(HeadError::EmptyLines));
    for fault in [HeadError::StartLineTooLong, HeadError::HeadTooLarge, HeadError::TooManyFields] {
        assert_eq!(fault.status(), 431);
    }
}

#[test]
fn bounds_are_judged_as_soon_byte_by_byte() {
    let line = format!("\r\nGET /{}", "a".repeat(2 * START_LINE_BYTES_MAX));
    let head = format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(HEAD_BYTES_MAX));
    let fields = format!("GET / HTTP/1.1\r\n{}", "X: a\r\n".repeat(200));
    for (text, fault, at) in [
        (line, HeadError::StartLineTooLong, START_LINE_BYTES_MAX + 2),
        (head, HeadError::HeadTooLarge, HEAD_BYTES_MAX),
        // Two line ends of tolerance for empty lines that are not there.
        (fields, HeadError::TooManyFields, 16 + (FIELDS_MAX + 3) * 6),
    ] {
        let (mut scan, mut fields) = (HeadScan::new(), Fields::new());
        let refused = (1..text.len()).find_map(|len| {
            let outcome = scan.request(&text.as_bytes()[..len], &mut fields);
            outcome.err().map(|fault| (len, fault))
        });
        let (len, seen) = refused.unwrap();
        assert_eq!(seen, fault);
        assert!(len <= at, "{fault:?} at {len}, wanted at {at}");
    }
}

#[test]
fn stale_fields_are_not_left_behind() {
    let mut fields = Fields::new();
    let full = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: x-a\r\n\r\n";
    assert!(parse_request(full, &mut fields).unwrap().is_some());
    for next in [&b"GET / HTTP/1.1\r\nHost: a\r\n"[..], b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", b""]
    {
        let _ = parse_request(next, &mut fields);
        assert!(fields.is_empty() && !connection_lists(full, &fields, b"x-a"));
    }
}
