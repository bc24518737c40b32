//! What an event is, from what has been seen of it: one function a dialect, a row a kind.
//!
//! The `type` in the data counts before the `event:` line, because clients read it so. What is
//! certain stays certain: later bytes of the same event can make an error of it, but neither the
//! terminator nor a usage chunk.

use super::Dialect;
use super::part::Kind;
use crate::json::{EventType, ReplyFacts};

/// What has been seen of an event that has data.
pub(super) struct Seen<'e> {
    /// The name in its last `event:` line.
    pub(super) named: Option<EventType>,
    /// The data is `[DONE]`.
    pub(super) done: bool,
    /// What the data says.
    pub(super) facts: &'e ReplyFacts,
}

/// What follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) kind: Kind,
    /// The dialect's terminator.
    pub(super) terminator: bool,
    /// The answer came to its end as it should (DESIGN §5.6).
    pub(super) success: bool,
    /// The rest of the event makes it neither the terminator nor a usage chunk.
    pub(super) certain: bool,
}

/// Judges an event, whole or not.
pub(super) fn judge(dialect: Dialect, seen: &Seen<'_>) -> Verdict {
    match dialect {
        Dialect::Chat => chat(seen),
        Dialect::Messages => messages(seen),
        Dialect::Responses => responses(seen),
        Dialect::Gemini => gemini(seen),
    }
}

fn chat(seen: &Seen<'_>) -> Verdict {
    let facts = seen.facts;
    let finish = facts.finish;
    let failed = seen.is_error() || finish.is_some_and(|finish| finish.is("error"));
    let kind = match () {
        () if seen.done => return Verdict::end(true),
        () if failed => Kind::Error,
        () if facts.content => Kind::Content,
        () if finish.is_some() => Kind::Finish,
        () if !facts.choice && !facts.usage.is_empty() => Kind::Usage,
        () => Kind::Preamble,
    };
    let success = finish.is_some() && !failed;
    Verdict { kind, terminator: false, success, certain: facts.choice || facts.error.is_some() }
}

fn messages(seen: &Seen<'_>) -> Verdict {
    let kind = match seen.event() {
        Some(EventType::MessageStop) => return Verdict::end(true),
        _ if seen.is_error() => Kind::Error,
        Some(EventType::MessageStart | EventType::Ping) => Kind::Preamble,
        Some(EventType::MessageDelta) => Kind::Finish,
        _ => Kind::Content,
    };
    Verdict { kind, terminator: false, success: false, certain: seen.facts.event.is_some() }
}

fn responses(seen: &Seen<'_>) -> Verdict {
    use EventType::{
        ResponseCancelled as Cancelled, ResponseCompleted as Completed, ResponseCreated as Created,
        ResponseFailed as Failed, ResponseInProgress as InProgress,
        ResponseIncomplete as Incomplete, ResponseQueued as Queued,
    };
    let kind = match seen.event() {
        Some(Completed | Incomplete) => return Verdict::end(true),
        Some(Cancelled) => return Verdict::end(false),
        Some(Failed) => return Verdict { kind: Kind::Error, ..Verdict::end(false) },
        _ if seen.is_error() => Kind::Error,
        Some(Created | Queued | InProgress) => Kind::Preamble,
        _ => Kind::Content,
    };
    Verdict { kind, terminator: false, success: false, certain: seen.facts.event.is_some() }
}

/// Gemini has no event of its own for the end: it is the chunk with a reason to finish, which is
/// mostly the last one, and old models write the reason into every chunk. So only its end tells
/// what a chunk was.
fn gemini(seen: &Seen<'_>) -> Verdict {
    let facts = seen.facts;
    let (finish, failed) = (facts.finish.is_some(), seen.is_error());
    let kind = match () {
        () if failed => Kind::Error,
        () if finish => Kind::Finish,
        () if facts.content => Kind::Content,
        () => Kind::Preamble,
    };
    let terminator = finish && !failed;
    Verdict { kind, terminator, success: terminator, certain: facts.error.is_some() }
}

// === impl Seen ===

impl Seen<'_> {
    fn event(&self) -> Option<EventType> {
        self.facts.event.or(self.named)
    }

    fn is_error(&self) -> bool {
        self.facts.error.is_some() || self.event() == Some(EventType::Error)
    }
}

// === impl Verdict ===

impl Verdict {
    /// No event for a reader.
    pub(super) const SILENT: Self =
        Self { kind: Kind::Silent, terminator: false, success: false, certain: false };

    /// The byte order mark.
    pub(super) const MARK: Self = Self { kind: Kind::Mark, ..Self::SILENT };

    fn end(success: bool) -> Self {
        Self { kind: Kind::End, terminator: true, success, certain: false }
    }
}
