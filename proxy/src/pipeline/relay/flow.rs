//! What passes of a stream, read on the way: which bytes may go, which stay back, which go
//! nowhere, and what the stream has said so far.
//!
//! Bytes are held back while they may still turn out to be the terminator (which waits for the
//! price) or the usage chunk of a client that did not ask for it. A stream in a coding goes as it
//! came: gzip is decoded on the side, so that its usage is known and the price is in the record
//! before the piece that ends it goes; another coding is not read.
//!
//! What stands behind the terminator goes nowhere. Of a gzip stream nothing can be taken out: the
//! piece that has its end goes as it came, and behind it [`CODED_TAIL_MAX`] bytes.
//!
//! Bounds: [`HELD_MAX`] bytes of one event are held back; a gzip stream is read up to
//! [`super::reply::RATIO_MAX`]-fold its size.

use super::reply::{Counted, Sink};
use crate::pipeline::answer::Coding;
use crate::pipeline::arriving::Arriving;
use codec::json::ErrorFacts;
use codec::sse::{Dialect, Kind, Part, Reach, StreamScan};
use codec::usage::UsageEnvelope;
use flate2::write::GzDecoder;
use std::io::Write;

/// Bytes of one unfinished event that are held back at most. Terminators and usage chunks are a
/// few hundred bytes; an event of megabytes passes as it comes, all but its end. A usage chunk of
/// that size is dropped as it comes if its choices and its usage stand before what makes it long.
const HELD_MAX: usize = 64 * 1024;

/// Bytes of a gzip stream that may still come behind the piece in which its events ended: an empty
/// last block and the checksum are some twenty.
const CODED_TAIL_MAX: u8 = 64;

/// A stream being read.
pub(super) struct Flow {
    reader: Reader,
    /// Chunks that were only asked for by us are not shown.
    hide_usage: bool,
    /// Bytes of the body that were read.
    scanned: usize,
    /// Bytes of it that may go.
    clear: usize,
    /// The last byte that may go is inside an event.
    inside: bool,
    /// Bytes of the event at hand went although it was not certain what it is.
    let_go: bool,
    /// Something other than a preamble was seen.
    begun: bool,
    /// Content of it was not only announced.
    content: bool,
    /// Where in the body the first event lies that is an error, if it came before all content; of
    /// a stream in a coding, nowhere.
    first_error: Option<Stretch>,
    /// A byte order mark may still pass.
    mark: bool,
    /// The event at hand is a usage chunk that is not shown, and too long to be held.
    swallows: bool,
    /// Bytes came behind the end of the stream.
    surplus: bool,
    /// So many coded ones.
    behind: u8,
}

/// From one place of a body to another, small because it is part of every connection.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    from: u32,
    to: u32,
}

impl Stretch {
    /// Of what is held at once, which is far below 4 GiB.
    fn of(from: usize, to: usize) -> Stretch {
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Stretch { from: narrow(from), to: narrow(to) }
    }
}

#[expect(clippy::large_enum_variant, reason = "the large one is what every stream uses")]
enum Reader {
    Plain(StreamScan),
    /// Allocates: nobody was asked to compress.
    Gzip(Box<GzDecoder<Counted<Events>>>),
    /// A coding nobody here reads.
    Blind,
}

/// Decoded bytes of a stream in a coding.
struct Events {
    scan: StreamScan,
    begun: bool,
    error_first: bool,
}

impl Sink for Events {
    fn feed(&mut self, mut decoded: &[u8]) {
        while let Some(part) = self.scan.next(decoded) {
            decoded = decoded.get(part.len..).unwrap_or_default();
            if !waits(&part, self.begun) {
                self.error_first |= part.kind == Kind::Error && !self.begun;
                self.begun |= begins(part.kind);
            }
        }
    }
}

/// Whether more of an event has to come before anything is done with it: it may be what is kept
/// back, or it begins to be an error that comes before all else, which nobody is to see if another
/// candidate does better.
fn waits(part: &Part, begun: bool) -> bool {
    match part.reach {
        Reach::Open => true,
        Reach::Passing => part.kind == Kind::Error && !begun,
        Reach::Whole | Reach::Trailing | Reach::Cut => false,
    }
}

