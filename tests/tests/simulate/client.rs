//! Plays a client: one hand writes, the other reads, and it may go away at any moment. What its
//! connection does not live to serve it takes to a new one.

use crate::answers::{Ended, Reader};
use crate::notes::Notes;
use crate::plan::{Client, Leave, Plan, Reading, Turn};
use crate::run::gateway_at;
use crate::world::CLIENT_IDLE;
use gateway_tests::answer::{Answer, Framed};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;
use tollgate::io::Io;
use tollgate::io::script::{Peer, PeerFault, ScriptIo, ScriptWorld};

/// Connections a client tries before it gives up.
const DIALS_MAX: u32 = 40;

/// Between two of them.
const REDIAL: Duration = Duration::from_millis(150);

/// From this silence on the gateway may have given a connection up.
const IDLE_NEAR: Duration = Duration::from_millis(CLIENT_IDLE.as_millis() as u64 - 300);

/// A client's connection.
struct Line {
    number: usize,
    peer: Peer,
    plan: Rc<Plan>,
    notes: Rc<Notes>,
    io: ScriptIo,
    /// Calls begun and not answered, oldest first: the call, and the turn it is of.
    open: RefCell<VecDeque<usize>>,
    /// Nothing more can come of it.
    over: Cell<bool>,
    /// This client has gone away.
    left: Cell<bool>,
    /// An answer said that the connection ends with it.
    closing: Cell<bool>,
    /// Bytes read of the answer at hand.
    read: Cell<usize>,
    /// When a byte last went either way.
    touched_ns: Cell<u64>,
    waiting: RefCell<Option<Waker>>,
}

/// Plays a client to its end.
pub(crate) async fn play(net: Weak<ScriptWorld>, plan: Rc<Plan>, notes: Rc<Notes>, which: usize) {
    let client = &plan.clients[which];
    let Some(io) = net.upgrade().map(|world| world.io()) else { return };
    io.sleep(client.start).await;
    let (mut next, mut dials, mut tried) = (0, 0, None);
    while next < client.turns.len() && dials < DIALS_MAX {
        dials += 1;
        let Some(peer) = dial(&net, client, &plan) else {
            io.sleep(REDIAL).await;
            continue;
        };
        let line = Rc::new(Line {
            number: which * 1_000 + dials as usize,
            peer,
            plan: plan.clone(),
            notes: notes.clone(),
            io: io.clone(),
            open: RefCell::default(),
            over: Cell::new(false),
            left: Cell::new(false),
            closing: Cell::new(false),
            read: Cell::new(0),
            touched_ns: Cell::new(notes.now_ns()),
            waiting: RefCell::default(),
        });
        let reading = line.clone();
        let how = client.reading;
        io.spawn(async move { reading.read_all(how).await });
        // What it has waited for once it does not wait for again.
        let waits = tried != Some(next);
        tried = Some(next);
        next += line.write_all(client, next, waits).await;
        line.until(|line| line.over.get()).await;
        io.sleep(Duration::from_millis(20)).await;
    }
}

/// A connection that behaves as this client's do.
fn dial(net: &Weak<ScriptWorld>, client: &Client, plan: &Plan) -> Option<Peer> {
    let world = net.upgrade()?;
    world.set_link(client.link.clone());
    let dialed = world.dial(gateway_at(client.shard));
    world.set_link(plan.link.clone());
    dialed.ok()
}

// === impl Line ===

impl Line {
    /// Makes calls for as long as the connection serves; how many were begun.
    async fn write_all(self: &Rc<Line>, client: &Client, from: usize, waits: bool) -> usize {
        let mut begun = 0;
        for turn in &client.turns[from..] {
            if !turn.pipelined {
                self.until(|line| line.over.get() || line.open.borrow().is_empty()).await;
            }
            if !turn.before.is_zero() && (waits || begun > 0) {
                self.io.sleep(turn.before).await;
            }
            if self.over.get() || self.closing.get() {
                break;
            }
            begun += 1;
            self.call(turn).await;
            let last = self.plan.calls[turn.call].last || turn.leave == Some(Leave::HalfClose);
            if last {
                break;
            }
        }
        if !self.over.get() {
            self.until(|line| line.over.get() || line.open.borrow().is_empty()).await;
        }
        if !self.over.get() && !self.closing.get() {
            // Done: the reader sees the gateway's end.
            self.peer.fin();
        }
        begun
    }

    async fn call(self: &Rc<Line>, turn: &Turn) {
        let call = &self.plan.calls[turn.call];
        let now = self.notes.now_ns();
        let quiet = Duration::from_nanos(now - self.touched_ns.get());
        self.open.borrow_mut().push_back(turn.call);
        {
            let mut got = self.notes.got.borrow_mut();
            let got = &mut got[turn.call];
            (got.connection, got.begun_ns) = (Some(self.number), now);
            got.idled = quiet >= IDLE_NEAR;
        }
        self.notes.trace(|| {
            let kind = (call.kind, call.caller, call.expect);
            format!("client {} begins call {} {kind:?}", self.number, turn.call)
        });
        if let Some(Leave::After(span)) = turn.leave {
            // Not kept open by the clock of a call that is long over.
            let (line, number, io) = (Rc::downgrade(self), turn.call, self.io.clone());
            self.io.spawn(async move {
                io.sleep(span).await;
                if let Some(line) =
                    line.upgrade().filter(|line| line.open.borrow().contains(&number))
                {
                    line.leave();
                }
            });
        }
        let mut from = 0;
        let end = (call.bytes.len(), Duration::ZERO);
        for (to, pause) in turn.pieces.iter().copied().chain([end]) {
            let stop = match turn.leave {
                Some(Leave::Sending(at)) if at <= to => at.max(from),
                _ => to,
            };
            if self.over.get() || self.peer.send(&call.bytes[from..stop]).await.is_err() {
                return;
            }
            self.touch();
            if turn.leave == Some(Leave::Sending(stop)) && stop < call.bytes.len() {
                return self.leave();
            }
            from = to;
            if !pause.is_zero() {
                self.io.sleep(pause).await;
            }
        }
        self.notes.got.borrow_mut()[turn.call].sent_ns = Some(self.notes.now_ns());
        if turn.leave == Some(Leave::HalfClose) {
            self.peer.fin();
        }
    }

