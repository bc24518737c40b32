//! When to parse a head that arrives in pieces.
//!
//! A head nearly always comes in one read, so the first look is a parse. After that only the new
//! bytes are searched for the end of the head, and the parser runs again when it is there, when a
//! bound is reached, or when the bytes have doubled (so garbage is not kept until its bound). All
//! judgement stays with the parser; the work over all calls is linear in the bytes.

use super::{
    EMPTY_LINES_MAX, FIELDS_MAX, Fields, HEAD_BYTES_MAX, HeadError, RequestHead, ResponseHead,
    START_LINE_BYTES_MAX, parse_request, parse_response,
};

/// What was already searched of one head. One per head; the buffer may move between calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadScan {
    searched: usize,
    parsed: usize,
    lines: usize,
}

impl HeadScan {
    /// For a head of which no byte has been looked at.
    #[must_use]
    pub const fn new() -> Self {
        Self { searched: 0, parsed: 0, lines: 0 }
    }

    /// [`parse_request`], when it can tell something new. `buf` is everything since the head's
    /// start.
    ///
    /// # Errors
    /// Those of [`parse_request`].
    pub fn request(
        &mut self,
        buf: &[u8],
        fields: &mut Fields,
    ) -> Result<Option<RequestHead>, HeadError> {
        if self.is_due(buf) { parse_request(buf, fields) } else { Ok(None) }
    }

    /// [`parse_response`], when it can tell something new. `buf` is everything since the head's
    /// start.
    ///
    /// # Errors
    /// Those of [`parse_response`].
    pub fn response(
        &mut self,
        buf: &[u8],
        fields: &mut Fields,
        request_was_head: bool,
    ) -> Result<Option<ResponseHead>, HeadError> {
        if self.is_due(buf) { parse_response(buf, fields, request_was_head) } else { Ok(None) }
    }

    fn is_due(&mut self, buf: &[u8]) -> bool {
        let len = buf.len();
        if self.parsed == 0 {
            // Searching waits until it is known to be needed.
            self.parsed = len;
            return true;
        }
        let crossed_start_line = self.searched < START_LINE_CROSSED && len >= START_LINE_BYTES_MAX;
        let due = self.ends_in(buf)
            || crossed_start_line
            || len >= self.parsed.saturating_mul(2)
            || len >= HEAD_BYTES_MAX;
        self.searched = len;
        if due {
            self.parsed = len;
        }
        due
    }

    /// Whether the new bytes end a blank line or one field line too many. An LF without CR counts
    /// as a line end, so that the parser gets to see and refuse it.
    fn ends_in(&mut self, buf: &[u8]) -> bool {
        let from = self.searched.saturating_sub(2);
        let window = buf.get(from..).unwrap_or_default();
        let mut ended = false;
        for at in memchr::memchr_iter(b'\n', window) {
            ended |= matches!(window.get(at + 1..), Some([b'\n', ..] | [b'\r', b'\n', ..]));
            if from + at >= self.searched {
                self.lines += 1;
                ended |= self.lines > LINES_MAX;
            }
        }
        ended
    }
}

/// Line ends a head within its bounds may have before its blank line.
const LINES_MAX: usize = EMPTY_LINES_MAX + 1 + FIELDS_MAX;

/// From here on the bound of the start line has been judged, whatever empty lines came before it.
const START_LINE_CROSSED: usize = START_LINE_BYTES_MAX + EMPTY_LINES_MAX * 2;

#[cfg(test)]
mod tests {
    use super::{HEAD_BYTES_MAX, HeadScan};

    #[test]
    fn a_dripping_head_is_parsed_a_few_times_only() {
        let head = format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(HEAD_BYTES_MAX / 2));
        let head = format!("{head}\r\nY: {}\r\n\r\n", "b".repeat(HEAD_BYTES_MAX / 4));
        let mut scan = HeadScan::new();
        let looks: Vec<usize> =
            (1..=head.len()).filter(|&len| scan.is_due(&head.as_bytes()[..len])).collect();
        assert!(looks.len() < 24, "{looks:?}");
        assert_eq!(looks.last(), Some(&head.len()));
    }
}
