//! Kinds of call: the bytes of each, and what has to come of it before an upstream is asked.
//!
//! A further kind is a variant, its bytes, and whether upstreams see it.

use crate::dice::Dice;
use crate::reply::Reply;
use crate::world::{Candidate, Dialect, Model, REQUEST_BYTES, World};

/// The field by which both ends know a call: it goes on as it came.
pub(crate) const MARK: &str = "x-sim-call";

/// Replies of a call, one an attempt; the last one is that of all further ones.
const REPLIES: usize = 6;

/// Kinds of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Chat,
    ChatStream,
    Messages,
    MessagesStream,
    CountTokens,
    Models,
    Health,
    NoRoute,
    NotServed,
    WrongMethod,
    /// A body that is no JSON, somewhere.
    BrokenJson,
    NoModel,
    UnknownModel,
    /// A body that is announced above the bound.
    TooLarge,
    NoLength,
    BrokenHead,
}

const KINDS: &[(u64, Kind)] = &[
    (40, Kind::Chat),
    (40, Kind::ChatStream),
    (15, Kind::Messages),
    (25, Kind::MessagesStream),
    (4, Kind::CountTokens),
    (3, Kind::Models),
    (1, Kind::Health),
    (1, Kind::NoRoute),
    (1, Kind::NotServed),
    (1, Kind::WrongMethod),
    (2, Kind::BrokenJson),
    (1, Kind::NoModel),
    (2, Kind::UnknownModel),
    (1, Kind::TooLarge),
    (1, Kind::NoLength),
    (1, Kind::BrokenHead),
];

/// What has to come of a call of which nothing else is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// An upstream is asked.
    Upstream,
    /// The gateway's own error.
    Own(u16, &'static str),
    /// An answer of the gateway's own that is no error.
    Local,
}

/// Whose key is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    Key(usize),
    /// Nobody's.
    Stranger,
    /// None.
    Nobody,
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    pub(crate) caller: Caller,
    pub(crate) model: usize,
    /// All that the client sends.
    pub(crate) bytes: Vec<u8>,
    /// The body that is in it.
    body: Vec<u8>,
    /// The client asks for the usage of its stream itself.
    pub(crate) asks_usage: bool,
    pub(crate) expect: Expect,
    /// Nothing can follow it on its connection.
    pub(crate) last: bool,
    /// The client speaks HTTP/1.0.
    pub(crate) is_10: bool,
    /// Tokens that its text is estimated at.
    pub(crate) input: u64,
    pub(crate) cap: Option<u64>,
    pub(crate) answers: u64,
    pub(crate) replies: Vec<Reply>,
}

// === impl Kind ===

impl Kind {
    pub(crate) fn dialect(self) -> Dialect {
        match self {
            Kind::Messages | Kind::MessagesStream | Kind::CountTokens => Dialect::Messages,
            _ => Dialect::Chat,
        }
    }

    pub(crate) fn is_stream(self) -> bool {
        matches!(self, Kind::ChatStream | Kind::MessagesStream)
    }

    /// It costs nothing, and leaves no record.
    pub(crate) fn is_free(self) -> bool {
        self == Kind::CountTokens
    }

    /// It passes all layers, if its model leads anywhere.
    pub(crate) fn is_governed(self) -> bool {
        use Kind::{Chat, ChatStream, Messages, MessagesStream, UnknownModel};
        matches!(self, Chat | ChatStream | Messages | MessagesStream | UnknownModel)
    }

    fn path(self) -> (&'static str, &'static str) {
        match self {
            Kind::Models => ("GET", "/v1/models"),
            Kind::Health => ("GET", "/healthz"),
            Kind::NoRoute => ("GET", "/v1/nowhere"),
            Kind::NotServed => ("GET", "/v1/files"),
            Kind::WrongMethod => ("GET", "/v1/chat/completions"),
            Kind::Messages | Kind::MessagesStream => ("POST", "/v1/messages"),
            Kind::CountTokens => ("POST", "/v1/messages/count_tokens"),
            _ => ("POST", "/v1/chat/completions"),
        }
    }
}

// === impl Call ===

impl Call {
    pub(crate) fn draw(number: usize, world: &World, dice: &mut Dice) -> Call {
        let kind = dice.weighted(KINDS);
        let caller = match dice.below(40) {
            0 => Caller::Nobody,
            1 => Caller::Stranger,
            _ => Caller::Key(dice.index(world.keys.len())),
        };
        let model = draw_model(kind, world, dice);
        let mut call = Call {
            kind,
            caller,
            model,
            bytes: Vec::new(),
            body: Vec::new(),
            asks_usage: false,
            expect: Expect::Upstream,
            last: false,
            is_10: dice.percent(4),
            input: 0,
            cap: None,
            answers: 1,
            replies: Vec::new(),
        };
        call.body = call.draw_body(&world.models[model], dice);
        call.expect = call.expectation(world);
        call.bytes = call.request(number, world, dice);
        let hides = kind == Kind::ChatStream && !call.asks_usage;
        call.replies = (0..REPLIES).map(|_| Reply::draw(kind, hides, world, dice)).collect();
        call
    }

