//! How long the first content event of a stream takes: streams are opened at a rate, each gets its
//! preamble at once, its first content event after a gap, and its end once that has come.

use std::io;
use std::time::Duration;

use super::client::State;
use super::drive::{Drive, thread_time};
use super::pace::{Due, Pace};
use crate::clock;
use crate::timers::Timers;

/// What is opened, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Openings {
    /// Connections that streams are opened on.
    pub(super) streams: usize,
    pub(super) per_second: f64,
    /// Between the preamble and the first content event.
    pub(super) gap: Duration,
    pub(super) spin: bool,
}

/// Opens streams for `time`, then waits at most `drain` for those under way.
pub(super) fn phase(
    drive: &mut Drive,
    openings: Openings,
    time: Duration,
    drain: Duration,
) -> io::Result<()> {
    drive.begin(Pace::Held);
    let pace = Pace::Even { per_second: openings.per_second, batch: 1 };
    let (begin, cpu) = (clock::now(), thread_time());
    let (mut due, mut timers) = (Due::default(), Timers::default());
    let (mut wanted, mut open) = (0, Vec::new());
    loop {
        let now = clock::now();
        let since = now.saturating_duration_since(begin);
        if since >= time && (open.is_empty() || since >= time + drain) {
            break;
        }
        if since < time {
            wanted += due.at(pace, since);
        }
        for stream in 0..openings.streams {
            if wanted > 0 && drive.state(stream) == State::Idle && !open.contains(&stream) {
                wanted -= 1;
                open.push(stream);
                drive.ask(stream);
            }
        }
        for stream in std::mem::take(&mut drive.preluded) {
            timers.set(now + openings.gap, stream as u64);
        }
        while let Some((_, stream)) = timers.due(now) {
            drive.send(usize::try_from(stream).unwrap_or(usize::MAX));
        }
        drive.turn(Some(if openings.spin { Duration::ZERO } else { Duration::from_millis(1) }))?;
        open.retain(|&stream| {
            if drive.state(stream) == State::Open {
                drive.finish(stream);
            }
            drive.state(stream) != State::Idle
        });
    }
    drive.counts.elapsed = clock::now().saturating_duration_since(begin);
    drive.counts.cpu = thread_time().saturating_sub(cpu);
    Ok(())
}
