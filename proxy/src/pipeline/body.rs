//! The body as it arrives: one growing buffer, scanned by the piece.
//!
//! The buffer grows with what was received, at most fourfold at a time whatever was announced, and
//! leases its room from the shard's allowance. A key that is limited in calls in flight is limited
//! in bodies that take room, too: whoever may make one call at once cannot hold all there is. A
//! read brings at most 64 KiB, so a turn scans no more than that. Bytes behind the body belong to
//! the next request and go back to the client's inbox.

use super::Unserved;
use super::arriving::Arriving;
use super::client::{Client, Presence};
use super::parse::Request;
use crate::exchange::bundle::Bundle;
use crate::exchange::limits::Concurrency;
use crate::exchange::refusal::Refusal;
use crate::io::buffers::{self, Buffers};
use crate::io::turn::{Event, Turn};
use crate::io::{Chunk, Io, Recall, Stream};
use crate::shard::Shard;
use crate::shard::allowance::Lease;
use codec::http1::TrailerRule;
use codec::json::{JsonError, JsonErrorKind, RequestScan, RequestSpans};

/// A request that is wholly here. Dropped, it gives its buffer to the shard and its room to the
/// allowance.
pub(super) struct Received<'s> {
    /// Head and body.
    pub bytes: Vec<u8>,
    /// Where the body begins.
    pub start: usize,
    /// One past its end.
    pub end: usize,
    lease: Lease,
    buffers: &'s Buffers,
}

impl Received<'_> {
    /// The body.
    pub(super) fn body(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Lets the request go before its end.
    pub(super) fn let_go(&mut self) {
        self.buffers.give(std::mem::take(&mut self.bytes));
        self.lease.give_up();
    }
}

impl Drop for Received<'_> {
    fn drop(&mut self) {
        self.buffers.give(std::mem::take(&mut self.bytes));
    }
}

/// What became of the body of a refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// It was read to its end: the connection can serve the next request.
    Read,
    /// Part of it may still come: the connection is of no further use.
    Unread,
}

/// Largest body that is read for nothing: a `GET` may carry one.
const DISCARD_BYTES: u64 = 64 * 1024;

/// A request's body on its way, and its room.
struct Body<'b> {
    arriving: Arriving,
    max: u64,
    lease: Lease,
    door: Door<'b>,
}

/// A place among the bodies of a key that take room, until this one is here.
struct Door<'b> {
    limit: Option<&'b Concurrency>,
    taken: bool,
}

impl Door<'_> {
    /// Takes it, if it is not taken yet.
    fn enter(&mut self) -> Result<(), Refusal> {
        let Some(limit) = self.limit.filter(|_| !self.taken) else { return Ok(()) };
        self.taken = limit.coming.enter(limit.max);
        if self.taken { Ok(()) } else { Err(Refusal::ConcurrencyLimited) }
    }
}

impl Drop for Door<'_> {
    fn drop(&mut self) {
        if let Some(limit) = self.limit.filter(|_| self.taken) {
            limit.coming.leave();
        }
    }
}

/// Reads a call's body to its end.
pub(super) async fn read<'s, I: Io>(
    shard: &'s Shard<I>,
    client: &mut Client<I::Stream>,
    request: &Request,
    bundle: &Bundle,
) -> Result<(Received<'s>, RequestSpans), Unserved> {
    let max = shard.snapshot.pin().bounds.request_bytes;
    let limit = bundle.limits.concurrent.as_ref();
    let mut body = Body::new(shard, client, request, (max, limit));
    let filled = fill(shard, client, request, &mut body).await;
    let Body { arriving: Arriving { buffer, start, end, .. }, lease, .. } = body;
    let received = Received { bytes: buffer, start, end, lease, buffers: &shard.buffers };
    Ok((received, filled?))
}

async fn fill<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    request: &Request,
    body: &mut Body<'_>,
) -> Result<RequestSpans, Unserved> {
    let stall = shard.snapshot.pin().deadlines.body;
    let buffers = &shard.buffers;
    let mut scan = RequestScan::new();
    let mut step = body.decode();
    if step == Ok(()) && request.expects_continue && body.arriving.is_unbegun() {
        send_continue(shard, client, stall).await?;
    }
    loop {
        step.map_err(|refusal| body.refuse(refusal, client, buffers))?;
        if body.arriving.done {
            break;
        }
        // What is wrong is known as soon as it has arrived: the rest need not come.
        let scanned = scan.advance(body.arriving.body());
        scanned.map_err(|e| body.refuse(of_json(e), client, buffers))?;
        let room = body.make_room(buffers);
        room.map_err(|refusal| body.refuse(refusal, client, buffers))?;
        read_more(client, &mut body.arriving, stall).await?;
        step = body.decode();
    }
    let spans = scan.finish(body.arriving.body());
    let spans = spans.map_err(|e| body.refuse(of_json(e), client, buffers))?;
    body.hand_surplus_back(client, buffers);
    Ok(spans)
}

/// Reads a body away that the route has no use for.
pub(super) async fn discard<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    request: &Request,
) -> Result<(), Unserved> {
    let mut body = Body::new(shard, client, request, (DISCARD_BYTES, None));
    let read = read_away(shard, client, &mut body).await;
    shard.buffers.give(body.arriving.buffer);
    read
}

