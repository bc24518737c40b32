//! One connection: one request at a time, its idle and header deadlines, and the net under it: a
//! panic closes this connection, settles what it had open, and is counted.
//!
//! An idle connection holds no buffer: a read stays posted for [`LENT`] after the last answer, is
//! then asked back, and the kernel only says when there is something to read.

use super::client::{Client, Presence, SCRATCH_KEPT};
use super::held::Held;
use super::parse::{self, Kept, Request};
use super::refuse::{self, Origin};
use super::tracing::Fresh;
use super::{After, local, routes, settle};
use crate::exchange::call::{Dialect, Route};
use crate::exchange::ids::RequestId;
use crate::exchange::outcome::{Ending, Outcome};
use crate::exchange::refusal::Refusal;
use crate::io::turn::{Event, Secured, Turn, Watching};
use crate::io::{Io, Recall, Stream};
use crate::shard::Shard;
use codec::http1::{Fields, Framing, HEAD_BYTES_MAX, HeadScan, Method, RequestHead};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

/// How long a read stays posted on an idle connection: longer than an agent's pause between two
/// calls of one turn, so that busy clients never pay for the hand-over.
const LENT: Duration = Duration::from_secs(5);

/// Serves a connection to its end. Its task is small: what it takes to serve calls is there while
/// it has some, or has had one a moment ago.
pub async fn connection<I: Io>(shard: Rc<Shard<I>>, stream: I::Stream) {
    shard.counters.connections.increment();
    shard.counters.connections_open.increment();
    let mut client = Client::new(stream, shard.wheel.timer());
    let mut secured = false;
    while let Awake::Sleepy = Box::pin(awake(&shard, &mut client, secured)).await {
        secured = true;
        if !asleep(&shard, &mut client).await {
            client.stream.shutdown();
            break;
        }
    }
    drop(client);
    shard.counters.connections_open.decrement();
}

/// How a time of calls ended.
enum Awake {
    /// Nothing has come for a while: the connection holds no buffer, nor needs one.
    Sleepy,
    /// The connection is over.
    Over,
}

/// Serves calls until none comes for a while. Whatever happens in here, each is settled once.
async fn awake<I: Io>(shard: &Shard<I>, client: &mut Client<I::Stream>, secured: bool) -> Awake {
    let mut holding = Holding { shard, held: Held::default(), cut: Ending::Shutdown };
    let ended = {
        let mut serving = pin!(serve(shard, client, &mut holding.held, secured));
        poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| serving.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Some),
            Err(_) => std::task::Poll::Ready(None),
        })
        .await
    };
    if ended.is_none() {
        shard.counters.panics.increment();
        holding.cut = Ending::Internal;
    }
    ended.unwrap_or(Awake::Over)
}

/// Settles what a connection leaves under way: a panic does, and a shard that ends before it.
struct Holding<'s, I: Io> {
    shard: &'s Shard<I>,
    held: Held,
    cut: Ending,
}

impl<I: Io> Drop for Holding<'_, I> {
    fn drop(&mut self) {
        let outcome = Outcome { ending: self.cut, status: 0 };
        settle::close(self.shard, &mut self.held, &outcome);
    }
}

/// A request under way, from its first byte to the end of its answer: what a drain waits for.
struct Busy<'s>(&'s Cell<usize>);

