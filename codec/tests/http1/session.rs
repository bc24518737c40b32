//! One direction of a connection, read with the codec alone: heads and bodies until something ends
//! it.

use codec::http1::{
    BodyError, BodyProgress, BodyStep, Expect, Fields, Framing, HeadError, HeadScan, Method,
    TrailerRule,
};

/// Who sends the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Upstream { request_was_head: bool },
}

pub(crate) const UPSTREAM: Side = Side::Upstream { request_was_head: false };

/// What is known of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Method, or status in digits.
    pub(crate) start: String,
    pub(crate) target: String,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) complete: bool,
    pub(crate) framing: Framing,
    pub(crate) keep_alive: bool,
    pub(crate) minor: u8,
    pub(crate) upgrade: bool,
    pub(crate) expect: Expect,
    pub(crate) authorizations: u8,
}

/// How the reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Between two messages, with nothing left over but empty lines.
    Idle,
    InHead,
    InBody,
    /// The last message ended the connection, so many bytes behind it stay unread.
    Closed {
        unread: usize,
    },
    BadHead(HeadError),
    BadBody(BodyError),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) messages: Vec<Message>,
    pub(crate) consumed: usize,
    pub(crate) end: End,
}

impl Outcome {
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.end, End::BadHead(_) | End::BadBody(_))
    }

    /// The status that a client would get for a refusal.
    pub(crate) fn status(&self) -> Option<u16> {
        match self.end {
            End::BadHead(error) => Some(error.status()),
            End::BadBody(_) => Some(400),
            End::Idle | End::InHead | End::InBody | End::Closed { .. } => None,
        }
    }

    pub(crate) fn complete(&self) -> usize {
        self.messages.iter().filter(|message| message.complete).count()
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        self.messages.iter().flat_map(|message| message.body.clone()).collect()
    }
}

/// Reads everything whole, byte by byte and cut in two at every place; it must come out the same.
pub(crate) fn read(side: Side, bytes: &[u8]) -> Outcome {
    let whole = read_in(side, bytes, &[bytes.len()]);
    let every: Vec<usize> = (1..=bytes.len()).collect();
    assert_eq!(read_in(side, bytes, &every), whole, "byte by byte");
    for cut in (1..bytes.len()).step_by(bytes.len() / 4096 + 1) {
        assert_eq!(read_in(side, bytes, &[cut, bytes.len()]), whole, "cut at {cut}");
    }
    whole
}

fn read_in(side: Side, bytes: &[u8], arrivals: &[usize]) -> Outcome {
    let mut session = Session {
        side,
        scan: HeadScan::new(),
        fields: Fields::new(),
        body: None,
        outcome: Outcome { messages: Vec::new(), consumed: 0, end: End::Idle },
        over: false,
    };
    for &arrived in arrivals {
        session.arrive(&bytes[..arrived]);
    }
    session.finish(bytes)
}

struct Session {
    side: Side,
    scan: HeadScan,
    fields: Fields,
    body: Option<BodyProgress>,
    outcome: Outcome,
    over: bool,
}

impl Session {
    fn arrive(&mut self, bytes: &[u8]) {
        while !self.over {
            let rest = &bytes[self.outcome.consumed..];
            let went_on = if self.body.is_some() { self.body(rest) } else { self.head(rest) };
            if !went_on {
                break;
            }
        }
    }

    fn head(&mut self, rest: &[u8]) -> bool {
        if rest.is_empty() {
            return false;
        }
        match self.parse(rest) {
            Err(error) => {
                self.refuse(End::BadHead(error));
                false
            }
            Ok(None) => false,
            Ok(Some((mut message, head_len))) => {
                self.scan = HeadScan::new();
                message.fields = self
                    .fields
                    .iter(rest)
                    .map(|(name, value)| {
                        (String::from_utf8(name.to_vec()).unwrap(), value.to_vec())
                    })
                    .collect();
                self.body = Some(BodyProgress::new(message.framing, self.trailer_rule()));
                self.outcome.messages.push(message);
                self.outcome.consumed += head_len;
                true
            }
        }
    }

