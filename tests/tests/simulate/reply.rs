//! Kinds of upstream answer: the bytes and pauses of each, and the oracle of what may come of it.
//!
//! A further kind is a variant, a way to make it, what a client that stays may get for it, and
//! whether another attempt may follow it (DESIGN §6).

use crate::call;
use crate::dice::Dice;
use crate::stream::{Event, Style};
use crate::usage::Usage;
use crate::world::{Dialect, FIRST_BYTE, World};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use std::time::Duration;

/// How much of a request is read before the reply begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    Whole,
    /// So many bytes of it; the rest is read after the reply.
    Early(usize),
    /// So many bytes of it, and nothing more ever.
    Never(usize),
}

/// What an upstream does next.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Send(Vec<u8>),
    Pause(Duration),
    Fin,
    Reset,
    /// Nothing more until the gateway is gone.
    Hang,
}

/// Whether another attempt may follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum May {
    Yes,
    #[default]
    No,
    /// Where a request may be billed twice, or was not wholly sent.
    Twice,
}

/// An error that a client is told as the upstream's own.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// With other words in `error.message`.
    pub(crate) reworded: bool,
}

/// What a client that stays may get for a reply, were it the last of its call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Can {
    /// Status and body as they came: it is a success.
    pub(crate) succeed: bool,
    /// An error of the upstream's.
    pub(crate) told: Option<Told>,
    /// A head, and a body that breaks off for all to see.
    pub(crate) partial: bool,
    /// An error of the gateway's own.
    pub(crate) codes: Vec<&'static str>,
    /// The gateway may take it for a connection that was dead before, and send again.
    pub(crate) replay: bool,
    /// The same candidate may be asked again, or the next one.
    pub(crate) again: May,
    pub(crate) next: May,
}

/// One reply.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) kind: Kind,
    pub(crate) reads: Reads,
    pub(crate) acts: Vec<Act>,
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// Its events, if it is a stream that the gateway reads.
    pub(crate) events: Option<Vec<Event>>,
    /// What it says it used, where that can be read.
    pub(crate) usage: Option<Usage>,
    /// What it has begun to say of it, if it says no more.
    pub(crate) noted: Option<Usage>,
    pub(crate) can: Can,
    /// A rest between two events, after the first word.
    pub(crate) longest_rest: Duration,
}

/// Kinds of reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Good,
    /// A success that does not say what it used.
    Uncounted,
    /// A success in gzip, though nobody asked for it.
    Gzip,
    /// Interim heads before a success.
    Interim,
    /// A success with bytes behind its end.
    Surplus,
    /// An error, told before the request was read.
    Early,
    Refusal,
    /// An error that says what it used.
    CountedError,
    /// Our own credential is refused.
    Auth,
    /// Our own account is used up.
    Quota,
    /// 200 and nothing in it.
    Empty,
    /// 200 and an error in it.
    ErrorInside,
    /// 200 and not what was asked for.
    Html,
    Redirect,
    /// Not HTTP.
    Garbage,
    CutHead,
    CutBody,
    StallHead,
    StallBody,
    /// The connection ends without a byte.
    Silent,
    /// Never reads, never answers.
    Deaf,
    /// Streams: good ones, without usage, with a rest, with an event of its own size, in gzip.
    Stream,
    StreamUncounted,
    StreamSlow,
    StreamGiant,
    StreamGzip,
    /// Without its terminator.
    StreamOpen,
    /// With an error first, or behind some words.
    StreamErrorFirst,
    StreamErrorLate,
    /// Ended by its framing before its own end.
    StreamShort,
    StreamCut,
    StreamStall,
}

const FAILURES: &[(u64, Kind)] = &[
    (2, Kind::Early),
    (8, Kind::Refusal),
    (2, Kind::CountedError),
    (2, Kind::Auth),
    (2, Kind::Quota),
    (2, Kind::Empty),
    (3, Kind::ErrorInside),
    (2, Kind::Html),
    (2, Kind::Redirect),
    (3, Kind::Garbage),
    (3, Kind::CutHead),
    (4, Kind::CutBody),
    (2, Kind::StallHead),
    (2, Kind::StallBody),
    (4, Kind::Silent),
    (1, Kind::Deaf),
];

const WHOLE: &[(u64, Kind)] = &[
    (48, Kind::Good),
    (5, Kind::Uncounted),
    (4, Kind::Gzip),
    (3, Kind::Interim),
    (2, Kind::Surplus),
];

