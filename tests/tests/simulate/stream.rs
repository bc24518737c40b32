//! Streams as upstreams send them, event by event, and the oracle of what a client may see of one:
//! its events as they came, except usage nobody asked for; heartbeats between two of them; and at
//! the end, if it broke, an error in the caller's dialect.

use crate::dice::Dice;
use crate::usage::Usage;
use crate::world::Dialect;

/// An event with all its bytes, blank line included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Event {
    pub(crate) bytes: Vec<u8>,
    /// Usage that the client has not asked for.
    pub(crate) hidden: bool,
    /// The dialect's terminator.
    pub(crate) ends: bool,
    /// Bytes of text that the model says in it: ASCII and others.
    pub(crate) said: (u64, u64),
}

/// How events are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) dialect: Dialect,
    line_end: &'static str,
    /// No blank behind the colon.
    tight: bool,
}

impl Style {
    pub(crate) fn draw(dialect: Dialect, dice: &mut Dice) -> Style {
        let line_end = dice.weighted(&[(70, "\n"), (20, "\r\n"), (10, "\r")]);
        Style { dialect, line_end, tight: dice.percent(10) }
    }

    /// An event with this name, if the dialect names its events, and this data.
    fn event(self, name: &str, data: &str) -> Event {
        let (end, blank) = (self.line_end, if self.tight { "" } else { " " });
        let name = match self.dialect {
            Dialect::Messages => format!("event:{blank}{name}{end}"),
            Dialect::Chat => String::new(),
        };
        Event {
            bytes: format!("{name}data:{blank}{data}{end}{end}").into_bytes(),
            ..Event::default()
        }
    }

    pub(crate) fn comment(self) -> Event {
        let end = self.line_end;
        Event { bytes: format!(": still here{end}{end}").into_bytes(), ..Event::default() }
    }

    pub(crate) fn ping(self) -> Event {
        match self.dialect {
            Dialect::Chat => self.comment(),
            Dialect::Messages => self.event("ping", r#"{"type":"ping"}"#),
        }
    }

    /// What comes before the first word.
    pub(crate) fn preamble(self, usage: Option<Usage>) -> Vec<Event> {
        let Dialect::Messages = self.dialect else {
            let data = concat!(
                r#"{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""},"#,
                r#""finish_reason":null}]}"#
            );
            return vec![self.event("", data)];
        };
        let said = usage.map_or(String::new(), |usage| {
            let early = Usage { output: 1, ..usage };
            format!(",\"usage\":{}", early.json(self.dialect))
        });
        let data = format!(
            "{{\"type\":\"message_start\",\"message\":{{\"id\":\"m\",\"type\":\"message\",\
             \"role\":\"assistant\",\"content\":[]{said}}}}}"
        );
        let block =
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
        vec![self.event("message_start", &data), self.event("content_block_start", block)]
    }

    pub(crate) fn content(self, text: &str) -> Event {
        let (name, data) = match self.dialect {
            Dialect::Chat => (
                "",
                format!(
                    "{{\"id\":\"c\",\"choices\":[{{\"index\":0,\
                     \"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}]}}"
                ),
            ),
            Dialect::Messages => (
                "content_block_delta",
                format!(
                    "{{\"type\":\"content_block_delta\",\"index\":0,\"delta\":\
                     {{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}"
                ),
            ),
        };
        let ascii = text.bytes().filter(u8::is_ascii).count();
        let said = (ascii as u64, (text.len() - ascii) as u64);
        Event { said, ..self.event(name, &data) }
    }

    /// The reason to finish, and the usage.
    pub(crate) fn finish(self, usage: Option<Usage>, hides: bool) -> Vec<Event> {
        if self.dialect == Dialect::Messages {
            let said = usage.map_or(String::new(), |usage| {
                format!(",\"usage\":{{\"output_tokens\":{}}}", usage.output)
            });
            let data = format!(
                "{{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\"}}{said}}}"
            );
            let stop = r#"{"type":"content_block_stop","index":0}"#;
            return vec![
                self.event("content_block_stop", stop),
                self.event("message_delta", &data),
            ];
        }
        let data = r#"{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
        let mut events = vec![self.event("", data)];
        if let Some(usage) = usage {
            let data =
                format!("{{\"id\":\"c\",\"choices\":[],\"usage\":{}}}", usage.json(self.dialect));
            let event = self.event("", &data);
            events.push(Event { hidden: hides, ..event });
        }
        events
    }

    pub(crate) fn terminator(self) -> Event {
        let event = match self.dialect {
            Dialect::Chat => self.event("", "[DONE]"),
            Dialect::Messages => self.event("message_stop", r#"{"type":"message_stop"}"#),
        };
        Event { ends: true, ..event }
    }

    pub(crate) fn error(self, data: &str) -> Event {
        self.event("error", data)
    }
}

/// The sign that a call is alive.
fn beat(dialect: Dialect) -> &'static [u8] {
    match dialect {
        Dialect::Chat => b": keep-alive\n\n",
        Dialect::Messages => b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
    }
}

/// A stream as a client saw it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Whole events of the upstream, and their bytes.
    pub(crate) events: usize,
    pub(crate) bytes: usize,
    /// Bytes of one more.
    pub(crate) within: usize,
    pub(crate) beats: usize,
    /// An error that ends it, put in by the gateway.
    pub(crate) error: Option<serde_json::Value>,
}

impl Seen {
    /// Whether every event of these came.
    pub(crate) fn is_all_of(&self, events: &[&Event]) -> bool {
        self.events == events.len() && self.within == 0 && self.error.is_none()
    }
}

