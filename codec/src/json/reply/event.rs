//! The types of events that say where a stream stands, of all dialects; the others are one.

/// What an event calls itself, in its `event:` line or the `type` of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// `message_start`.
    MessageStart,
    /// `message_delta`.
    MessageDelta,
    /// `message_stop`.
    MessageStop,
    /// `ping`.
    Ping,
    /// `error`.
    Error,
    /// `response.created`.
    ResponseCreated,
    /// `response.queued`.
    ResponseQueued,
    /// `response.in_progress`.
    ResponseInProgress,
    /// `response.completed`.
    ResponseCompleted,
    /// `response.incomplete`.
    ResponseIncomplete,
    /// `response.failed`.
    ResponseFailed,
    /// `response.cancelled`, in either spelling.
    ResponseCancelled,
    /// Any other: it stands between the beginning and the end.
    Other,
}

impl EventType {
    /// The type with this name.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        match name {
            b"message_start" => Self::MessageStart,
            b"message_delta" => Self::MessageDelta,
            b"message_stop" => Self::MessageStop,
            b"ping" => Self::Ping,
            b"error" => Self::Error,
            b"response.created" => Self::ResponseCreated,
            b"response.queued" => Self::ResponseQueued,
            b"response.in_progress" => Self::ResponseInProgress,
            b"response.completed" => Self::ResponseCompleted,
            b"response.incomplete" => Self::ResponseIncomplete,
            b"response.failed" => Self::ResponseFailed,
            b"response.cancelled" | b"response.canceled" => Self::ResponseCancelled,
            _ => Self::Other,
        }
    }
}