const STREAMS: &[(u64, Kind)] = &[
    (30, Kind::Stream),
    (6, Kind::StreamUncounted),
    (8, Kind::StreamSlow),
    (3, Kind::StreamGiant),
    (4, Kind::StreamGzip),
    (5, Kind::StreamOpen),
    (6, Kind::StreamErrorFirst),
    (4, Kind::StreamErrorLate),
    (4, Kind::StreamShort),
    (8, Kind::StreamCut),
    (5, Kind::StreamStall),
    (2, Kind::Good),
];

/// How a body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
    Close,
}

/// What a reply is drawn for.
#[derive(Clone, Copy)]
struct Making<'w> {
    dialect: Dialect,
    /// Usage of a stream is not for the client.
    hides: bool,
    free: bool,
    world: &'w World,
}

// === impl Kind ===

impl Kind {
    /// It ends before it was over.
    pub(crate) fn breaks(self) -> bool {
        use Kind::{CutBody, StallBody, StreamCut, StreamShort, StreamStall};
        matches!(self, CutBody | StallBody | StreamCut | StreamShort | StreamStall)
    }
}

// === impl Reply ===

impl Reply {
    pub(crate) fn draw(call: call::Kind, hides: bool, world: &World, dice: &mut Dice) -> Reply {
        let kind = match (dice.percent(35), call.is_stream()) {
            (true, _) => dice.weighted(FAILURES),
            (false, true) => dice.weighted(STREAMS),
            (false, false) => dice.weighted(WHOLE),
        };
        let making = Making { dialect: call.dialect(), hides, free: call.is_free(), world };
        let mut reply = Reply {
            kind,
            reads: Reads::Whole,
            acts: Vec::new(),
            status: 200,
            body: Vec::new(),
            events: None,
            usage: None,
            noted: None,
            can: Can::default(),
            longest_rest: Duration::ZERO,
        };
        reply.make(making, dice);
        reply
    }

    fn make(&mut self, making: Making<'_>, dice: &mut Dice) {
        use Kind::{
            Auth, CountedError, CutBody, CutHead, Deaf, Early, Empty, ErrorInside, Garbage, Good,
            Gzip, Html, Interim, Quota, Redirect, Refusal, Silent, StallBody, StallHead, Surplus,
            Uncounted,
        };
        match self.kind {
            Good | Interim | Surplus | Uncounted | Gzip => self.succeed(making, dice),
            Refusal | CountedError | Early | Auth | Quota => self.fail(making, dice),
            Empty | ErrorInside | Html | Redirect => self.useless(making, dice),
            CutBody | StallBody => self.break_off(making, dice),
            Garbage | CutHead | StallHead | Silent | Deaf => self.no_answer(dice),
            _ => self.stream(making, dice),
        }
    }

    /// A whole answer.
    fn succeed(&mut self, making: Making<'_>, dice: &mut Dice) {
        let counted = self.kind != Kind::Uncounted && !making.free;
        let usage = counted.then(|| Usage::draw(making.dialect, dice));
        let plain = completion(usage, making, dice);
        let mut fields = String::new();
        if self.kind == Kind::Gzip {
            fields.push_str("Content-Encoding: gzip\r\n");
            self.body = gzip(plain.as_bytes());
        } else {
            self.body = plain.into_bytes();
        }
        (self.usage, self.can.succeed) = (usage, true);
        let framing = framing(dice);
        let mut bytes = Vec::new();
        if self.kind == Kind::Interim {
            for _ in 0..dice.between(1, 4) {
                bytes.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n");
            }
        }
        bytes.extend(framed(200, "application/json", &fields, &self.body, framing, dice));
        self.send(bytes, dice);
        if framing == Framing::Close {
            self.acts.push(Act::Fin);
        } else if self.kind == Kind::Surplus {
            self.acts.push(Act::Send(b"HTTP/1.1 200 OK\r\n".to_vec()));
        } else if dice.percent(10) {
            // It ends while it waits in the pool, or while the next request is on its way.
            self.acts.push(Act::Pause(dice.millis(0, 1_500)));
            self.acts.push(Act::Fin);
        }
    }

