//! The logs of a node, made off its shards: a line a settled record for whoever bills or watches,
//! and a line a trouble for whoever is called at night. Both from the same records, on the
//! printer's thread; lines of records are written by one more, so that a reader who takes none
//! holds up nothing.

use super::output;
use super::told::line;
use crate::config::Config;
use crate::config::log::Access;
use crate::config::snapshot::Snapshot;
use crate::control::logfile::LogFile;
use crate::control::printing::{Printer, Writer};
use crate::control::receipt::{self, Names};
use crate::control::resting::Resting;
use crate::control::trouble::{Category, Trouble};
use crate::exchange::keys::KeyTable;
use crate::observe::counters::Counters;
use crate::observe::ledger::LedgerGauges;
use crate::server::{Keep, Node, Records};
use crate::shard::clock;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use store::record::Settled;

/// Milliseconds of a second.
const SECOND_MS: u64 = 1_000;

/// Where lines of records go, by configuration and arguments.
pub(super) fn access(config: &Config, print_records: bool) -> Access {
    if print_records { Access::Output } else { config.log.access.clone() }
}

/// Which records the logs want.
pub(super) fn keep(config: &Config, access: &Access) -> Keep {
    match (access, config.log.errors) {
        (Access::Off, true) => Keep::Troubled,
        (Access::Off, false) => Keep::None,
        (Access::Output | Access::File(_), _) => Keep::All,
    }
}

/// Opens the access log's file, if it has one: before anything is bound, for what it cannot be is
/// a reason not to start.
pub(super) fn open(access: &Access) -> io::Result<Option<LogFile>> {
    let Access::File(path) = access else { return Ok(None) };
    let log = LogFile::open(path.clone()).map_err(|error| {
        io::Error::new(error.kind(), format!("access log {}: {error}", path.display()))
    })?;
    Ok(Some(log))
}

/// Starts them, if there is anything to log. Lines that nobody takes are counted in `lost`.
pub(super) fn start(
    config: &Config,
    node: &Node,
    (access, file): (&Access, Option<LogFile>),
    lost: &Arc<AtomicU64>,
) -> io::Result<Option<Printer>> {
    if keep(config, access) == Keep::None {
        return Ok(None);
    }
    let writer = match (access, file) {
        (Access::Output, _) => Some(Writer::start(lost.clone(), output::print)?),
        (_, Some(file)) => Some(to_file(file, lost.clone())?),
        (_, None) => None,
    };
    let snapshot = config.snapshot.clone();
    let keys = node.keys.clone();
    let mut logs = Logs {
        records: node.records.clone(),
        known: keys.version(),
        names: Names::of(&snapshot, &keys),
        snapshot,
        resting: Resting::default(),
        keys,
        trouble: config.log.errors.then(Trouble::default),
        second: 0,
        counters: node.counters.clone(),
        ledger: node.gauges(),
    };
    Printer::start(writer, move |writer| logs.turn(writer)).map(Some)
}

fn to_file(mut file: LogFile, lost: Arc<AtomicU64>) -> io::Result<Writer> {
    Writer::start(lost.clone(), move |lines| {
        lost.fetch_add(file.write(lines), Relaxed);
        Ok(())
    })
}

/// What the printer's thread has.
struct Logs {
    records: Records,
    keys: Arc<KeyTable>,
    /// The version of the keys that the names are of.
    known: u64,
    names: Names,
    snapshot: Arc<Snapshot>,
    resting: Resting,
    trouble: Option<Trouble>,
    /// Of the last look at the figures.
    second: u64,
    counters: Vec<Arc<Counters>>,
    ledger: Arc<LedgerGauges>,
}

impl Logs {
    fn turn(&mut self, writer: Option<&Writer>) {
        let Logs { records, keys, known, names, snapshot, trouble, .. } = self;
        let (mut text, mut lines) = (String::new(), 0);
        records.take(|record: Settled| {
            // Of a key that was made meanwhile the name is not known yet.
            if names.key(&record).is_none() && *known != keys.version() {
                *known = keys.version();
                *names = Names::of(snapshot, keys);
            }
            if writer.is_some() {
                text.push_str(&receipt::json_line(&record, names));
                text.push('\n');
                lines += 1;
            }
            if let Some(trouble) = trouble {
                trouble.record(&record, names, &mut tell);
            }
        });
        if let Some(writer) = writer {
            writer.offer(text, lines);
        }
        self.look();
    }

    /// Once a second, what has no record.
    fn look(&mut self) {
        let second = clock::now().wall.0 / SECOND_MS;
        if second != self.second {
            self.second = second;
            self.figures(second);
        }
    }

    /// Figures that have risen.
    fn figures(&mut self, second: u64) {
        let Some(trouble) = &mut self.trouble else { return };
        let sum = |read: fn(&Counters) -> u64| {
            self.counters.iter().map(|counters| read(counters)).fold(0, u64::wrapping_add)
        };
        let ledger = self.ledger.failures.load(Relaxed);
        let ledger = ledger.wrapping_add(self.ledger.checkpoint_failures.load(Relaxed));
        trouble.turn(second, &mut tell);
        for (category, figure) in [
            (Category::UpstreamTls, sum(|c| c.upstream_tls_failures.get())),
            (Category::ClientTls, sum(|c| c.client_tls_failures.get())),
            (Category::Panic, sum(|c| c.panics.get())),
            (Category::Accept, sum(|c| c.accept_errors.get())),
            (Category::Ledger, ledger),
            (
                Category::Unrecorded,
                sum(|c| c.unrecorded.get().wrapping_add(c.refusals_unrecorded.get())),
            ),
            (Category::RecordsLost, sum(|c| c.records_lost.get())),
        ] {
            trouble.figure(category, figure, &mut tell);
        }
        self.resting.look(&self.snapshot, clock::mono(), trouble, &mut tell);
    }
}

impl Drop for Logs {
    /// What the last second had no line for.
    fn drop(&mut self) {
        self.figures(u64::MAX);
    }
}

fn tell(trouble: &str) {
    line("error", trouble);
}
