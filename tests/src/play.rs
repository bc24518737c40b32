//! Plays the steps of a client and the manners of an upstream over any [`Wire`]. What cannot be
//! played is noted and ends the part: a test sees it as a fault, not as a hang.

use crate::answer::{self, Answer, Reading};
use crate::asked;
use crate::outcome::{ClientSaw, End, UpstreamSaw};
use crate::scenario::{Act, Manner, Read, Split, Step};
use crate::wire::{Fault, Wire};
use std::cell::RefCell;

/// Plays a client to the end of its steps.
pub(crate) async fn client<W: Wire>(wire: &mut W, steps: &[Step]) -> ClientSaw {
    match steps.first() {
        Some(Step::Bare) => wire.bare(),
        _ => wire.begin().await,
    }
    let mut client = Client { wire, inbox: Vec::new(), ended: false, saw: ClientSaw::default() };
    for (at, step) in steps.iter().enumerate() {
        if let Err(why) = client.step(step).await {
            client.saw.faults.push(format!("step {at}: {why}"));
            break;
        }
    }
    client.wire.say_end().await;
    client.saw.surplus = client.inbox;
    client.saw
}

struct Client<'w, W> {
    wire: &'w mut W,
    inbox: Vec<u8>,
    ended: bool,
    saw: ClientSaw,
}

impl<W: Wire> Client<'_, W> {
    async fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            // Heeded before the first byte.
            Step::Bare => Ok(()),
            Step::Send(bytes, split) => send(self.wire, bytes, split).await,
            Step::Offer(bytes) => {
                for piece in bytes.chunks(4096) {
                    if !self.wire.offer(piece).await {
                        break;
                    }
                }
                Ok(())
            }
            Step::Flood(piece, most) => {
                while self.saw.flooded < *most && self.wire.offer(piece).await {
                    self.saw.flooded += piece.len();
                }
                Ok(())
            }
            Step::Answer => self.final_answer(false).await,
            Step::HeadAnswer => self.final_answer(true).await,
            Step::Interim => {
                let answer = self.next_answer(false).await?;
                self.saw.interim.push(answer.status);
                if answer.status < 200 { Ok(()) } else { Err(format!("final: {answer:?}")) }
            }
            Step::Bytes(count) => {
                while self.inbox.len() < *count {
                    self.more(&format!("{count} bytes")).await?;
                }
                Ok(())
            }
            Step::Mark => {
                self.saw.marks.push(self.inbox.len());
                Ok(())
            }
            Step::Drain => {
                self.wire.drain();
                Ok(())
            }
            Step::Revoke => {
                self.wire.revoke();
                Ok(())
            }
            Step::End => {
                while !self.ended {
                    self.more("the end").await?;
                }
                Ok(())
            }
            Step::Fin => {
                self.wire.fin().await;
                Ok(())
            }
            Step::Reset => {
                self.wire.reset();
                Ok(())
            }
            Step::Pause(span) => {
                self.wire.pause(*span).await;
                Ok(())
            }
            Step::Signal(what) => {
                self.wire.signal(what);
                Ok(())
            }
            Step::Wait(what) => waited(self.wire, what).await,
        }
    }

    async fn final_answer(&mut self, to_head: bool) -> Result<(), String> {
        loop {
            let answer = self.next_answer(to_head).await?;
            if answer.status >= 200 {
                self.saw.answers.push(answer);
                return Ok(());
            }
            self.saw.interim.push(answer.status);
        }
    }

    async fn next_answer(&mut self, to_head: bool) -> Result<Answer, String> {
        loop {
            if self.saw.end == End::Reset && self.inbox.is_empty() {
                return Err("reset before an answer".into());
            }
            let reading = answer::read(&self.inbox, to_head, self.ended).map_err(|why| {
                let start = &self.inbox[..self.inbox.len().min(300)];
                format!("{why} ({:?}): {:?}", self.saw.end, String::from_utf8_lossy(start))
            })?;
            match reading {
                Reading::Done(answer, taken) => {
                    if self.saw.end == End::Reset && answer.framed == answer::Framed::Close {
                        return Err("a reset where the end delimits".into());
                    }
                    self.inbox.drain(..taken);
                    return Ok(answer);
                }
                Reading::More => self.more("an answer").await?,
            }
        }
    }

    /// One more read, or the end.
    async fn more(&mut self, what: &str) -> Result<(), String> {
        if self.ended {
            return Err(format!("waits for {what} after {:?}", self.saw.end));
        }
        match self.wire.read().await {
            Ok(bytes) if bytes.is_empty() => (self.ended, self.saw.end) = (true, End::Fin),
            Ok(bytes) => {
                self.inbox.extend_from_slice(&bytes);
                self.saw.heard.extend(self.wire.now_ms().map(|now| (now, bytes)));
            }
            Err(Fault::Reset) => (self.ended, self.saw.end) = (true, End::Reset),
            Err(Fault::TimedOut) => {
                let start = String::from_utf8_lossy(&self.inbox[..self.inbox.len().min(300)]);
                return Err(format!("waits for {what} with {start:?}"));
            }
        }
        Ok(())
    }
}