    fn fail(&mut self, making: Making<'_>, dice: &mut Dice) {
        const STATUSES: [u16; 13] =
            [400, 402, 403, 404, 405, 409, 422, 429, 500, 502, 503, 504, 529];
        self.status = match self.kind {
            Kind::Auth => 401,
            Kind::Quota => 429,
            _ => *dice.pick(&STATUSES),
        };
        let counted = self.kind == Kind::CountedError;
        self.usage = counted.then(|| Usage::draw(making.dialect, dice));
        let said = self.usage.map(|usage| format!(",\"usage\":{}", usage.json(making.dialect)));
        let code = if self.kind == Kind::Quota { "insufficient_quota" } else { "x" };
        let said = said.unwrap_or_default();
        let text = format!("{{\"error\":{{\"message\":\"no\",\"code\":\"{code}\"}}{said}}}");
        self.body = text.into_bytes();
        let plain = self.kind == Kind::Refusal && self.status != 402 && dice.percent(30);
        let media = if plain { "text/plain" } else { "application/json" };
        let fields = match dice.below(8) {
            0 => "Retry-After: 1\r\n",
            1 => "Retry-After: 100\r\n",
            _ => "",
        };
        let framing = framing(dice);
        let bytes = framed(self.status, media, fields, &self.body, framing, dice);
        self.send(bytes, dice);
        if framing == Framing::Close {
            self.acts.push(Act::Fin);
        }
        if self.kind == Kind::Auth {
            self.can.codes.push("upstream_auth");
        } else {
            self.tell(self.status, self.body.clone());
        }
        (self.can.again, self.can.next) = match (self.kind, self.status) {
            (Kind::CountedError, _) => (May::No, May::No),
            (Kind::Auth | Kind::Quota, _) | (_, 402..=405) => (May::No, May::Yes),
            (_, 429 | 500 | 503 | 529) => (May::Yes, May::Yes),
            (_, 500..) => (May::Twice, May::Twice),
            _ => (May::No, May::No),
        };
        if self.kind == Kind::Early {
            self.reads = Reads::Early(dice.log_between(100, 4_000) as usize);
        }
    }

    /// An error that is told as it is, or reworded where it speaks of our account.
    fn tell(&mut self, status: u16, body: Vec<u8>) {
        let counted = self.kind == Kind::CountedError;
        let reworded = !counted && (status == 402 || self.kind == Kind::Quota);
        self.can.told = Some(Told { status, body, reworded });
    }

    /// An answer that is whole and cannot be passed on.
    fn useless(&mut self, making: Making<'_>, dice: &mut Dice) {
        let (media, body) = match self.kind {
            Kind::Empty => ("application/json", "{}".to_owned()),
            Kind::Html => ("text/html", "<html>maintenance</html>".to_owned()),
            Kind::ErrorInside => ("application/json", self.inside(making.dialect, dice)),
            _ => ("application/json", "{\"a\":1}".to_owned()),
        };
        (self.can.again, self.can.next) = (May::Twice, May::Yes);
        match self.kind {
            // A count of tokens is no completion.
            Kind::Empty if making.free => {
                self.can = Can { succeed: true, ..Can::default() };
            }
            Kind::Empty => self.can.codes.push("empty_completion"),
            Kind::Redirect => {
                self.status = *dice.pick(&[301, 302, 307, 308]);
                self.can.again = May::No;
                self.can.codes.push("upstream_invalid");
            }
            Kind::Html => self.can.codes.push("upstream_invalid"),
            _ => self.judge_inside(body.as_bytes().to_vec(), making.dialect),
        }
        self.body = body.into();
        let bytes = framed(self.status, media, "", &self.body, Framing::Length, dice);
        self.send(bytes, dice);
    }

    /// An error inside a success: one that stands for a status, or one that nobody knows.
    fn inside(&mut self, dialect: Dialect, dice: &mut Dice) -> String {
        const CHAT: &[&str] = &["rate_limit_exceeded", "server_error", "insufficient_quota", "y"];
        const MESSAGES: &[&str] = &["overloaded_error", "api_error", "billing_error", "y_error"];
        match dialect {
            Dialect::Chat => {
                let code = dice.word(CHAT);
                format!("{{\"error\":{{\"message\":\"x\",\"code\":\"{code}\"}}}}")
            }
            Dialect::Messages => {
                let kind = dice.word(MESSAGES);
                format!(
                    "{{\"type\":\"error\",\"error\":{{\"type\":\"{kind}\",\"message\":\"x\"}}}}"
                )
            }
        }
    }

