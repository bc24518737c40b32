//! One event of a stream: its text with plain line ends, and what it stands for.

use crate::standin::script::Usage;

/// What an event is to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Comes before content and is none: role chunk, `message_start`, `ping`.
    Preamble,
    Content,
    /// Finish, usage, error.
    Closing,
    /// No event at all.
    Comment,
    Terminator,
}

/// One event.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) text: Vec<u8>,
    pub(super) kind: Kind,
    /// Usage it reports, and whether that is the final count.
    pub(super) usage: Option<(Usage, bool)>,
    /// The usage chunk that a client sees only if it asked.
    pub(super) hidden: bool,
}

impl Event {
    /// An event of one data line.
    pub(super) fn data(kind: Kind, data: &str) -> Event {
        Event::text(kind, format!("data: {data}\n\n"))
    }

    /// An event with a name.
    pub(super) fn named(kind: Kind, name: &str, data: &str) -> Event {
        Event::text(kind, format!("event: {name}\ndata: {data}\n\n"))
    }

    /// Any text.
    pub(super) fn text(kind: Kind, text: impl Into<Vec<u8>>) -> Event {
        Event { text: text.into(), kind, usage: None, hidden: false }
    }

    /// The same, reporting usage.
    pub(super) fn with_usage(mut self, usage: Option<Usage>, last: bool) -> Event {
        self.usage = usage.map(|usage| (usage, last));
        self
    }
}