async fn read_away<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    body: &mut Body<'_>,
) -> Result<(), Unserved> {
    let stall = shard.snapshot.pin().deadlines.body;
    let buffers = &shard.buffers;
    loop {
        body.decode().map_err(|refusal| body.refuse(refusal, client, buffers))?;
        if body.arriving.done {
            break;
        }
        let room = body.make_room(buffers);
        room.map_err(|refusal| body.refuse(refusal, client, buffers))?;
        read_more(client, &mut body.arriving, stall).await?;
    }
    body.hand_surplus_back(client, buffers);
    Ok(())
}

/// What a JSON fault is to the caller.
fn of_json(error: JsonError) -> Refusal {
    match error.kind {
        JsonErrorKind::ModelMissing => Refusal::ModelMissing,
        _ => Refusal::InvalidRequest { param: error.param(), why: error.message() },
    }
}

async fn send_continue<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    stall: std::time::Duration,
) -> Result<(), Unserved> {
    let mut line = shard.buffers.take();
    line.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
    let (chunk, sent) = client.send(Chunk::whole(line), stall).await;
    shard.buffers.give(chunk.bytes);
    sent.map_err(|_| Unserved::ClientGone)
}

/// One more read into the body's buffer.
async fn read_more<S: Stream>(
    client: &mut Client<S>,
    body: &mut Arriving,
    stall: std::time::Duration,
) -> Result<(), Unserved> {
    client.stream.start_read(std::mem::take(&mut body.buffer), Recall::Never);
    client.timer.arm(stall);
    loop {
        match Turn::client(&mut client.stream, &client.timer).await {
            Event::ClientRead(done) => {
                client.timer.disarm();
                body.buffer = done.buffer;
                return match done.result {
                    Ok(0) => {
                        client.presence = Presence::HalfClosed;
                        let why = "The connection ended inside the body.";
                        let refusal = Refusal::InvalidRequest { param: None, why };
                        Err(Unserved::Refused(refusal, Rest::Unread))
                    }
                    Ok(_) => Ok(()),
                    Err(_) => Err(Unserved::ClientGone),
                };
            }
            // The read keeps its buffer; the answer goes out beside it and the close ends it.
            Event::Fired => {
                client.timer.disarm();
                return Err(Unserved::Refused(Refusal::RequestTimeout, Rest::Unread));
            }
            _ => {}
        }
    }
}

// === impl Body ===

impl<'b> Body<'b> {
    fn new<I: Io>(
        shard: &Shard<I>,
        client: &mut Client<I::Stream>,
        request: &Request,
        (max, limit): (u64, Option<&'b Concurrency>),
    ) -> Body<'b> {
        let buffer = std::mem::take(&mut client.inbox);
        let rule = TrailerRule::RefuseReserved;
        let arriving = Arriving::new(buffer, request.head_len, request.framing, rule);
        let door = Door { limit, taken: false };
        Body { arriving, max, lease: shard.allowance.lease(), door }
    }

    /// Judges what has arrived, against the route's bound.
    fn decode(&mut self) -> Result<(), Refusal> {
        let decoded = self.arriving.decode();
        decoded.map_err(|why| Refusal::InvalidRequest { param: None, why })?;
        if self.arriving.len() as u64 > self.max { Err(Refusal::TooLarge) } else { Ok(()) }
    }

    /// Room for the next read, leased before it is taken: never more than the largest body allowed
    /// here needs, so that one that fits the bound fits the allowance too.
    fn make_room(&mut self, buffers: &Buffers) -> Result<(), Refusal> {
        if let Some(twice) = self.arriving.wanted_capacity() {
            self.door.enter()?;
            let most = self.arriving.largest(self.max);
            // What was announced saves steps, each of which copies what is here.
            let step = self.arriving.announced().map_or(twice, |_| twice.saturating_mul(2));
            let wanted = most.min(step);
            let room = buffers::room(wanted);
            let capacity = if room as u64 <= self.max { room } else { wanted };
            self.lease.grow_to(capacity as u64).map_err(|_| Refusal::NodeBusy)?;
            self.arriving.grow_to(capacity, buffers);
        }
        Ok(())
    }

    /// A refusal of this request. If the body is wholly here, the connection lives on.
    fn refuse<S: Stream>(
        &mut self,
        refusal: Refusal,
        client: &mut Client<S>,
        buffers: &Buffers,
    ) -> Unserved {
        if !self.arriving.done {
            return Unserved::Refused(refusal, Rest::Unread);
        }
        self.hand_surplus_back(client, buffers);
        Unserved::Refused(refusal, Rest::Read)
    }

    /// Bytes behind the body are the beginning of the next request.
    fn hand_surplus_back<S: Stream>(&mut self, client: &mut Client<S>, buffers: &Buffers) {
        let surplus = self.arriving.surplus();
        if !surplus.is_empty() {
            client.inbox = buffers.take_room(surplus.len());
            client.inbox.extend_from_slice(surplus);
        }
        self.arriving.buffer.truncate(self.arriving.end);
    }
}
