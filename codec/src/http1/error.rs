//! Why a head was refused: one closed list, each with its status and one sentence.
//!
//! The sentences hold no byte of the input, so they can be shown to a client and logged. Status
//! codes are for requests; a response head that fails is the upstream's fault whatever the kind.

/// Why a head was refused. The connection cannot be used any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeadError {
    /// More empty lines before the start line than are skipped.
    EmptyLines,
    /// The first bytes are a TLS record.
    Tls,
    /// The HTTP/2 connection preface.
    Http2,
    /// The start line is longer than its bound.
    StartLineTooLong,
    /// The head is longer than its bound.
    HeadTooLarge,
    /// More field lines than the bound.
    TooManyFields,
    /// The request line is not `method SP target SP version`.
    RequestLine,
    /// A byte in the request target that is not visible ASCII, or `#`.
    TargetByte,
    /// A target form that the method does not have.
    TargetForm,
    /// The status line is not `version SP three digits`, or the status is outside 100 to 599.
    StatusLine,
    /// The version is not of the form `HTTP/1.x`.
    VersionSyntax,
    /// A well-formed version other than 1.0 and 1.1.
    VersionUnsupported,
    /// A line that does not end in CR LF.
    LineEnd,
    /// A name that is not a token: folding, white space before the colon, no colon.
    FieldName,
    /// A control byte in a field value.
    FieldValue,
    /// HTTP/1.1 without `Host`.
    HostMissing,
    /// More than one `Host`.
    HostRepeated,
    /// `Host` is not a host with an optional port.
    HostMalformed,
    /// `Content-Length` is not a number of at most 19 plain digits.
    LengthMalformed,
    /// More than one `Content-Length`, equal ones too.
    LengthRepeated,
    /// `Content-Length` beside `Transfer-Encoding`.
    LengthWithEncoding,
    /// More than one `Transfer-Encoding`.
    EncodingRepeated,
    /// `chunked`, and only it, last, but codings before it that nobody here knows.
    EncodingUnsupported,
    /// Transfer codings of which `chunked` is not the last, or not once: the body has no known end.
    EncodingMalformed,
    /// `Transfer-Encoding` in HTTP/1.0, which does not know it.
    EncodingInHttp10,
    /// `Connection` lists a field that decides framing or routing.
    ConnectionListsFraming,
}

impl HeadError {
    /// The status that answers a request with this fault.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::StartLineTooLong | Self::HeadTooLarge | Self::TooManyFields => 431,
            Self::EncodingUnsupported => 501,
            Self::Http2 | Self::VersionUnsupported => 505,
            Self::EmptyLines
            | Self::Tls
            | Self::RequestLine
            | Self::TargetByte
            | Self::TargetForm
            | Self::StatusLine
            | Self::VersionSyntax
            | Self::LineEnd
            | Self::FieldName
            | Self::FieldValue
            | Self::HostMissing
            | Self::HostRepeated
            | Self::HostMalformed
            | Self::LengthMalformed
            | Self::LengthRepeated
            | Self::LengthWithEncoding
            | Self::EncodingMalformed
            | Self::EncodingRepeated
            | Self::EncodingInHttp10
            | Self::ConnectionListsFraming => 400,
        }
    }

    /// The fault in a few words, without anything of the input.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::EmptyLines => "too many empty lines before the start line",
            Self::Tls => "TLS was spoken to a plain-text port",
            Self::Http2 => "the connection preface of another HTTP version",
            Self::StartLineTooLong => "start line too long",
            Self::HeadTooLarge => "head too large",
            Self::TooManyFields => "too many header fields",
            Self::RequestLine => "malformed request line",
            Self::TargetByte => "byte not allowed in the request target",
            Self::TargetForm => "request target does not fit the method",
            Self::StatusLine => "malformed status line",
            Self::VersionSyntax => "malformed HTTP version",
            Self::VersionUnsupported => "HTTP version not supported",
            Self::LineEnd => "line not ended by CR LF",
            Self::FieldName => "malformed header field name or folded line",
            Self::FieldValue => "byte not allowed in a header field value",
            Self::HostMissing => "Host is missing",
            Self::HostRepeated => "Host is given more than once",
            Self::HostMalformed => "Host is malformed",
            Self::LengthMalformed => "Content-Length is malformed",
            Self::LengthRepeated => "Content-Length is given more than once",
            Self::LengthWithEncoding => "Content-Length beside Transfer-Encoding",
            Self::EncodingRepeated => "Transfer-Encoding is given more than once",
            Self::EncodingUnsupported => "transfer coding not supported",
            Self::EncodingMalformed => "Transfer-Encoding does not end in chunked",
            Self::EncodingInHttp10 => "Transfer-Encoding in a version that does not know it",
            Self::ConnectionListsFraming => "Connection lists a framing or routing field",
        }
    }
}

impl core::fmt::Display for HeadError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(self.text())
    }
}

impl core::error::Error for HeadError {}
