//! The request as the upstream gets it: a head of ours, and the client's body with no more than
//! two of its spans replaced: the model's name, and the option that makes a stream report usage.
//!
//! A small request is one flat piece; of a large one only what is replaced is copied.

use super::client::Client;
use super::open::Call;
use super::parse::Request;
use super::tracing;
use crate::config::snapshot::Provider;
use crate::io::buffers::Buffers;
use crate::upstream::outgoing::{FLAT_MAX, From, Outgoing};
use crate::upstream::request::{Parts, write_head};
use codec::json::Span;

/// The edits of a body, in its order.
struct Rewrite<'e> {
    edits: [(Span, &'e [u8]); 2],
    count: usize,
}

impl<'e> Rewrite<'e> {
    fn new(call: &Call<'_>, model: &'e [u8]) -> Rewrite<'e> {
        let nothing = (Span::default(), [].as_slice());
        let mut rewrite = Rewrite { edits: [nothing; 2], count: 0 };
        let model = call.edit.map(|span| (span, model));
        for edit in [model, call.usage_edit].into_iter().flatten() {
            if let Some(place) = rewrite.edits.get_mut(rewrite.count) {
                *place = edit;
                rewrite.count += 1;
            }
        }
        rewrite
            .edits
            .get_mut(..rewrite.count)
            .unwrap_or_default()
            .sort_by_key(|(span, _)| span.start);
        rewrite
    }

    fn edits(&self) -> &[(Span, &'e [u8])] {
        self.edits.get(..self.count).unwrap_or_default()
    }

    fn is_some(&self) -> bool {
        self.count > 0
    }

    /// Length of a body of `len` bytes once it is edited.
    fn len(&self, len: usize) -> usize {
        self.edits().iter().fold(len, |len, (span, bytes)| len - span.len() + bytes.len())
    }

    /// Appends the edited body.
    fn copy(&self, body: &[u8], out: &mut Vec<u8>) {
        let mut from = 0;
        for (span, bytes) in self.edits() {
            out.extend_from_slice(body.get(from..span.start).unwrap_or_default());
            out.extend_from_slice(bytes);
            from = span.end;
        }
        out.extend_from_slice(body.get(from..).unwrap_or_default());
    }

    /// Adds the head that is written already, and the edited body where it lies.
    fn pieces(&self, outgoing: &mut Outgoing, (start, end): (usize, usize)) {
        let mut written = outgoing.written.len();
        outgoing.push(From::Written, 0, written);
        let mut from = start;
        for (span, bytes) in self.edits() {
            outgoing.written.extend_from_slice(bytes);
            outgoing.push(From::Request, from, start + span.start);
            outgoing.push(From::Written, written, outgoing.written.len());
            written = outgoing.written.len();
            from = start + span.end;
        }
        outgoing.push(From::Request, from, end);
    }
}

/// Head and body, as one flat piece or as pieces of the buffers they lie in.
pub(super) fn write_request<S>(
    (outgoing, buffers): (&mut Outgoing, &Buffers),
    client: &Client<S>,
    request: &Request,
    call: &Call<'_>,
    provider: &Provider,
    (number, span): (u8, u64),
) {
    let body = call.received.body();
    let rewrite = Rewrite::new(call, &client.model);
    let body_len = rewrite.len(body.len());
    let (front, lines) = client.forward.split_at(request.query_len);
    let (trace, query) = front.split_at(tracing::line(front).len());
    let unchanged = client.forward.len() - request.query_len;
    let kept = if rewrite.is_some() { request.digests_at - request.query_len } else { unchanged };
    let parts = Parts {
        path: request.route.upstream_path().unwrap_or_default(),
        query,
        trace,
        span,
        lines: &lines[..kept],
        has_version: request.anthropic,
        request_id: &call.id,
        attempt: number,
        body_len: body_len as u64,
    };
    let out = &mut outgoing.written;
    write_head(out, provider, provider.credential(call.current().credential), &parts);
    if out.len() + body_len <= FLAT_MAX {
        let room = out.len() + body_len;
        buffers.grow(out, room);
        rewrite.copy(body, out);
        let end = out.len();
        outgoing.push(From::Written, 0, end);
    } else {
        rewrite.pieces(outgoing, (call.received.start, call.received.end));
    }
}
