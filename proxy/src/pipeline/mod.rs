//! One request, top to bottom. The order of these lines is the order of a request; no stage calls
//! the next one.
//!
//! In this landing the stages serve native calls of the chat and messages dialects, whole and as
//! streams, and counts of tokens, which cost nothing. The external guardrail comes later.

pub mod accept; //      connection → one request at a time
mod parse; //           the head alone → route, framing, credential
mod authenticate; //    credential → who, before a body byte
mod body; //            bytes as they arrive → spans
mod admit; //           what needs no plan
mod resolve; //         model → candidates
mod reserve; //         what needs the plan
mod open; //            the record: from here on exactly one outcome
mod dispatch; //        attempts → an answer's head
mod relay; //           answer → client
mod settle; //          outcome → record

mod answer;
mod arriving;
mod attribution;
mod chain;
mod client;
mod headers;
mod heading;
mod held;
mod leaving;
mod local;
mod query;
mod rewrite;
mod refuse; //          any refusal → client
mod routes;
mod standing;
mod tracing;
mod walking;

use crate::config::snapshot::Snapshot;
use crate::exchange::bundle::Bundle;
use crate::exchange::call::{self, Route};
use crate::exchange::outcome::{Ending, Outcome};
use crate::exchange::refusal::Refusal;
use crate::io::Io;
use crate::shard::Shard;
use body::{Received, Rest};
use client::Client;
use codec::json::RequestSpans;
use dispatch::Way;
use held::Held;
use open::Call;
use parse::Request;
use refuse::Origin;
use relay::{Delivered, Unpassed};
pub(crate) use settle::record_counted;
use store::text::Text;
use walking::Walking;

/// What becomes of the client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// It can carry the next request.
    Keep,
    /// It ends; unread bytes are read away first.
    Close,
    /// It ends with a reset: what was sent must not look complete.
    Abort,
}

/// Why a call was not served.
enum Unserved {
    /// The client is told.
    Refused(Refusal, Rest),
    /// There is nobody to tell.
    ClientGone,
}

/// A refusal before the body was asked for.
impl From<Refusal> for Unserved {
    fn from(refusal: Refusal) -> Unserved {
        Unserved::Refused(refusal, Rest::Unread)
    }
}

/// A refusal of a request that is wholly here.
fn after_body(refusal: Refusal) -> Unserved {
    Unserved::Refused(refusal, Rest::Read)
}

/// Serves one governed call whose head is at the front of the client's inbox.
async fn run<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    held: &mut Held,
    request: &Request,
    origin: Origin,
) -> After {
    let snapshot = shard.snapshot.pin();
    client.spoke = shard.wheel.tick();
    held.record.trace_id = tracing::id(&client.forward);
    match serve(shard, &snapshot, client, held, request, origin).await {
        Ok(Delivered { outcome, after }) => {
            shard.counters.answered(Some(request.route), outcome.status);
            settle::close(shard, held, &outcome);
            after
        }
        Err(Unserved::Refused(refusal, rest)) => {
            let refusal = if shard.cut.get() { Refusal::ShuttingDown } else { refusal };
            // First: whoever has the whole refusal has its record too, and a client that does not
            // read holds nothing.
            settle::refused(shard, held, refusal, &origin);
            refuse::answer(shard, client, refusal, origin.with(rest)).await
        }
        Err(Unserved::ClientGone) => {
            settle::close(shard, held, &Outcome { ending: Ending::ClientLeft, status: 0 });
            After::Close
        }
    }
}

async fn serve<I: Io>(
    shard: &Shard<I>,
    snapshot: &Snapshot,
    client: &mut Client<I::Stream>,
    held: &mut Held,
    request: &Request,
    origin: Origin,
) -> Result<Delivered, Unserved> {
    let bundle = authenticate::identify(client, &shard.keys, held)?;
    let whole = body::read(shard, client, request, &bundle).await?;
    let mut call = opened((shard, snapshot), client, held, &bundle, request.route, whole, origin)?;
    drop(bundle);
    client.watch(&shard.buffers);
    let mut walking = Walking::new(shard, &call);
    loop {
        let seeks = dispatch::walk(shard, client, request, &mut call, held, &mut walking);
        let answer = match seeks.await {
            Ok(Way::Comes(answer)) => answer,
            Ok(Way::Kept(answer)) => {
                let kept = walking.kept();
                return Box::pin(relay::tell_kept(shard, client, &call, held, (answer, kept)))
                    .await;
            }
            Err(Unserved::Refused(refusal, _)) if call.begun => {
                return Ok(Box::pin(relay::tell(shard, client, &call, held, refusal)).await);
            }
            Err(unserved) => {
                if matches!(unserved, Unserved::ClientGone) {
                    settle::left_unheard(&call, held);
                }
                return Err(unserved);
            }
        };
        match relay::pump(shard, client, &mut call, held, &mut walking, answer).await {
            Ok(delivered) => return Ok(delivered),
            Err(Unpassed::ClientGone) => {
                walking.abandoned(shard, &call);
                return Err(Unserved::ClientGone);
            }
            // The node has ended it: nobody else is asked.
            Err(Unpassed::Failed(_)) if shard.cut.get() => {
                walking.abandoned(shard, &call);
                let refusal = Refusal::ShuttingDown;
                if call.begun {
                    return Ok(Box::pin(relay::tell(shard, client, &call, held, refusal)).await);
                }
                return Err(after_body(refusal));
            }
            Err(Unpassed::Failed(failed)) => walking.failed(shard, &call, held, failed),
        }
    }
}

/// The stages that never wait, so that what they need on the way is on this stack only.
#[inline(never)]
fn opened<'s, I: Io>(
    (shard, snapshot): (&'s Shard<I>, &'s Snapshot),
    client: &mut Client<I::Stream>,
    held: &mut Held,
    bundle: &Bundle,
    route: Route,
    (received, spans): (Received<'s>, RequestSpans),
    origin: Origin,
) -> Result<Call<'s>, Unserved> {
    let now = shard.now();
    let asks = call::Call { bundle, demand: admit::demand(&spans, route.dialect()) };
    // As it is written, until it is known to be a name: what a refusal is to say.
    let written = str::from_utf8(spans.model.text.of(received.body())).unwrap_or_default();
    held.record.model = Text::from(written);
    admit::gate(shard, route, &asks, held, now).map_err(after_body)?;
    let mut asked = resolve::Asked::default();
    let plan = resolve::plan(snapshot, &received, &spans, route.dialect(), &mut asked);
    let mut plan = plan.map_err(after_body)?;
    held.record.model = Text::from(plan.asked);
    reserve::funds(route, &asks, snapshot, &mut plan, held, now).map_err(after_body)?;
    let (whole, plan) = ((received, &spans), (&plan, &asks.demand));
    let names = (&mut client.model, &*client.session);
    open::slot(shard, snapshot, held, whole, plan, (origin, now), names).map_err(after_body)
}
