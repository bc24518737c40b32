//! When the next event of which stream is due. Pure: time comes in as an argument.

use std::time::Duration;

/// How events are paced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pace {
    /// The next event of a stream once its client has read the one before.
    PingPong,
    /// So many writes a second over all streams in turn, each of so many events.
    Even { per_second: f64, batch: u32 },
    /// None: streams are held open.
    Held,
}

/// Writes due since a beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    made: u64,
}

impl Due {
    /// How many are due at this time and were not said to be before.
    pub(super) fn at(&mut self, pace: Pace, since: Duration) -> u64 {
        let Pace::Even { per_second, .. } = pace else { return 0 };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "far below 2^52, and never negative"
        )]
        let all = (since.as_secs_f64() * per_second) as u64;
        let due = all.saturating_sub(self.made);
        self.made += due;
        due
    }

    /// How long after the beginning the next one is due.
    pub(super) fn next(&self, pace: Pace) -> Option<Duration> {
        let Pace::Even { per_second, .. } = pace else { return None };
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let at = (self.made + 1) as f64 / per_second;
        Duration::try_from_secs_f64(at).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Due, Pace};

    #[test]
    fn every_write_is_due_once_and_at_its_time() {
        let (pace, mut due) = (Pace::Even { per_second: 1000.0, batch: 1 }, Due::default());
        let mut made = 0;
        for us in (0..=1_000_000).step_by(377) {
            made += due.at(pace, Duration::from_micros(us));
            assert!(made <= us / 1000 && made + 1 >= us / 1000, "{us}");
        }
        assert_eq!(made + due.at(pace, Duration::from_secs(1)), 1000);
        assert_eq!(due.next(pace), Some(Duration::from_millis(1001)));
        assert_eq!(Due::default().at(Pace::Held, Duration::from_secs(9)), 0);
    }
}
