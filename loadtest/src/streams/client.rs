//! The reading end of one stream: takes the framing off and compares every byte with what the
//! upstream sends. Keeps a head that is not whole and nothing of the stream.

use super::text::Text;
use crate::tls::Socket;
use crate::wire::{BodyReader, Framing, Head};

/// Largest head that is waited for: far above what a gateway adds to ours.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// What a server may put between events to keep a silent stream alive: a comment line or an event
/// `ping`. Told apart from content by its first byte where an event begins, or by its name.
const BEATS: [&[u8]; 2] = [b": ", b"event: ping\n"];

/// How far a stream is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// No request is under way.
    #[default]
    Idle,
    /// Its request is sent.
    Asked,
    /// Content has come.
    Open,
    /// The whole stream has come.
    Done,
    /// It broke, or what came is not what was sent.
    Failed,
}

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    /// `None` once it is over.
    pub(super) stream: Option<Socket>,
    pub(super) state: State,
    /// Content events that have come whole.
    pub(super) events: u64,
    /// Heartbeats between them.
    pub(super) beats: u64,
    body: Option<BodyReader>,
    held: Vec<u8>,
    /// Where in the content the next byte lies.
    at: Place,
    /// Within a heartbeat: the bytes of it so far.
    beat: Vec<u8>,
    /// Content events of the whole stream, once the upstream has ended it.
    pub(super) total: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// 0 before content, 1 within a content event, 2 behind them.
    part: usize,
    offset: usize,
}

impl Client {
    pub(super) fn new(stream: Socket) -> Client {
        Client {
            stream: Some(stream),
            state: State::Idle,
            events: 0,
            beats: 0,
            body: None,
            held: Vec::new(),
            at: Place { part: 0, offset: 0 },
            beat: Vec::new(),
            total: None,
        }
    }

    /// A request is under way.
    pub(super) fn ask(&mut self) {
        self.state = State::Asked;
        self.events = 0;
        self.at = Place { part: 0, offset: 0 };
        self.total = None;
        self.body = None;
    }

    /// Takes bytes; the number of content events that ended in them.
    pub(super) fn feed(&mut self, bytes: &[u8], text: &Text) -> u64 {
        let before = self.events;
        if self.taken(bytes, text).is_none() {
            self.state = State::Failed;
        }
        self.events - before
    }

    fn taken(&mut self, bytes: &[u8], text: &Text) -> Option<()> {
        if let Some(body) = self.body {
            return self.content(body, bytes, text);
        }
        if !matches!(self.state, State::Asked) {
            return None;
        }
        self.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.held);
        let Some(head) = Head::find(&held) else {
            self.held = held;
            return (self.held.len() <= HEAD_BYTES_MAX).then_some(());
        };
        if head.status()? != 200 {
            return None;
        }
        let body = BodyReader::new(Framing::of_answer(&head, 200).ok()?);
        self.content(body, &held[head.len()..], text)
    }

    fn content(&mut self, mut body: BodyReader, bytes: &[u8], text: &Text) -> Option<()> {
        let mut good = true;
        let used = body.feed(bytes, |piece| good &= self.compare(piece, text).is_some()).ok()?;
        if !good || used < bytes.len() {
            return None;
        }
        self.body = Some(body);
        if self.events > 0 && self.state == State::Asked {
            self.state = State::Open;
        }
        if body.done() {
            // a body that ends before its stream does was cut by somebody
            let over = self.at == Place { part: 2, offset: text.content[2].len() };
            self.body = None;
            self.state = if over { State::Done } else { State::Failed };
        }
        Some(())
    }

    fn compare(&mut self, mut piece: &[u8], text: &Text) -> Option<()> {
        while !piece.is_empty() {
            if !self.beat.is_empty() {
                piece = self.beat_on(piece)?;
                continue;
            }
            if self.at == (Place { part: 1, offset: 0 }) && self.total == Some(self.events) {
                self.at.part = 2;
            }
            let part = &text.content[self.at.part];
            if self.at.offset == part.len() {
                self.next_part()?;
                continue;
            }
            let rest = &part[self.at.offset..];
            let n = rest.len().min(piece.len());
            if piece[..n] != rest[..n] {
                let alike = rest.iter().zip(piece).take_while(|(a, b)| a == b).count();
                self.beat.extend_from_slice(&part[..self.at.offset]);
                self.beat.extend_from_slice(&piece[..=alike]);
                self.at.offset = 0;
                piece = self.beat_on(&piece[alike + 1..])?;
                continue;
            }
            self.at.offset += n;
            piece = &piece[n..];
            if self.at.part == 1 && self.at.offset == part.len() {
                self.events += 1;
            }
        }
        Some(())
    }

    /// Behind a whole part: another content event, or the tail once the upstream has begun it.
    fn next_part(&mut self) -> Option<()> {
        let part = match self.at.part {
            2 => return None,
            _ if self.total == Some(self.events) => 2,
            _ => 1,
        };
        self.at = Place { part, offset: 0 };
        Some(())
    }

    /// Goes on with a heartbeat up to its blank line.
    fn beat_on<'a>(&mut self, piece: &'a [u8]) -> Option<&'a [u8]> {
        let end = memchr::memchr(b'\n', piece).map_or(piece.len(), |at| at + 1);
        self.beat.extend_from_slice(&piece[..end]);
        let fits = |known: &&[u8]| {
            let n = known.len().min(self.beat.len());
            known[..n] == self.beat[..n]
        };
        if self.beat.len() > HEAD_BYTES_MAX || !BEATS.iter().any(fits) {
            return None;
        }
        if self.beat.ends_with(b"\n\n") {
            self.beats += 1;
            self.beat.clear();
        }
        Some(&piece[end..])
    }
}
