//! Kinds of upstream answer: the bytes and pauses of each, and the oracle of what may come of it.
//!
//! A further kind is a variant, a way to make it, and what a client that stays may get for it.

use crate::dice::Dice;
use crate::world::{BETWEEN_BYTES, FIRST_BYTE};
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

/// Tokens as an upstream reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt: u32,
    pub(crate) cached: u32,
    pub(crate) completion: u32,
}

/// What a client that stays may get for a reply, were it the last of its call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Can {
    /// Status and body as they came.
    pub(crate) verbatim: bool,
    /// A head, and a body that breaks off for all to see.
    pub(crate) partial: bool,
    /// An error of the gateway's own.
    pub(crate) codes: Vec<&'static str>,
    /// The gateway may take it for a connection that was dead before, and send again.
    pub(crate) replay: bool,
}

/// One reply.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) kind: Kind,
    pub(crate) reads: Reads,
    pub(crate) acts: Vec<Act>,
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// What it says it used, where that can be read.
    pub(crate) usage: Option<Usage>,
    pub(crate) can: Can,
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
    /// 200 and nothing in it.
    Empty,
    /// 200 and an error in it.
    ErrorInside,
    /// 200 and not JSON.
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
}

const KINDS: &[(u64, Kind)] = &[
    (48, Kind::Good),
    (5, Kind::Uncounted),
    (4, Kind::Gzip),
    (3, Kind::Interim),
    (2, Kind::Surplus),
    (3, Kind::Early),
    (8, Kind::Refusal),
    (2, Kind::CountedError),
    (2, Kind::Auth),
    (2, Kind::Empty),
    (2, Kind::ErrorInside),
    (2, Kind::Html),
    (2, Kind::Redirect),
    (3, Kind::Garbage),
    (3, Kind::CutHead),
    (6, Kind::CutBody),
    (2, Kind::StallHead),
    (4, Kind::StallBody),
    (4, Kind::Silent),
    (1, Kind::Deaf),
];

/// How a body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
    Close,
}

// === impl Reply ===

impl Reply {
    pub(crate) fn draw(dice: &mut Dice) -> Reply {
        Reply::of(dice.weighted(KINDS), dice)
    }

    fn of(kind: Kind, dice: &mut Dice) -> Reply {
        let mut reply = Reply {
            kind,
            reads: Reads::Whole,
            acts: Vec::new(),
            status: 200,
            body: Vec::new(),
            usage: None,
            can: Can::default(),
        };
        match kind {
            Kind::Good | Kind::Interim | Kind::Surplus | Kind::Uncounted | Kind::Gzip => {
                reply.succeed(dice);
            }
            Kind::Refusal | Kind::CountedError | Kind::Early | Kind::Auth => reply.fail(dice),
            Kind::Empty | Kind::ErrorInside | Kind::Html | Kind::Redirect => reply.useless(dice),
            Kind::CutBody | Kind::StallBody => reply.break_off(dice),
            Kind::Garbage | Kind::CutHead | Kind::StallHead | Kind::Silent | Kind::Deaf => {
                reply.no_answer(dice);
            }
        }
        reply
    }

