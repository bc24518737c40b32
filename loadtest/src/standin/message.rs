//! A message ready to be sent: its head, and its framed body in the writes it is sent by.

use std::ops::Range;

use super::completion;
use super::scenario::{Framing, Keep, Text};
use super::script::Mark;

/// One message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) head: Vec<u8>,
    pub(super) pieces: Vec<Piece>,
    /// The part of the content that is a chunk of usage alone.
    pub(super) hidden: Option<Range<u64>>,
}

/// One write of a body, or a wait.
#[derive(Debug)]
pub(super) enum Piece {
    /// Bytes, and what is complete at which of them.
    Bytes(Vec<u8>, Vec<Mark>),
    WaitMs(u64),
}

impl Message {
    /// Leaves out all behind what is to be kept.
    pub(super) fn keep(&mut self, keep: Keep) {
        let sizes = self.pieces.iter().map(|piece| match piece {
            Piece::Bytes(bytes, _) => bytes.len(),
            Piece::WaitMs(_) => 0,
        });
        let (head, body) = (self.head.len(), sizes.sum::<usize>());
        let kept = match keep {
            Keep::All => return,
            Keep::Head => head,
            Keep::HalfBody => head + body / 2,
            Keep::AllButOne => (head + body).saturating_sub(1),
            Keep::Bytes(bytes) => bytes,
        };
        self.head.truncate(kept);
        truncate(&mut self.pieces, kept.saturating_sub(head));
    }
}

/// Leaves so many bytes of `pieces`, and no wait behind them.
pub(super) fn truncate(pieces: &mut Vec<Piece>, mut left: usize) {
    pieces.retain_mut(|piece| {
        let whole = left > 0;
        if let Piece::Bytes(bytes, marks) = piece {
            bytes.truncate(left);
            left -= bytes.len();
            marks.retain(|mark| mark.at <= bytes.len() as u64);
        }
        whole
    });
}

/// What a head is made from.
#[derive(Debug)]
pub(super) struct Head<'a> {
    pub(super) version: &'a str,
    pub(super) status: u16,
    /// Instead of the usual one; empty for none.
    pub(super) reason: Option<&'a str>,
    pub(super) content_type: Option<&'a str>,
    pub(super) headers: &'a [(String, Text)],
    pub(super) framing: Framing,
    /// Bytes of the body without its framing.
    pub(super) length: usize,
}

impl Head<'_> {
    /// Its bytes, the blank line included.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {}", self.version, self.status).into_bytes();
        match self.reason.unwrap_or_else(|| reason(self.status)) {
            "" => {}
            reason => head.extend_from_slice(format!(" {reason}").as_bytes()),
        }
        head.extend_from_slice(b"\r\n");
        let mut field = |name: &str, value: &[u8]| {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        };
        if let Some(content_type) = self.content_type {
            field("content-type", content_type.as_bytes());
        }
        let length = self.length.to_string();
        for (name, value) in self.headers {
            let value = completion::text_bytes(value);
            match std::str::from_utf8(&value) {
                Ok(text) => field(name, text.replace("{length}", &length).as_bytes()),
                Err(_) => field(name, &value),
            }
        }
        match self.framing {
            Framing::Length => field("content-length", length.as_bytes()),
            Framing::Chunked => field("transfer-encoding", b"chunked"),
            Framing::None => {}
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

/// One chunk.
pub(super) fn chunk(content: &[u8], extension: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{:x}{extension}\r\n", content.len()).as_bytes());
    out.extend_from_slice(content);
    out.extend_from_slice(b"\r\n");
}

/// The end of a chunked body.
pub(super) fn last_chunk(extension: &str, trailers: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("0{extension}\r\n{trailers}\r\n").as_bytes());
}

fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        302 => "Found",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "Unknown",
    }
}
