//! Streams: events of a dialect, put into writes, framed. A stream asked for whole is another
//! answer and made in `compile`. Bounds: those of `facts`.

mod chat;
mod event;
mod facts;
mod messages;
mod shape;

pub(super) use shape::{Report, Stream};

use std::ops::Range;

use self::event::{Event, Kind};
use self::facts::Facts;
use self::shape::{LineEnd, Spoken};
use super::ask::{Dialect, Form};
use super::call::Call;
use super::completion;
use super::gzip::Member;
use super::message::{self, Head, Message, Piece};
use super::scenario::{Amount, Framing, Text};
use super::script::Mark;

/// Builds the stream for one call.
pub(super) fn message(stream: &Stream, call: Call<'_>) -> Result<Message, String> {
    if stream.gzip && stream.framing == Framing::Length {
        return Err("a compressed stream has no length beforehand".to_owned());
    }
    let mut events = events(stream, call)?;
    for event in &mut events {
        event.text = with_line_ends(&event.text, stream.line_end);
    }
    let length = events.iter().map(|event| event.text.len()).sum();
    let mut half = false;
    if let Some(cut) = &stream.cut {
        let behind = behind_content(&events, cut.after.value(call)?);
        half = cut.inside && behind < events.len();
        events.truncate(behind + usize::from(half));
    }
    let mut writer = Writer::new(stream);
    writer.all(&events, stream, call)?;
    if stream.cut.is_none() && !stream.unended {
        writer.end(stream);
    }
    let mut pieces = writer.pieces;
    if half {
        halve_the_last_event(&mut pieces);
    }
    let head = Head {
        version: &stream.version,
        status: stream.status,
        reason: stream.reason.as_deref(),
        content_type: stream.content_type.as_deref(),
        headers: &stream.headers,
        framing: stream.framing,
        length,
    };
    Ok(Message { head: head.bytes(), pieces, hidden: writer.hidden })
}

/// The content of the usual stream in its parts: what comes before content, one content event,
/// and what comes behind all of them, usage included.
pub(super) fn parts(model: &str, dialect: Dialect) -> Result<[Vec<u8>; 3], String> {
    let form = Form { dialect, stream: true, include_usage: true };
    let stream = Stream { events: Amount::Fixed(1), ..Stream::default() };
    let events = events(&stream, Call { model, form, ..Call::default() })?;
    let mut parts = <[Vec<u8>; 3]>::default();
    let mut at = 0;
    for event in events {
        let content = event.kind == Kind::Content;
        at = if content {
            1
        } else if at > 0 {
            2
        } else {
            0
        };
        parts[at].extend_from_slice(&event.text);
    }
    Ok(parts)
}

fn events(stream: &Stream, call: Call<'_>) -> Result<Vec<Event>, String> {
    if let Some(raw) = &stream.raw {
        return Ok(raw.iter().map(given).collect());
    }
    let facts = Facts::of(stream, call)?;
    let spoken = stream.dialect.unwrap_or(match call.form.dialect {
        Dialect::Messages | Dialect::CountTokens => Spoken::Messages,
        Dialect::Chat | Dialect::None => Spoken::Chat,
    });
    let mut events = match spoken {
        Spoken::Chat => chat::events(&facts),
        Spoken::Messages => messages::events(&facts),
    };
    if let Some(fault) = &stream.error {
        events.truncate(behind_content(&events, fault.after.value(call)?));
        events.push(match spoken {
            Spoken::Chat => chat::error(fault),
            Spoken::Messages => messages::error(fault),
        });
    }
    Ok(events)
}

/// An event given as text: only its end mark and comments are known.
fn given(text: &Text) -> Event {
    let text = completion::text_bytes(text);
    let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
    let kind = if has(b"[DONE]") || has(b"\"message_stop\"") {
        Kind::Terminator
    } else if text.starts_with(b":") {
        Kind::Comment
    } else {
        Kind::Content
    };
    Event::text(kind, text)
}

/// The place behind the `count`th content event; for 0 the one before the first.
fn behind_content(events: &[Event], count: u64) -> usize {
    let mut seen = 0;
    for (at, event) in events.iter().enumerate() {
        match event.kind {
            Kind::Content if count == 0 => return at,
            Kind::Content => {
                seen += 1;
                if seen == count {
                    return at + 1;
                }
            }
            Kind::Closing | Kind::Terminator if count == 0 => return at,
            Kind::Preamble | Kind::Comment | Kind::Closing | Kind::Terminator => {}
        }
    }
    events.len()
}

fn with_line_ends(text: &[u8], line_end: LineEnd) -> Vec<u8> {
    let end: &[u8] = match line_end {
        LineEnd::Lf => return text.to_vec(),
        LineEnd::Crlf => b"\r\n",
        LineEnd::Cr => b"\r",
    };
    let mut out = Vec::with_capacity(text.len() + 8);
    for &byte in text {
        match byte {
            b'\n' => out.extend_from_slice(end),
            byte => out.push(byte),
        }
    }
    out
}