    /// A whole answer.
    fn succeed(&mut self, dice: &mut Dice) {
        let usage = (self.kind != Kind::Uncounted).then(|| Usage::draw(dice));
        let plain = completion(usage, dice);
        let mut fields = String::new();
        if self.kind == Kind::Gzip {
            fields.push_str("Content-Encoding: gzip\r\n");
            self.body = gzip(plain.as_bytes());
        } else {
            self.body = plain.into_bytes();
        }
        (self.usage, self.can.verbatim) = (usage, true);
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

    fn fail(&mut self, dice: &mut Dice) {
        const STATUSES: [u16; 12] = [400, 402, 403, 404, 405, 409, 422, 429, 500, 502, 503, 529];
        self.status = if self.kind == Kind::Auth { 401 } else { *dice.pick(&STATUSES) };
        self.usage = (self.kind == Kind::CountedError).then(|| Usage::draw(dice));
        let said = self.usage.map_or(String::new(), |usage| format!(",\"usage\":{}", usage.json()));
        let text = format!("{{\"error\":{{\"message\":\"no\",\"code\":\"x\"}}{said}}}");
        self.body = text.into_bytes();
        let media = match self.usage.is_none() && dice.percent(30) {
            true => "text/plain",
            false => "application/json",
        };
        let framing = framing(dice);
        let bytes = framed(self.status, media, "", &self.body, framing, dice);
        self.send(bytes, dice);
        if framing == Framing::Close {
            self.acts.push(Act::Fin);
        }
        if self.kind == Kind::Auth {
            self.can.codes.push("upstream_auth");
        } else {
            self.can.verbatim = true;
        }
        if self.kind == Kind::Early {
            self.reads = Reads::Early(dice.log_between(100, 4_000) as usize);
        }
    }

    /// An answer that is whole and cannot be passed on.
    fn useless(&mut self, dice: &mut Dice) {
        let (media, body, code) = match self.kind {
            Kind::Empty => ("application/json", "{}", "empty_completion"),
            Kind::ErrorInside => {
                ("application/json", r#"{"error":{"message":"x","code":"y"}}"#, "upstream_invalid")
            }
            Kind::Html => ("text/html", "<html>maintenance</html>", "upstream_invalid"),
            _ => ("application/json", "{\"a\":1}", "upstream_invalid"),
        };
        if self.kind == Kind::Redirect {
            self.status = *dice.pick(&[301, 302, 307, 308]);
        }
        self.body = body.into();
        self.can.codes.push(code);
        let bytes = framed(self.status, media, "", &self.body, Framing::Length, dice);
        self.send(bytes, dice);
    }

    /// A good answer that breaks off inside its body.
    fn break_off(&mut self, dice: &mut Dice) {
        let usage = Usage::draw(dice);
        self.body = completion(Some(usage), dice).into_bytes();
        let framing = *dice.pick(&[Framing::Length, Framing::Chunked]);
        let bytes = framed(200, "application/json", "", &self.body, framing, dice);
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(0) + 4;
        let end = head + dice.index(bytes.len() - head);
        self.send(bytes[..end].to_vec(), dice);
        self.usage = Some(usage);
        self.can.partial = true;
        if self.kind == Kind::CutBody {
            self.acts.push(if dice.percent(50) { Act::Fin } else { Act::Reset });
            self.can.codes.push("upstream_cut");
        } else {
            self.acts.push(Act::Pause(2 * BETWEEN_BYTES + Duration::from_secs(1)));
            self.acts.push(Act::Send(bytes[end..].to_vec()));
            self.can.codes.push("upstream_timeout");
        }
    }

    /// Nothing that could be called an answer.
    fn no_answer(&mut self, dice: &mut Dice) {
        let good = framed(200, "application/json", "", b"{}", Framing::Length, dice);
        let head = good.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(0);
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
                self.can.codes.push("upstream_invalid");
            }
            Kind::CutHead => {
                self.send(good[..1 + dice.index(head)].to_vec(), dice);
                self.acts.push(if dice.percent(50) { Act::Fin } else { Act::Reset });
                // A reset takes bytes with it that were not read yet: then there was no answer.
                self.can = Can { replay: true, ..Can::default() };
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
                self.can = Can { replay: true, ..Can::default() };
                self.can.codes.push("upstream_cut");
            }
            _ => {
                self.reads = Reads::Never(dice.log_between(100, 20_000) as usize);
                self.acts.push(Act::Hang);
                self.can.codes.push("upstream_timeout");
            }
        }
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
        let most = if bytes.len() < 2_000 && dice.percent(5) { 400 } else { 4 };
        let mut from = 0;
        for cut in dice.cuts(bytes.len(), most).into_iter().chain([bytes.len()]) {
            self.acts.push(Act::Send(bytes[from..cut].to_vec()));
            from = cut;
            let pause = match (dice.percent(15) && cut < bytes.len(), cut < head + 4) {
                (false, _) => Duration::ZERO,
                (true, true) => rest(dice, 600),
                (true, false) => dice.millis(1, 600),
            };
            // The shortest pause lets everybody else see the piece.
            self.acts.push(Act::Pause(pause.max(Duration::from_nanos(1))));
        }
    }
}

// === impl Usage ===

impl Usage {
    fn draw(dice: &mut Dice) -> Usage {
        let prompt = dice.log_between(1, 20_000) as u32;
        let cached = if dice.percent(30) { dice.below(u64::from(prompt) + 1) as u32 } else { 0 };
        Usage { prompt, cached, completion: dice.log_between(1, 6_000) as u32 }
    }

    fn json(self) -> String {
        let Usage { prompt, cached, completion } = self;
        let details = match cached {
            0 => String::new(),
            _ => format!(",\"prompt_tokens_details\":{{\"cached_tokens\":{cached}}}"),
        };
        format!(
            "{{\"prompt_tokens\":{prompt},\"completion_tokens\":{completion},\
             \"total_tokens\":{}{details}}}",
            prompt + completion
        )
    }
}

/// A completion with some text: from a word to several times what the gateway looks at first.
fn completion(usage: Option<Usage>, dice: &mut Dice) -> String {
    let len = dice.weighted(&[(70, 2_000), (20, 60_000), (10, 260_000)]);
    let len = dice.log_between(1, len) as usize;
    let text = dice.text(len);
    let usage = usage.map_or(String::new(), |usage| format!(",\"usage\":{}", usage.json()));
    format!(
        "{{\"id\":\"c\",\"object\":\"chat.completion\",\"model\":\"as-it-likes\",\"choices\":\
         [{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\"{text}\"}},\
         \"finish_reason\":\"stop\"}}]{usage}}}"
    )
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
