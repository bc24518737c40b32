//! The promise that no split of the input changes what is found, as two questions that the
//! tests and the fuzz targets ask. Not used on the data path.

use super::{JsonError, Progress, ReplyFacts, ReplyScan, RequestScan, RequestSpans};

/// Scans a body that is whole from the start.
///
/// # Errors
///
/// What the scan says.
pub fn request_whole(body: &[u8]) -> Result<RequestSpans, JsonError> {
    RequestScan::new().finish(body)
}

/// Scans a body of which first `head` bytes have arrived, then `step` more at a time.
///
/// # Errors
///
/// What the scan says.
pub fn request_split(body: &[u8], head: usize, step: usize) -> Result<RequestSpans, JsonError> {
    let mut scan = RequestScan::new();
    let mut arrived = head;
    while let Some(prefix) = body.get(..arrived) {
        match scan.advance(prefix)? {
            Progress::More | Progress::Closed => arrived = arrived.saturating_add(step.max(1)),
        }
    }
    scan.finish(body)
}

/// Reads an answer in pieces: first `head` bytes, then `step` at a time.
#[must_use]
pub fn reply_split(answer: &[u8], head: usize, step: usize) -> ReplyFacts {
    let mut scan = ReplyScan::new();
    let (first, rest) = answer.split_at_checked(head).unwrap_or((answer, &[]));
    scan.feed(first);
    for piece in rest.chunks(step.max(1)) {
        scan.feed(piece);
    }
    *scan.finish()
}
