//! Plays a provider: reads requests strictly, checks that they are what the client meant, and
//! gives each attempt of a call the reply that the plan has for it.

use crate::call::MARK;
use crate::notes::{Asked, Notes};
use crate::plan::{Plan, stays_here};
use crate::reply::{Act, Reads, Reply};
use crate::world::Dialect;
use gateway_tests::fields::{self, Pairs};
use std::rc::Rc;
use tollgate::io::Io;
use tollgate::io::script::{Peer, PeerListener, ScriptIo};

/// Takes connections for a provider for as long as the world lasts.
pub(crate) async fn serve(
    listener: PeerListener,
    io: ScriptIo,
    plan: Rc<Plan>,
    notes: Rc<Notes>,
    provider: usize,
) {
    let mut connection = 0;
    loop {
        connection += 1;
        // An accept that timed out in virtual time is simply begun again.
        let Ok(peer) = listener.accept().await else { continue };
        let (plan, notes) = (plan.clone(), notes.clone());
        let (own, io) = (io.clone(), io.clone());
        io.spawn(async move {
            let mut side =
                Side { peer, io: own, plan, notes, provider, connection, inbox: Vec::new() };
            side.serve().await;
        });
    }
}

/// One connection.
struct Side {
    peer: Peer,
    io: ScriptIo,
    plan: Rc<Plan>,
    notes: Rc<Notes>,
    provider: usize,
    connection: usize,
    inbox: Vec<u8>,
}

/// What becomes of a connection.
enum After {
    Next,
    Over,
}

impl Side {
    async fn serve(&mut self) {
        while let Some((head, begun_ns)) = self.head().await {
            match self.turn(head, begun_ns).await {
                Ok(After::Next) => {}
                Ok(After::Over) => return,
                Err(why) => return self.notes.fault(format!("upstream: {why}")),
            }
        }
    }

    /// The head of the next request; nothing once the connection is over.
    async fn head(&mut self) -> Option<((String, Pairs), u64)> {
        let mut begun_ns = None;
        let mut searched = 0;
        loop {
            if !self.inbox.is_empty() {
                begun_ns.get_or_insert_with(|| self.notes.now_ns());
            }
            let from = usize::saturating_sub(searched, 3);
            if self.inbox[from..].windows(4).any(|four| four == b"\r\n\r\n") {
                match fields::head(&self.inbox) {
                    Ok(Some((line, pairs, taken))) => {
                        self.inbox.drain(..taken);
                        return Some(((line, pairs), begun_ns.unwrap_or_default()));
                    }
                    Ok(None) => {}
                    Err(why) => {
                        self.notes.fault(format!("upstream: a head with {why}"));
                        return None;
                    }
                }
            }
            searched = self.inbox.len();
            if !self.more().await {
                return None;
            }
        }
    }

    async fn more(&mut self) -> bool {
        match self.peer.read_some().await {
            Ok(bytes) => {
                self.inbox.extend_from_slice(&bytes);
                !bytes.is_empty()
            }
            Err(_) => false,
        }
    }

    async fn turn(
        &mut self,
        (line, pairs): (String, Pairs),
        begun_ns: u64,
    ) -> Result<After, String> {
        let text = |name| {
            let value = fields::all(&pairs, name);
            let value = value.first().ok_or_else(|| format!("no {name} in {line:?}"))?;
            Ok::<_, String>(String::from_utf8_lossy(value).into_owned())
        };
        let call: usize = text(MARK)?.parse().map_err(|_| "no number of a call")?;
        let attempt: u8 = text("x-tollgate-attempt")?.parse().map_err(|_| "no number")?;
        let id = text("x-tollgate-request-id")?;
        let length = fields::length(&pairs)?.ok_or("no length")?;
        self.check_head(call, &line, &pairs)?;
        let plan = self.plan.clone();
        let place = {
            let mut asked = self.notes.asked.borrow_mut();
            let before = asked.iter().filter(|asked| asked.call == call).count();
            let (reply, _) = plan.calls[call].reply(before);
            asked.push(Asked {
                call,
                id,
                attempt,
                provider: self.provider,
                connection: self.connection,
                begun_ns,
                whole: false,
                candidates: Vec::new(),
                reply,
                replied: false,
            });
            asked.len() - 1
        };
        let reply = &plan.calls[call].replies[self.notes.asked.borrow()[place].reply];
        self.notes.trace(|| {
            let name = plan.world.providers[self.provider].name;
            format!("{name} is asked call {call}, attempt {attempt}: {:?}", reply.kind)
        });
        if reply.reads == Reads::Whole && !self.body(place, length).await? {
            return Ok(After::Over);
        }
        if let Reads::Early(bytes) | Reads::Never(bytes) = reply.reads
            && !self.part(bytes.min(length)).await
        {
            return Ok(After::Over);
        }
        let after = self.act(reply, place).await;
        if matches!(after, After::Next) && reply.reads != Reads::Whole {
            return Ok(if self.body(place, length).await? { After::Next } else { After::Over });
        }
        Ok(after)
    }