/// Whether an event of this kind settles that the answer is this candidate's (DESIGN §6).
fn begins(kind: Kind) -> bool {
    match kind {
        Kind::Mark | Kind::Silent | Kind::Preamble => false,
        Kind::Content | Kind::Usage | Kind::Finish | Kind::Error | Kind::End => true,
    }
}

impl Flow {
    pub(super) fn new(dialect: Dialect, coding: Coding, hide_usage: bool) -> Flow {
        let scan = StreamScan::new(dialect);
        let reader = match coding {
            Coding::Identity => Reader::Plain(scan),
            Coding::Gzip => {
                let events = Events { scan, begun: false, error_first: false };
                Reader::Gzip(Box::new(GzDecoder::new(Counted::new(events))))
            }
            Coding::Unknown => Reader::Blind,
        };
        Flow {
            reader,
            hide_usage,
            scanned: 0,
            clear: 0,
            inside: false,
            let_go: false,
            begun: false,
            content: false,
            first_error: None,
            mark: true,
            swallows: false,
            surplus: false,
            behind: 0,
        }
    }

    /// Reads what has come since.
    pub(super) fn take_in(&mut self, body: &mut Arriving) {
        match &mut self.reader {
            Reader::Plain(_) => self.scan(body),
            Reader::Gzip(decoder) => {
                let fresh = body.body().get(self.scanned..).unwrap_or_default();
                if decoder.get_ref().sink().scan.is_terminated() {
                    let more = u8::try_from(fresh.len()).unwrap_or(u8::MAX);
                    self.behind = self.behind.saturating_add(more);
                    if self.behind > CODED_TAIL_MAX {
                        self.surplus = true;
                        body.remove(self.scanned, body.len());
                        return;
                    }
                }
                decoder.get_mut().allow(fresh.len());
                let broken = decoder.write_all(fresh).and_then(|()| decoder.flush()).is_err();
                let events = decoder.get_ref().sink();
                self.begun |= events.begun;
                if events.error_first {
                    self.first_error.get_or_insert_default();
                }
                // What is wrong behind the end is no part of the stream, whose usage stands.
                let over = events.scan.is_terminated();
                self.all_clear(body);
                if broken && over {
                    self.surplus = true;
                } else if broken {
                    self.reader = Reader::Blind;
                    self.begun = true;
                }
            }
            Reader::Blind => {
                self.begun |= body.len() > 0;
                self.all_clear(body);
            }
        }
    }

    fn all_clear(&mut self, body: &Arriving) {
        (self.scanned, self.clear, self.inside) = (body.len(), body.len(), true);
    }

    fn scan(&mut self, body: &mut Arriving) {
        let Reader::Plain(scan) = &mut self.reader else { return };
        loop {
            let rest = body.body().get(self.scanned..).unwrap_or_default();
            if scan.is_over(rest) {
                // Nobody prices what stands behind the end, and nobody is to have it.
                self.surplus |= !rest.is_empty();
                body.remove(self.scanned, body.len());
                break;
            }
            let Some(part) = scan.next(rest) else { break };
            self.scanned += part.len;
            if waits(&part, self.begun) {
                continue;
            }
            if part.kind == Kind::Error && !self.begun && part.reach == Reach::Whole {
                self.first_error = Some(Stretch::of(self.clear, self.scanned));
            }
            self.content |= part.kind == Kind::Content;
            self.begun |= begins(part.kind);
            let hidden = match part.kind {
                _ if self.swallows => true,
                Kind::Usage => self.hide_usage && !self.let_go,
                Kind::Mark => !self.mark,
                _ => false,
            };
            if hidden {
                body.remove(self.clear, self.scanned);
                self.scanned = self.clear;
            } else {
                self.clear = self.scanned;
                self.inside = part.reach == Reach::Passing;
            }
            (self.let_go, self.swallows) = (false, false);
        }
        if self.scanned - self.clear > HELD_MAX {
            self.swallows |= self.hide_usage && !self.let_go && scan.is_in_usage();
            if self.swallows {
                body.remove(self.clear, self.scanned);
                self.scanned = self.clear;
            } else {
                (self.clear, self.inside, self.let_go) = (self.scanned, true, true);
            }
        }
    }

