//! A request on its way out: pieces written in order, from two buffers that are lent to the
//! kernel in turn. Small requests are one flat piece; a large body is written where it lies, with
//! only what replaces parts of it copied.

use crate::io::Chunk;

/// Up to this many bytes a request is copied into one buffer: a copy of 16 KiB costs less than
/// one more write.
pub const FLAT_MAX: usize = 16 * 1024;

/// Most bytes lent to the kernel at once. The write stall is counted from one such write to the
/// next: a body of 32 MiB on a slow line takes longer than the stall, and moves all the time.
const WRITE_MAX: usize = 256 * 1024;

/// Pieces of a request: the head, and what an edited body falls into.
const PIECES_MAX: usize = 1 + codec::json::SEGMENTS_MAX;

/// Which buffer a piece lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The head and everything that was written for this request.
    Written,
    /// The client's request.
    Request,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    from: From,
    start: usize,
    end: usize,
}

/// The pieces still to be written.
#[derive(Debug)]
pub struct Outgoing {
    /// Head, and bytes that replace others.
    pub written: Vec<u8>,
    pieces: [Piece; PIECES_MAX],
    count: usize,
    next: usize,
}

impl Outgoing {
    /// Nothing yet, over an empty buffer.
    pub fn new(written: Vec<u8>) -> Outgoing {
        let empty = Piece { from: From::Written, start: 0, end: 0 };
        Outgoing { written, pieces: [empty; PIECES_MAX], count: 0, next: 0 }
    }

    /// The buffer that the piece at hand lies in, if one is left.
    pub fn lent(&self) -> Option<From> {
        self.pieces[..self.count].get(self.next).map(|piece| piece.from)
    }

    /// Adds a piece; touching pieces of one buffer become one.
    pub fn push(&mut self, from: From, start: usize, end: usize) {
        if start == end {
            return;
        }
        if let Some(last) = self.pieces[..self.count].last_mut()
            && last.from == from
            && last.end == start
        {
            last.end = end;
            return;
        }
        // One piece for the head and at most SEGMENTS_MAX for the body: always fits.
        if let Some(place) = self.pieces.get_mut(self.count) {
            *place = Piece { from, start, end };
            self.count += 1;
        }
    }

    /// The next piece, or the next part of a long one, taking its buffer along.
    pub fn next(&mut self, request: &mut Vec<u8>) -> Option<Chunk> {
        let piece = *self.pieces[..self.count].get(self.next)?;
        let bytes = match piece.from {
            From::Written => std::mem::take(&mut self.written),
            From::Request => std::mem::take(request),
        };
        let end = piece.end.min(piece.start + WRITE_MAX);
        Some(Chunk { bytes, start: piece.start, end })
    }

    /// Takes the buffer of the piece back that `next` gave out.
    pub fn give_back(&mut self, chunk: Chunk, request: &mut Vec<u8>) {
        let Some(piece) = self.pieces[..self.count].get_mut(self.next) else { return };
        piece.start = chunk.end;
        self.next += usize::from(piece.start >= piece.end);
        match piece.from {
            From::Written => self.written = chunk.bytes,
            From::Request => *request = chunk.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_in_order_and_both_buffers_come_back() {
        let mut request = b"HEAD{\"model\":\"alias\"}".to_vec();
        let mut out = Outgoing::new(b"head\"real\"".to_vec());
        out.push(From::Written, 0, 4);
        out.push(From::Request, 4, 13);
        out.push(From::Written, 4, 10);
        out.push(From::Request, 20, 21);
        let mut sent = Vec::new();
        while let Some(chunk) = out.next(&mut request) {
            sent.extend_from_slice(&chunk.bytes[chunk.start..chunk.end]);
            out.give_back(chunk, &mut request);
        }
        assert_eq!(sent, b"head{\"model\":\"real\"}");
        assert_eq!(request, b"HEAD{\"model\":\"alias\"}");
        assert_eq!(out.written, b"head\"real\"");
    }

    #[test]
    fn a_long_piece_goes_out_in_parts() {
        let whole: Vec<u8> = (0..WRITE_MAX * 2 + 1).map(|n| (n % 251) as u8).collect();
        let mut request = whole.clone();
        let mut out = Outgoing::new(b"head".to_vec());
        out.push(From::Written, 0, 4);
        out.push(From::Request, 0, whole.len());
        let (mut sent, mut parts) = (Vec::new(), Vec::new());
        while let Some(chunk) = out.next(&mut request) {
            sent.extend_from_slice(&chunk.bytes[chunk.start..chunk.end]);
            parts.push(chunk.end - chunk.start);
            out.give_back(chunk, &mut request);
        }
        assert_eq!(parts, [4, WRITE_MAX, WRITE_MAX, 1]);
        assert!(sent.starts_with(b"head") && sent[4..] == whole && request == whole);
    }

    #[test]
    fn touching_pieces_are_one_write() {
        let mut request = Vec::new();
        let mut out = Outgoing::new(b"abcd".to_vec());
        out.push(From::Written, 0, 2);
        out.push(From::Written, 2, 2);
        out.push(From::Written, 2, 4);
        let chunk = out.next(&mut request).unwrap();
        assert_eq!((chunk.start, chunk.end), (0, 4));
        out.give_back(chunk, &mut request);
        assert!(out.next(&mut request).is_none());
    }
}
