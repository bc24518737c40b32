use super::{
    Unwritable, chunk, chunk_size, content_length, decimal, field, field_opaque, field_stripped,
    request_line, status_line,
};

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn status_lines() {
    assert_eq!(written(|out| status_line(out, 200)), "HTTP/1.1 200 OK\r\n");
    assert_eq!(written(|out| status_line(out, 529)), "HTTP/1.1 529 Overloaded\r\n");
    assert_eq!(written(|out| status_line(out, 418)), "HTTP/1.1 418 \r\n");
    for no_status in [0, 99, 1000, u16::MAX] {
        let line = "HTTP/1.1 500 Internal Server Error\r\n";
        assert_eq!(written(|out| status_line(out, no_status)), line);
    }
}

#[test]
fn numbers() {
    for number in [0, 9, 10, 200, u64::MAX] {
        assert_eq!(written(|out| decimal(out, number)), number.to_string());
    }
    assert_eq!(written(|out| content_length(out, 42)), "content-length: 42\r\n");
}

#[test]
fn an_empty_part_is_not_the_last_chunk() {
    assert_eq!(written(|out| chunk_size(out, 0)), "");
    assert_eq!(written(|out| chunk(out, b"")), "");
    assert_eq!(written(|out| chunk_size(out, 0x1bcdef)), "1bcdef\r\n");
    assert_eq!(written(|out| chunk(out, b"0123456789")), "a\r\n0123456789\r\n");
}

#[test]
fn values_cannot_break_out_of_their_line() {
    for value in ["a\r\nX: b", "a\nb", "a\rb", "a\0b", "a\u{7f}", "\u{1b}[2J"] {
        let mut out = Vec::new();
        assert_eq!(field(&mut out, b"x-a", value.as_bytes()), Err(Unwritable), "{value:?}");
        assert_eq!(field_opaque(&mut out, b"x-a", value.as_bytes()), Err(Unwritable));
        assert!(out.is_empty());
    }
    let stripped =
        written(|out| field_stripped(out, b"x-a", "a\r\nX:\u{e9} b".as_bytes()).unwrap());
    assert_eq!(stripped, "x-a: aX: b\r\n");
    let mut out = Vec::new();
    assert_eq!(field(&mut out, b"x-a", "caf\u{e9}".as_bytes()), Err(Unwritable));
    field_opaque(&mut out, b"x-a", "caf\u{e9}\t1".as_bytes()).unwrap();
    assert_eq!(out, "x-a: caf\u{e9}\t1\r\n".as_bytes());
}

#[test]
fn names_are_tokens() {
    for name in ["", "x a", "x:", "x\r\n", "caf\u{e9}"] {
        let mut out = Vec::new();
        for write in [field, field_opaque, field_stripped] {
            assert_eq!(write(&mut out, name.as_bytes(), b"v"), Err(Unwritable), "{name:?}");
        }
        assert!(out.is_empty());
    }
}

#[test]
fn request_lines() {
    let line = written(|out| request_line(out, b"POST", b"/v1?a=%20").unwrap());
    assert_eq!(line, "POST /v1?a=%20 HTTP/1.1\r\n");
    for (method, target) in
        [("", "/"), ("G T", "/"), ("GET", ""), ("GET", "/a b"), ("GET", "/\r\n")]
    {
        let mut out = Vec::new();
        let written = request_line(&mut out, method.as_bytes(), target.as_bytes());
        assert_eq!((written, out.len()), (Err(Unwritable), 0));
    }
}
