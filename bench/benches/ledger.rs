//! What the ledger costs: a slot from open to done on the shard's side, and CPU per record on the
//! ledger thread's side, at fixed batches and at a paced rate. CPU is the thread's own, user and
//! system, syncs included; what the kernel does later on its own threads is not in it.
//!
//! `cargo bench -p bench --bench ledger [-- paced seconds]`; one line a figure.

use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use store::appender::{Appender, Options};
use store::disk::Folder;
use store::ending::{Ending, Provenance};
use store::record::{Attempt, Head, Window, flag};
use store::segment;
use store::slab::{Collector, Files, Geometry, Slab, SlabId};
use store::tail::Tail;
use tollgate::control::ledger;
use tollgate::exchange::rules::OrphanRule;
use tollgate::shard::clock;

const ROUNDS: usize = 7;
const RECORDS: u64 = 150_000;
/// Nearly every record of a batch states totals of its own: the dearest case.
const MANY_KEYS: u64 = 1000;
/// A small team.
const FEW_KEYS: u64 = 10;
const RATES: [u64; 2] = [20_000, 50_000];
const PACED: [&str; 4] = [
    "ledger thread: CPU-ns a record",
    "filling segments: CPU-ns a record",
    "longest commit: ms",
    "exchanges that found no slot",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().filter_map(|text| text.parse().ok()).next().unwrap_or(5);
    let home = Home::new();
    slot(&home)?;
    for (batch, keys) in [(64, MANY_KEYS), (1024, MANY_KEYS), (4096, MANY_KEYS), (1024, FEW_KEYS)] {
        let rounds = (0..ROUNDS).map(|round| batches(&home, batch, keys, round));
        let what = format!("append, batch {batch}, {keys} keys: CPU-ns a record");
        say(&what, rounds.collect::<Result<_, _>>()?);
    }
    for (rate, keys) in RATES.into_iter().flat_map(|rate| [(rate, MANY_KEYS), (rate, FEW_KEYS)]) {
        let rounds = (0..3).map(|_| paced(&home, rate, seconds, keys));
        let rounds = rounds.collect::<Result<Vec<_>, _>>()?;
        for (at, what) in PACED.into_iter().enumerate() {
            let figures = rounds.iter().map(|figures| figures[at]).collect();
            say(&format!("paced {rate}/s, {keys} keys, {what}"), figures);
        }
    }
    Ok(())
}

fn say(what: &str, mut rounds: Vec<f64>) {
    rounds.sort_by(f64::total_cmp);
    let median = rounds[rounds.len() / 2];
    let (least, most) = (rounds[0], rounds[rounds.len() - 1]);
    #[expect(clippy::print_stdout, reason = "a bench says what it measured")]
    {
        println!("{what}: {median:.0} (of {}: {least:.0} to {most:.0})", rounds.len());
    }
}

struct Home {
    disk: PathBuf,
    memory: PathBuf,
}

impl Home {
    fn new() -> Home {
        let name = format!("tollgate-bench-{}", std::process::id());
        let disk = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&name);
        Home { disk, memory: PathBuf::from("/dev/shm").join(name) }
    }

    /// A slab of the default size, a thousand keys and three accounts a record.
    fn slab(&self, start: u32) -> store::error::Result<(Slab, Collector)> {
        Files::make(&self.memory, 1)?.create(SlabId { shard: 0, start }, Geometry::default())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.disk);
        let _ = std::fs::remove_dir_all(&self.memory);
    }
}

fn head(count: u64, keys: u64) -> Head {
    let mut head = Head {
        key_id: count % keys,
        hold_picousd: 1_000_000,
        opened_unix_ms: 1_700_000_000_000 + count / 20,
        ..Head::default()
    };
    for (to, from) in head.request_id.iter_mut().zip(count.to_be_bytes()) {
        *to = from;
    }
    let budget = u32::try_from(count % keys).unwrap_or(0) * 2 + 1;
    head.windows[0] = Window { budget_id: budget, window_id: 1 };
    head.windows[1] = Window { budget_id: budget + 1, window_id: 660 };
    head
}

const TAIL: Tail<'static> = Tail {
    model_asked: "claude-sonnet-4-5",
    model_sent: "claude-sonnet-4-5-20250929",
    trace_id: Some([7; 16]),
    session: "0f6d6f3e-7a3e-4a5f-9d2e-0c6f2a9b1e77",
    end_user: "",
    labels: store::tail::Labels::Given(&[]),
    metadata: &[],
};

/// One exchange as a shard lives it.
fn exchange(slab: &mut Slab, count: u64, keys: u64) -> bool {
    let mut head = head(count, keys);
    let Some(slot) = slab.open(&head, &TAIL) else { return false };
    head.attempt(Attempt { provider_id: 1, credential_id: 1, ..Attempt::default() });
    slab.sent(&slot, &head);
    slab.note(&slot, &[1200, 0, 0, 0, 0, 0, 0, 0], 0);
    head.tokens = [1200, 0, 0, 0, 300, 0, 0, 0];
    head.provenance = Provenance::Reported;
    head.upstream_cost_picousd = 8_100_000_000;
    head.cost_picousd = 8_100_000_000;
    head.flags |= flag::PRICED;
    slab.price(&slot, &head);
    head.ending = Ending::Succeeded;
    head.closed_unix_ms = head.opened_unix_ms + 900;
    slab.done(slot, &head);
    true
}

