//! What an operator may ask of a node: keys and the ledger's figures, as requests and answers of
//! JSON. The same whether they come through `admin.sock` or from a command that has the state of a
//! resting node to itself.
//!
//! | request | answer |
//! |---|---|
//! | `GET /keys?after=N&limit=N` | `{"keys": […], "next": N or null}`, by number |
//! | `POST /keys` | 201 and the key, with its `text`: the only time |
//! | `GET /keys/SELECTOR` | the key, with what was settled on it |
//! | `POST /keys/SELECTOR/revoke` | the key, revoked for good |
//! | `GET /ledger` | where the log is, its gauges, names of keys and providers |
//!
//! Errors are `{"error": {"code", "message"}}`. It waits for the disk: not for a thread that must
//! not.

use super::keys::{KeyFault, Keys, NewKey, PAGE_MAX, Selector};
use super::ledger::{Clock, Position};
use crate::observe::ledger::{HEALTHS, LedgerGauges, SLOT_STATES};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use store::reader;

/// The desk of one node.
pub struct Desk {
    keys: Keys,
    log: Option<Log>,
    clock: Clock,
}

/// The ledger of a running node, as it is told.
pub struct Log {
    /// The node's identity.
    pub node: u64,
    /// Where the log is now.
    pub position: Box<dyn Fn() -> Position + Send + Sync>,
    /// Its gauges.
    pub gauges: Arc<LedgerGauges>,
    /// The providers' names, in the order of the configuration.
    pub providers: Vec<Box<str>>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// As a status of HTTP.
    pub status: u16,
    /// One JSON object.
    pub body: Value,
}

// === impl Answer ===

impl Answer {
    fn ok(body: Value) -> Answer {
        Answer { status: 200, body }
    }

    /// A refusal.
    pub fn error(status: u16, code: &str, message: &str) -> Answer {
        Answer { status, body: json!({"error": {"code": code, "message": message}}) }
    }
}

impl From<KeyFault> for Answer {
    fn from(fault: KeyFault) -> Answer {
        Answer::error(fault.status(), fault.code(), &fault.to_string())
    }
}

// === impl Desk ===

impl Desk {
    /// The desk of a node; `log` if it runs.
    pub fn new(keys: Keys, log: Option<Log>, clock: Clock) -> Desk {
        Desk { keys, log, clock }
    }

    /// The keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Prepares the next windows of budgets, for now.
    pub fn prepare(&self) {
        self.keys.prepare((self.clock)().wall);
    }

    /// Answers a request.
    pub fn answer(&self, method: &str, target: &str, body: &[u8]) -> Answer {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let answer = match (method, &parts[..]) {
            ("GET", ["keys"]) => self.list(query),
            ("POST", ["keys"]) => self.create(body),
            ("GET", ["keys", selector]) => self.show(selector),
            ("POST", ["keys", selector, "revoke"]) => self.revoke(selector),
            ("GET", ["ledger"]) => return self.ledger(),
            (_, ["keys" | "ledger"] | ["keys", _] | ["keys", _, "revoke"]) => {
                let what = "this is asked with another method";
                return Answer::error(405, "method_not_allowed", what);
            }
            _ => return Answer::error(404, "not_found", "there is no such page"),
        };
        answer.unwrap_or_else(Answer::from)
    }

    fn list(&self, query: &str) -> Result<Answer, KeyFault> {
        let (mut after, mut limit) = (0, PAGE_MAX);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let wrong = |_| KeyFault::Invalid(format!("{name} is a whole number"));
            match name {
                "after" => after = value.parse().map_err(wrong)?,
                "limit" => limit = value.parse().map_err(wrong)?,
                _ => return Err(KeyFault::Invalid("after and limit can be given".to_owned())),
            }
        }
        let now = (self.clock)();
        let (rows, next) = self.keys.page(after, limit)?;
        let keys: Vec<Value> = rows.iter().map(|row| self.keys.list_entry(row, now)).collect();
        Ok(Answer::ok(json!({"keys": keys, "next": next})))
    }

    fn create(&self, body: &[u8]) -> Result<Answer, KeyFault> {
        let now = (self.clock)();
        let new = NewKey::parse(body, now.wall)?;
        let (row, text) = self.keys.create(&new, now.wall)?;
        let mut shown = self.keys.list_entry(&row, now);
        if let Some(object) = shown.as_object_mut() {
            object.insert("text".to_owned(), text.reveal().into());
        }
        Ok(Answer { status: 201, body: shown })
    }

    fn show(&self, selector: &str) -> Result<Answer, KeyFault> {
        let row = self.keys.find(&read(selector)?)?;
        self.keys.show(&row, (self.clock)()).map(Answer::ok)
    }

    fn revoke(&self, selector: &str) -> Result<Answer, KeyFault> {
        let row = self.keys.find(&read(selector)?)?;
        let row = self.keys.revoke(row.id)?;
        self.keys.show(&row, (self.clock)()).map(Answer::ok)
    }

    fn ledger(&self) -> Answer {
        let Some(log) = &self.log else {
            return Answer::error(404, "no_ledger", "this node keeps no ledger now");
        };
        let Position { durable, checkpointed } = (log.position)();
        let names = self.keys.names().into_iter();
        let names: Map<String, Value> =
            names.map(|(id, name)| (id.to_string(), (*name).into())).collect();
        Answer::ok(json!({
            "node": format!("{:016x}", log.node),
            "durable": position(&durable),
            "checkpointed": position(&checkpointed),
            "gauges": gauges(&log.gauges),
            "keys": names,
            "providers": log.providers,
        }))
    }
}

/// A place in the log.
pub fn position(at: &reader::Position) -> Value {
    let mut chain = String::with_capacity(2 * at.chain.len());
    for byte in at.chain {
        // Writing to a String cannot fail.
        let _ = write!(chain, "{byte:02x}");
    }
    json!({
        "segment": at.segment,
        "offset": at.offset,
        "last_seq": at.next_seq.saturating_sub(1),
        "chain": chain,
        "frame_bytes": at.frame_bytes,
    })
}

fn gauges(gauges: &LedgerGauges) -> Value {
    let read = |gauge: &AtomicU64| gauge.load(Relaxed);
    let health = usize::try_from(read(&gauges.health)).ok().and_then(|at| HEALTHS.get(at));
    let slots = SLOT_STATES.iter().zip(&gauges.slots);
    let slots: Map<String, Value> =
        slots.map(|(state, count)| ((*state).to_owned(), read(count).into())).collect();
    json!({
        "health": health,
        "records": read(&gauges.records),
        "bytes": read(&gauges.bytes),
        "commits": read(&gauges.commits),
        "lag": read(&gauges.lag),
        "failures": read(&gauges.failures),
        "last_seq": read(&gauges.last_seq),
        "slots": slots,
    })
}

/// A selector out of a path: percent-encoded, since names have slashes and spaces.
fn read(encoded: &str) -> Result<Selector, KeyFault> {
    let wrong = || KeyFault::Invalid("this is no percent-encoded text".to_owned());
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next()), digit(rest.next()));
        let decoded = high.zip(low).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        bytes.push(decoded.ok_or_else(wrong)?);
    }
    Selector::read(&String::from_utf8(bytes).map_err(|_| wrong())?)
}

/// The other way round: everything but plain letters, digits and `-_.` encoded.
pub fn encoded(selector: &Selector) -> String {
    let mut text = String::new();
    for byte in selector.text().bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests;
