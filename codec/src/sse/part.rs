//! What the bytes of a piece are, as whoever relays them has to know.

/// Bytes from the front of a piece that belong together. Parts tile the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// How many bytes; 0 only for the part that the end of the stream makes.
    pub len: usize,
    /// Bytes of the same event that earlier parts held: the event began so far before this one.
    pub before: u64,
    /// What the event is, as far as it has been seen.
    pub kind: Kind,
    /// It is the dialect's terminator: its first byte waits until the exchange is priced.
    pub terminator: bool,
    /// How far the event has come.
    pub reach: Reach,
}

/// What an event is. Everything that goes to the client goes as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The byte order mark: it means that only as the first bytes of a stream, so it goes to
    /// nobody who has had a heartbeat before.
    Mark,
    /// No event for a reader: a comment, a blank line, a block without data.
    Silent,
    /// It announces and says nothing: role chunk, `message_start`, `ping`,
    /// `response.created|queued|in_progress`, a chunk without anything in it.
    Preamble,
    /// It says something, or nobody here knows what it does.
    Content,
    /// Usage without a choice: the chunk that chat sends because it was asked for usage. A client
    /// that did not ask must not see it.
    Usage,
    /// It says why the answer ends.
    Finish,
    /// It says that something went wrong.
    Error,
    /// It ends the stream and says nothing else: `[DONE]`, `message_stop`,
    /// `response.completed|incomplete|cancelled`.
    End,
}

/// How far an event has come with a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// More of it is to come, and may make it the terminator or a usage chunk: hold it back, as
    /// far as memory allows.
    Open,
    /// More of it is to come, but it is certain to be neither: it may go.
    Passing,
    /// It is whole, its blank line included.
    Whole,
    /// The LF of the CR that made the event before whole; goes the way that event went.
    Trailing,
    /// The stream ended inside it. A strict reader drops it; its usage counts all the same.
    Cut,
}
