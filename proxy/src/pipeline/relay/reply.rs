//! What an answer is worth: its media type, and, read in pass, its usage and whether there is
//! anything in it.

use crate::exchange::refusal::Refusal;
use codec::http1::{self, Fields};
use codec::json::ReplyScan;
use codec::usage::{self, UsageEnvelope};

/// What kind of body an answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Media {
    /// JSON, or nothing said.
    Json,
    /// Something else.
    Other,
}

/// An answer being judged.
pub(crate) struct Reply {
    status: u16,
    media: Media,
    coded: bool,
    scan: ReplyScan,
}

impl Reply {
    /// Looks at a head that was parsed before.
    pub(crate) fn new(bytes: &[u8], status: u16) -> Reply {
        let mut fields = Fields::new();
        let mut reply = Reply { status, media: Media::Json, coded: false, scan: ReplyScan::new() };
        if let Ok(Some(_)) = http1::parse_response(bytes, &mut fields, false) {
            if let Some(kind) = fields.first(bytes, "content-type") {
                reply.media = media(kind);
            }
            let coding = fields.first(bytes, "content-encoding");
            reply.coded = coding.is_some_and(|c| !c.is_empty() && c != b"identity");
        }
        reply
    }

    /// What the head alone rules out.
    pub(crate) fn judge_head(&self) -> Result<(), Refusal> {
        match self.status {
            401 => Err(Refusal::UpstreamAuth),
            200..=299 if self.media == Media::Other => Err(Refusal::UpstreamInvalid),
            204 | 205 | 300..=399 | ..200 => Err(Refusal::UpstreamInvalid),
            _ => Ok(()),
        }
    }

    /// Reads body bytes as they pass.
    pub(crate) fn feed(&mut self, body: &[u8]) {
        if !self.coded && self.media == Media::Json {
            self.scan.feed(body);
        }
    }

    /// Judges a success whose whole body has been read before a byte went out.
    pub(crate) fn judge_whole(&mut self) -> Result<(), Refusal> {
        if !(200..300).contains(&self.status) || self.coded {
            return Ok(());
        }
        let facts = self.scan.finish();
        let finished = facts.content || facts.finish.is_some() || !facts.usage.is_empty();
        match (finished, facts.error.is_some() || facts.malformed) {
            (true, _) => Ok(()),
            (false, true) => Err(Refusal::UpstreamInvalid),
            (false, false) => Err(Refusal::EmptyCompletion),
        }
    }

    /// The usage that was reported, if any.
    pub(super) fn usage(&self) -> UsageEnvelope {
        usage::envelope(&self.scan.finish().usage)
    }
}

/// `application/json` and `…+json`, parameters aside.
fn media(value: &[u8]) -> Media {
    let kind = value.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    let json = kind.eq_ignore_ascii_case(b"application/json")
        || kind.len() > 5 && kind[kind.len() - 5..].eq_ignore_ascii_case(b"+json");
    if json { Media::Json } else { Media::Other }
}
