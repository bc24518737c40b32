//! The answer → the client. Judges what came, then lets it through byte for byte.
//!
//! Up to 64 KiB are looked at before the first byte goes out (`look`): until then a broken or
//! useless answer is one more failed attempt. From the commit point on (`pump`) it is this
//! candidate's answer, whatever happens. The last bytes wait until `settle::price` has done its
//! part. A broken upstream never becomes a clean end.

mod beat;
mod flow;
mod incoming;
mod kept;
mod pricing;
mod reply;
mod stream;
mod waiting;
mod whole;

pub(super) use beat::{due_in as beat_in, send as beat};
pub(super) use kept::{Kept, tell, tell_kept};
use reply::Reply;

use super::answer::{Media, push};
use super::client::{Client, Lost, Presence};
use super::dispatch::Answer;
use super::held::Held;
use super::open::Call;
use super::refuse::write_connection;
use super::walking::{Failed, Walking};
use super::{After, leaving, settle, standing, tracing};
use crate::exchange::outcome::{Ending, Outcome};
use crate::exchange::time::MonoNs;
use crate::govern::fault::Answered;
use crate::govern::walk::{AttemptEnd, Fault};
use crate::io::Io;
use crate::shard::Shard;
use codec::http1::{self, Framing};
use codec::json::ShortText;
use codec::usage::{Provenance, UsageEnvelope};
use incoming::Incoming;
use stream::Streaming;
use whole::Whole;

/// What came of it.
pub(super) struct Delivered {
    /// For the record.
    pub outcome: Outcome,
    /// What becomes of the client's connection.
    pub after: After,
}

/// An answer at its commit point.
#[expect(
    clippy::large_enum_variant,
    reason = "both live in the connection's future, one at a time"
)]
enum Passage<'a, I: Io> {
    /// One message.
    Whole(Whole<'a, I>),
    /// A stream of events.
    Stream(Streaming<'a, I>),
}

/// How an answer's body is framed toward the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientFraming {
    /// The length is known.
    Length(u64),
    /// It is not; the client speaks HTTP/1.1.
    Chunked,
    /// It is not; the close ends it.
    Close,
}

/// Why an answer is not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It is not what was asked for, or not what it says it is.
    Invalid,
    /// It is an error, by its status or in a success.
    Error,
    /// There is nothing in it.
    Empty,
    /// It broke off.
    Cut,
    /// It took too long.
    Late,
    /// Nobody waits for it.
    ClientGone,
}

impl Unfit {
    /// Its framing went wrong. Behind bytes of an answer that is how it broke off: whoever wrote
    /// them has done the work.
    fn garbled<I: Io>(incoming: &Incoming<'_, I>) -> Unfit {
        if incoming.body.len() > 0 { Unfit::Cut } else { Unfit::Invalid }
    }
}

/// An answer of which nothing was passed on.
pub(super) enum Unpassed {
    /// It is one more failed attempt.
    Failed(Failed),
    /// Nobody waits for it.
    ClientGone,
}

/// Passes an answer on, if it turns out to be one up to its commit point; from there on nothing is
/// replayed.
pub(super) fn pump<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    call: &mut Call<'_>,
    held: &mut Held,
    walking: &mut Walking,
    answer: Answer<I::Stream>,
) -> impl Future<Output = Result<Delivered, Unpassed>> {
    // Made outside: as an argument of an async function it would lie in the future twice.
    let mut passage = Passage::new(shard, answer, call);
    async move {
        held.record.status = passage.incoming().head.status;
        let looked = match &mut passage {
            _ if client.presence == Presence::Gone => Err(Unfit::ClientGone),
            Passage::Whole(whole) => whole.look(client, call).await,
            Passage::Stream(stream) => stream.look(client, call, held).await,
        };
        let looked = match looked {
            Err(Unfit::Error) if passage.is_told_at_once(call, walking) => Ok(()),
            looked => looked,
        };
        if let Err(unfit) = looked {
            return Err(Box::pin(passage.unpassed(client, call, held, unfit)).await);
        }
        walking.answered(shard, call);
        let delivered = pass(shard, client, call, held, &mut passage).await;
        if delivered.outcome.ending == Ending::Succeeded {
            walking.went_well(shard, call);
        } else if let Some(end) = passage.broke_off(delivered.outcome.ending) {
            walking.broke_off(shard, call, end);
        }
        Ok(delivered)
    }
}

