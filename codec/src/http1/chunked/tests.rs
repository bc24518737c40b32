use super::{BodyStep, CHUNK_EXCESS_MAX, CHUNK_LINE_BYTES_MAX, ChunkError, Chunked, Compacted};
use crate::http1::trailer::{TRAILER_BYTES_MAX, TRAILER_FIELDS_MAX};
use crate::http1::{TrailerRule, fuzz_body};

fn decode_as(text: &str, rule: TrailerRule) -> Result<(Vec<u8>, bool), ChunkError> {
    for choice in [0, 1] {
        fuzz_body(&[&[choice], text.as_bytes()].concat());
    }
    let mut buf = text.as_bytes().to_vec();
    let Compacted { decoded_end, finished } = Chunked::new(rule).compact(&mut buf, 0)?;
    buf.truncate(decoded_end);
    Ok((buf, finished))
}

fn decode(text: &str) -> Result<(Vec<u8>, bool), ChunkError> {
    decode_as(text, TrailerRule::RefuseReserved)
}

#[test]
fn steps_say_where_the_data_lies() {
    let input = b"3;a\r\nabc\r\n0\r\n\r\nGET";
    let mut chunked = Chunked::new(TrailerRule::RefuseReserved);
    assert_eq!(chunked.step(&input[..6]), Ok(BodyStep::Data { start: 5, end: 6 }));
    assert_eq!(chunked.step(&input[6..]), Ok(BodyStep::Data { start: 0, end: 2 }));
    assert_eq!(chunked.step(&input[8..9]), Ok(BodyStep::NeedMore));
    assert_eq!(chunked.step(&input[9..]), Ok(BodyStep::End { consumed: 6 }));
    assert_eq!(chunked.step(b"GET"), Ok(BodyStep::End { consumed: 0 }));
    assert!(!chunked.is_plain());
}

#[test]
fn bodies_that_are_taken() {
    for (text, body) in [
        ("0\r\n\r\n", ""),
        ("000\r\n\r\n", ""),
        ("3\r\nabc\r\n0\r\n\r\n", "abc"),
        ("a\r\n0123456789\r\n0\r\n\r\nGET /", "0123456789"),
        ("A\r\n0123456789\r\n0\r\n\r\n", "0123456789"),
        ("1;a\r\nx\r\n1;a=b\r\ny\r\n1;a=\"; \\\" \t\u{e9}\";c\r\nz\r\n0;d\r\n\r\n", "xyz"),
        ("0\r\nX-Sum: 1\r\nY:\r\n\r\n", ""),
    ] {
        assert_eq!(decode(text), Ok((body.as_bytes().to_vec(), true)), "{text:?}");
    }
}

#[test]
fn bodies_that_are_refused() {
    for (text, fault) in [
        ("\r\n", ChunkError::Size),
        (" 3\r\n", ChunkError::Size),
        ("3 \r\n", ChunkError::Size),
        ("3\t;a\r\n", ChunkError::Size),
        ("+3\r\n", ChunkError::Size),
        ("-3\r\n", ChunkError::Size),
        ("0x3\r\n", ChunkError::Size),
        ("3g\r\n", ChunkError::Size),
        ("1_0\r\n", ChunkError::Size),
        (";a\r\n", ChunkError::Size),
        ("00000000000000003\r\n", ChunkError::Size),
        ("1000000000000001b\r\n", ChunkError::Size),
        ("3\n", ChunkError::LineEnd),
        ("3\rabc", ChunkError::LineEnd),
        ("3\r\rabc", ChunkError::LineEnd),
        ("3;a\n", ChunkError::LineEnd),
        ("3;a=\"\n", ChunkError::LineEnd),
        ("3;a\rb\r\n", ChunkError::LineEnd),
        ("3;\r\n", ChunkError::Extension),
        ("3;a;\r\n", ChunkError::Extension),
        ("3;a=\r\n", ChunkError::Extension),
        ("3; a\r\n", ChunkError::Extension),
        ("3;a =b\r\n", ChunkError::Extension),
        ("3;a=\"b\r\n", ChunkError::Extension),
        ("3;a=\"b\\\r\n", ChunkError::Extension),
        ("3;a=\"b\"c\r\n", ChunkError::Extension),
        ("3;a=\"\0\"\r\n", ChunkError::Extension),
        ("3;\u{e9}\r\n", ChunkError::Extension),
        ("3\r\nabcd\r\n", ChunkError::LineEnd),
        ("3\r\nabc0\r\n\r\n", ChunkError::LineEnd),
        ("3\r\nabc\n0\r\n\r\n", ChunkError::LineEnd),
        ("3\r\nabc\r\n\r\n", ChunkError::Size),
        ("0\r\n\n", ChunkError::LineEnd),
        ("0\r\n\rG", ChunkError::LineEnd),
        ("0\r\nnocolon\r\n\r\n", ChunkError::TrailerField),
        ("0\r\nGET / HTTP/1.1\r\n", ChunkError::TrailerField),
        ("0\r\n X: folded\r\n", ChunkError::TrailerField),
        ("0\r\nX : a\r\n", ChunkError::TrailerField),
        ("0\r\n: a\r\n", ChunkError::TrailerField),
        ("0\r\nX: a\0\r\n", ChunkError::TrailerField),
        ("0\r\nX: a\n\r\n", ChunkError::LineEnd),
        ("0\r\nX: a\rb\r\n", ChunkError::LineEnd),
        ("0\r\ncontent-LENGTH: 3\r\n\r\n", ChunkError::TrailerReserved),
        ("0\r\nX: a\r\nTransfer-Encoding: chunked\r\n\r\n", ChunkError::TrailerReserved),
        ("0\r\nProxy-Authorization: a\r\n\r\n", ChunkError::TrailerReserved),
        ("0\r\nHost: a\r\n\r\n", ChunkError::TrailerReserved),
    ] {
        assert_eq!(decode(text), Err(fault), "{text:?}");
        assert!(!fault.text().is_empty());
    }
}