    /// What the table says of it.
    fn judge_inside(&mut self, body: Vec<u8>, dialect: Dialect) {
        const KNOWN: [(&str, u16); 6] = [
            ("rate_limit_exceeded", 429),
            ("server_error", 500),
            ("insufficient_quota", 429),
            ("overloaded_error", 529),
            ("api_error", 500),
            ("billing_error", 402),
        ];
        let json: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let name = match dialect {
            Dialect::Chat => "code",
            Dialect::Messages => "type",
        };
        let said = json["error"][name].as_str().unwrap_or_default();
        self.can.next = May::Yes;
        let Some((_, status)) = KNOWN.iter().find(|(known, _)| *known == said) else {
            self.can.again = May::Twice;
            return self.can.codes.push("upstream_invalid");
        };
        let account = matches!(said, "insufficient_quota" | "billing_error");
        self.can.again = if account { May::No } else { May::Yes };
        self.can.told = Some(Told { status: *status, body, reworded: account });
    }

    /// A good answer that breaks off inside its body.
    fn break_off(&mut self, making: Making<'_>, dice: &mut Dice) {
        let usage = Usage::draw(making.dialect, dice);
        self.body = completion(Some(usage), making, dice).into_bytes();
        self.usage = Some(usage).filter(|_| !making.free);
        self.noted = self.usage;
        let framing = *dice.pick(&[Framing::Length, Framing::Chunked]);
        let bytes = framed(200, "application/json", "", &self.body, framing, dice);
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(0) + 4;
        let end = head + dice.index(bytes.len() - head);
        self.send(bytes[..end].to_vec(), dice);
        self.stop(making, self.kind == Kind::CutBody, bytes[end..].to_vec(), dice);
    }

    /// Breaks off, at once or by waiting for too long.
    fn stop(&mut self, making: Making<'_>, cut: bool, rest: Vec<u8>, dice: &mut Dice) {
        self.can.partial = true;
        (self.can.again, self.can.next) = (May::Twice, May::Twice);
        if cut {
            self.acts.push(if dice.percent(50) { Act::Fin } else { Act::Reset });
            self.can.codes.push("upstream_cut");
        } else {
            self.acts.push(Act::Pause(2 * making.world.between + Duration::from_secs(1)));
            self.acts.push(Act::Send(rest));
            self.can.codes.push("upstream_timeout");
        }
    }

    /// Nothing that could be called an answer.
    fn no_answer(&mut self, dice: &mut Dice) {
        let good = framed(200, "application/json", "", b"{}", Framing::Length, dice);
        let head = good.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(0);
        (self.can.again, self.can.next) = (May::Twice, May::Twice);
        match self.kind {
            Kind::Garbage => {
                let bytes: &[u8] = match dice.below(5) {
                    0 => b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
                    1 => b"HTTP/1.1 2x0 OK\r\nContent-Length: 2\r\n\r\n{}",
                    2 => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
                    3 => b"HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 2\r\n\r\n{}",
                    _ => b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
                };
                self.send(bytes.to_vec(), dice);
                self.can.next = May::Yes;
                self.can.codes.push("upstream_invalid");
            }
            Kind::CutHead => {
                self.send(good[..1 + dice.index(head)].to_vec(), dice);
                self.acts.push(if dice.percent(50) { Act::Fin } else { Act::Reset });
                // A reset takes bytes with it that were not read yet: then there was no answer.
                self.can.replay = true;
                self.can.codes.push("upstream_cut");
            }
            Kind::StallHead => {
                self.send(good[..dice.index(head)].to_vec(), dice);
                self.acts.push(Act::Pause(FIRST_BYTE + Duration::from_secs(2)));
                self.acts.push(Act::Send(good));
                self.can.codes.push("upstream_timeout");
            }
            Kind::Silent => {
                self.acts.push(Act::Pause(dice.millis(0, 300)));
                self.acts.push(if dice.percent(50) { Act::Fin } else { Act::Reset });
                self.can.replay = true;
                self.can.codes.push("upstream_cut");
            }
            _ => {
                self.reads = Reads::Never(dice.log_between(100, 20_000) as usize);
                self.acts.push(Act::Hang);
                // How much of the request was sent nobody here can tell.
                (self.can.again, self.can.next) = (May::Yes, May::Yes);
                self.can.codes.push("upstream_timeout");
            }
        }
    }