/// Sends half of what lies behind the last event but one.
fn halve_the_last_event(pieces: &mut Vec<Piece>) {
    let mut before = 0;
    let mut ends = Vec::new();
    for piece in &*pieces {
        if let Piece::Bytes(bytes, marks) = piece {
            ends.extend(marks.iter().map(|mark| before + mark.at));
            before += bytes.len() as u64;
        }
    }
    let last = ends.pop().unwrap_or(0);
    let start = ends.pop().unwrap_or(0);
    let kept = start + (last - start) / 2;
    message::truncate(pieces, usize::try_from(kept).unwrap_or(usize::MAX));
}

/// Puts events into framed writes.
struct Writer {
    pieces: Vec<Piece>,
    member: Option<Member>,
    chunked: bool,
    extension: String,
    /// Content so far.
    content: u64,
    hidden: Option<Range<u64>>,
}

impl Writer {
    fn new(stream: &Stream) -> Writer {
        Writer {
            pieces: Vec::new(),
            member: stream.gzip.then(Member::default),
            chunked: stream.framing == Framing::Chunked,
            extension: stream.chunk_extension.clone(),
            content: 0,
            hidden: None,
        }
    }

    fn all(&mut self, events: &[Event], stream: &Stream, call: Call<'_>) -> Result<(), String> {
        let batch = call.batch.map_or_else(|| stream.batch.value(call), Ok)?;
        let batch = usize::try_from(batch).unwrap_or(usize::MAX).max(1);
        let pace = call.every_ms.map_or_else(|| stream.pace_ms.value(call), Ok)?;
        let (pause_at, pause) = match &stream.pause {
            Some(pause) => {
                let ms = pause.s.value(call)?.saturating_mul(1000);
                let ms = ms.saturating_add(pause.ms.value(call)?);
                (behind_content(events, pause.after.value(call)?), ms)
            }
            None => (events.len(), 0),
        };
        let (before, after) = events.split_at(pause_at.min(events.len()));
        self.paced(before, batch, pace);
        if pause > 0 {
            self.pieces.push(Piece::WaitMs(pause));
        } else if !before.is_empty() && !after.is_empty() {
            self.wait(pace);
        }
        self.paced(after, batch, pace);
        Ok(())
    }

    fn paced(&mut self, events: &[Event], batch: usize, pace: u64) {
        for (n, events) in events.chunks(batch).enumerate() {
            if n > 0 {
                self.wait(pace);
            }
            self.write(events);
        }
    }

    fn wait(&mut self, ms: u64) {
        if ms > 0 {
            self.pieces.push(Piece::WaitMs(ms));
        }
    }

    /// One write.
    fn write(&mut self, events: &[Event]) {
        let (mut content, mut marks) = (Vec::new(), Vec::with_capacity(events.len()));
        for event in events {
            let start = self.content + content.len() as u64;
            content.extend_from_slice(&event.text);
            if event.hidden && self.member.is_none() {
                self.hidden = Some(start..start + event.text.len() as u64);
            }
            marks.push(Mark {
                at: content.len() as u64,
                event: event.kind != Kind::Comment,
                content: event.kind == Kind::Content,
                terminator: event.kind == Kind::Terminator,
                usage: event.usage,
            });
        }
        if let Some(member) = &mut self.member {
            let plain = std::mem::take(&mut content);
            member.write(&plain, &mut content);
            // nothing of a block is to be read before all of it is there
            marks.iter_mut().for_each(|mark| mark.at = content.len() as u64);
        }
        self.content += content.len() as u64;
        self.push(content, marks);
    }

    /// Frames content.
    fn push(&mut self, content: Vec<u8>, mut marks: Vec<Mark>) {
        if !self.chunked {
            self.pieces.push(Piece::Bytes(content, marks));
            return;
        }
        if content.is_empty() {
            return;
        }
        let mut framed = Vec::with_capacity(content.len() + 16);
        message::chunk(&content, &self.extension, &mut framed);
        // behind the content two bytes are left
        let before = (framed.len() - 2 - content.len()) as u64;
        marks.iter_mut().for_each(|mark| mark.at += before);
        self.pieces.push(Piece::Bytes(framed, marks));
    }

    /// The end of the body, within the last write.
    fn end(&mut self, stream: &Stream) {
        let mut content = Vec::new();
        if let Some(member) = self.member.take() {
            member.end(b"", &mut content);
        }
        let mut end = Vec::new();
        if self.chunked {
            if !content.is_empty() {
                message::chunk(&content, &self.extension, &mut end);
            }
            message::last_chunk(&self.extension, &stream.trailers, &mut end);
        } else {
            end = content;
        }
        match self.pieces.last_mut() {
            Some(Piece::Bytes(bytes, _)) => bytes.extend_from_slice(&end),
            _ => self.pieces.push(Piece::Bytes(end, Vec::new())),
        }
    }
}
