//! A scenario made ready: bytes to send and what to do between them. Immutable and shared by all
//! requests that ask for the same model in the same form.

use std::ops::Range;
use std::rc::Rc;

use serde::Serialize;

use crate::wire::{self, Head};

/// Usage an answer reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// All tokens of the prompt, cached ones included.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
    /// Those of the prompt that were read from a cache.
    pub cached_tokens: u64,
}

/// One thing done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Send(Rc<[u8]>),
    WaitMs(u64),
    Close,
    CloseHard,
    Reset,
    Hang,
}

/// What is complete once the bytes up to a place are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Bytes up to its end.
    pub(super) at: u64,
    /// An event of a stream; a comment is none.
    pub(super) event: bool,
    pub(super) content: bool,
    pub(super) terminator: bool,
    /// Usage, and whether it is the final count.
    pub(super) usage: Option<(Usage, bool)>,
}

/// Length and CRC-32 of some content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Digest {
    /// Bytes.
    pub bytes: u64,
    /// Their sum.
    pub crc32: u32,
}

/// What of a script's answer has been sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) bytes: u64,
    pub(super) whole: bool,
    pub(super) events: u64,
    pub(super) content_events: u64,
    pub(super) terminator: bool,
    pub(super) usage: Usage,
    pub(super) usage_final: bool,
    pub(super) content: Digest,
    pub(super) shown: Digest,
}

/// What one request gets.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) actions: Vec<Action>,
    /// In order of place.
    pub(super) marks: Vec<Mark>,
    /// The part of the answer's content that is a chunk of usage alone.
    pub(super) hidden: Option<Range<u64>>,
    /// Bytes of the body after which it begins; `None` waits for the whole request.
    pub(super) early: Option<u64>,
    /// What a strict reader makes of all of it.
    pub(super) read: Read,
    /// What the answer reports; `None` if nothing or if it is cut before its end.
    pub(super) usage: Option<Usage>,
    /// Most bytes of one write.
    pub(super) split: Option<usize>,
    pub(super) pace_ms: u64,
}

/// What a strict reader makes of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Read {
    /// Bytes there are.
    pub(super) bytes: u64,
    /// The status of the first answer that is not an interim one; 0 if its head is not whole.
    pub(super) status: u16,
    /// Whether that answer is whole.
    pub(super) whole: bool,
    /// The content of its body …
    pub(super) content: Digest,
    /// … and the same without what is hidden.
    pub(super) shown: Digest,
}

impl Script {
    /// What has been sent once the first `bytes` have.
    pub(super) fn sent(&self, bytes: u64, whole: bool) -> Sent {
        let mut sent = Sent { bytes, whole, ..Sent::default() };
        for mark in self.marks.iter().take_while(|mark| mark.at <= bytes) {
            sent.events += u64::from(mark.event);
            sent.content_events += u64::from(mark.content);
            sent.terminator |= mark.terminator;
            if let Some((usage, last)) = mark.usage {
                (sent.usage, sent.usage_final) = (usage, last);
            }
        }
        let read = if bytes >= self.read.bytes {
            self.read
        } else {
            read(&self.actions, bytes, self.hidden.as_ref())
        };
        (sent.content, sent.shown) = (read.content, read.shown);
        sent
    }
}

/// What a strict reader makes of the first `limit` bytes of `actions`.
pub(super) fn read(actions: &[Action], limit: u64, hidden: Option<&Range<u64>>) -> Read {
    let mut bytes = Vec::new();
    for action in actions {
        if let Action::Send(part) = action {
            let left = usize::try_from(limit).unwrap_or(usize::MAX) - bytes.len();
            bytes.extend_from_slice(&part[..part.len().min(left)]);
        }
    }
    let mut read = Read { bytes: bytes.len() as u64, ..Read::default() };
    let mut rest = bytes.as_slice();
    loop {
        let Some(head) = Head::find(rest) else { return read };
        let Some(status) = head.status() else { return read };
        rest = &rest[head.len()..];
        if matches!(status, 100 | 102..200) {
            continue;
        }
        read.status = status;
        let Ok(framing) = wire::Framing::of_answer(&head, status) else { return read };
        let mut reader = wire::BodyReader::new(framing);
        let (mut content, mut shown) = (Summed::default(), Summed::default());
        let framed = reader.feed(rest, |piece| {
            let at = content.bytes;
            content.add(piece);
            shown.add_but(piece, at, hidden);
        });
        let ends_in_order = matches!(actions.last(), Some(Action::Close));
        read.whole =
            framed.is_ok() && (reader.done() || (ends_in_order && reader.ends_with_close()));
        (read.content, read.shown) = (content.digest(), shown.digest());
        return read;
    }
}

#[derive(Default)]
struct Summed {
    bytes: u64,
    sum: crc32fast::Hasher,
}

impl Summed {
    fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.sum.update(piece);
    }

    /// Adds what of `piece`, which lies at `at`, is not hidden.
    fn add_but(&mut self, piece: &[u8], at: u64, hidden: Option<&Range<u64>>) {
        let Some(hidden) = hidden else { return self.add(piece) };
        let place =
            |to: u64| usize::try_from(to.saturating_sub(at)).unwrap_or(usize::MAX).min(piece.len());
        self.add(&piece[..place(hidden.start)]);
        self.add(&piece[place(hidden.end)..]);
    }

    fn digest(self) -> Digest {
        Digest { bytes: self.bytes, crc32: self.sum.finalize() }
    }
}

/// Whom the rounds are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounds {
    /// Every request gets the same.
    Same,
    /// By attempts of one call.
    Call,
    /// By requests on one connection.
    Connection,
    /// By requests that name the same model.
    Model,
}

/// All scripts of one model name in one form.
#[derive(Debug)]
pub(super) struct Play {
    /// The scenario's name, which may differ from the model's.
    pub(super) name: Rc<str>,
    pub(super) rounds: Rounds,
    pub(super) scripts: Vec<Rc<Script>>,
}

impl Play {
    /// The script of the `n`th request, counted from 0; the last one repeats.
    pub(super) fn round(&self, n: usize) -> Option<&Rc<Script>> {
        self.scripts.get(n).or_else(|| self.scripts.last())
    }

    /// The least number of body bytes after which some round begins.
    pub(super) fn early(&self) -> Option<u64> {
        self.scripts.iter().filter_map(|script| script.early).min()
    }
}
