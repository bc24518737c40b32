//! What an answer's body is worth, read in pass: its usage, and whether there is anything in it.
//!
//! A gzip body goes to the client as it came and is decoded here on the side, one block at a
//! time; another coding is not read, and its usage is missing.
//!
//! Bound: a body that grows more than [`RATIO_MAX`]-fold when decoded is not read further.

use crate::exchange::refusal::Refusal;
use crate::pipeline::answer::{AnswerHead, Coding, Media};
use codec::json::{ReplyFacts, ReplyScan};
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

#[expect(clippy::large_enum_variant, reason = "the large one is what every answer uses")]
enum Reader {
    Plain(ReplyScan),
    /// Allocates: nobody was asked to compress.
    Gzip(Box<GzDecoder<Counted>>),
    /// Not JSON, or a coding nobody here reads.
    Blind,
}

impl Reply {
    /// Of the answer with this head.
    pub(crate) fn new(head: &AnswerHead) -> Reply {
        let reader = match (head.media, head.coding) {
            (Media::Json, Coding::Identity) => Reader::Plain(ReplyScan::new()),
            (Media::Json, Coding::Gzip) => {
                Reader::Gzip(Box::new(GzDecoder::new(Counted::default())))
            }
            (Media::Other, _) | (Media::Json, Coding::Unknown) => Reader::Blind,
        };
        Reply { success: (200..300).contains(&head.status), reader }
    }

    /// Reads body bytes as they pass.
    pub(crate) fn feed(&mut self, body: &[u8]) {
        match &mut self.reader {
            Reader::Plain(scan) => scan.feed(body),
            Reader::Gzip(decoder) => {
                decoder.get_mut().allowed += RATIO_MAX * body.len() as u64;
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
            Reader::Gzip(decoder) => Some(decoder.get_ref().scan.finish()),
            Reader::Blind => None,
        }
    }

    /// Judges a success whose whole body has been read before a byte went out.
    pub(crate) fn judge_whole(&self) -> Result<(), Refusal> {
        let Some(facts) = self.facts().filter(|_| self.success) else { return Ok(()) };
        let something = facts.content || facts.finish.is_some() || !facts.usage.is_empty();
        match (something, facts.error.is_some() || facts.malformed) {
            (true, _) => Ok(()),
            (false, true) => Err(Refusal::UpstreamInvalid),
            (false, false) => Err(Refusal::EmptyCompletion),
        }
    }

    /// The usage that was reported, if any.
    pub(crate) fn usage(&self) -> UsageEnvelope {
        self.facts().map_or_else(UsageEnvelope::default, |facts| usage::envelope(&facts.usage))
    }
}

/// Where decoded bytes go: into a scan, as many as are allowed.
#[derive(Default)]
struct Counted {
    scan: ReplyScan,
    seen: u64,
    allowed: u64,
}

impl Write for Counted {
    fn write(&mut self, decoded: &[u8]) -> io::Result<usize> {
        self.seen += decoded.len() as u64;
        if self.seen > self.allowed {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.scan.feed(decoded);
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
            assert_eq!(reply.judge_whole(), Ok(()));
        }
    }

    #[test]
    fn a_bomb_and_a_broken_stream_are_not_read_on() {
        let zeros = gzip(&vec![b' '; 4 << 20]);
        let mut reply = reply(200, Media::Json, Coding::Gzip);
        zeros.chunks(1024).for_each(|piece| reply.feed(piece));
        assert_eq!(reply.usage().provenance, Provenance::Missing);
        assert_eq!(reply.judge_whole(), Ok(()), "what cannot be read is passed on");
    }

    #[test]
    fn a_success_must_have_something_in_it() {
        for (status, body, verdict) in [
            (200, ANSWER, Ok(())),
            (200, r#"{"usage":{"prompt_tokens":1,"completion_tokens":1}}"#, Ok(())),
            (200, "{}", Err(Refusal::EmptyCompletion)),
            (200, "", Err(Refusal::EmptyCompletion)),
            (200, r#"{"a":1}"#, Err(Refusal::EmptyCompletion)),
            (200, r#"{"error":{"message":"x"}}"#, Err(Refusal::UpstreamInvalid)),
            (200, "<html>", Err(Refusal::UpstreamInvalid)),
            (429, "{}", Ok(())),
        ] {
            let mut reply = reply(status, Media::Json, Coding::Identity);
            reply.feed(body.as_bytes());
            assert_eq!(reply.judge_whole(), verdict, "{status} {body}");
        }
    }

    #[test]
    fn another_coding_is_passed_on_unread() {
        let mut reply = reply(200, Media::Json, Coding::Unknown);
        reply.feed(b"\x1b\x00");
        assert_eq!(reply.judge_whole(), Ok(()));
        assert_eq!(reply.usage().provenance, Provenance::Missing);
    }
}
