//! What to do after an attempt: a machine without a clock or a socket.
//!
//! In this landing a plan has one candidate and the only second try is the safe replay: a pooled
//! connection that turns out to be dead before it gave a byte of an answer has not carried the
//! request anywhere, so it is sent once more on a fresh connection.

use crate::exchange::refusal::Refusal;

/// How an attempt ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// No connection.
    Unreachable,
    /// The connection ended before any byte of an answer.
    Dead {
        /// It had served an exchange before.
        reused: bool,
    },
    /// It ended inside the answer's head.
    Cut,
    /// Nothing came in time.
    Timeout,
    /// What came is no answer that could be passed on.
    Invalid,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send the request, on a pooled connection if there is one.
    Try,
    /// Send it again, on a connection nobody used before.
    Replay,
    /// Tell the client.
    GiveUp(Refusal),
}

/// The walk of one exchange.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    replayed: bool,
}

impl Walk {
    /// What to do, given how the last attempt ended; `None` before the first.
    pub fn step(&mut self, last: Option<AttemptEnd>) -> Step {
        let Some(last) = last else { return Step::Try };
        match last {
            AttemptEnd::Dead { reused: true } if !self.replayed => {
                self.replayed = true;
                Step::Replay
            }
            AttemptEnd::Unreachable => Step::GiveUp(Refusal::UpstreamUnreachable),
            AttemptEnd::Dead { .. } | AttemptEnd::Cut => Step::GiveUp(Refusal::UpstreamCut),
            AttemptEnd::Timeout => Step::GiveUp(Refusal::UpstreamTimeout),
            AttemptEnd::Invalid => Step::GiveUp(Refusal::UpstreamInvalid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_per_way_an_attempt_ends() {
        let give_up = Step::GiveUp;
        for (ends, steps) in [
            (vec![AttemptEnd::Unreachable], vec![give_up(Refusal::UpstreamUnreachable)]),
            (vec![AttemptEnd::Dead { reused: false }], vec![give_up(Refusal::UpstreamCut)]),
            (vec![AttemptEnd::Cut], vec![give_up(Refusal::UpstreamCut)]),
            (vec![AttemptEnd::Timeout], vec![give_up(Refusal::UpstreamTimeout)]),
            (vec![AttemptEnd::Invalid], vec![give_up(Refusal::UpstreamInvalid)]),
            (
                vec![AttemptEnd::Dead { reused: true }, AttemptEnd::Dead { reused: true }],
                vec![Step::Replay, give_up(Refusal::UpstreamCut)],
            ),
            (
                vec![AttemptEnd::Dead { reused: true }, AttemptEnd::Unreachable],
                vec![Step::Replay, give_up(Refusal::UpstreamUnreachable)],
            ),
        ] {
            let mut walk = Walk::default();
            assert_eq!(walk.step(None), Step::Try);
            for (end, step) in ends.into_iter().zip(steps) {
                assert_eq!(walk.step(Some(end)), step, "{end:?}");
            }
        }
    }
}