/// From the commit point to the end.
async fn pass<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    call: &mut Call<'_>,
    held: &mut Held,
    passage: &mut Passage<'_, I>,
) -> Delivered {
    call.received.let_go();
    note_times(shard.mono(), call, held, passage.incoming());
    match passage {
        Passage::Whole(whole) => whole.pump(client, call, held).await,
        Passage::Stream(stream) => stream.pump(client, call, held).await,
    }
}

/// Our own time so far, and that of the upstream to its first content.
fn note_times<I: Io>(now: MonoNs, call: &Call<'_>, held: &mut Held, incoming: &Incoming<'_, I>) {
    let waiting = incoming.arrived.since(incoming.begun);
    held.record.overhead_us = call.own_us(waiting, now);
    let content = now.since(incoming.begun) / 1000;
    held.record.first_content_us = u32::try_from(content).unwrap_or(u32::MAX);
}

impl<'a, I: Io> Passage<'a, I> {
    fn new(shard: &'a Shard<I>, answer: Answer<I::Stream>, call: &Call<'_>) -> Passage<'a, I> {
        let incoming = Incoming::new(shard, answer);
        let head = &incoming.head;
        if call.stream && head.media == Media::Events && head.is_success() {
            Passage::Stream(Streaming::new(incoming, call))
        } else {
            Passage::Whole(Whole::new(incoming))
        }
    }

    fn incoming(&mut self) -> &mut Incoming<'a, I> {
        match self {
            Passage::Whole(whole) => &mut whole.incoming,
            Passage::Stream(stream) => &mut stream.incoming,
        }
    }

    /// An answer of no use: what its end says to the walk, and its bytes if they may be told later.
    async fn unpassed(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &mut Call<'_>,
        held: &mut Held,
        unfit: Unfit,
    ) -> Unpassed {
        if unfit == Unfit::ClientGone {
            self.read_out(client, call, held).await;
        }
        let usage = self.usage();
        let incoming = self.incoming();
        let sent = incoming.is_sent();
        let end = match unfit {
            Unfit::Cut | Unfit::ClientGone => AttemptEnd::Cut { sent },
            Unfit::Late => AttemptEnd::Timeout { sent },
            Unfit::Invalid => AttemptEnd::Fault(Fault::INVALID),
            Unfit::Empty => AttemptEnd::Fault(Fault::EMPTY),
            Unfit::Error => AttemptEnd::Fault(self.fault()),
        };
        let kept = (unfit == Unfit::Error).then(|| self.keep());
        if unfit != Unfit::ClientGone && usage.provenance == Provenance::Reported {
            settle::price(self.incoming().shard, call, held, &usage);
        }
        let incoming = self.incoming();
        call.waited(incoming.begun, incoming.arrived);
        incoming.part(client, call).await;
        incoming.shed();
        match unfit {
            Unfit::ClientGone => Unpassed::ClientGone,
            _ => Unpassed::Failed(Failed { end, kept }),
        }
    }

    /// Whether it is an error that is too long to be kept, and after which nobody else is asked: it
    /// is passed on as it comes.
    fn is_told_at_once(&mut self, call: &Call<'_>, walking: &Walking) -> bool {
        let long = matches!(self, Passage::Whole(whole) if whole.is_long());
        long && !call.begun && {
            let end = AttemptEnd::Fault(self.fault());
            walking.is_last(self.incoming().shard, call, end)
        }
    }

    /// What an error says.
    fn fault(&mut self) -> Fault {
        let usage = self.usage();
        // Gateways report zeros for work that was not done.
        let usage = usage.provenance == Provenance::Reported && !usage.is_zero();
        let facts = match self {
            Passage::Whole(whole) => whole.reply.error().copied(),
            Passage::Stream(stream) => stream.flow.error().copied(),
        };
        let facts = facts.unwrap_or_default();
        let text =
            |text: &Option<ShortText>| text.as_ref().map_or(Vec::new(), |t| t.as_bytes().into());
        let (kind, code, state) = (text(&facts.kind), text(&facts.code), text(&facts.status));
        let incoming = self.incoming();
        Fault::of(&Answered {
            status: incoming.head.status,
            kind: &kind,
            code: &code,
            state: &state,
            text: incoming.body.body(),
            usage,
            retry_after_ms: incoming.head.retry_after_ms,
            own_key: false,
        })
    }

    /// The answer, to be told if nothing better comes: all of a message, the data of a stream's
    /// first event.
    fn keep(&mut self) -> Box<Kept> {
        let event = match self {
            Passage::Whole(_) => None,
            Passage::Stream(stream) => stream.flow.first_error(),
        };
        kept::keep(self.incoming(), event)
    }

    /// What the walk is told of an answer that ended like this after its commit point.
    fn broke_off(&mut self, ending: Ending) -> Option<AttemptEnd> {
        match ending {
            Ending::UpstreamCut => Some(AttemptEnd::Cut { sent: true }),
            Ending::Deadline => Some(AttemptEnd::Timeout { sent: true }),
            Ending::UpstreamError => Some(AttemptEnd::Fault(self.fault())),
            _ => None,
        }
    }

    fn usage(&self) -> UsageEnvelope {
        match self {
            Passage::Whole(whole) => whole.reply.usage(),
            Passage::Stream(stream) => stream.flow.usage(),
        }
    }

    /// The client left before a byte went out: what its answer used is still read, as far as the
    /// rule says.
    async fn read_out(
        &mut self,
        client: &mut Client<I::Stream>,
        call: &mut Call<'_>,
        held: &mut Held,
    ) {
        let shard = self.incoming().shard;
        if call.leaving.is_some() || leaving::left(shard, client, call, held) {
            if self.incoming().is_sent() {
                // It is not sent again.
                call.received.let_go();
            }
            match self {
                Passage::Whole(whole) => whole.drain(client, call).await,
                Passage::Stream(stream) => stream.drain(client, call).await,
            }
        }
        match self {
            Passage::Whole(whole) => whole.settle(call, held, Ending::ClientLeft),
            Passage::Stream(stream) => stream.close(call, held, Ending::ClientLeft),
        }
    }
}

