//! Requests as they arrive: framed, then handed out whole. Bounds: `HEAD_BYTES_MAX` and
//! `BODY_BYTES_MAX`, above what a gateway forwards, so that the stand-in is never the stricter.

use crate::wire::{BodyReader, Fault, Framing, Head};

/// Largest head: 128 KiB, four times the gateway's own bound.
pub(super) const HEAD_BYTES_MAX: usize = 128 << 10;

/// Largest body: twice the gateway's 32 MiB.
pub(super) const BODY_BYTES_MAX: u64 = 64 << 20;

/// Body bytes among which the model is looked for before the body is whole.
const EARLY_LOOK_MAX: usize = 64 << 10;

/// A whole request; `body` is decoded, `raw` is as it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) head: Head<'a>,
    pub(super) raw: &'a [u8],
    pub(super) body: &'a [u8],
    pub(super) framing: Framing,
}

/// The request that is arriving. It is given all its bytes from the first one on, each time.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) head_len: usize,
    pub(super) framing: Framing,
    reader: BodyReader,
    /// Bytes behind the head that the reader has seen.
    fed: usize,
    /// The body, if it is not contiguous in the raw bytes.
    decoded: Vec<u8>,
    pub(super) expects_continue: bool,
}

impl Reading {
    /// Begins with the head, once it is whole.
    pub(super) fn begin(bytes: &[u8]) -> Result<Option<Reading>, Fault> {
        let Some(head) = Head::find(bytes) else {
            return if bytes.len() > HEAD_BYTES_MAX { Err(Fault::Line) } else { Ok(None) };
        };
        if head.request_line().is_none() {
            return Err(Fault::Line);
        }
        let framing = Framing::of_request(&head)?;
        if matches!(framing, Framing::Length(length) if length > BODY_BYTES_MAX) {
            return Err(Fault::Length);
        }
        // the field is rare and the body usually there with the head: look only when it matters
        let whole = matches!(framing, Framing::None)
            || matches!(framing, Framing::Length(n) if n <= (bytes.len() - head.len()) as u64);
        let expects =
            !whole && head.field("expect").is_some_and(|v| v.eq_ignore_ascii_case(b"100-continue"));
        Ok(Some(Reading {
            head_len: head.len(),
            framing,
            reader: BodyReader::new(framing),
            fed: 0,
            decoded: Vec::new(),
            expects_continue: expects,
        }))
    }

    /// Takes what has arrived; `bytes` begin with the head. `Ok(true)` once the body is whole.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<bool, Fault> {
        let fresh = &bytes[self.head_len + self.fed..];
        let (decoded, chunked) = (&mut self.decoded, self.framing == Framing::Chunked);
        self.fed += self.reader.feed(fresh, |piece| {
            if chunked {
                decoded.extend_from_slice(piece);
            }
        })?;
        if self.fed as u64 > BODY_BYTES_MAX {
            return Err(Fault::Length);
        }
        Ok(self.reader.done())
    }

    /// Length of what has been taken, head included.
    pub(super) fn len(&self) -> usize {
        self.head_len + self.fed
    }

    /// The request as far as it has been taken.
    pub(super) fn request<'a>(&'a self, bytes: &'a [u8]) -> Request<'a> {
        let raw = &bytes[..self.len()];
        let body = match self.framing {
            Framing::Chunked => self.decoded.as_slice(),
            _ => &raw[self.head_len..],
        };
        let head = Head::kept(&raw[..self.head_len]);
        Request { head, raw, body, framing: self.framing }
    }

    /// Whether it is worth looking for the model in what has come so far.
    pub(super) fn worth_an_early_look(&self) -> bool {
        self.fed > 0 && self.fed <= EARLY_LOOK_MAX
    }
}
