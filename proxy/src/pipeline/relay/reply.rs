//! What an answer's body is worth, read in pass: its usage, and whether there is anything in it.
//!
//! A gzip body goes to the client as it came and is decoded here on the side, one block at a
//! time; another coding is not read, and its usage is missing.
//!
//! Bound: a body that grows more than [`RATIO_MAX`]-fold when decoded is not read further.

use crate::pipeline::answer::{AnswerHead, Coding, Media};
use codec::json::{ErrorFacts, ReplyFacts, ReplyScan};
use codec::usage::{self, UsageEnvelope};
use flate2::write::GzDecoder;
use std::io::{self, Write};

/// Decoded bytes for each coded one beyond which a body is taken for an attack: text of models
/// compresses some ten-fold, a run of equal bytes a thousand-fold.
const RATIO_MAX: u64 = 200;

/// An answer being read.
pub(crate) struct Reply {
    success: bool,
    reader: Reader,
}

/// What a whole answer turns out to be that says it succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worth {
    /// It has something in it.
    Something,
    /// It says that something went wrong.
    Error,
    /// It is not what it says it is.
    Malformed,
    /// There is nothing in it.
    Nothing,
}

#[expect(clippy::large_enum_variant, reason = "the large one is what every answer uses")]
enum Reader {
    Plain(ReplyScan),
    /// Allocates: nobody was asked to compress.
    Gzip(Box<GzDecoder<Counted<ReplyScan>>>),
    /// Not JSON, or a coding nobody here reads, or one that it does not have.
    Blind,
}

impl Reply {
    /// Of the answer with this head.
    pub(crate) fn new(head: &AnswerHead) -> Reply {
        let reader = match (head.media, head.coding) {
            (Media::Json, Coding::Identity) => Reader::Plain(ReplyScan::new()),
            (Media::Json, Coding::Gzip) => {
                Reader::Gzip(Box::new(GzDecoder::new(Counted::new(ReplyScan::new()))))
            }
            (Media::Events | Media::Other, _) | (Media::Json, Coding::Unknown) => Reader::Blind,
        };
        Reply { success: (200..300).contains(&head.status), reader }
    }

    /// Reads body bytes as they pass.
    pub(crate) fn feed(&mut self, body: &[u8]) {
        match &mut self.reader {
            Reader::Plain(scan) => scan.feed(body),
            Reader::Gzip(decoder) => {
                decoder.get_mut().allow(body.len());
                let broken = decoder.write_all(body).and_then(|()| decoder.flush()).is_err();
                if broken {
                    self.reader = Reader::Blind;
                }
            }
            Reader::Blind => {}
        }
    }

    fn facts(&self) -> Option<&ReplyFacts> {
        match &self.reader {
            Reader::Plain(scan) => Some(scan.finish()),
            Reader::Gzip(decoder) => Some(decoder.get_ref().sink.finish()),
            Reader::Blind => None,
        }
    }

    /// Judges a success whose whole body has been read before a byte went out.
    pub(crate) fn worth(&self) -> Worth {
        let Some(facts) = self.facts().filter(|_| self.success) else { return Worth::Something };
        let said = facts.content || facts.finish.is_some();
        if facts.error.is_some() && !said {
            Worth::Error
        } else if said || !facts.usage.is_empty() {
            Worth::Something
        } else if facts.malformed {
            Worth::Malformed
        } else {
            Worth::Nothing
        }
    }

    /// Whether nobody here could read it.
    pub(crate) fn is_unread(&self) -> bool {
        matches!(self.reader, Reader::Blind)
    }

    /// The error it speaks of, if it does.
    pub(crate) fn error(&self) -> Option<&ErrorFacts> {
        self.facts().and_then(|facts| facts.error.as_ref())
    }

    /// Bytes of text the model has said: below 0x80, and from there on. `None` if nobody could
    /// count them.
    pub(crate) fn said(&self) -> Option<(u64, u64)> {
        self.facts().map(|facts| (facts.said.ascii, facts.said.non_ascii))
    }

    /// The usage that was reported, if any.
    pub(crate) fn usage(&self) -> UsageEnvelope {
        let Some(facts) = self.facts() else { return UsageEnvelope::default() };
        let mut usage = usage::envelope(&facts.usage);
        if facts.content {
            usage.note_content();
        }
        usage
    }
}