impl<'s> Busy<'s> {
    fn new(count: &'s Cell<usize>) -> Busy<'s> {
        count.set(count.get() + 1);
        Busy(count)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

async fn serve<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    held: &mut Held,
    secured: bool,
) -> Awake {
    if !secured && !secure(shard, client).await {
        shard.counters.client_tls_failures.increment();
        client.stream.shutdown();
        return Awake::Over;
    }
    loop {
        let mut busy = None;
        let after = match next(shard, client, &mut busy).await {
            Next::Request(request, origin) => match request.route.upstream_path() {
                Some(_) => super::run(shard, client, held, &request, origin).await,
                None => local::answer(shard, client, held, &request, origin).await,
            },
            Next::Refused(refusal, origin) => refuse::answer(shard, client, refusal, origin).await,
            Next::Sleepy => return Awake::Sleepy,
            Next::Closed => break,
        };
        match after {
            After::Keep => client.shed(SCRATCH_KEPT),
            After::Close => {
                client.linger(&shard.buffers).await;
                break;
            }
            After::Abort => {
                // A read in flight would keep the descriptor, and a shutdown would send an end
                // of stream before the reset.
                client.take_back().await;
                client.stream.abort();
                shard.buffers.give(std::mem::take(&mut client.inbox));
                return Awake::Over;
            }
        }
        if shard.draining.get() {
            break;
        }
    }
    client.stream.shutdown();
    shard.buffers.give(std::mem::take(&mut client.inbox));
    Awake::Over
}

/// The handshake, if the connection has one; false if it came to nothing.
async fn secure<I: Io>(shard: &Shard<I>, client: &mut Client<I::Stream>) -> bool {
    client.timer.arm_idle(shard.snapshot.pin().deadlines.tls);
    let secured = Secured::new(&mut client.stream, &client.timer).await;
    client.timer.disarm();
    matches!(secured, Some(Ok(())))
}

/// What a connection brings next.
enum Next {
    Request(Request, Origin),
    Refused(Refusal, Origin),
    /// Nothing, for a while.
    Sleepy,
    Closed,
}

/// Waits for the next request's head.
async fn next<'s, I: Io>(
    shard: &'s Shard<I>,
    client: &mut Client<I::Stream>,
    busy: &mut Option<Busy<'s>>,
) -> Next {
    let deadlines = shard.snapshot.pin().deadlines;
    let mut scan = HeadScan::new();
    client.forget();
    loop {
        if !client.inbox.is_empty() {
            let begun = busy.is_some();
            busy.get_or_insert_with(|| Busy::new(&shard.busy));
            if let Some(next) = head(shard, client, &mut scan) {
                client.timer.disarm();
                return next;
            }
            if !begun {
                // One limit from the first byte to the last: a slow sender does not renew it.
                client.timer.arm(deadlines.header);
            }
        }
        let idle = busy.is_none();
        if client.presence != Presence::Here || idle && shard.draining.get() {
            return Next::Closed;
        }
        lend(shard, client);
        if idle {
            client.timer.arm_idle(LENT.min(deadlines.client_idle));
        }
        match Turn::client(&mut client.stream, &client.timer).await {
            Event::ClientRead(done) => client.absorb(done),
            Event::Fired if !idle => {
                client.take_back().await;
                // A head that is broken already is called that, however it was cut on its way.
                if let Some(next) = head(shard, client, &mut HeadScan::new()) {
                    return next;
                }
                let origin = origin(shard, routes::guess_dialect(&client.inbox));
                return Next::Refused(Refusal::RequestTimeout, origin);
            }
            Event::Fired => {
                client.take_back().await;
                if client.inbox.is_empty() && client.presence == Presence::Here {
                    shard.buffers.give(std::mem::take(&mut client.inbox));
                    return Next::Sleepy;
                }
            }
            Event::Stirred(_) => client.stir(),
            _ => {}
        }
    }
}

/// Keeps a read posted, with room.
fn lend<I: Io>(shard: &Shard<I>, client: &mut Client<I::Stream>) {
    if client.stream.reading() {
        return;
    }
    let mut buffer = std::mem::take(&mut client.inbox);
    if buffer.capacity() == 0 {
        buffer = shard.buffers.take();
    }
    if buffer.len() == buffer.capacity() {
        // The parser refuses a head at its bound, so this ends there.
        let larger = buffer.capacity() + buffer.capacity().min(HEAD_BYTES_MAX);
        shard.buffers.grow(&mut buffer, larger);
    }
    client.stream.start_read(buffer, Recall::Able);
}

/// Waits for bytes without a buffer. False when the connection is to be closed.
async fn asleep<I: Io>(shard: &Shard<I>, client: &mut Client<I::Stream>) -> bool {
    if shard.draining.get() {
        return false;
    }
    let idle = shard.snapshot.pin().deadlines.client_idle;
    let Some(rest) = idle.checked_sub(LENT).filter(|rest| !rest.is_zero()) else {
        return false;
    };
    client.shed(0);
    client.start_watch();
    client.timer.arm_idle(rest);
    let woken = Watching::new(&mut client.stream, &client.timer).await;
    client.watching &= woken.is_none();
    client.timer.disarm();
    matches!(woken, Some(Ok(())))
}

/// Reads what has arrived of a head. The field table lives on this stack only, which is why it is
/// not made a part of the task's poll function.
#[inline(never)]
fn head<I: Io>(
    shard: &Shard<I>,
    client: &mut Client<I::Stream>,
    scan: &mut HeadScan,
) -> Option<Next> {
    let mut fields = Fields::new();
    let head = match parse::head(scan, &client.inbox, &mut fields) {
        Ok(head) => head?,
        Err(refusal) => {
            let origin = origin(shard, routes::guess_dialect(&client.inbox));
            return Some(Next::Refused(refusal, origin));
        }
    };
    let max = shard.snapshot.pin().bounds.request_bytes;
    let kept = Kept {
        forward: &mut client.forward,
        caller_id: &mut client.caller_id,
        session: &mut client.session,
        caller: &mut client.caller,
        fresh: Fresh { trace: [shard.spans.wide(), shard.spans.wide()], span: shard.spans.wide() },
        node: shard.mint.borrow().node,
    };
    match parse::request(&client.inbox, &head, &fields, max, kept) {
        Ok(request) => {
            let origin = Origin {
                id: mint(shard),
                route: Some(request.route),
                dialect: request.route.dialect(),
                is_head: request.is_head,
                close: !request.keep_alive || shard.noticed.get(),
                is_10: request.minor == 0,
            };
            Some(Next::Request(request, origin))
        }
        Err(refusal) => {
            let origin = refused_origin(shard, &client.inbox, &head);
            if !origin.close {
                client.inbox.drain(..head.head_len);
            }
            Some(Next::Refused(refusal, origin))
        }
    }
}

/// A request that its head alone rules out. If nothing follows the head, the connection lives on.
fn refused_origin<I: Io>(shard: &Shard<I>, bytes: &[u8], head: &RequestHead) -> Origin {
    let route = routes::guess(bytes);
    let dialect = route.map_or(Dialect::Chat, Route::dialect);
    let ends_here = head.framing == Framing::None && !head.upgrade;
    Origin {
        is_head: head.method == Method::Head,
        close: !head.keep_alive
            || !ends_here
            || head.method == Method::Connect
            || shard.noticed.get(),
        is_10: head.minor == 0,
        route,
        ..origin(shard, dialect)
    }
}

fn origin<I: Io>(shard: &Shard<I>, dialect: Dialect) -> Origin {
    Origin { id: mint(shard), route: None, dialect, is_head: false, close: true, is_10: false }
}

fn mint<I: Io>(shard: &Shard<I>) -> RequestId {
    shard.mint.borrow_mut().mint(shard.now().wall.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::ring::{RingIo, RingStream};
    use crate::io::tls::{Link, TlsIo};

    /// What a connection has while it serves calls (DESIGN §9, rule 7).
    const AWAKE_BYTES_MAX: usize = 4096;

    /// Its task, and all there is of it while nothing comes.
    const ASLEEP_BYTES_MAX: usize = 512;

    type Tls = TlsIo<RingIo>;

    fn task<F: Future>(_: impl FnOnce(Rc<Shard<Tls>>, Link<RingStream>) -> F) -> usize {
        size_of::<F>()
    }

    fn serving<'a, F: Future + 'a>(
        _: impl FnOnce(&'a Shard<Tls>, &'a mut Client<Link<RingStream>>, bool) -> F,
    ) -> usize {
        size_of::<F>()
    }

    #[test]
    fn the_connection_future_stays_small() {
        let (asleep, awake) = (task(connection::<Tls>), serving(awake::<Tls>));
        println!(
            "connection future {awake} B, asleep {asleep} B; request scan {} B, reply scan {} B, \
             record {} B",
            size_of::<codec::json::RequestScan>(),
            size_of::<codec::json::ReplyScan>(),
            size_of::<store::record::Settled>(),
        );
        assert!(awake <= AWAKE_BYTES_MAX, "{awake} bytes");
        assert!(asleep <= ASLEEP_BYTES_MAX, "{asleep} bytes");
    }
}