    /// A stream of events.
    fn stream(&mut self, making: Making<'_>, dice: &mut Dice) {
        let style = Style::draw(making.dialect, dice);
        let counted = !matches!(self.kind, Kind::StreamUncounted | Kind::StreamErrorFirst);
        let usage = counted.then(|| Usage::draw(making.dialect, dice));
        let mut events = self.events(style, making, usage, dice);
        // What is not seen to its end has not told what it used.
        let told = !matches!(self.kind, Kind::StreamErrorLate | Kind::StreamShort);
        self.usage = usage.filter(|_| told || self.kind.breaks());
        self.noted = usage;
        if self.kind == Kind::StreamErrorFirst {
            let data = self.inside(making.dialect, dice);
            self.judge_inside(data.clone().into_bytes(), making.dialect);
            events.push(style.error(&data));
        }
        let all: Vec<u8> = events.iter().flat_map(|event| event.bytes.clone()).collect();
        let mut fields = String::from("Cache-Control: no-store\r\n");
        self.body = all;
        if self.kind == Kind::StreamGzip {
            fields.push_str("Content-Encoding: gzip\r\n");
            self.body = gzip(&self.body);
        }
        let framing = match self.kind {
            Kind::StreamCut | Kind::StreamStall => *dice.pick(&[Framing::Length, Framing::Chunked]),
            _ => framing(dice),
        };
        let media = dice.word(&["text/event-stream", "text/event-stream; charset=utf-8"]);
        let bytes = framed(200, media, &fields, &self.body, framing, dice);
        self.events = Some(events);
        match self.kind {
            Kind::StreamCut | Kind::StreamStall => {
                let head = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(0) + 4;
                let end = head + dice.index(bytes.len() - head);
                self.send(bytes[..end].to_vec(), dice);
                self.stop(making, self.kind == Kind::StreamCut, bytes[end..].to_vec(), dice);
                return;
            }
            Kind::StreamSlow => self.send_slowly(making.world, dice),
            _ => self.send(bytes, dice),
        }
        if framing == Framing::Close && self.kind != Kind::StreamSlow {
            self.acts.push(Act::Fin);
        }
        match self.kind {
            Kind::StreamErrorFirst => {}
            Kind::StreamShort => self.can.partial = true,
            _ => self.can.succeed = true,
        }
        if self.kind == Kind::StreamShort {
            // It can end before its first word.
            (self.can.again, self.can.next) = (May::Twice, May::Yes);
            self.can.codes.extend(["upstream_cut", "empty_completion"]);
        }
    }

    /// The events of a stream, but for an error at its beginning.
    fn events(
        &self,
        style: Style,
        making: Making<'_>,
        usage: Option<Usage>,
        dice: &mut Dice,
    ) -> Vec<Event> {
        let mut events = Vec::new();
        if dice.percent(15) {
            events.push(style.comment());
        }
        if self.kind == Kind::StreamErrorFirst {
            return events;
        }
        events.extend(style.preamble(usage));
        let words = if dice.percent(10) { 200 } else { dice.between(1, 12) };
        for _ in 0..words {
            let len = match self.kind {
                Kind::StreamGiant if dice.percent(30) => dice.between(60_000, 200_000),
                _ => dice.log_between(1, 120),
            };
            events.push(style.content(&dice.text(len as usize)));
            if dice.percent(5) {
                events.push(style.ping());
            }
        }
        match self.kind {
            Kind::StreamErrorLate => {
                let data = match making.dialect {
                    Dialect::Chat => r#"{"error":{"message":"x","code":"server_error"}}"#,
                    Dialect::Messages => {
                        r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#
                    }
                };
                events.push(style.error(data));
                return events;
            }
            Kind::StreamShort => {
                events.truncate(dice.index(events.len()));
                return events;
            }
            _ => {}
        }
        events.extend(style.finish(usage, making.hides));
        // A message ends by its last event alone; a chat by its reason to finish as well.
        if self.kind != Kind::StreamOpen || making.dialect == Dialect::Messages {
            events.push(style.terminator());
        }
        events
    }

    /// Sends event by event, with a rest behind a word that is longer than any silence may be.
    fn send_slowly(&mut self, world: &World, dice: &mut Dice) {
        let events = self.events.clone().unwrap_or_default();
        let head = b"HTTP/1.1 200 Said So\r\nContent-Type: text/event-stream\r\n\
            X-Of-Provider: yes\r\nTransfer-Encoding: chunked\r\n\r\n";
        self.acts.push(Act::Send(head.to_vec()));
        let rest = match dice.percent(40) {
            true => Duration::from_millis(5_800),
            false => world.heartbeat * 2 + Duration::from_millis(400),
        };
        let longest = rest.min(world.between * 7 / 8);
        let words = events.iter().take_while(|event| !event.ends).count() as u64;
        let at = dice.below(words.max(1)) as usize;
        for (nth, event) in events.iter().enumerate() {
            let mut chunk = format!("{:x}\r\n", event.bytes.len()).into_bytes();
            chunk.extend_from_slice(&event.bytes);
            chunk.extend_from_slice(b"\r\n");
            self.acts.push(Act::Send(chunk));
            let rest = if nth == at { longest } else { dice.millis(0, 40) };
            self.acts.push(Act::Pause(rest.max(Duration::from_nanos(1))));
        }
        self.longest_rest = longest;
        self.acts.push(Act::Send(b"0\r\n\r\n".to_vec()));
    }

