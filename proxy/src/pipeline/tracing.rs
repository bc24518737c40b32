//! The trace of a request: read from its head, written for the next hop before anything else that
//! goes on, so that its place is known. A request without a trace begins one; what a span is called
//! is left to chance. No span is recorded here: the trace's id is in the record, the others are for
//! the logs of others.
//!
//! Bound: a line of fixed length, and a `tracestate` that the head's own bound holds.

use codec::http1::Fields;
use codec::trace_context::{self, LINE_BYTES, MEMBERS_MAX, Trace, members};

/// Numbers by chance, for a trace that begins here and for its first span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fresh {
    pub(super) trace: [u64; 2],
    pub(super) span: u64,
}

/// Whether a request has a trace already, or begins one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// Its head names one.
    There,
    /// Here.
    Here,
}

/// Writes the line, at the front of what goes on: first of all, so that whatever becomes of the
/// request its answer can name the trace.
pub(super) fn begin(bytes: &[u8], fields: &Fields, fresh: Fresh, forward: &mut Vec<u8>) -> Begun {
    let known = known(bytes, fields);
    let trace = known.unwrap_or_else(|| {
        let [high, low] = fresh.trace;
        // Never zero, which is no id.
        let id = u128::from(high) << 64 | u128::from(low.max(1));
        Trace { id: id.to_be_bytes(), flags: 0 }
    });
    forward.extend_from_slice(&trace.line(fresh.span));
    if known.is_some() { Begun::There } else { Begun::Here }
}

/// Writes the state, behind everything else. That of no trace means nothing.
pub(super) fn hand_on(bytes: &[u8], fields: &Fields, begun: Begun, forward: &mut Vec<u8>) {
    if begun == Begun::There && is_sound(bytes, fields) {
        write_state(bytes, fields, forward);
    }
}

/// The line of a request whose head was read.
pub(super) fn line(forward: &[u8]) -> &[u8] {
    forward.get(..LINE_BYTES).unwrap_or_default()
}

/// The trace's id in that line.
pub(super) fn id(forward: &[u8]) -> Option<[u8; 16]> {
    trace_context::id_of(line(forward))
}

/// The trace that the request names; of two nobody knows which one is meant.
fn known(bytes: &[u8], fields: &Fields) -> Option<Trace> {
    let mut named = values(bytes, fields, b"traceparent");
    let first = named.next()?;
    if named.next().is_some() { None } else { Trace::parse(first) }
}

/// Whether the fields of the state, which are one list, can go on as one.
fn is_sound(bytes: &[u8], fields: &Fields) -> bool {
    let mut count = 0;
    let sound = values(bytes, fields, b"tracestate").all(|value| {
        let here = members(value);
        count += here.unwrap_or_default();
        here.is_some()
    });
    sound && (1..=MEMBERS_MAX).contains(&count)
}

fn write_state(bytes: &[u8], fields: &Fields, forward: &mut Vec<u8>) {
    let mut before: &[u8] = b"tracestate: ";
    for value in values(bytes, fields, b"tracestate") {
        if members(value) == Some(0) {
            continue;
        }
        forward.extend_from_slice(before);
        forward.extend_from_slice(value);
        before = b",";
    }
    forward.extend_from_slice(b"\r\n");
}

fn values<'b>(
    bytes: &'b [u8],
    fields: &'b Fields,
    name: &'static [u8],
) -> impl Iterator<Item = &'b [u8]> {
    let named = fields.iter(bytes).filter(move |(known, _)| known.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value)
}
