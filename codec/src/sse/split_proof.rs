//! What must hold for every stream however it is cut, as questions that the tests and the fuzz
//! targets ask. They allocate and panic where it does not hold; nothing on the data path may call
//! them.

use super::{Dialect, Field, Kind, Part, Reach, Splitter, StreamScan, Token};
use crate::json::{ErrorFacts, SaidText, ShortText};
use crate::usage::UsageEnvelope;

/// What a stream was found to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRead {
    /// Its parts, those of one event put together.
    pub events: Vec<EventRead>,
    /// Where other bytes might have been put in, after the last byte.
    pub at_boundary: bool,
    /// As the scan says at the end.
    pub terminated: bool,
    /// As the scan says at the end.
    pub succeeded: bool,
    /// As the scan says at the end.
    pub reported: bool,
    /// As the scan says at the end.
    pub empty: bool,
    /// As the scan says at the end.
    pub usage: UsageEnvelope,
    /// As the scan says at the end.
    pub said: SaidText,
    /// As the scan says at the end.
    pub error: Option<ErrorFacts>,
    /// As the scan says at the end.
    pub finish: Option<ShortText>,
}

/// An event, a comment, a blank line or a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRead {
    /// Its first byte.
    pub start: usize,
    /// The byte behind it.
    pub end: usize,
    /// What it is.
    pub kind: Kind,
    /// Whether it is the terminator.
    pub terminator: bool,
    /// Its end has come.
    pub whole: bool,
}

/// The pieces of a text: first `head` bytes, then `step` at a time.
fn pieces(bytes: &[u8], head: usize, step: usize) -> impl Iterator<Item = &[u8]> {
    let (first, rest) = bytes.split_at_checked(head).unwrap_or((bytes, &[]));
    std::iter::once(first).chain(rest.chunks(step.max(1)))
}

/// Reads a stream in pieces.
///
/// # Panics
///
/// If its parts do not tile it, or one of them contradicts another.
#[must_use]
pub fn stream_split(dialect: Dialect, bytes: &[u8], head: usize, step: usize) -> StreamRead {
    let mut scan = StreamScan::new(dialect);
    let mut read = Reading::default();
    for piece in pieces(bytes, head, step) {
        let mut rest = piece;
        while let Some(part) = scan.next(rest) {
            rest = rest.get(part.len..).unwrap_or_default();
            read.take(&part);
            let between = matches!(part.reach, Reach::Whole | Reach::Trailing);
            assert_eq!(scan.at_boundary(), between, "{part:?}");
            assert!(between || rest.is_empty(), "{part:?} has its end in the same piece");
        }
        assert!(rest.is_empty(), "bytes that belong to no part");
    }
    assert_eq!(read.position, bytes.len());
    let at_boundary = scan.at_boundary();
    if let Some(part) = scan.end() {
        assert_eq!((part.len, part.reach), (0, Reach::Cut));
        read.take(&part);
    }
    StreamRead {
        events: read.events,
        at_boundary,
        terminated: scan.is_terminated(),
        succeeded: scan.is_succeeded(),
        reported: scan.is_reported(),
        empty: scan.is_empty(),
        usage: scan.usage(),
        said: scan.said(),
        error: scan.error().copied(),
        finish: scan.finish().copied(),
    }
}

#[derive(Default)]
struct Reading {
    events: Vec<EventRead>,
    position: usize,
    /// The last part let bytes go.
    passing: bool,
}

impl Reading {
    fn take(&mut self, part: &Part) {
        assert!(part.len > 0 || part.reach == Reach::Cut, "{part:?}");
        let before = usize::try_from(part.before).unwrap_or(usize::MAX);
        let Some(start) = self.position.checked_sub(before) else {
            unreachable!("{part:?} began before the stream")
        };
        self.position += part.len;
        if before > 0 {
            let earlier = self.events.pop();
            let same = earlier.is_some_and(|earlier| earlier.start == start);
            assert!(same, "{part:?} goes on with nothing");
        }
        if self.passing {
            assert!(before > 0 && !part.terminator && part.kind != Kind::Usage, "{part:?}");
        }
        self.passing = part.reach == Reach::Passing;
        let whole = matches!(part.reach, Reach::Whole | Reach::Trailing);
        let (kind, terminator) = (part.kind, part.terminator);
        self.events.push(EventRead { start, end: self.position, kind, terminator, whole });
    }
}

