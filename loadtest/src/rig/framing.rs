//! Where the messages of a connection end. The shape of the last good message is remembered per
//! direction, so that the next one is known without a scan; whatever looks different is scanned in
//! full, in any pieces. Bound: `HEAD_BYTES_MAX` of a head that does not end.

use crate::wire::{BodyReader, Fault, Framing, Head, Shape};

/// Largest head that is waited for: far above what a gateway adds to ours.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Requests,
    Answers,
}

/// One direction: its kind and the last shape.
#[derive(Debug)]
pub(super) struct Lane {
    kind: Kind,
    shape: Option<Shape>,
}

/// How much of what arrived belongs to the message under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fed {
    pub(super) used: usize,
    /// The message is over behind these bytes.
    pub(super) over: bool,
}

/// The reading end of one connection.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// A head that is not whole.
    held: Vec<u8>,
    body: Option<BodyReader>,
    /// The status of the answer; 0 for requests.
    pub(super) status: u16,
    /// The message says that it is the last of its connection.
    pub(super) last: bool,
}

impl Lane {
    pub(super) fn new(kind: Kind) -> Lane {
        Lane { kind, shape: None }
    }
}

impl Reader {
    /// Takes what belongs to the message under way.
    pub(super) fn feed(&mut self, lane: &mut Lane, bytes: &[u8]) -> Result<Fed, Fault> {
        if self.body.is_none()
            && self.held.is_empty()
            && let Some(shape) = lane.shape.as_ref().filter(|shape| shape.fits(bytes))
        {
            // only good answers that are not the last leave a shape
            self.status = if lane.kind == Kind::Answers { 200 } else { 0 };
            self.last = false;
            if bytes.len() >= shape.total() {
                return Ok(Fed { used: shape.total(), over: true });
            }
            let left = shape.total() - bytes.len();
            self.body = Some(BodyReader::new(Framing::Length(left as u64)));
            return Ok(Fed { used: bytes.len(), over: false });
        }
        self.scan(lane, bytes)
    }

    fn scan(&mut self, lane: &mut Lane, bytes: &[u8]) -> Result<Fed, Fault> {
        let mut used = 0;
        while self.body.is_none() {
            match self.head(lane, &bytes[used..])? {
                Some(head) => used += head,
                None => return Ok(Fed { used: bytes.len(), over: false }),
            }
        }
        let Some(body) = &mut self.body else { return Ok(Fed { used, over: false }) };
        used += body.feed(&bytes[used..], |_| {})?;
        let over = body.done();
        if over {
            self.body = None;
        }
        Ok(Fed { used, over })
    }

    /// How many bytes end the head that is waited for; `None` if it does not end in them. An
    /// interim answer's head leaves the reader waiting for the next one.
    fn head(&mut self, lane: &mut Lane, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        let before = self.held.len();
        if before > 0 {
            self.held.extend_from_slice(bytes);
        }
        let all = if before > 0 { &self.held[..] } else { bytes };
        let Some(head) = Head::find(all) else {
            if all.len() > HEAD_BYTES_MAX {
                return Err(Fault::Line);
            }
            if before == 0 {
                self.held.extend_from_slice(bytes);
            }
            return Ok(None);
        };
        let (status, framing) = match lane.kind {
            Kind::Requests => (0, Framing::of_request(&head)?),
            Kind::Answers => {
                let status = head.status().ok_or(Fault::Line)?;
                (status, Framing::of_answer(&head, status)?)
            }
        };
        let used = head.len() - before;
        self.status = status;
        if !(100..200).contains(&status) {
            self.last = last(&head);
            if matches!(status, 0 | 200) && !self.last {
                lane.shape = Shape::of(&head, framing);
            }
            self.body = Some(BodyReader::new(framing));
        }
        self.held.clear();
        Ok(Some(used))
    }
}

fn last(head: &Head<'_>) -> bool {
    head.field("connection").is_some_and(|value| value.eq_ignore_ascii_case(b"close"))
}

#[cfg(test)]
mod tests {
    use super::{Fed, Kind, Lane, Reader};

    const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nx: 1\r\ncontent-length: 5\r\ny: 2\r\n\r\nhello";

    fn answers(bytes: &[u8], piece: usize) -> Vec<u16> {
        let (mut lane, mut reader) = (Lane::new(Kind::Answers), Reader::default());
        let mut statuses = Vec::new();
        for mut part in bytes.chunks(piece) {
            while !part.is_empty() {
                let fed = reader.feed(&mut lane, part).unwrap();
                if fed.over {
                    statuses.push(reader.status);
                }
                part = &part[fed.used..];
            }
        }
        statuses
    }

    #[test]
    fn messages_are_told_apart_in_any_pieces() {
        let longer = b"HTTP/1.1 200 OK\r\nx: 1\r\ncontent-length: 7\r\ny: 2\r\n\r\nhello!!";
        let moved = b"HTTP/1.1 200 OK\r\nx: 12\r\ncontent-length: 5\r\ny: 2\r\n\r\nhello";
        let refused = b"HTTP/1.1 429 No\r\nx: 1\r\ncontent-length: 5\r\ny: 2\r\n\r\nhello";
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
        let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
        let all: Vec<u8> =
            [GOOD, GOOD, longer, moved, GOOD, refused, GOOD, chunked, GOOD, interim, GOOD].concat();
        for piece in 1..=all.len() {
            let expected = [200, 200, 200, 200, 200, 429, 200, 200, 200, 200];
            assert_eq!(answers(&all, piece), expected, "{piece}");
        }
    }

    #[test]
    fn a_repeated_shape_is_known_without_a_scan() {
        let (mut lane, mut reader) = (Lane::new(Kind::Answers), Reader::default());
        let whole = Ok(Fed { used: GOOD.len(), over: true });
        assert_eq!(reader.feed(&mut lane, GOOD), whole);
        // a line without a shape, which a scan would refuse, is what tells the two ways apart
        let unlike = String::from_utf8(GOOD.to_vec()).unwrap().replace("y: 2", "y\u{1}\u{1}2");
        assert_eq!(reader.feed(&mut lane, unlike.as_bytes()), whole);
        assert!(Reader::default().feed(&mut Lane::new(Kind::Answers), unlike.as_bytes()).is_err());
    }

    #[test]
    fn the_last_answer_leaves_no_shape() {
        let (mut lane, mut reader) = (Lane::new(Kind::Answers), Reader::default());
        let text = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        for _ in 0..2 {
            assert_eq!(reader.feed(&mut lane, text), Ok(Fed { used: text.len(), over: true }));
            assert!(reader.last);
        }
    }

    #[test]
    fn a_head_without_end_is_a_fault() {
        let (mut lane, mut reader) = (Lane::new(Kind::Requests), Reader::default());
        assert!(reader.feed(&mut lane, &vec![b'a'; 64 << 10]).is_ok());
        assert!(reader.feed(&mut lane, b"a").is_err());
    }
}
