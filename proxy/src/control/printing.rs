//! Prints settled records, on a thread of its own: a reader that takes no bytes must hold up
//! neither the signals nor the admin port. What it cannot print in time is counted by the shards
//! as lost.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;
use store::record::Settled;

/// How often the shards' queues are emptied: 4,096 records a shard in this time are 80,000 a
/// second, beyond what a shard can settle.
const POLL: Duration = Duration::from_millis(50);

/// A printer at work; it goes on until [`Printer::finish`].
pub struct Printer {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Printer {
    /// Starts it. `take` hands over what has been settled; `line` is a record as text; `emit`
    /// writes whole lines, and its first error ends the printing.
    pub fn start(
        take: impl Fn(&mut dyn FnMut(Settled)) + Send + 'static,
        line: impl Fn(&Settled) -> String + Send + 'static,
        mut emit: impl FnMut(&str) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Printer> {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new().name("records".to_owned()).spawn(move || {
            let mut text = String::new();
            loop {
                // Asked before the last look, so that nothing settled before the end is missed.
                let last = match stopped.recv_timeout(POLL) {
                    Err(RecvTimeoutError::Timeout) => false,
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => true,
                };
                text.clear();
                take(&mut |record| {
                    text.push_str(&line(&record));
                    text.push('\n');
                });
                if (!text.is_empty() && emit(&text).is_err()) || last {
                    return;
                }
            }
        })?;
        Ok(Printer { stop, thread })
    }

    /// Whether it has ended by itself: its reader is gone.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Asks it to print what is left and to end; [`Printer::is_over`] tells when it has.
    pub fn finish(&self) {
        // A printer that has ended hears nothing.
        let _ = self.stop.send(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use store::record::Head;

    #[test]
    fn what_was_settled_before_the_end_is_printed() {
        let (out, printed) = channel();
        let (records, settled) = channel::<Settled>();
        let take = move |each: &mut dyn FnMut(Settled)| settled.try_iter().for_each(each);
        let line = |record: &Settled| record.key_id.to_string();
        let emit = move |text: &str| out.send(text.to_owned()).map_err(io::Error::other);
        let printer = Printer::start(take, line, emit).unwrap();
        for key_id in [1, 2] {
            records
                .send(Settled { head: Head { key_id, ..Head::default() }, ..Settled::default() })
                .unwrap();
        }
        printer.finish();
        printer.thread.join().unwrap();
        assert_eq!(printed.iter().collect::<String>(), "1\n2\n");
    }

    #[test]
    fn a_reader_that_is_gone_ends_it() {
        let take = |each: &mut dyn FnMut(Settled)| each(Settled::default());
        let emit = |_: &str| Err(io::ErrorKind::BrokenPipe.into());
        let printer = Printer::start(take, |_| String::new(), emit).unwrap();
        printer.thread.join().unwrap();
    }
}
