//! What the stand-in received and what it answered, one entry a request. Kept as bytes while
//! traffic runs and made readable only when asked for. Bounds: the configured number of entries
//! and `BYTES_MAX` of heads; what comes after that is counted, not kept.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::ask::{Dialect, Form};
use super::request::Request;
use super::script::{Digest, Script, Sent, Usage};
use crate::clock;
use crate::wire::{Framing, Head};

/// Entries kept unless configured otherwise: a minute of a busy test.
pub const ENTRIES_MAX: usize = 65_536;

/// Bytes of heads kept, so that large heads cannot fill memory.
const BYTES_MAX: usize = 64 << 20;

/// Bytes of requests kept in capture, for the same reason.
const CAPTURE_BYTES_MAX: usize = 256 << 20;

/// Fields whose values are replaced by a short hash.
const CREDENTIALS: [&str; 7] = [
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "x-tollgate-key",
    "cookie",
];

/// One request as it came in, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Order of arrival, from 0, over all connections.
    pub sequence: u64,
    /// The connection it came on, from 0.
    pub connection: u64,
    /// Its place on that connection, from 0.
    pub on_connection: u64,
    /// `x-tollgate-request-id`: the join key with the gateway's records.
    pub request_id: Option<String>,
    /// `x-tollgate-attempt`.
    pub attempt: Option<String>,
    /// The method.
    pub method: String,
    /// The target, query included.
    pub path: String,
    /// The model named in the body; empty if none.
    pub model: String,
    /// The scenario played, `malformed` for what is no request, `models` for the list of
    /// them, `none` for other paths.
    pub script: String,
    /// Status of the answer that a reader of all bytes sent would see; 0 for none.
    pub status: u16,
    /// Usage that the answer reports, if it is sent whole.
    #[serde(flatten)]
    pub usage: Usage,
    /// The dialect of the path.
    pub dialect: Dialect,
    /// A stream was asked for.
    pub stream: bool,
    /// `stream_options.include_usage` was true.
    pub include_usage: bool,
    /// Bytes of the answer given to the kernel.
    pub sent_bytes: u64,
    /// A whole answer was given to the kernel.
    pub sent_whole: bool,
    /// The script has ended.
    pub ended: bool,
    /// The peer ended or broke the connection before the script had ended.
    pub peer_left: bool,
    /// Milliseconds from the request's arrival to that.
    pub left_after_ms: Option<u64>,
    /// Events of a stream given to the kernel whole; comments are none. This and what follows is
    /// known once the script has ended.
    pub events_sent: u64,
    /// Those of them that carry content.
    pub content_events_sent: u64,
    /// `[DONE]` or `message_stop` was given to the kernel whole.
    pub terminator_sent: bool,
    /// The last usage given to the kernel, running or final.
    pub usage_sent: Usage,
    /// That was the final count.
    pub usage_final: bool,
    /// What a reader of the bytes sent has as content of the body …
    pub content: Digest,
    /// … and what of it a client has to see that did not ask for usage: without that chunk.
    pub shown: Digest,
    /// Names in lower case, in order; values of credentials as `crc32:…`.
    pub headers: Vec<(String, String)>,
    /// `length`, `chunked` or `none`.
    pub framing: &'static str,
    /// Bytes of the body without its framing, as far as it was read.
    pub body_bytes: u64,
    /// CRC-32 of these.
    pub body_crc32: u32,
}

impl Entry {
    /// The first field of this name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// The sums over everything, dropped entries included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Requests received, malformed ones included.
    pub requests: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Connections open now.
    pub open: u64,
    /// Answers that were sent whole.
    pub whole: u64,
    /// Entries that found no room.
    pub dropped: u64,
    /// Requests by scenario.
    pub by_script: BTreeMap<String, u64>,
}