/// Who reads decoded bytes.
pub(super) trait Sink {
    /// Reads some.
    fn feed(&mut self, decoded: &[u8]);
}

impl Sink for ReplyScan {
    fn feed(&mut self, decoded: &[u8]) {
        ReplyScan::feed(self, decoded);
    }
}

/// Where decoded bytes go: to a reader, as many as are allowed.
pub(super) struct Counted<S> {
    sink: S,
    seen: u64,
    allowed: u64,
}

impl<S: Sink> Counted<S> {
    pub(super) fn new(sink: S) -> Counted<S> {
        Counted { sink, seen: 0, allowed: 0 }
    }

    /// So many coded bytes are on their way.
    pub(super) fn allow(&mut self, coded: usize) {
        self.allowed += RATIO_MAX * coded as u64;
    }

    /// The reader.
    pub(super) fn sink(&self) -> &S {
        &self.sink
    }

    /// The reader, to be told of the end.
    pub(super) fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }
}

impl<S: Sink> Write for Counted<S> {
    fn write(&mut self, decoded: &[u8]) -> io::Result<usize> {
        self.seen += decoded.len() as u64;
        if self.seen > self.allowed {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.sink.feed(decoded);
        Ok(decoded.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::http1::Framing;
    use codec::usage::Provenance;
    use flate2::{Compression, write::GzEncoder};

    const ANSWER: &str = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],
        "usage":{"prompt_tokens":11,"completion_tokens":3,"total_tokens":14}}"#;

    fn reply(status: u16, media: Media, coding: Coding) -> Reply {
        Reply::new(&AnswerHead {
            len: 0,
            status,
            framing: Framing::UntilClose,
            keep_alive: true,
            media,
            coding,
            retry_after_ms: None,
            written: Vec::new(),
        })
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_gzip_body_is_read_in_any_pieces() {
        let coded = gzip(ANSWER.as_bytes());
        for size in [1, 7, coded.len()] {
            let mut reply = reply(200, Media::Json, Coding::Gzip);
            coded.chunks(size).for_each(|piece| reply.feed(piece));
            let usage = reply.usage();
            assert_eq!((usage.input_fresh, usage.output), (11, 3), "{size}");
            assert_eq!(usage.provenance, Provenance::Reported);
            assert_eq!(reply.worth(), Worth::Something);
        }
    }

    #[test]
    fn a_bomb_and_a_broken_stream_are_not_read_on() {
        let zeros = gzip(&vec![b' '; 4 << 20]);
        let mut reply = reply(200, Media::Json, Coding::Gzip);
        zeros.chunks(1024).for_each(|piece| reply.feed(piece));
        assert_eq!(reply.usage().provenance, Provenance::Missing);
        assert_eq!(reply.worth(), Worth::Something, "what cannot be read is passed on");
    }

    #[test]
    fn a_success_must_have_something_in_it() {
        for (status, body, verdict) in [
            (200, ANSWER, Worth::Something),
            (200, r#"{"usage":{"prompt_tokens":1,"completion_tokens":1}}"#, Worth::Something),
            (200, "{}", Worth::Nothing),
            (200, "", Worth::Nothing),
            (200, r#"{"a":1}"#, Worth::Nothing),
            (200, r#"{"error":{"message":"x"}}"#, Worth::Error),
            (200, r#"{"error":{"message":"x"},"usage":{"prompt_tokens":0}}"#, Worth::Error),
            (200, r#"{"usage":{"prompt_tokens":9},"error":{"message":"x"}}"#, Worth::Error),
            (200, r#"{"error":null,"usage":{"prompt_tokens":9}}"#, Worth::Something),
            (200, "<html>", Worth::Malformed),
            (429, "{}", Worth::Something),
        ] {
            let mut reply = reply(status, Media::Json, Coding::Identity);
            reply.feed(body.as_bytes());
            assert_eq!(reply.worth(), verdict, "{status} {body}");
        }
    }

    #[test]
    fn another_coding_is_passed_on_unread() {
        let mut reply = reply(200, Media::Json, Coding::Unknown);
        reply.feed(b"\x1b\x00");
        assert_eq!(reply.worth(), Worth::Something);
        assert_eq!(reply.usage().provenance, Provenance::Missing);
    }
}