/// Ends the client's head: our own fields, the framing, the blank line. `close`: the connection
/// ends after this answer.
fn finish_head<I: Io>(
    out: &mut Vec<u8>,
    (framing, close): (ClientFraming, bool),
    client: &Client<I::Stream>,
    (shard, call, held): (&Shard<I>, &Call<'_>, &Held),
) {
    push(out, b"x-tollgate-request-id", &call.id);
    if let Some(id) = client.caller_id() {
        push(out, b"x-request-id", id);
    }
    out.extend_from_slice(tracing::line(&client.forward));
    out.extend_from_slice(b"x-tollgate-attempts: ");
    http1::decimal(out, u64::from(held.record.attempts));
    out.extend_from_slice(b"\r\nx-tollgate-fallbacks: ");
    http1::decimal(out, u64::from(held.record.fallbacks));
    out.extend_from_slice(b"\r\nx-tollgate-overhead-us: ");
    http1::decimal(out, u64::from(held.record.overhead_us));
    out.extend_from_slice(b"\r\n");
    if let Some(bundle) = &held.bundle {
        standing::write(out, call.origin.dialect, &bundle.limits, shard.now());
    }
    match framing {
        ClientFraming::Length(n) => http1::content_length(out, n),
        ClientFraming::Chunked => push(out, b"transfer-encoding", b"chunked"),
        ClientFraming::Close => {}
    }
    write_connection(out, close || shard.draining.get(), call.origin.is_10);
    out.extend_from_slice(b"\r\n");
}

/// The client's framing for a body of which not all is here.
fn client_framing(upstream: Framing, announced: Option<u64>, is_10: bool) -> ClientFraming {
    match (upstream, announced) {
        (Framing::Length(_), Some(n)) => ClientFraming::Length(n),
        _ if is_10 => ClientFraming::Close,
        _ => ClientFraming::Chunked,
    }
}

fn lost_ending(lost: Lost) -> Ending {
    match lost {
        Lost::Gone => Ending::ClientLeft,
        Lost::Stalled => Ending::WriteStall,
    }
}