fn slot(home: &Home) -> store::error::Result<()> {
    let keys = MANY_KEYS;
    let (mut slab, mut collector) = home.slab(1)?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS * 3 {
        let from = cpu();
        for count in 0..10_000 {
            black_box(exchange(&mut slab, count, keys));
        }
        rounds.push((cpu() - from) as f64 / 10_000.0);
        collector.take(|record| {
            black_box(record.len());
            Ok(true)
        })?;
        collector.free()?;
    }
    say("slot, open, sent, noted, priced, done: ns", rounds);
    Ok(())
}

fn batches(home: &Home, batch: u64, keys: u64, round: usize) -> store::error::Result<f64> {
    let folder = home.disk.join(format!("batch-{batch}-{keys}-{round}"));
    let disk = Folder::make(&folder).map_err(io)?;
    segment::prepare(&disk, segment::SEGMENT_BYTES)?;
    let (mut slab, mut collector) = home
        .slab(u32::try_from(keys + batch).unwrap_or(0) * 10 + u32::try_from(round).unwrap_or(0))?;
    let options = Options { node: 1, segment_bytes: segment::SEGMENT_BYTES };
    let (mut appender, _) = Appender::open(&disk, options, None)?;
    let (mut spent, mut count) = (0, 0);
    while count < RECORDS {
        for _ in 0..batch {
            exchange(&mut slab, count, keys);
            count += 1;
        }
        let from = cpu();
        collector.take(|record| appender.push(record, 0))?;
        appender.commit()?;
        while collector.pending() > 0 {
            collector.free()?;
            collector.take(|record| appender.push(record, 0))?;
            appender.commit()?;
        }
        collector.free()?;
        spent += cpu() - from;
    }
    let _ = std::fs::remove_dir_all(&folder);
    Ok(spent as f64 / count as f64)
}

/// A node's ledger as it runs: the figures of [`PACED`].
#[expect(clippy::disallowed_methods, reason = "a paced load has a real clock")]
fn paced(
    home: &Home,
    rate: u64,
    seconds: u64,
    keys: u64,
) -> Result<[f64; 4], Box<dyn std::error::Error>> {
    let folder = home.disk.join(format!("paced-{rate}-{keys}"));
    let options = ledger::Options {
        state_dir: folder.clone(),
        slab_dir: Some(home.memory.clone()),
        runtime_dir: None,
        shards: 1,
        geometry: Geometry::default(),
        segment_bytes: segment::SEGMENT_BYTES,
        orphans: OrphanRule::ChargeNoted,
        clock: clock::now,
    };
    let mut opened = ledger::open(&options)?;
    let running = opened.ledger.start()?;
    let slab = opened.slabs.first_mut().ok_or("one slab")?;
    let (began, from) = (Instant::now(), (thread_cpu("ledger")?, thread_cpu("segments")?));
    let (mut count, mut busy) = (0, 0_u64);
    while began.elapsed() < Duration::from_secs(seconds) {
        let due = began.elapsed().as_micros() as u64 * rate / 1_000_000;
        while count < due {
            busy += u64::from(!exchange(slab, count, keys));
            count += 1;
        }
        std::thread::park_timeout(Duration::from_micros(500));
    }
    while running.gauges().records.load(Relaxed) < count - busy {
        std::thread::park_timeout(Duration::from_micros(500));
    }
    let spent = (thread_cpu("ledger")? - from.0, thread_cpu("segments")? - from.1);
    let commit_ns_max = running.gauges().commit_ns_max.load(Relaxed);
    drop(opened.slabs);
    running.finish()?;
    let _ = std::fs::remove_dir_all(&folder);
    let a_record = |ns: u64| ns as f64 / (count - busy) as f64;
    Ok([a_record(spent.0), a_record(spent.1), commit_ns_max as f64 / 1e6, busy as f64])
}

/// Nanoseconds a thread of this process has been on a core, by its name. It may just be starting.
fn thread_cpu(name: &str) -> Result<u64, Box<dyn std::error::Error>> {
    for _ in 0..1000 {
        for task in std::fs::read_dir("/proc/self/task")? {
            let task = task?.path();
            if std::fs::read_to_string(task.join("comm"))?.trim_end() == name {
                let text = std::fs::read_to_string(task.join("schedstat"))?;
                return Ok(text.split(' ').next().unwrap_or_default().parse()?);
            }
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    Err("no such thread".into())
}

fn cpu() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn io(source: std::io::Error) -> store::error::Error {
    store::error::Error::Io { what: "making the bench's folder", source }
}
