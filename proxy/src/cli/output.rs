//! The only place that writes to the process's standard output and error.
//!
//! Results go to the output, what is told about them to the error. A pipe that nobody reads any
//! more is not a failure of the command. A process that serves does not wait for whoever reads the
//! error either: from [`tell_beside`] on a thread of its own writes the lines, [`WAITING_MAX`] of
//! them wait for it. What finds no room, or cannot be written, is counted and gone. A panic is told
//! the same way: it may be a shard's, which goes on.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, Write};
use std::panic::{Location, PanicHookInfo};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Lines that wait for a slow reader: what every category of trouble may say in six seconds.
const WAITING_MAX: usize = 1_024;

/// How long the end of the process waits for a reader of the last lines.
const LAST_MAX: Duration = Duration::from_millis(500);

/// Who writes lines to the standard error beside everybody else.
struct Teller {
    told: SyncSender<Told>,
    /// Lines handed over and not written yet.
    waiting: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
}

/// What is handed over.
enum Told {
    Line(String),
    /// All before it is written.
    Last(SyncSender<()>),
}

/// One for the process, as there is one standard error.
static TELLER: OnceLock<Teller> = OnceLock::new();

// === impl Teller ===

impl Teller {
    /// Starts it. Lines that find no room, or that `emit` cannot write, are counted in `lost`.
    fn start(
        lost: Arc<AtomicU64>,
        emit: impl Fn(&str) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Teller> {
        // One place more, which no line takes: the end finds it free.
        let (told, coming) = mpsc::sync_channel(WAITING_MAX + 1);
        let waiting = Arc::new(AtomicUsize::new(0));
        let (left, unwritten) = (waiting.clone(), lost.clone());
        std::thread::Builder::new().name("teller".to_owned()).spawn(move || {
            for told in coming {
                match told {
                    Told::Line(line) => {
                        if emit(&line).is_err() {
                            unwritten.fetch_add(1, Ordering::Relaxed);
                        }
                        left.fetch_sub(1, Ordering::AcqRel);
                    }
                    Told::Last(ended) => drop(ended),
                }
            }
        })?;
        Ok(Teller { told, waiting, lost })
    }

    /// Hands a line over; never waits.
    fn offer(&self, line: &str) {
        let full = self.waiting.fetch_add(1, Ordering::AcqRel) >= WAITING_MAX;
        if full || self.told.try_send(Told::Line(line.to_owned())).is_err() {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all is written, but not for ever.
    fn last(&self) {
        let (ended, end) = mpsc::sync_channel(1);
        if self.told.try_send(Told::Last(ended)).is_ok() {
            // Nothing comes: it is dropped once all is written, or this has lasted too long.
            let _ = end.recv_timeout(LAST_MAX);
        }
    }
}

/// From now on lines to the standard error are written beside whoever tells them. Lost ones are
/// counted in `lost`.
pub fn tell_beside(lost: Arc<AtomicU64>) -> io::Result<()> {
    let teller = Teller::start(lost, tell_now)?;
    // A process serves once; a second teller would have nothing to do.
    let _ = TELLER.set(teller);
    Ok(())
}

/// From now on a panic is a line as any other.
pub fn tell_panics() {
    std::panic::set_hook(Box::new(|panic: &PanicHookInfo<'_>| {
        let thread = std::thread::current();
        let (name, at) = (thread.name().unwrap_or("?"), panic.location());
        tell(&of_panic(name, at, panic.payload()));
        let way = Backtrace::capture();
        if way.status() == BacktraceStatus::Captured {
            tell(&way.to_string());
        }
    }));
}

/// Where it was, and its words if they are ours: what was formatted may have something of a client
/// in it.
fn of_panic(thread: &str, at: Option<&Location<'_>>, payload: &(dyn Any + Send)) -> String {
    let at = at.map_or_else(|| "?".to_owned(), Location::to_string);
    let words = payload.downcast_ref::<&'static str>().copied();
    let words = words.map(|words| format!(": {words}")).unwrap_or_default();
    format!("error       panic thread={thread} at={at}{words}")
}

/// What was told is written, if somebody reads it: for the end of the process.
pub fn last() {
    if let Some(teller) = TELLER.get() {
        teller.last();
    }
}

/// Writes text to the standard output and flushes it.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a line to the standard output; a reader that is gone has heard enough.
pub fn say(line: &str) {
    let _ = print(&format!("{line}\n"));
}

/// Writes a line to the standard error.
pub fn tell(line: &str) {
    match TELLER.get() {
        Some(teller) => teller.offer(line),
        None => {
            // A reader that is gone has heard enough.
            let _ = tell_now(line);
        }
    }
}

fn tell_now(line: &str) -> io::Result<()> {
    // In one piece: a line that cannot be written leaves no half of it before the next.
    io::stderr().lock().write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_panic_is_told_in_our_words_alone() {
        let here = Location::caller();
        let said = of_panic("shard-0", Some(here), &"a defect");
        assert_eq!(said, format!("error       panic thread=shard-0 at={here}: a defect"));
        let formatted = "what a client sent".to_owned();
        assert_eq!(of_panic("w", None, &formatted), "error       panic thread=w at=?");
    }

    #[test]
    fn who_tells_waits_for_no_reader_and_the_end_waits_only_so_long() {
        let lost = Arc::new(AtomicU64::new(0));
        let (free, held) = channel::<()>();
        let (said, told) = channel();
        let teller = Teller::start(lost.clone(), move |line| {
            // Ends once nobody holds it any more.
            let _ = held.recv();
            said.send(line.to_owned()).map_err(io::Error::other)
        });
        let teller = teller.unwrap();
        for number in 0..WAITING_MAX + 11 {
            teller.offer(&number.to_string());
        }
        // One may be with the reader.
        let gone = lost.load(Ordering::Relaxed) as usize;
        assert!((10..=11).contains(&gone), "{gone}");
        teller.last();
        assert!(told.try_recv().is_err(), "nobody has read");
        drop(free);
        let lines: Vec<String> = told.iter().take(WAITING_MAX + 11 - gone).collect();
        let wanted = (0..WAITING_MAX + 11 - gone).map(|number| number.to_string());
        assert_eq!(lines, wanted.collect::<Vec<_>>(), "in order, the first of them");
    }

    #[test]
    fn a_line_that_cannot_be_written_is_lost_and_the_next_one_is_tried() {
        let lost = Arc::new(AtomicU64::new(0));
        let (said, told) = channel();
        let full = move |line: &str| match line {
            "full" => Err(io::ErrorKind::StorageFull.into()),
            line => said.send(line.to_owned()).map_err(io::Error::other),
        };
        let teller = Teller::start(lost.clone(), full).unwrap();
        ["full", "full", "free"].into_iter().for_each(|line| teller.offer(line));
        assert_eq!(told.recv().unwrap(), "free");
        assert_eq!(lost.load(Ordering::Relaxed), 2);
    }
}
