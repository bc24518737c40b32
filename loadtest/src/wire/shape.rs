//! The shape of a message, remembered so that the next one like it is known without a scan. A peer
//! sends each message much like the one before: where the start, the line of the length field and
//! the blank line are the same at the same places, the head ends there and says that length.
//! Whatever looks different must be scanned; so must messages that are not framed by a length.

use std::ops::Range;

use memchr::memchr_iter;

use super::body::Framing;
use super::head::Head;

/// Bytes of the start that are compared: a version and a status, or a method and a path's start.
const START_BYTES: usize = 12;

/// How a message looked.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    start: Vec<u8>,
    /// The line of the length field, its end included, and where it lies.
    length_line: Vec<u8>,
    length_at: Range<usize>,
    blank_at: Range<usize>,
    total: usize,
}

impl Shape {
    /// The shape of the message that `head` begins and `framing` ends.
    pub(crate) fn of(head: &Head<'_>, framing: Framing) -> Option<Shape> {
        let Framing::Length(length) = framing else { return None };
        let bytes = head.bytes();
        let mut from = 0;
        for end in memchr_iter(b'\n', bytes) {
            let at = from..end + 1;
            from = at.end;
            let line = bytes.get(at.clone())?;
            if line.get(..15).is_some_and(|name| name.eq_ignore_ascii_case(b"content-length:")) {
                return Some(Shape {
                    start: bytes.get(..START_BYTES)?.to_vec(),
                    length_line: line.to_vec(),
                    length_at: at,
                    blank_at: bytes.len().checked_sub(4)?..bytes.len(),
                    total: bytes.len().checked_add(usize::try_from(length).ok()?)?,
                });
            }
        }
        None
    }

    /// Whether `bytes` begin with a whole head of this shape.
    pub(crate) fn fits(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(&self.start)
            && bytes.get(self.length_at.clone()) == Some(&self.length_line)
            && bytes.get(self.blank_at.clone()) == Some(b"\r\n\r\n")
    }

    /// Bytes of head and body.
    pub(crate) fn total(&self) -> usize {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::Shape;
    use crate::wire::{Framing, Head};

    fn shape(text: &[u8]) -> Option<Shape> {
        let head = Head::find(text).unwrap();
        Shape::of(&head, Framing::of_answer(&head, 200).unwrap())
    }

    #[test]
    fn what_differs_where_it_matters_does_not_fit() {
        let text = "HTTP/1.1 200 OK\r\nx: 1\r\nContent-Length: 15\r\ny: 2\r\n\r\n";
        let shape = shape(text.as_bytes()).unwrap();
        assert_eq!(shape.total(), text.len() + 15);
        assert!(shape.fits(text.as_bytes()));
        assert!(shape.fits(text.replace("x: 1", "x: 2").as_bytes()));
        assert!(shape.fits(format!("{text}body").as_bytes()));
        assert!(!shape.fits(&text.as_bytes()[..text.len() - 1]));
        for (was, is) in [
            ("200", "429"),
            ("x: 1", "x: 11"),
            (": 15", ": 16"),
            (": 15", ": 150"),
            ("Content", "Kontent"),
            ("y: 2", "y: 22"),
        ] {
            assert!(!shape.fits(text.replace(was, is).as_bytes()), "{is}");
        }
    }

    #[test]
    fn only_a_length_gives_a_shape() {
        assert!(shape(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_none());
        assert!(shape(b"HTTP/1.1 200 OK\r\n\r\n").is_none());
    }
}