    /// No more will come; `framed` as its body's framing says: then what was held back may go, as
    /// far as it came, unless it is what is not shown. What an unfinished event said counts.
    pub(super) fn end(&mut self, framed: bool, body: &mut Arriving) {
        let (scan, plain) = match &mut self.reader {
            Reader::Plain(scan) => (scan, true),
            Reader::Gzip(decoder) => (&mut decoder.get_mut().sink_mut().scan, false),
            Reader::Blind => return,
        };
        if let Some(part) = scan.end() {
            if part.kind == Kind::Error && !self.begun && plain {
                let here = Stretch::of(self.clear, self.scanned);
                self.first_error.get_or_insert(here);
            }
            self.begun |= begins(part.kind);
            let usage = part.kind == Kind::Usage && self.hide_usage && !self.let_go;
            let hidden = usage || self.swallows;
            if framed && plain && hidden {
                body.remove(self.clear, self.scanned);
                self.scanned = self.clear;
            } else {
                self.inside |= framed;
            }
        }
        if framed {
            self.clear = self.scanned;
        }
    }

    /// Whether more came than belongs to the stream.
    pub(super) fn has_surplus(&self) -> bool {
        self.surplus
    }

    /// The body was let go: what comes now begins anew.
    pub(super) fn forget(&mut self) {
        (self.scanned, self.clear) = (0, 0);
    }

    /// How many bytes at the front of the body may go.
    pub(super) fn clear(&self) -> usize {
        self.clear
    }

    /// They are gone.
    pub(super) fn gone(&mut self) {
        self.scanned -= self.clear;
        self.clear = 0;
    }

    /// Other bytes than these were put before the stream: a mark would stand inside it.
    pub(super) fn no_mark(&mut self) {
        self.mark = false;
    }

    /// Whether bytes of our own may follow what may go now.
    pub(super) fn is_between_events(&self) -> bool {
        !self.inside
    }

    /// Whether it is this candidate's answer that the client gets.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Where the first event lies, with the bytes before it, if all it says is an error.
    pub(super) fn first_error(&self) -> Option<(usize, usize)> {
        let Stretch { from, to } = self.first_error.filter(|_| !self.content)?;
        Some((from as usize, to as usize))
    }

    fn events(&self) -> Option<&StreamScan> {
        match &self.reader {
            Reader::Plain(scan) => Some(scan),
            Reader::Gzip(decoder) => Some(&decoder.get_ref().sink().scan),
            Reader::Blind => None,
        }
    }

    /// Whether it can be read: else only its framing says how it ended.
    pub(super) fn is_read(&self) -> bool {
        self.events().is_some()
    }

    /// Whether the client gets what was written, so that bytes of our own can be put in.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.reader, Reader::Plain(_))
    }

    pub(super) fn is_terminated(&self) -> bool {
        self.events().is_some_and(StreamScan::is_terminated)
    }

    pub(super) fn is_succeeded(&self) -> bool {
        self.events().is_some_and(StreamScan::is_succeeded)
    }

    /// Whether the stream itself has said that something went wrong.
    pub(super) fn has_error(&self) -> bool {
        self.events().is_some_and(|scan| scan.error().is_some())
    }

    /// Whether that is the last thing it has said.
    pub(super) fn is_told_off(&self) -> bool {
        self.has_error() && self.is_plain() && self.is_between_events()
    }

    /// What it says of that.
    pub(super) fn error(&self) -> Option<&ErrorFacts> {
        self.events().and_then(StreamScan::error)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events().is_some_and(StreamScan::is_empty)
    }

    /// The usage, as far as it was said.
    pub(super) fn usage(&self) -> UsageEnvelope {
        self.events().map_or_else(UsageEnvelope::default, StreamScan::usage)
    }

    /// Bytes of text the model has said: below 0x80, and from there on. `None` if nobody could
    /// read them.
    pub(super) fn said(&self) -> Option<(u64, u64)> {
        self.events().map(|scan| scan.said()).map(|said| (said.ascii, said.non_ascii))
    }
}