    async fn part(&mut self, bytes: usize) -> bool {
        while self.inbox.len() < bytes {
            if !self.more().await {
                return false;
            }
        }
        true
    }

    /// Reads a body to its end; false if it does not come.
    async fn body(&mut self, place: usize, length: usize) -> Result<bool, String> {
        if !self.part(length).await {
            return Ok(false);
        }
        let body: Vec<u8> = self.inbox.drain(..length).collect();
        let call = {
            let asked = &mut self.notes.asked.borrow_mut()[place];
            asked.whole = true;
            asked.call
        };
        self.find_keys(&body)?;
        let meant = self.plan.calls[call].meant(&self.plan.world, self.provider, &body);
        if meant.is_empty() {
            let shown = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
            return Err(format!("the body of call {call} is not what was meant: {shown}"));
        }
        self.notes.asked.borrow_mut()[place].candidates = meant;
        Ok(true)
    }

    fn check_head(&self, call: usize, line: &str, pairs: &Pairs) -> Result<(), String> {
        let plan = &self.plan.calls[call];
        if line != format!("POST {} HTTP/1.1", plan.path()) {
            return Err(format!("request line {line:?}"));
        }
        if stays_here(plan) {
            return Err(format!("call {call} was to stay here"));
        }
        let provider = &self.plan.world.providers[self.provider];
        let (name, value) = match provider.dialect {
            Dialect::Chat => ("authorization", format!("Bearer {}", provider.secret)),
            Dialect::Messages => ("x-api-key", provider.secret.clone()),
        };
        let shown = ["authorization", "x-api-key", "api-key", "x-tollgate-key"];
        let shown: Vec<&[u8]> =
            shown.into_iter().flat_map(|name| fields::all(pairs, name)).collect();
        if shown != [value.as_bytes()] || fields::all(pairs, name).len() != 1 {
            return Err(format!("call {call} came with another credential than ours"));
        }
        let versions = fields::all(pairs, "anthropic-version").len();
        if versions != usize::from(provider.dialect == Dialect::Messages) {
            return Err(format!("call {call} came with {versions} versions of its dialect"));
        }
        if fields::all(pairs, "host").len() != 1
            || !fields::all(pairs, "transfer-encoding").is_empty()
        {
            return Err(format!("call {call} leaves something open: {pairs:?}"));
        }
        pairs.iter().try_for_each(|(_, value)| self.find_keys(value))
    }

    /// No key of a client may get here.
    fn find_keys(&self, bytes: &[u8]) -> Result<(), String> {
        let found = memchr(bytes, b"tg-client-") || memchr(bytes, b"sk-who");
        if found { Err("a client's key has reached an upstream".into()) } else { Ok(()) }
    }

    async fn act(&mut self, reply: &Reply, place: usize) -> After {
        for act in &reply.acts {
            match act {
                Act::Send(bytes) => {
                    if self.peer.send(bytes).await.is_err() {
                        return After::Over;
                    }
                }
                Act::Pause(span) => self.io.sleep(*span).await,
                Act::Fin => {
                    self.peer.fin();
                    self.notes.asked.borrow_mut()[place].replied = true;
                    // Read on: what is unread would turn the close into a reset.
                    while self.more().await {
                        self.inbox.clear();
                    }
                    return After::Over;
                }
                Act::Reset => {
                    self.peer.rst();
                    return After::Over;
                }
                Act::Hang => {
                    let _ = self.peer.closed().await;
                    return After::Over;
                }
            }
        }
        self.notes.asked.borrow_mut()[place].replied = true;
        After::Next
    }
}

fn memchr(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}
