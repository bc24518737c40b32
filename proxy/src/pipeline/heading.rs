//! The wait for the head of an answer: how long it may last, and what has come of the head.
//!
//! Bounds: [`INTERIMS_MAX`] interim heads; the head's own bounds are the parser's.

use super::answer::AnswerHead;
use super::client::Client;
use super::open::Call;
use super::{leaving, relay};
use crate::exchange::time::UnixMs;
use crate::govern::walk::{AttemptEnd, Fault};
use crate::io::Stream;
use crate::io::buffers::Buffers;
use crate::upstream::Upstream;
use codec::http1::{Fields, HeadScan};
use std::time::Duration;

/// What is known while an answer's head is awaited.
pub(super) struct Wait {
    /// The request was wholly sent.
    pub(super) sent: bool,
    /// Its time is over.
    pub(super) late: bool,
    got_bytes: bool,
    interims: u16,
    scan: HeadScan,
    /// When it is over, in ticks.
    until: u64,
}

/// Interim heads that one answer may have: one every few seconds for as long as a first byte may
/// take. Without a bound a broken upstream would keep a core busy until then.
const INTERIMS_MAX: u16 = 256;

impl Wait {
    /// Nothing is known yet.
    pub(super) fn new() -> Wait {
        Wait {
            sent: false,
            late: false,
            got_bytes: false,
            interims: 0,
            scan: HeadScan::new(),
            until: 0,
        }
    }

    /// It may last so long.
    pub(super) fn arm<S: Stream>(&mut self, client: &Client<S>, call: &Call<'_>, span: Duration) {
        self.until = client.timer.tick() + leaving::ticks(span);
        self.arm_again(client, call);
    }

    /// It goes on. A client that has a head already is told every now and then; one that has
    /// nothing and has ended its side is waited for so long.
    pub(super) fn arm_again<S: Stream>(&self, client: &Client<S>, call: &Call<'_>) {
        let rest = leaving::span(self.until.saturating_sub(client.timer.tick()));
        let sooner = match call.begun {
            _ if call.leaving.is_some() => None,
            true => Some(relay::beat_in(client, call)),
            false => client.patience(call.snapshot.deadlines.half_closed),
        };
        client.timer.arm(sooner.map_or(rest, |sooner| rest.min(sooner)));
    }

    /// Whether it is not over yet.
    pub(super) fn is_early<S: Stream>(&self, client: &Client<S>) -> bool {
        client.timer.tick() < self.until
    }

    /// The head, the end of the attempt, or nothing yet.
    pub(super) fn judge<S: Stream>(
        &mut self,
        upstream: &mut Upstream<S>,
        ended: bool,
        told: (Option<&[u8]>, UnixMs),
        buffers: &Buffers,
    ) -> Option<Result<AnswerHead, AttemptEnd>> {
        self.got_bytes |= !upstream.inbox.is_empty();
        match self.parse(upstream, told, buffers) {
            Some(result) => Some(result),
            None if !ended => None,
            None if self.late => Some(Err(AttemptEnd::Timeout { sent: self.sent })),
            None if self.got_bytes || upstream.uses == 0 => {
                Some(Err(AttemptEnd::Cut { sent: self.sent }))
            }
            None => Some(Err(AttemptEnd::Stale)),
        }
    }

    /// The field table lives on this stack only.
    #[inline(never)]
    fn parse<S: Stream>(
        &mut self,
        upstream: &mut Upstream<S>,
        told: (Option<&[u8]>, UnixMs),
        buffers: &Buffers,
    ) -> Option<Result<AnswerHead, AttemptEnd>> {
        let mut fields = Fields::new();
        loop {
            match self.scan.response(&upstream.inbox, &mut fields, false) {
                Err(_) => return Some(Err(AttemptEnd::Fault(Fault::INVALID))),
                Ok(None) => return None,
                Ok(Some(head)) if head.is_interim() => {
                    self.interims += 1;
                    if self.interims > INTERIMS_MAX {
                        return Some(Err(AttemptEnd::Fault(Fault::INVALID)));
                    }
                    // 100, 102 and 103 are about this hop or hints nobody asked for: dropped.
                    upstream.inbox.drain(..head.head_len);
                    self.scan = HeadScan::new();
                }
                Ok(Some(head)) => {
                    let bytes = &upstream.inbox;
                    let written = buffers.take();
                    let head = AnswerHead::read(bytes, &head, &fields, told, written);
                    return Some(Ok(head));
                }
            }
        }
    }
}