    /// Goes away with a reset.
    fn leave(&self) {
        if self.over.get() {
            return;
        }
        self.left.set(true);
        self.notes.trace(|| format!("client {} leaves", self.number));
        self.peer.rst();
        self.end(Ended::Clean, false);
    }

    async fn read_all(self: Rc<Line>, how: Reading) {
        let mut reader = Reader::default();
        let mut total = 0;
        let mut stalls = matches!(how, Reading::Stalls(..));
        while !self.over.get() {
            let read = self.peer.read_some().await;
            if self.over.get() {
                return;
            }
            let bytes = match read {
                Ok(bytes) if bytes.is_empty() => return self.ended(&mut reader, false),
                Ok(bytes) => bytes,
                Err(error) if matches!(error.fault, PeerFault::TimedOut) => {
                    let open = self.open.borrow().clone();
                    self.notes.fault(format!("client {} waits in vain: {open:?}", self.number));
                    return self.leave();
                }
                Err(_) => return self.ended(&mut reader, true),
            };
            total += bytes.len();
            self.touch();
            reader.take(&bytes);
            self.read.set(self.read.get() + bytes.len());
            if !self.drain(&mut reader) {
                return;
            }
            match how {
                Reading::Slow(pause) => self.io.sleep(pause).await,
                Reading::Stalls(at, pause) if stalls && total >= at => {
                    stalls = false;
                    self.io.sleep(pause).await;
                }
                Reading::Fast | Reading::Stalls(..) => {}
            }
        }
    }

    /// Takes every answer that is whole; false once the connection is of no use.
    fn drain(&self, reader: &mut Reader) -> bool {
        loop {
            match reader.next() {
                Ok(Some(answer)) => self.answered(answer),
                Ok(None) => break,
                Err(why) => {
                    self.notes.fault(format!("client {}: {why}", self.number));
                    self.leave();
                    return false;
                }
            }
        }
        if reader.is_empty() {
            self.read.set(0);
        }
        let Some(call) = self.open.borrow().front().copied() else { return true };
        let turn = self.turn_of(call);
        if matches!(turn.leave, Some(Leave::Reading(at)) if self.read.get() >= at) {
            self.leave();
            return false;
        }
        true
    }

    fn turn_of(&self, call: usize) -> &Turn {
        let clients = self.plan.clients.iter();
        let mut turns = clients.flat_map(|client| &client.turns);
        turns.find(|turn| turn.call == call).expect("every call has a turn")
    }

    fn answered(&self, answer: Answer) {
        let Some(call) = self.open.borrow().front().copied() else {
            let what = format!("client {}: an answer to nothing: {answer:?}", self.number);
            return self.notes.fault(what);
        };
        if answer.status < 200 {
            self.notes.got.borrow_mut()[call].interim += 1;
            return;
        }
        self.read.set(0);
        self.open.borrow_mut().pop_front();
        self.closing.set(self.closing.get() || answer.closes());
        self.notes.trace(|| {
            let (status, code, len) = (answer.status, answer.code(), answer.body.len());
            format!("client {} has answer to {call}: {status} {code} {len} B", self.number)
        });
        let mut got = self.notes.got.borrow_mut();
        got[call].answer = Some(answer);
        got[call].over_ns = self.notes.now_ns();
        drop(got);
        self.wake();
    }

    fn ended(&self, reader: &mut Reader, reset: bool) {
        let end = reader.end();
        self.notes.trace(|| {
            let how = if reset { "reset" } else { "ended" };
            format!("client {} is {how}, {} calls open", self.number, self.open.borrow().len())
        });
        self.end(end, reset);
    }

    /// Nothing more can come: what is open gets what there is.
    fn end(&self, end: Ended, reset: bool) {
        self.over.set(true);
        let mut got = self.notes.got.borrow_mut();
        let mut open = self.open.borrow_mut();
        match (end, open.front().copied()) {
            (Ended::Clean, _) => {}
            (Ended::ByClose(answer), Some(call)) if !reset => {
                got[call].answer = Some(answer);
                got[call].over_ns = self.notes.now_ns();
                open.pop_front();
            }
            (Ended::ByClose(answer) | Ended::InBody(answer), Some(call)) => {
                got[call].partial = Some(answer);
            }
            (Ended::InHead, Some(_)) => {}
            (end, None) => {
                drop((got, open));
                return self.notes.fault(format!("client {}: surplus {end:?}", self.number));
            }
        }
        for call in open.drain(..) {
            got[call].left = self.left.get();
            got[call].reset = reset;
            got[call].after_close = self.closing.get();
            got[call].over_ns = self.notes.now_ns();
        }
        drop((got, open));
        self.wake();
    }

    fn touch(&self) {
        self.touched_ns.set(self.notes.now_ns());
    }

    fn wake(&self) {
        if let Some(waker) = self.waiting.borrow_mut().take() {
            waker.wake();
        }
    }

    async fn until(&self, done: impl Fn(&Line) -> bool) {
        poll_fn(|cx| {
            if done(self) {
                return Poll::Ready(());
            }
            *self.waiting.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Whether the end of the connection delimits an answer.
pub(crate) fn is_closed_by_end(answer: &Answer) -> bool {
    answer.framed == Framed::Close
}
