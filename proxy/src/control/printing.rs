//! Tells of settled records, on threads of their own: neither the shards, nor the signals, nor the
//! admin port wait for whoever reads. One thread makes the lines ([`Printer`]), another writes them
//! ([`Writer`]); between them is room for [`BATCHES`] batches, and what finds no room is counted
//! and gone. The ledger has the records.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError, Sender, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the shards' queues are emptied: 4,096 records a shard in this time are 80,000 a
/// second, beyond what a shard can settle.
const POLL: Duration = Duration::from_millis(50);

/// Batches that wait for a slow reader: half a second of records.
const BATCHES: usize = 10;

/// A thread that writes.
pub struct Writer {
    batches: SyncSender<(String, u64)>,
    lost: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Writer {
    /// Starts it. `emit` writes whole lines; its first error ends the writing: the reader is gone.
    /// Lines that are not written are counted in `lost`.
    pub fn start(
        lost: Arc<AtomicU64>,
        mut emit: impl FnMut(&str) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Writer> {
        let (batches, coming) = mpsc::sync_channel::<(String, u64)>(BATCHES);
        let counted = lost.clone();
        let thread = std::thread::Builder::new().name("writer".to_owned()).spawn(move || {
            for (text, lines) in coming {
                if emit(&text).is_err() {
                    counted.fetch_add(lines, Relaxed);
                    return;
                }
            }
        })?;
        Ok(Writer { batches, lost, thread })
    }

    /// Hands lines over; never waits.
    pub fn offer(&self, text: String, lines: u64) {
        if lines > 0 && self.batches.try_send((text, lines)).is_err() {
            self.lost.fetch_add(lines, Relaxed);
        }
    }

    /// No more lines come. What was handed over is written, by a thread that ends then.
    fn finish(self) -> JoinHandle<()> {
        self.thread
    }
}

/// A printer at work; it goes on until [`Printer::finish`].
pub struct Printer {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Printer {
    /// Starts it. `turn` takes what has been settled and hands its lines to the writer, if there is
    /// one; it is called until asked to finish, and once after that.
    pub fn start(
        writer: Option<Writer>,
        mut turn: impl FnMut(Option<&Writer>) + Send + 'static,
    ) -> io::Result<Printer> {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new().name("records".to_owned()).spawn(move || {
            loop {
                // Asked before the last look, so that nothing settled before the end is missed.
                let last = match stopped.recv_timeout(POLL) {
                    Err(RecvTimeoutError::Timeout) => false,
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => true,
                };
                turn(writer.as_ref());
                if last {
                    break;
                }
            }
            if let Some(thread) = writer.map(Writer::finish) {
                // A writer that has panicked has nothing more to write.
                let _ = thread.join();
            }
        })?;
        Ok(Printer { stop, thread })
    }

    /// Whether everything is written.
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

    #[test]
    fn what_was_settled_before_the_end_is_printed() {
        let (out, printed) = channel();
        let (records, settled) = channel::<u64>();
        let emit = move |text: &str| out.send(text.to_owned()).map_err(io::Error::other);
        let writer = Writer::start(Arc::default(), emit).unwrap();
        let turn = move |writer: Option<&Writer>| {
            let lines: Vec<String> = settled.try_iter().map(|n| format!("{n}\n")).collect();
            writer.unwrap().offer(lines.concat(), lines.len() as u64);
        };
        let printer = Printer::start(Some(writer), turn).unwrap();
        for number in [1, 2] {
            records.send(number).unwrap();
        }
        printer.finish();
        printer.thread.join().unwrap();
        assert_eq!(printed.iter().collect::<String>(), "1\n2\n");
    }

    #[test]
    fn a_reader_that_is_gone_ends_the_writing_alone() {
        let lost = Arc::new(AtomicU64::new(0));
        let gone = |_: &str| Err(io::ErrorKind::BrokenPipe.into());
        let writer = Writer::start(lost.clone(), gone).unwrap();
        let (told, turns) = channel();
        let turn = move |writer: Option<&Writer>| {
            writer.unwrap().offer("a\nb\n".to_owned(), 2);
            let _ = told.send(());
        };
        let printer = Printer::start(Some(writer), turn).unwrap();
        for _ in 0..3 {
            turns.recv().unwrap();
        }
        printer.finish();
        printer.thread.join().unwrap();
        assert!(lost.load(Relaxed) >= 4, "{lost:?}");
    }

    #[test]
    fn a_reader_that_takes_nothing_holds_nobody_up_and_what_it_misses_is_counted() {
        let lost = Arc::new(AtomicU64::new(0));
        let (free, held) = channel::<()>();
        let stuck = move |_: &str| held.recv().map_err(io::Error::other);
        let writer = Writer::start(lost.clone(), stuck).unwrap();
        for _ in 0..BATCHES + 5 {
            writer.offer("a\n".to_owned(), 1);
        }
        // One may be with the writer, ten wait: the others are gone.
        let gone = lost.load(Relaxed);
        assert!((4..=5).contains(&gone), "{gone}");
        drop(free);
        writer.finish().join().unwrap();
    }
}