/// Any bytes as a stream: the first three say whose it is and how it is cut.
///
/// # Panics
///
/// If a cut changes anything, or the lines are not those of the standard.
pub fn fuzz_stream(data: &[u8]) {
    let [choice, head, step, stream @ ..] = data else { return };
    let dialect = match choice % 4 {
        0 => Dialect::Chat,
        1 => Dialect::Messages,
        2 => Dialect::Responses,
        _ => Dialect::Gemini,
    };
    let whole = stream_split(dialect, stream, stream.len(), 1);
    let lines = lines_naive(stream);
    for (head, step) in [(stream.len(), 1), (0, 1), ((*head).into(), (*step).into())] {
        assert_eq!(stream_split(dialect, stream, head, step), whole, "{head} then {step}");
        assert_eq!(lines_split(stream, head, step), lines, "{head} then {step}");
    }
}

/// A line of a stream, with what there is of its value; a blank one has no field.
pub type LineRead = (Option<Field>, Vec<u8>);

/// The lines of a stream that comes in pieces, the unfinished last one included.
///
/// # Panics
///
/// If the steps do not tile it.
#[must_use]
pub fn lines_split(bytes: &[u8], head: usize, step: usize) -> Vec<LineRead> {
    let mut splitter = Splitter::new();
    let mut lines: Vec<LineRead> = Vec::new();
    for piece in pieces(bytes, head, step) {
        let mut rest = piece;
        while let Some(step) = splitter.step(rest) {
            assert!(step.len > 0 && step.len <= rest.len(), "{step:?}");
            rest = rest.get(step.len..).unwrap_or_default();
            match step.token {
                Token::Blank => lines.push((None, Vec::new())),
                Token::Line(line) if line.opens => {
                    lines.push((Some(line.field), line.value.to_vec()));
                }
                Token::Line(line) => {
                    let open = lines.last_mut();
                    let same = open.as_ref().is_some_and(|open| open.0 == Some(line.field));
                    assert!(same, "{line:?} goes on with nothing");
                    open.into_iter().for_each(|open| open.1.extend_from_slice(line.value));
                }
                Token::Mark { .. } | Token::Name | Token::LineFeed => {}
            }
        }
        assert!(rest.is_empty());
    }
    lines
}

/// The same, read by the letter of the standard: all at once, a line at a time.
#[must_use]
pub fn lines_naive(bytes: &[u8]) -> Vec<LineRead> {
    let mut rest = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let mut lines = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        let behind = rest.get(line.len()..).unwrap_or_default();
        rest = behind.strip_prefix(b"\r\n").or_else(|| behind.get(1..)).unwrap_or_default();
        let colon = line.iter().position(|byte| *byte == b':');
        match (line, colon, end) {
            ([], _, _) => lines.push((None, Vec::new())),
            // A name without its end may go on.
            (_, None, None) => {}
            (name, None, Some(_)) => lines.push((Some(field(name)), Vec::new())),
            (line, Some(colon), _) => {
                let name = line.get(..colon).unwrap_or_default();
                let value = line.get(colon + 1..).unwrap_or_default();
                let value = value.strip_prefix(b" ").unwrap_or(value);
                lines.push((Some(field(name)), value.to_vec()));
            }
        }
    }
    lines
}

fn field(name: &[u8]) -> Field {
    match name {
        b"" => Field::Comment,
        b"data" => Field::Data,
        b"event" => Field::Event,
        b"id" => Field::Id,
        b"retry" => Field::Retry,
        _ => Field::Unknown,
    }
}