#[test]
fn an_answer_may_have_any_trailer_field() {
    let text = "2\r\n{}\r\n0\r\nContent-Length: 9\r\nHost: a\r\n\r\n";
    let dropped = decode_as(text, TrailerRule::DropAll);
    assert_eq!(dropped, Ok((b"{}".to_vec(), true)));
    let broken = decode_as("0\r\nnocolon\r\n\r\n", TrailerRule::DropAll);
    assert_eq!(broken, Err(ChunkError::TrailerField));
}

#[test]
fn trailers_that_begin_like_reserved_ones_pass() {
    let longer = "0\r\nHosts: a\r\nHos: b\r\nProxy-Authorizations: c\r\n\r\n";
    assert_eq!(decode(longer), Ok((Vec::new(), true)));
}

#[test]
fn size_lines_are_bounded() {
    let max = usize::try_from(CHUNK_LINE_BYTES_MAX).unwrap();
    let fits = format!("1;{}\r\nx\r\n", "e".repeat(max - 2));
    assert_eq!(decode(&fits), Ok((b"x".to_vec(), false)));
    let over = format!("1;{}", "e".repeat(max - 1));
    assert_eq!(decode(&over), Err(ChunkError::LineTooLong));
}

#[test]
fn framing_may_not_outgrow_its_data_for_ever() {
    let padded = format!("1;{}\r\nx\r\n", "e".repeat(100));
    let excess = 102 - 16 - 2;
    let rounds = usize::try_from(CHUNK_EXCESS_MAX).unwrap() / excess;
    assert!(decode(&padded.repeat(rounds)).is_ok());
    assert_eq!(decode(&padded.repeat(rounds + 1)), Err(ChunkError::Excess));
    // Signatures on chunks of a usual size, and tiny chunks without extensions, go on for ever.
    let signed = format!("40;s={}\r\n{}\r\n", "f".repeat(64), "d".repeat(64));
    assert!(decode(&signed.repeat(500)).is_ok());
    assert!(decode(&"1\r\nx\r\n".repeat(10_000)).is_ok());
}

#[test]
fn trailers_are_bounded() {
    let lines = usize::from(TRAILER_FIELDS_MAX);
    let fits = format!("0\r\n{}\r\n", "X: a\r\n".repeat(lines));
    assert_eq!(decode(&fits), Ok((Vec::new(), true)));
    let over = format!("0\r\n{}", "X: a\r\n".repeat(lines + 1));
    assert_eq!(decode(&over), Err(ChunkError::TrailerTooLarge));
    let bytes = usize::try_from(TRAILER_BYTES_MAX).unwrap();
    let fits = format!("0\r\nX: {}\r\n\r\n", "a".repeat(bytes - 7));
    assert_eq!(decode(&fits), Ok((Vec::new(), true)));
    let over = format!("0\r\nX: {}\r\n\r\n", "a".repeat(bytes - 6));
    assert_eq!(decode(&over), Err(ChunkError::TrailerTooLarge));
}

#[test]
fn a_body_compacts_behind_what_is_there_and_keeps_the_surplus() {
    let mut buf = b"head3\r\nabc\r".to_vec();
    let mut chunked = Chunked::new(TrailerRule::RefuseReserved);
    let state = chunked.compact(&mut buf, 4).unwrap();
    assert_eq!(
        (state, buf.as_slice()),
        (Compacted { decoded_end: 7, finished: false }, &b"headabc"[..])
    );
    buf.extend_from_slice(b"\n2\r\nde\r\n0\r\n\r\nGET / ");
    let state = chunked.compact(&mut buf, state.decoded_end).unwrap();
    assert_eq!(state, Compacted { decoded_end: 9, finished: true });
    assert_eq!(buf, b"headabcdeGET / ");
    assert!(chunked.is_plain());
    // Asked again, nothing moves.
    assert_eq!(chunked.compact(&mut buf, 9), Ok(state));
    assert_eq!(buf, b"headabcdeGET / ");
}

#[test]
fn a_place_behind_the_buffer_is_no_panic() {
    let mut buf = b"head".to_vec();
    let state = Chunked::new(TrailerRule::DropAll).compact(&mut buf, 9).unwrap();
    assert_eq!((state.finished, buf.as_slice()), (false, &b"head"[..]));
    let mut finished = Chunked::new(TrailerRule::DropAll);
    assert!(finished.step(b"0\r\n\r\n").is_ok());
    assert!(finished.compact(&mut buf, 9).is_ok());
}
