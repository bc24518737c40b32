//! How an exchange ended. Exactly one of these for every one that was opened.

/// The ending of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The answer was delivered whole, whatever its status said.
    Succeeded,
    /// The upstream answered with an error, which the client got.
    UpstreamError,
    /// No answer could be had from any candidate.
    Exhausted,
    /// The upstream broke off inside its answer.
    UpstreamCut,
    /// A deadline ended it.
    Deadline,
    /// The client stopped taking bytes for too long.
    WriteStall,
    /// The client went away.
    ClientLeft,
    /// The node is stopping.
    Shutdown,
    /// A defect of ours: the connection's task panicked.
    Internal,
}

impl Ending {
    /// Every one.
    pub const ALL: [Ending; 9] = [
        Ending::Succeeded,
        Ending::UpstreamError,
        Ending::Exhausted,
        Ending::UpstreamCut,
        Ending::Deadline,
        Ending::WriteStall,
        Ending::ClientLeft,
        Ending::Shutdown,
        Ending::Internal,
    ];

    /// Its name in records, metrics and docs.
    pub fn name(self) -> &'static str {
        match self {
            Ending::Succeeded => "succeeded",
            Ending::UpstreamError => "upstream_error",
            Ending::Exhausted => "exhausted",
            Ending::UpstreamCut => "upstream_cut",
            Ending::Deadline => "deadline",
            Ending::WriteStall => "write_stall",
            Ending::ClientLeft => "client_left",
            Ending::Shutdown => "shutdown",
            Ending::Internal => "internal",
        }
    }
}

/// What is known when an exchange is over; the rest is in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Status the client got; 0 if none.
    pub status: u16,
}