/// Reads what a client got, which must be made of these events, beats between them, and an error
/// at the end.
pub(crate) fn read(got: &[u8], events: &[&Event], dialect: Dialect) -> Result<Seen, String> {
    let mut seen = Seen::default();
    let mut at = 0;
    // What is still to come of an event in which words of ours may stand already.
    let mut owed: &[u8] = b"";
    while at < got.len() {
        let rest = &got[at..];
        let next = events.get(seen.events).map(|event| &event.bytes[..]);
        let early =
            next.and_then(|next| early_ends(next).find(|end| rest.starts_with(&next[..*end])));
        if !owed.is_empty() && rest.starts_with(&owed[..1]) {
            (owed, at) = (&owed[1..], at + 1);
            seen.bytes += 1;
        } else if let Some(next) = next.filter(|next| rest.starts_with(next)) {
            (owed, at) = (b"", at + next.len());
            (seen.events, seen.bytes) = (seen.events + 1, seen.bytes + next.len());
        } else if rest.starts_with(beat(dialect)) {
            seen.beats += 1;
            at += beat(dialect).len();
        } else if let Some(error) = error_of(rest, dialect) {
            seen.error = Some(error);
            return Ok(seen);
        } else if let Some((next, end)) = next.zip(early) {
            (owed, at) = (&next[end..], at + end);
            (seen.events, seen.bytes) = (seen.events + 1, seen.bytes + end);
        } else if next.is_some_and(|next| next.starts_with(rest)) {
            seen.within = rest.len();
            return Ok(seen);
        } else {
            let shown = String::from_utf8_lossy(&rest[..rest.len().min(120)]).into_owned();
            return Err(format!("behind {} of its events: {shown:?}", seen.events));
        }
    }
    Ok(seen)
}

/// Where words of ours may stand in an event, the last place first: behind the CR of its last line
/// end, whose LF is nothing to a reader; behind the line of a comment, which is no event at all.
fn early_ends(event: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let is_comment = event.starts_with(b":");
    let last = event.strip_suffix(b"\r\n").map(|_| event.len() - 1);
    let line = event.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(event.len());
    let behind = (line + 1..event.len()).rev().filter(move |_| is_comment);
    last.filter(|_| !is_comment).into_iter().chain(behind)
}

/// Without the beginning of an error at its end, for a client that took no more of it.
pub(crate) fn untorn(got: &[u8], dialect: Dialect) -> &[u8] {
    let begins = [error_begins(dialect), b"{\"error\":{"].concat();
    let at = got.windows(begins.len()).rposition(|bytes| bytes == begins);
    at.filter(|_| !got.ends_with(b"\n\n")).map_or(got, |at| &got[..at])
}

fn error_begins(dialect: Dialect) -> &'static [u8] {
    match dialect {
        Dialect::Chat => b"data: ",
        Dialect::Messages => b"event: error\ndata: ",
    }
}

/// One event of the gateway's own that is an error and the last.
fn error_of(rest: &[u8], dialect: Dialect) -> Option<serde_json::Value> {
    let data = rest.strip_prefix(error_begins(dialect))?.strip_suffix(b"\n\n")?;
    let error: serde_json::Value = serde_json::from_slice(data).ok()?;
    error["error"].is_object().then_some(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_and_an_error_stand_between_events_only() {
        let style = Style { dialect: Dialect::Chat, line_end: "\n", tight: false };
        let (one, two) = (style.content("a"), style.content("b"));
        let events = [&one, &two];
        let beat = ": keep-alive\n\n";
        let (first, second) =
            (String::from_utf8_lossy(&one.bytes), String::from_utf8_lossy(&two.bytes));
        let error = "data: {\"error\":{\"message\":\"x\"}}\n\n";
        let read = |got: String| read(got.as_bytes(), &events, Dialect::Chat);
        let all = read(format!("{beat}{first}{beat}{second}")).unwrap();
        assert_eq!((all.events, all.beats, all.is_all_of(&events)), (2, 2, true));
        let broken = read(format!("{first}{error}")).unwrap();
        assert!(broken.error.is_some() && broken.events == 1);
        assert_eq!(read(format!("{first}{}", &second[..9])).unwrap().within, 9);
        let torn = format!("{first}{}", &error[..20]);
        assert_eq!(untorn(torn.as_bytes(), Dialect::Chat), first.as_bytes());
        for whole in [format!("{first}{error}"), format!("{first}{}", &second[..9])] {
            assert_eq!(untorn(whole.as_bytes(), Dialect::Chat), whole.as_bytes());
        }
        for wrong in [
            format!("{}{beat}{second}", &first[..first.len() - 1]),
            format!("{second}"),
            format!("{first}{error}{second}"),
            format!("{}{error}", &first[..20]),
            format!("{first}{second}{second}"),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn behind_the_line_of_a_comment_words_of_ours_may_stand_already() {
        for line_end in ["\n", "\r\n", "\r"] {
            let style = Style { dialect: Dialect::Chat, line_end, tight: false };
            let (one, two) = (style.comment(), style.content("b"));
            let second = String::from_utf8_lossy(&two.bytes);
            let got = format!(": still here{line_end}: keep-alive\n\n{line_end}{second}");
            let seen = read(got.as_bytes(), &[&one, &two], Dialect::Chat).unwrap();
            assert_eq!((seen.events, seen.beats), (2, 1), "{line_end:?}");
            assert_eq!(seen.bytes, one.bytes.len() + two.bytes.len());
            let wrong = got.replace("here", "he: keep-alive\n\nre");
            assert!(read(wrong.as_bytes(), &[&one, &two], Dialect::Chat).is_err(), "{wrong}");
        }
    }
}