    /// The body as the client sends it.
    fn draw_body(&mut self, model: &Model, dice: &mut Dice) -> Vec<u8> {
        let len = dice.weighted(&[(75, 600), (20, 20_000), (5, 150_000)]);
        let len = dice.log_between(1, len) as usize;
        let text = dice.text(len);
        let mut counted = vec![text.as_str(), "user"];
        let mut members =
            vec![format!("\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]")];
        let chat = self.kind.dialect() == Dialect::Chat;
        if !chat && dice.percent(30) {
            members.push("\"system\":\"be brief\"".to_owned());
            counted.push("be brief");
        }
        let ascii: usize = counted.iter().flat_map(|t| t.bytes()).filter(u8::is_ascii).count();
        let other = counted.iter().map(|text| text.len()).sum::<usize>() - ascii;
        self.input = (ascii as u64).div_ceil(4) + (other as u64).div_ceil(2);
        if !chat || dice.percent(60) {
            let cap = dice.log_between(1, 6_000);
            let name =
                if chat && dice.percent(50) { "max_completion_tokens" } else { "max_tokens" };
            members.push(format!("\"{name}\":{cap}"));
            self.cap = Some(cap);
        }
        if chat && dice.percent(5) {
            self.answers = 2;
            members.push("\"n\":2".to_owned());
        }
        self.draw_stream(&mut members, dice);
        members.push("\"temperature\": 0.5".to_owned());
        if self.kind != Kind::NoModel {
            let asked = match self.kind {
                Kind::UnknownModel => "nobody-has-this",
                _ => model.asked,
            };
            let member = format!("\"model\":{}", serde_json::json!(asked));
            members.insert(dice.index(members.len() + 1), member);
        }
        let mut body = format!("{{{}}}", members.join(", "));
        if self.kind == Kind::BrokenJson {
            let at = body.find("\"messages\"").unwrap_or(1);
            const WRONG: &[&str] = &["}", "]", ",", "\u{1}", "nul "];
            body.insert_str(at, dice.word(WRONG));
        }
        body.into_bytes()
    }

    fn draw_stream(&mut self, members: &mut Vec<String>, dice: &mut Dice) {
        if !self.kind.is_stream() {
            if dice.percent(30) {
                members.push("\"stream\":false".to_owned());
            }
            return;
        }
        members.push("\"stream\":true".to_owned());
        if self.kind != Kind::ChatStream {
            return;
        }
        self.asks_usage = dice.percent(40);
        let options = match (self.asks_usage, dice.below(4)) {
            (true, _) => "{\"include_usage\":true}",
            (false, 0) => "{\"include_usage\": false , \"x\":1}",
            (false, 1) => "{}",
            (false, 2) => "null",
            (false, _) => return,
        };
        members.push(format!("\"stream_options\":{options}"));
    }

    fn expectation(&self, world: &World) -> Expect {
        match self.kind {
            Kind::BrokenHead => return Expect::Own(400, "invalid_request"),
            Kind::NoRoute => return Expect::Own(404, "not_found"),
            Kind::NotServed => return Expect::Own(501, "not_implemented"),
            Kind::WrongMethod => return Expect::Own(405, "method_not_allowed"),
            Kind::NoLength => return Expect::Own(411, "length_required"),
            Kind::TooLarge => return Expect::Own(413, "request_too_large"),
            Kind::Health => return Expect::Local,
            _ => {}
        }
        let Caller::Key(key) = self.caller else {
            return Expect::Own(401, "invalid_api_key");
        };
        let (key, model) = (&world.keys[key], &world.models[self.model]);
        let mut native = model.native(world, self.kind.dialect());
        let priced = native.clone().any(|(_, candidate)| candidate.rates.is_some());
        match self.kind {
            Kind::Models => Expect::Local,
            Kind::BrokenJson => Expect::Own(400, "invalid_request"),
            Kind::NoModel => Expect::Own(400, "model_missing"),
            Kind::UnknownModel => Expect::Own(404, "model_not_found"),
            _ if native.next().is_none() => Expect::Own(400, "model_unavailable"),
            _ if key.models.as_ref().is_some_and(|list| !list.contains(&model.asked)) => {
                Expect::Own(403, "model_not_allowed")
            }
            _ if key.has_budget() && !priced && !self.kind.is_free() => {
                Expect::Own(400, "price_unknown")
            }
            _ => Expect::Upstream,
        }
    }