async fn send<W: Wire>(wire: &mut W, bytes: &[u8], split: &Split) -> Result<(), String> {
    send_counted(wire, bytes, split, |_| {}).await
}

async fn send_counted<W: Wire>(
    wire: &mut W,
    bytes: &[u8],
    split: &Split,
    mut count: impl FnMut(usize),
) -> Result<(), String> {
    let mut start = 0;
    for cut in split.cuts(bytes.len()).into_iter().chain([bytes.len()]) {
        let sent = wire.send(&bytes[start..cut]).await;
        sent.map_err(|fault| format!("{fault:?} while sending at {start} of {}", bytes.len()))?;
        count(cut - start);
        if cut < bytes.len() {
            wire.settle().await;
        }
        start = cut;
    }
    Ok(())
}

async fn waited<W: Wire>(wire: &mut W, what: &'static str) -> Result<(), String> {
    if wire.wait(what).await { Ok(()) } else { Err(format!("{what} never happens")) }
}

/// Treats a connection of the upstream as its manner says, to its end. `saw` is told as it goes.
pub(crate) async fn upstream<W: Wire>(wire: &mut W, manner: &Manner, saw: &RefCell<UpstreamSaw>) {
    wire.begin().await;
    let mut side = Upstream { wire, inbox: Vec::new(), ended: false, saw };
    let mut at = 0;
    let played = loop {
        let turn = match manner.turns.get(at) {
            Some(turn) => turn,
            None if manner.repeats => match manner.turns.last() {
                Some(last) => last,
                None => break Ok(true),
            },
            None => break Ok(true),
        };
        at += 1;
        match side.request(turn.read).await {
            Ok(true) => {}
            Ok(false) => break Ok(false),
            Err(why) => break Err(why),
        }
        match side.acts(&turn.acts).await {
            Ok(true) => {}
            other => break other,
        }
    };
    match played {
        Ok(true) => side.hang().await,
        Ok(false) => {}
        Err(why) => saw.borrow_mut().faults.push(why),
    }
    let inbox = std::mem::take(&mut side.inbox);
    saw.borrow_mut().surplus = inbox;
}

struct Upstream<'w, W> {
    wire: &'w mut W,
    inbox: Vec<u8>,
    ended: bool,
    saw: &'w RefCell<UpstreamSaw>,
}

impl<W: Wire> Upstream<'_, W> {
    /// Reads a request; false at the end of the connection.
    async fn request(&mut self, read: Read) -> Result<bool, String> {
        loop {
            match read {
                Read::Bytes(count) if self.inbox.len() >= count => return Ok(true),
                Read::Bytes(_) => {}
                Read::Whole => {
                    if let Some((asked, taken)) = asked::read(&self.inbox)? {
                        self.inbox.drain(..taken);
                        self.saw.borrow_mut().requests.push(asked);
                        return Ok(true);
                    }
                }
            }
            if !self.more().await? {
                return Ok(false);
            }
        }
    }

    /// False once the connection is of no more use.
    async fn acts(&mut self, acts: &[Act]) -> Result<bool, String> {
        for act in acts {
            match act {
                // A gateway that is gone takes no bytes; its requests are what is judged.
                Act::Send(bytes, split) => {
                    let saw = self.saw;
                    let sent = |count| saw.borrow_mut().sent += count;
                    drop(send_counted(self.wire, bytes, split, sent).await);
                }
                Act::ByField { name, value, then, otherwise } => {
                    let last = self.saw.borrow().requests.last().and_then(|last| last.field(name));
                    let bytes = if last.as_deref() == Some(*value) { then } else { otherwise };
                    drop(send(self.wire, bytes, &Split::Whole).await);
                }
                Act::Fin => self.wire.fin().await,
                Act::Cut => self.wire.cut().await,
                Act::Close => {
                    self.wire.say_end().await;
                    return Ok(false);
                }
                Act::Reset => self.wire.reset(),
                Act::Hang => {
                    self.hang().await;
                    return Ok(false);
                }
                Act::Wait(what) => waited(self.wire, what).await?,
                Act::Signal(what) => self.wire.signal(what),
                Act::Pause(span) => self.wire.pause(*span).await,
                Act::Revoke => self.wire.revoke(),
            }
            self.wire.settle().await;
        }
        Ok(true)
    }

    async fn hang(&mut self) {
        while !self.ended && self.more().await.unwrap_or(false) {}
    }

    async fn more(&mut self) -> Result<bool, String> {
        if self.ended {
            return Ok(false);
        }
        match self.wire.read().await {
            Ok(bytes) if bytes.is_empty() => self.end(End::Fin),
            Ok(bytes) => self.inbox.extend_from_slice(&bytes),
            Err(Fault::Reset) => self.end(End::Reset),
            Err(Fault::TimedOut) => return Err("the upstream waits in vain".into()),
        }
        Ok(!self.ended)
    }

    fn end(&mut self, end: End) {
        self.ended = true;
        let mut saw = self.saw.borrow_mut();
        (saw.end, saw.ended_ms) = (end, self.wire.now_ms());
    }
}
