//! A message whose body is still arriving, in one buffer: head, decoded body, bytes not looked at.
//!
//! Both directions use it. It moves no bytes but those of chunk framing, which it takes out in
//! place, so that the decoded body is always one slice.

use crate::io::buffers::Buffers;
use codec::http1::{Chunked, Framing, TrailerRule};

/// A body on its way.
pub(super) struct Arriving {
    /// Head, then body decoded so far, then bytes not looked at.
    pub buffer: Vec<u8>,
    /// Where the body begins.
    pub start: usize,
    /// One past the decoded body.
    pub end: usize,
    /// The body is complete.
    pub done: bool,
    progress: Progress,
}

enum Progress {
    Length(u64),
    Chunked(Chunked),
    UntilClose,
}

/// Room for the framing of chunks beside a body: it is taken out before the next read.
const FRAMING_BYTES: usize = 8 * 1024;

/// A read with less room than this is not worth a turn, unless it ends the body.
const READ_BYTES_MIN: u64 = 2 * 1024;

impl Arriving {
    /// A message whose head of `start` bytes, and maybe more, is in `buffer`.
    pub(super) fn new(
        buffer: Vec<u8>,
        start: usize,
        framing: Framing,
        rule: TrailerRule,
    ) -> Arriving {
        let progress = match framing {
            Framing::None => Progress::Length(0),
            Framing::Length(n) => Progress::Length(n),
            Framing::Chunked => Progress::Chunked(Chunked::new(rule)),
            Framing::UntilClose => Progress::UntilClose,
        };
        Arriving { buffer, start, end: start, done: false, progress }
    }

    /// The body so far.
    pub(super) fn body(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Body bytes decoded so far.
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether no byte of the body has come, and one must.
    pub(super) fn is_unbegun(&self) -> bool {
        !self.done && self.buffer.len() == self.start
    }

    /// Bytes behind the complete body.
    pub(super) fn surplus(&self) -> &[u8] {
        if self.done { self.buffer.get(self.end..).unwrap_or_default() } else { &[] }
    }

    /// The announced length that is still to come, if one was announced.
    pub(super) fn announced(&self) -> Option<u64> {
        match self.progress {
            Progress::Length(n) => Some(n.saturating_sub(self.len() as u64)),
            Progress::Chunked(_) | Progress::UntilClose => None,
        }
    }

    /// Judges what the buffer holds now. The error is a fixed sentence; what came before it is
    /// part of the body.
    pub(super) fn decode(&mut self) -> Result<(), &'static str> {
        match &mut self.progress {
            Progress::Length(n) => {
                let want = self.start.saturating_add(usize::try_from(*n).unwrap_or(usize::MAX));
                self.end = self.buffer.len().min(want);
                self.done = self.end == want;
            }
            Progress::Chunked(chunked) => {
                let step = chunked.compact(&mut self.buffer, self.end).map_err(|garbled| {
                    self.end = garbled.decoded_end;
                    garbled.error.text()
                })?;
                self.end = step.decoded_end;
                self.done = step.finished;
            }
            Progress::UntilClose => self.end = self.buffer.len(),
        }
        Ok(())
    }

    /// The connection has ended. False if that cut the body.
    pub(super) fn end_of_connection(&mut self) -> bool {
        if matches!(self.progress, Progress::UntilClose) {
            self.done = true;
        }
        self.done
    }

    /// The capacity that the next read wants the buffer to have, if it has less.
    pub(super) fn wanted_capacity(&self) -> Option<usize> {
        let spare = (self.buffer.capacity() - self.buffer.len()) as u64;
        let missing = self.announced().unwrap_or(READ_BYTES_MIN).min(READ_BYTES_MIN);
        if spare > 0 && spare >= missing {
            return None;
        }
        Some(self.buffer.capacity().saturating_mul(2))
    }

    /// The capacity that is enough for head and body, if the body has at most `max` bytes: more
    /// than what is here of an incomplete one, whose framing was taken out.
    pub(super) fn largest(&self, max: u64) -> usize {
        let body = self.announced().map_or(max, |rest| rest.saturating_add(self.len() as u64));
        let framing = if self.announced().is_some() { 0 } else { FRAMING_BYTES };
        let most = usize::try_from(body).unwrap_or(usize::MAX);
        self.start.saturating_add(most).saturating_add(framing)
    }

