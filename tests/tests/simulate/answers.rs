//! Answers as a client reads them, in whatever pieces they come: strict, and each byte looked at
//! once.

use gateway_tests::answer::{Answer, Framed};
use gateway_tests::fields;

/// A reader of the answers of one connection.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    inbox: Vec<u8>,
    /// Bytes of the inbox that have been looked at for the end of a head or of a line.
    searched: usize,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Head,
    Body(Answer, Rest),
}

/// What is still to come of a body.
#[derive(Debug)]
enum Rest {
    Length(usize),
    /// The line of a chunk's size.
    Size,
    /// Bytes of a chunk and the end of its line.
    Chunk(usize),
    /// The blank line behind the last chunk.
    Last,
    Close,
}

// === impl Reader ===

impl Reader {
    /// Takes bytes in.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
    }

    /// Bytes that belong to no whole answer yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.inbox.is_empty() && matches!(self.state, State::Head)
    }

    /// The next answer that is whole; interim ones too.
    pub(crate) fn next(&mut self) -> Result<Option<Answer>, String> {
        loop {
            match std::mem::take(&mut self.state) {
                State::Head => match self.head()? {
                    Some((answer, Rest::Length(0))) => return Ok(Some(answer)),
                    Some((answer, rest)) => self.state = State::Body(answer, rest),
                    None => return Ok(None),
                },
                State::Body(mut answer, rest) => match self.body(&mut answer, rest)? {
                    Step::Done => return Ok(Some(answer)),
                    Step::On(rest) => self.state = State::Body(answer, rest),
                    Step::More(rest) => {
                        self.state = State::Body(answer, rest);
                        return Ok(None);
                    }
                },
            }
        }
    }

    /// The connection is over: an answer that this makes whole, or one that it breaks off.
    pub(crate) fn end(&mut self) -> Ended {
        match std::mem::take(&mut self.state) {
            State::Head if self.inbox.is_empty() => Ended::Clean,
            State::Head => Ended::InHead,
            State::Body(answer, Rest::Close) => Ended::ByClose(answer),
            State::Body(answer, _) => Ended::InBody(answer),
        }
    }

    fn head(&mut self) -> Result<Option<(Answer, Rest)>, String> {
        let from = self.searched.saturating_sub(3);
        if !self.inbox[from..].windows(4).any(|four| four == b"\r\n\r\n") {
            self.searched = self.inbox.len();
            return Ok(None);
        }
        let Some((line, pairs, taken)) = fields::head(&self.inbox)? else { return Ok(None) };
        self.inbox.drain(..taken);
        self.searched = 0;
        let wrong = || format!("status line {line:?}");
        let (status, reason) = line
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.split_once(' '))
            .ok_or_else(wrong)?;
        if status.len() != 3 {
            return Err(wrong());
        }
        let status: u16 = status.parse().map_err(|_| wrong())?;
        let length = fields::length(&pairs)?;
        let coded = fields::all(&pairs, "transfer-encoding");
        if !coded.is_empty() && (length.is_some() || coded != [b"chunked"]) {
            return Err(format!("framing of {line:?}: {coded:?}, {length:?}"));
        }
        let chunked = !coded.is_empty();
        let (framed, rest) = match length {
            _ if status < 200 || status == 204 || status == 304 => {
                (Framed::Bodyless, Rest::Length(0))
            }
            Some(length) => (Framed::Length, Rest::Length(length)),
            None if chunked => (Framed::Chunked, Rest::Size),
            None => (Framed::Close, Rest::Close),
        };
        let reason = reason.to_owned();
        let answer = Answer { status, reason, fields: pairs, body: Vec::new(), framed };
        Ok(Some((answer, rest)))
    }

    fn body(&mut self, answer: &mut Answer, rest: Rest) -> Result<Step, String> {
        Ok(match rest {
            Rest::Length(left) => {
                let left = left - self.move_to(answer, left);
                if left == 0 { Step::Done } else { Step::More(Rest::Length(left)) }
            }
            Rest::Close => {
                self.move_to(answer, usize::MAX);
                Step::More(Rest::Close)
            }
            Rest::Chunk(left) => {
                // The line's end belongs to the chunk.
                let left = left - self.move_to(answer, left);
                match (left, self.inbox.get(..2)) {
                    (0, Some(b"\r\n")) => {
                        self.inbox.drain(..2);
                        Step::On(Rest::Size)
                    }
                    (0, Some(other)) => return Err(format!("a chunk ends with {other:?}")),
                    _ => Step::More(Rest::Chunk(left)),
                }
            }
            Rest::Size => match self.line()? {
                Some(line) => {
                    let hex = !line.is_empty() && line.bytes().all(|b| b.is_ascii_hexdigit());
                    let size = usize::from_str_radix(&line, 16).ok().filter(|_| hex);
                    match size.ok_or_else(|| format!("chunk size {line:?}"))? {
                        0 => Step::On(Rest::Last),
                        size => Step::On(Rest::Chunk(size)),
                    }
                }
                None => Step::More(Rest::Size),
            },
            Rest::Last => match self.line()? {
                Some(line) if line.is_empty() => Step::Done,
                Some(line) => return Err(format!("a trailer nobody sent: {line:?}")),
                None => Step::More(Rest::Last),
            },
        })
    }

    /// Moves up to `most` bytes to the answer's body.
    fn move_to(&mut self, answer: &mut Answer, most: usize) -> usize {
        let count = self.inbox.len().min(most);
        answer.body.extend_from_slice(&self.inbox[..count]);
        self.inbox.drain(..count);
        count
    }

    fn line(&mut self) -> Result<Option<String>, String> {
        let Some(end) = self.inbox.windows(2).position(|two| two == b"\r\n") else {
            return if self.inbox.len() > 64 {
                Err("a line of a chunk is long".into())
            } else {
                Ok(None)
            };
        };
        let line = String::from_utf8_lossy(&self.inbox[..end]).into_owned();
        self.inbox.drain(..end + 2);
        Ok(Some(line))
    }
}

enum Step {
    Done,
    On(Rest),
    More(Rest),
}

/// What the end of a connection makes of what came last.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Nothing was under way.
    Clean,
    InHead,
    /// The end delimits it.
    ByClose(Answer),
    InBody(Answer),
}