    /// The whole request.
    fn request(&mut self, number: usize, world: &World, dice: &mut Dice) -> Vec<u8> {
        let (method, path) = self.kind.path();
        let version = if self.is_10 { "1.0" } else { "1.1" };
        let mut head =
            format!("{method} {path} HTTP/{version}\r\nHost: gw\r\n{MARK}: {number}\r\n");
        match self.caller {
            Caller::Key(key) => {
                let text = &world.keys[key].text;
                head.push_str(&match dice.below(3) {
                    0 => format!("X-Api-Key: {text}\r\n"),
                    _ => format!("Authorization: Bearer {text}\r\n"),
                });
            }
            Caller::Stranger => head.push_str("Authorization: Bearer sk-who\r\n"),
            Caller::Nobody => {}
        }
        if self.kind.dialect() == Dialect::Messages && dice.percent(50) {
            head.push_str("anthropic-version: 2023-06-01\r\n");
        }
        if dice.percent(20) {
            head.push_str("X-Request-Id: from-the-caller\r\n");
        }
        let close = dice.percent(6);
        if close {
            head.push_str("Connection: close\r\n");
        }
        self.last = close || self.is_10;
        self.finish(head, method, dice)
    }

    fn finish(&mut self, mut head: String, method: &str, dice: &mut Dice) -> Vec<u8> {
        if self.kind == Kind::BrokenHead {
            self.last = true;
            const WRONG: &[&str] = &["No Colon\r\n", "a : b\r\n", "Content-Length: +2\r\n"];
            head.push_str(dice.word(WRONG));
        }
        if method == "GET" || matches!(self.kind, Kind::BrokenHead | Kind::NoLength) {
            head.push_str("\r\n");
            return head.into_bytes();
        }
        let body = &self.body;
        if self.kind == Kind::TooLarge {
            self.last = true;
            head.push_str(&format!("Content-Length: {}\r\n\r\n", REQUEST_BYTES + 1));
            let mut bytes = head.into_bytes();
            bytes.extend_from_slice(body);
            return bytes;
        }
        head.push_str("Content-Type: application/json\r\n");
        if !self.is_10 && dice.percent(20) {
            head.push_str("Transfer-Encoding: chunked\r\n\r\n");
            return chunked(head.into_bytes(), body, dice);
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        bytes
    }

    /// The reply to its `nth` attempt, from 0.
    pub(crate) fn reply(&self, nth: usize) -> (usize, &Reply) {
        let nth = nth.min(self.replies.len() - 1);
        (nth, &self.replies[nth])
    }

    pub(crate) fn key(&self) -> Option<usize> {
        match self.caller {
            Caller::Key(key) => Some(key),
            Caller::Stranger | Caller::Nobody => None,
        }
    }

    /// The path at a provider.
    pub(crate) fn path(&self) -> &'static str {
        self.kind.path().1
    }

    /// The candidates it may go to, with their places.
    pub(crate) fn candidates<'w>(
        &self,
        world: &'w World,
    ) -> impl Iterator<Item = (usize, &'w Candidate)> + Clone {
        let budget = self.key().is_some_and(|key| world.keys[key].has_budget());
        let struck = budget && !self.kind.is_free();
        let native = world.models[self.model].native(world, self.kind.dialect());
        native.filter(move |(_, candidate)| candidate.rates.is_some() || !struck)
    }

    /// Which candidates of a provider a body that came there was meant for: none, if it is not
    /// what the client sent but for the model's name and the option that a stream needs.
    pub(crate) fn meant(&self, world: &World, provider: usize, body: &[u8]) -> Vec<usize> {
        let theirs = self.candidates(world).filter(|(_, one)| one.provider == provider);
        let asked = format!("\"model\":{}", serde_json::json!(world.models[self.model].asked));
        let own = String::from_utf8_lossy(&self.body);
        let fits = theirs.filter(|(_, candidate)| {
            let sent = format!("\"model\":{}", serde_json::json!(candidate.sent));
            let renamed = own.replacen(&asked, &sent, 1);
            if self.kind != Kind::ChatStream || self.asks_usage {
                return renamed.as_bytes() == body;
            }
            let mut wanted: serde_json::Value = serde_json::from_str(&renamed).unwrap_or_default();
            if !wanted["stream_options"].is_object() {
                wanted["stream_options"] = serde_json::json!({});
            }
            wanted["stream_options"]["include_usage"] = true.into();
            serde_json::from_slice::<serde_json::Value>(body).is_ok_and(|had| had == wanted)
        });
        fits.map(|(place, _)| place).collect()
    }
}

/// A model; mostly one that takes the dialect.
fn draw_model(kind: Kind, world: &World, dice: &mut Dice) -> usize {
    loop {
        let model = dice.index(world.models.len());
        let native = world.models[model].native(world, kind.dialect()).next().is_some();
        let rare = matches!(world.models[model].asked, "lost" | "unpriced");
        if native && (!rare || dice.percent(30)) || dice.percent(2) {
            return model;
        }
    }
}

fn chunked(mut bytes: Vec<u8>, body: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut from = 0;
    for cut in dice.cuts(body.len(), 6).into_iter().chain([body.len()]) {
        if cut > from {
            bytes.extend_from_slice(format!("{:X}\r\n", cut - from).as_bytes());
            bytes.extend_from_slice(&body[from..cut]);
            bytes.extend_from_slice(b"\r\n");
        }
        from = cut;
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}