/// What a request is noted as.
#[derive(Clone, Debug)]
pub(super) struct Note<'a> {
    pub(super) connection: u64,
    pub(super) on_connection: u64,
    pub(super) form: Form,
    pub(super) model: &'a [u8],
    pub(super) script: &'a Rc<str>,
    pub(super) played: Option<&'a Script>,
    pub(super) status: u16,
}

#[derive(Debug)]
struct Record {
    head: Box<[u8]>,
    model: Box<[u8]>,
    script: Rc<str>,
    connection: u64,
    on_connection: u64,
    status: u16,
    form: Form,
    usage: Usage,
    arrived: Instant,
    sent: Sent,
    ended: bool,
    left: Option<Duration>,
    framing: &'static str,
    body_bytes: u64,
    body_crc32: u32,
}

/// The tally of a running stand-in.
#[derive(Debug)]
pub(super) struct Tally {
    records: Vec<Record>,
    records_max: usize,
    record_bytes: usize,
    /// Sequence number of the first record.
    first: u64,
    next: u64,
    captured: VecDeque<Vec<u8>>,
    captured_max: usize,
    captured_bytes: usize,
    connections: u64,
    open: u64,
    whole: u64,
    dropped: u64,
    by_script: Vec<(Rc<str>, u64)>,
}

impl Tally {
    pub(super) fn new(records_max: usize, captured_max: usize) -> Tally {
        Tally {
            records: Vec::new(),
            records_max,
            record_bytes: 0,
            first: 0,
            next: 0,
            captured: VecDeque::new(),
            captured_max,
            captured_bytes: 0,
            connections: 0,
            open: 0,
            whole: 0,
            dropped: 0,
            by_script: Vec::new(),
        }
    }

    /// Counts a connection and gives it its number.
    pub(super) fn connection(&mut self) -> u64 {
        self.connections += 1;
        self.open += 1;
        self.connections - 1
    }

    /// A connection is gone.
    pub(super) fn disconnection(&mut self) {
        self.open -= 1;
    }

    /// Notes a request and gives it its sequence number.
    pub(super) fn note(&mut self, request: &Request<'_>, note: &Note<'_>) -> u64 {
        let sequence = self.next;
        self.next += 1;
        self.count(note.script);
        if self.captured_max > 0 {
            self.capture(request.raw);
        }
        if self.records_max == 0 {
            return sequence;
        }
        // a gap in the middle would make `first` wrong: once full, full until cleared
        if self.dropped > 0
            || self.records.len() >= self.records_max
            || self.record_bytes >= BYTES_MAX
        {
            self.dropped += 1;
            return sequence;
        }
        self.record_bytes += request.head.len() + note.model.len();
        self.records.push(Record {
            head: request.head.bytes().into(),
            model: note.model.into(),
            script: Rc::clone(note.script),
            connection: note.connection,
            on_connection: note.on_connection,
            status: note.status,
            form: note.form,
            usage: note.played.and_then(|script| script.usage).unwrap_or_default(),
            arrived: clock::now(),
            sent: Sent::default(),
            ended: false,
            left: None,
            framing: match request.framing {
                Framing::Length(_) => "length",
                Framing::Chunked => "chunked",
                Framing::None | Framing::UntilClose => "none",
            },
            body_bytes: request.body.len() as u64,
            body_crc32: crc32fast::hash(request.body),
        });
        sequence
    }

    /// Notes how the answer of `sequence` ended: after so many bytes of `script`.
    pub(super) fn end(&mut self, sequence: u64, script: &Script, bytes: u64, whole: bool) {
        self.whole += u64::from(whole);
        if let Some(record) = self.record(sequence) {
            record.sent = script.sent(bytes, whole);
            record.ended = true;
        }
    }

    /// Notes that the peer of `sequence` is gone before the end.
    pub(super) fn peer_left(&mut self, sequence: u64) {
        if let Some(record) = self.record(sequence) {
            record.left.get_or_insert_with(|| clock::now() - record.arrived);
        }
    }

    fn record(&mut self, sequence: u64) -> Option<&mut Record> {
        let at = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        self.records.get_mut(at)
    }