    fn parse(&mut self, rest: &[u8]) -> Result<Option<(Message, usize)>, HeadError> {
        match self.side {
            Side::Client => {
                let head = self.scan.request(rest, &mut self.fields)?;
                Ok(head.map(|head| {
                    let method = String::from_utf8(head.method_text.of(rest).to_vec()).unwrap();
                    // A tunnel is never opened: the connection ends with the refusal.
                    let keep_alive = head.keep_alive && head.method != Method::Connect;
                    let mut message = message(method, head.framing, keep_alive, head.minor);
                    let target_start = head.method_text.end() + 1;
                    let line = &rest[target_start..];
                    let target_len = line.iter().position(|&byte| byte == b' ').unwrap();
                    message.target = String::from_utf8(line[..target_len].to_vec()).unwrap();
                    message.upgrade = head.upgrade;
                    message.expect = head.expect;
                    message.authorizations = head.authorizations;
                    (message, head.head_len)
                }))
            }
            Side::Upstream { request_was_head } => {
                let head = self.scan.response(rest, &mut self.fields, request_was_head)?;
                Ok(head.map(|head| {
                    let status = head.status.to_string();
                    let mut message = message(status, head.framing, head.keep_alive, head.minor);
                    message.keep_alive |= head.is_interim();
                    (message, head.head_len)
                }))
            }
        }
    }

    fn body(&mut self, rest: &[u8]) -> bool {
        let (Some(body), Some(message)) = (&mut self.body, self.outcome.messages.last_mut()) else {
            return false;
        };
        match body.step(rest) {
            Err(error) => {
                self.refuse(End::BadBody(error));
                false
            }
            Ok(BodyStep::Data { start, end }) => {
                message.body.extend_from_slice(&rest[start..end]);
                self.outcome.consumed += end;
                true
            }
            Ok(BodyStep::NeedMore) => {
                self.outcome.consumed += rest.len();
                false
            }
            Ok(BodyStep::End { consumed }) => {
                message.complete = true;
                self.outcome.consumed += consumed;
                self.body = None;
                self.over = !message.keep_alive;
                !self.over
            }
        }
    }

    fn finish(mut self, bytes: &[u8]) -> Outcome {
        if self.over {
            if let End::Idle = self.outcome.end {
                let unread = bytes.len() - self.outcome.consumed;
                self.outcome.end = End::Closed { unread };
            }
            return self.outcome;
        }
        if self.body.is_some() {
            self.outcome.end = End::InBody;
            return self.outcome;
        }
        // What a deadline would do: the last look at what has come.
        self.scan = HeadScan::new();
        let rest = &bytes[self.outcome.consumed..];
        match self.parse(rest) {
            Err(error) => self.refuse(End::BadHead(error)),
            Ok(head) => {
                assert!(head.is_none(), "a complete head was not seen");
                let only_empty_lines = rest.iter().all(|byte| b"\r\n".contains(byte));
                self.outcome.end = if only_empty_lines { End::Idle } else { End::InHead };
            }
        }
        self.outcome
    }

    /// Where exactly a fault was noticed depends on the cut; what came before it does not.
    fn refuse(&mut self, end: End) {
        self.outcome.end = end;
        self.outcome.consumed = 0;
        self.over = true;
    }

    fn trailer_rule(&self) -> TrailerRule {
        match self.side {
            Side::Client => TrailerRule::RefuseReserved,
            Side::Upstream { .. } => TrailerRule::DropAll,
        }
    }
}

fn message(start: String, framing: Framing, keep_alive: bool, minor: u8) -> Message {
    Message {
        start,
        target: String::new(),
        fields: Vec::new(),
        body: Vec::new(),
        complete: false,
        framing,
        keep_alive,
        minor,
        upgrade: false,
        expect: Expect::None,
        authorizations: 0,
    }
}
