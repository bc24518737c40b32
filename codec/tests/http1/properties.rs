//! What holds for every message: what is written is read again, and what is broken is never taken
//! for something else.

use codec::http1::{
    Chunked, Fields, Framing, Method, TrailerRule, chunk, content_length, field, field_opaque,
    field_stripped, fuzz_body, fuzz_head, parse_request, parse_response, request_line, status_line,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// A head with the pieces that matter, well-formed or not.
fn head_like() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        &b"GET / HTTP/1.1\r\n"[..],
        b"POST /v1/x HTTP/1.0\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 304\r\n",
        b"Host: gw.test\r\n",
        b"Content-Length: 3\r\n",
        b"Content-Length:",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close, x-a\r\n",
        b"Expect: 100-continue\r\n",
        b"X-A: b\r\n",
        b"\r\n",
        b"\r",
        b"\n",
        b" ",
        b"\t",
        b":",
        b"\0",
        b"\xff",
        b"0",
        b"PRI * HTTP/2.0\r\n",
        b"HTTP/2",
    ]);
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn chunks_like() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        &b"3\r\nabc\r\n"[..],
        b"1;a=b\r\nx\r\n",
        b"1;a=\"q\\\";\"\r\nx\r\n",
        b"0\r\n",
        b"\r\n",
        b"X-T: 1\r\n",
        b"Host: a\r\n",
        b"a",
        b"2",
        b";",
        b"=",
        b"\"",
        b"\r",
        b"\n",
        b" ",
        b"+",
        b"ffffffffffffffff\r\n",
    ]);
    vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn heads_have_one_meaning(bytes in prop_oneof![head_like(), vec(any::<u8>(), 0..80)]) {
        fuzz_head(&bytes);
    }

    #[test]
    fn chunked_bodies_have_one_meaning(rule: u8, bytes in chunks_like()) {
        fuzz_body(&[&[rule][..], &bytes].concat());
    }

    #[test]
    fn chunks_come_back_as_they_were(
        parts in vec(vec(any::<u8>(), 0..600), 0..6),
        surplus in vec(any::<u8>(), 0..20),
    ) {
        let mut buf = b"before".to_vec();
        for part in &parts {
            chunk(&mut buf, part);
        }
        buf.extend_from_slice(codec::http1::LAST_CHUNK);
        buf.extend_from_slice(&surplus);
        let mut chunked = Chunked::new(TrailerRule::RefuseReserved);
        let state = chunked.compact(&mut buf, 6).unwrap();
        prop_assert!(state.finished && chunked.is_plain());
        prop_assert_eq!(&buf[6..state.decoded_end], parts.concat());
        prop_assert_eq!(&buf[state.decoded_end..], surplus);
    }

    #[test]
    fn no_field_breaks_out_of_its_line(
        name in prop_oneof![vec(any::<u8>(), 0..6), "[a-z-]{1,6}".prop_map(String::into_bytes)],
        value in prop_oneof![
            vec(any::<u8>(), 0..12),
            "[a-z \r\n:]{0,12}".prop_map(String::into_bytes),
        ],
    ) {
        for write in [field, field_opaque, field_stripped] {
            let mut head = Vec::new();
            request_line(&mut head, b"GET", b"/").unwrap();
            field(&mut head, b"host", b"gw.test").unwrap();
            let before = head.len();
            let written = write(&mut head, &name, &value);
            prop_assert!(written.is_ok() || head.len() == before);
            head.extend_from_slice(b"\r\n");
            let mut fields = Fields::new();
            // A name of ours that frames a body may well be refused, but is never two fields.
            if let Ok(parsed) = parse_request(&head, &mut fields) {
                prop_assert_eq!(parsed.map(|parsed| parsed.head_len), Some(head.len()));
                prop_assert_eq!(fields.len(), 1 + usize::from(written.is_ok()));
            }
        }
    }

    #[test]
    fn written_heads_are_read_again(
        status in 100_u16..600,
        len in 0..10_000_000_000_000_000_000_u64,
        target in "/[!-\"$-~]{0,30}",
    ) {
        let mut head = Vec::new();
        status_line(&mut head, status);
        content_length(&mut head, len);
        head.extend_from_slice(b"\r\n");
        let mut fields = Fields::new();
        let parsed = parse_response(&head, &mut fields, false).unwrap().unwrap();
        prop_assert_eq!((parsed.status, parsed.head_len), (status, head.len()));
        let bodyless = status < 200 || status == 204 || status == 304;
        let framing = if bodyless { Framing::None } else { Framing::Length(len) };
        prop_assert_eq!(parsed.framing, framing);

        let mut head = Vec::new();
        request_line(&mut head, b"DELETE", target.as_bytes()).unwrap();
        field(&mut head, b"Host", b"gw.test").unwrap();
        content_length(&mut head, len);
        head.extend_from_slice(b"\r\n");
        let parsed = parse_request(&head, &mut fields).unwrap().unwrap();
        prop_assert_eq!(parsed.method, Method::Delete);
        prop_assert_eq!(parsed.framing, Framing::Length(len));
        prop_assert_eq!(parsed.target.path().unwrap().of(&head), target.as_bytes());
    }
}

#[test]
fn the_seeds_and_findings_of_the_fuzz_targets_hold() {
    for (target, entry) in
        [("http1_head", fuzz_head as fn(&[u8])), ("http1_body", fuzz_body as fn(&[u8]))]
    {
        let folder = format!("{}/fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
        let files: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
        assert!(files.len() > 50, "{target}: {}", files.len());
        for file in files {
            entry(&std::fs::read(file.unwrap().path()).unwrap());
        }
    }
}