    /// How many kept entries have ended.
    pub(super) fn ended(&self) -> usize {
        self.records.iter().filter(|record| record.ended).count()
    }

    /// All entries from `sequence` on.
    pub(super) fn entries(&self, sequence: u64) -> impl Iterator<Item = Entry> + '_ {
        let skip = usize::try_from(sequence.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let first = self.first;
        let numbered = (first..).zip(&self.records);
        numbered.skip(skip).map(|(sequence, record)| entry(sequence, record))
    }

    /// The captured requests, oldest first.
    pub(super) fn captured(&self) -> Vec<Vec<u8>> {
        self.captured.iter().cloned().collect()
    }

    /// The sums.
    pub(super) fn counts(&self) -> Counts {
        Counts {
            requests: self.next,
            connections: self.connections,
            open: self.open,
            whole: self.whole,
            dropped: self.dropped,
            by_script: self.by_script.iter().map(|(name, n)| (name.to_string(), *n)).collect(),
        }
    }

    /// Forgets entries, captures and sums; sequence and connection numbers go on.
    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.record_bytes = 0;
        self.first = self.next;
        self.captured.clear();
        self.captured_bytes = 0;
        self.whole = 0;
        self.dropped = 0;
        self.by_script.clear();
    }

    fn count(&mut self, script: &Rc<str>) {
        // few scripts are in use at once, and the same one mostly: a scan beats a map
        match self.by_script.iter_mut().find(|(name, _)| Rc::ptr_eq(name, script)) {
            Some((_, n)) => *n += 1,
            None => match self.by_script.iter_mut().find(|(name, _)| name == script) {
                Some((_, n)) => *n += 1,
                None => self.by_script.push((Rc::clone(script), 1)),
            },
        }
    }

    fn capture(&mut self, raw: &[u8]) {
        self.captured.push_back(raw.to_vec());
        self.captured_bytes += raw.len();
        while self.captured.len() > self.captured_max || self.captured_bytes > CAPTURE_BYTES_MAX {
            match self.captured.pop_front() {
                Some(oldest) => self.captured_bytes -= oldest.len(),
                None => break,
            }
        }
    }
}

fn entry(sequence: u64, record: &Record) -> Entry {
    let head = Head::kept(&record.head);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (method, path, _) = head.request_line().unwrap_or_else(|| (b"", head.start_line(), b""));
    Entry {
        sequence,
        connection: record.connection,
        on_connection: record.on_connection,
        request_id: head.field("x-tollgate-request-id").map(text),
        attempt: head.field("x-tollgate-attempt").map(text),
        method: text(method),
        path: text(path),
        model: text(&record.model),
        script: record.script.to_string(),
        status: record.status,
        usage: record.usage,
        dialect: record.form.dialect,
        stream: record.form.stream,
        include_usage: record.form.include_usage,
        sent_bytes: record.sent.bytes,
        sent_whole: record.sent.whole,
        ended: record.ended,
        peer_left: record.left.is_some(),
        left_after_ms: record.left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)),
        events_sent: record.sent.events,
        content_events_sent: record.sent.content_events,
        terminator_sent: record.sent.terminator,
        usage_sent: record.sent.usage,
        usage_final: record.sent.usage_final,
        content: record.sent.content,
        shown: record.sent.shown,
        headers: head.fields().flatten().map(shown).collect(),
        framing: record.framing,
        body_bytes: record.body_bytes,
        body_crc32: record.body_crc32,
    }
}

fn shown((name, value): (&[u8], &[u8])) -> (String, String) {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let value = if CREDENTIALS.contains(&name.as_str()) {
        hashed(value)
    } else {
        String::from_utf8_lossy(value).into_owned()
    };
    (name, value)
}

/// What the tally shows in place of a credential.
pub fn hashed(value: &[u8]) -> String {
    format!("crc32:{:08x}", crc32fast::hash(value))
}