    /// Sends in pieces, with pauses that no deadline minds: a head has to be there whole in time,
    /// a body may rest between any two of its bytes.
    fn send(&mut self, bytes: Vec<u8>, dice: &mut Dice) {
        let mut patience = FIRST_BYTE - Duration::from_millis(800);
        let mut rest = |dice: &mut Dice, most: u64| {
            let pause = dice.millis(1, most).min(patience);
            patience -= pause;
            pause
        };
        if dice.percent(30) {
            self.acts.push(Act::Pause(rest(dice, 1_200)));
        }
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        // Interim heads begin no answer.
        let head = head.filter(|_| self.kind != Kind::Interim).unwrap_or(bytes.len());
        let most = if bytes.len() < 4_000 && dice.percent(6) { 600 } else { 5 };
        let mut from = 0;
        for cut in dice.cuts(bytes.len(), most).into_iter().chain([bytes.len()]) {
            self.acts.push(Act::Send(bytes[from..cut].to_vec()));
            from = cut;
            let rests = cut < bytes.len() && dice.percent(if most > 5 { 1 } else { 15 });
            let pause = match (rests, cut < head + 4) {
                (false, _) => Duration::ZERO,
                (true, true) => rest(dice, 600),
                (true, false) => dice.millis(1, 900),
            };
            // The shortest pause lets everybody else see the piece.
            self.acts.push(Act::Pause(pause.max(Duration::from_nanos(1))));
        }
    }
}

/// A completion with some text: from a word to several times what the gateway looks at first.
fn completion(usage: Option<Usage>, making: Making<'_>, dice: &mut Dice) -> String {
    if making.free {
        return format!("{{\"input_tokens\":{}}}", dice.below(9_999));
    }
    let len = dice.weighted(&[(70, 2_000), (20, 60_000), (10, 260_000)]);
    let len = dice.log_between(1, len) as usize;
    let text = dice.text(len);
    let usage =
        usage.map_or(String::new(), |usage| format!(",\"usage\":{}", usage.json(making.dialect)));
    match making.dialect {
        Dialect::Chat => format!(
            "{{\"id\":\"c\",\"object\":\"chat.completion\",\"model\":\"as-it-likes\",\"choices\":\
             [{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\"{text}\"}},\
             \"finish_reason\":\"stop\"}}]{usage}}}"
        ),
        Dialect::Messages => format!(
            "{{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"content\":\
             [{{\"type\":\"text\",\"text\":\"{text}\"}}],\"stop_reason\":\"end_turn\"{usage}}}"
        ),
    }
}

fn framing(dice: &mut Dice) -> Framing {
    dice.weighted(&[(60, Framing::Length), (30, Framing::Chunked), (10, Framing::Close)])
}

fn framed(
    status: u16,
    media: &str,
    fields: &str,
    body: &[u8],
    framing: Framing,
    dice: &mut Dice,
) -> Vec<u8> {
    let delimited = match framing {
        Framing::Length => format!("Content-Length: {}\r\n", body.len()),
        Framing::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
        Framing::Close => String::new(),
    };
    let close = if dice.percent(10) { "Connection: close\r\n" } else { "" };
    let mut bytes = format!(
        "HTTP/1.1 {status} Said So\r\nContent-Type: {media}\r\nX-Of-Provider: yes\r\n\
         Set-Cookie: a=b\r\n{fields}{close}{delimited}\r\n"
    )
    .into_bytes();
    if framing != Framing::Chunked {
        bytes.extend_from_slice(body);
        return bytes;
    }
    let mut from = 0;
    for cut in dice.cuts(body.len(), 12).into_iter().chain([body.len()]) {
        if cut > from {
            bytes.extend_from_slice(format!("{:x}\r\n", cut - from).as_bytes());
            bytes.extend_from_slice(&body[from..cut]);
            bytes.extend_from_slice(b"\r\n");
        }
        from = cut;
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).expect("memory takes everything");
    encoder.finish().expect("likewise")
}