    /// Lets the buffer go if there is nothing in it that is still needed.
    pub(super) fn let_go(&mut self, buffers: &Buffers) -> bool {
        let empty = self.end == self.start && self.buffer.len() == self.end && !self.done;
        if empty {
            (self.start, self.end) = (0, 0);
            buffers.give(std::mem::take(&mut self.buffer));
        }
        empty
    }

    /// Grows the buffer to `capacity`.
    pub(super) fn grow_to(&mut self, capacity: usize, buffers: &Buffers) {
        buffers.grow(&mut self.buffer, capacity);
    }

    /// Takes the bytes from `from` to `to` out of the body, as if they had never come.
    pub(super) fn remove(&mut self, from: usize, to: usize) {
        let gone = to.min(self.len()).saturating_sub(from);
        let at = self.start + from;
        self.buffer.copy_within(at + gone.., at);
        self.buffer.truncate(self.buffer.len() - gone);
        self.end -= gone;
        if let Progress::Length(n) = &mut self.progress {
            *n -= gone as u64;
        }
    }

    /// Forgets all but the last `keep` bytes of the body, which move to its start; they are taken
    /// to be delivered.
    pub(super) fn drop_front(&mut self, keep: usize) {
        self.remove(0, self.len().saturating_sub(keep));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arriving(text: &str, start: usize, framing: Framing) -> Arriving {
        Arriving::new(text.as_bytes().to_vec(), start, framing, TrailerRule::DropAll)
    }

    #[test]
    fn a_length_is_counted_and_what_follows_is_surplus() {
        let mut body = arriving("HEADab", 4, Framing::Length(3));
        body.decode().unwrap();
        assert!(!body.done);
        body.buffer.extend_from_slice(b"cNEXT");
        body.decode().unwrap();
        assert!(body.done);
        assert_eq!((body.body(), body.surplus()), (b"abc".as_slice(), b"NEXT".as_slice()));
    }

    #[test]
    fn dropping_the_front_keeps_the_count_right() {
        for framing in [Framing::Length(10), Framing::UntilClose] {
            let mut body = arriving("HEAD0123456", 4, framing);
            body.decode().unwrap();
            body.drop_front(2);
            assert_eq!(body.body(), b"56");
            body.buffer.extend_from_slice(b"789");
            body.decode().unwrap();
            assert_eq!(body.body(), b"56789");
            assert!(body.end_of_connection());
        }
    }

    #[test]
    fn what_is_removed_has_never_come() {
        for framing in [Framing::Length(9), Framing::UntilClose] {
            let mut body = arriving("HEAD012345", 4, framing);
            body.decode().unwrap();
            body.remove(2, 4);
            assert_eq!(body.body(), b"0145");
            body.buffer.extend_from_slice(b"678");
            body.decode().unwrap();
            assert_eq!(body.body(), b"0145678");
            assert!(body.end_of_connection());
        }
    }

    #[test]
    fn chunks_are_taken_out_in_place_and_survive_a_drop() {
        let mut body = arriving("HEAD3\r\nabc\r\n2\r", 4, Framing::Chunked);
        body.decode().unwrap();
        assert_eq!(body.body(), b"abc");
        body.drop_front(1);
        body.buffer.extend_from_slice(b"\nde\r\n0\r\n\r\nNEXT");
        body.decode().unwrap();
        assert!(body.done);
        assert_eq!((body.body(), body.surplus()), (b"cde".as_slice(), b"NEXT".as_slice()));
    }

    #[test]
    fn an_end_inside_a_counted_body_is_a_cut() {
        let mut body = arriving("HEADab", 4, Framing::Length(3));
        body.decode().unwrap();
        assert!(!body.end_of_connection());
        let mut body = arriving("HEAD3\r\nabc", 4, Framing::Chunked);
        body.decode().unwrap();
        assert!(!body.end_of_connection());
    }
}
