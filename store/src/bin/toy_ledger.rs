//! A toy of the real thing, to be killed: one shard thread that opens, sends, prices and settles
//! exchanges as fast as it can, and a ledger thread that collects, commits and checkpoints. What
//! it says on its standard output is what a client would know: `P <id> <cost>` once the exchange
//! is priced, that is, once the last bytes of an answer may go out.
//!
//! `toy-ledger <folder> <folder on tmpfs> <seed> [recover]`; with `recover` it only recovers.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::appender::{Appender, Options};
use store::commit::Due;
use store::disk::Folder;
use store::ending::{Ending, Provenance};
use store::error::Result;
use store::lock::Lock;
use store::record::{Head, Window, flag};
use store::recover::recover;
use store::segment;
use store::slab::{Class, Collector, Files, Geometry, Opened, Slab, SlabId, Slot};
use store::state::State;
use store::tail::Tail;

/// Small, so that the shard meets a full slab now and then.
const GEOMETRY: Geometry = {
    const fn class(slot_bytes: u32, slots: u32) -> Class {
        Class { slot_bytes, slots }
    }
    Geometry { classes: [class(512, 256), class(1024, 8), class(2048, 4), class(4096, 2)] }
};

/// Small, so that segments come and go.
const SEGMENT_BYTES: u64 = 1 << 20;
const NODE: u64 = 0x70;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, memory, seed, rest @ ..] = &arguments[..] else {
        return Err("usage: toy-ledger <folder> <tmpfs folder> <seed> [recover]".into());
    };
    run(Path::new(folder), Path::new(memory), seed.parse()?, rest.is_empty())?;
    Ok(())
}

fn run(folder: &Path, memory: &Path, seed: u64, go_on: bool) -> Result<()> {
    let io = |source| store::error::Error::Io { what: "making the toy's folder", source };
    let disk = Folder::make(&folder.join("ledger")).map_err(io)?;
    let _lock = Lock::take(&folder.join("lock"))?;
    let state = State::open(&folder.join("state.redb"), || NODE)?;
    let checkpoint = state.checkpoint()?;
    let options = Options { node: NODE, segment_bytes: SEGMENT_BYTES };
    let (mut appender, _) = Appender::open(&disk, options, checkpoint.as_ref())?;
    let start = state.start(appender.start_max())?;
    let files = Files::make(memory, NODE)?;
    for id in files.list()? {
        if let Opened::Dead(dead) = files.open(id)? {
            recover(dead, &mut appender, 1, charge)?;
        }
    }
    save(&state, &mut appender)?;
    if !go_on {
        return Ok(());
    }
    let (slab, collector) = files.create(SlabId { shard: 1, start }, GEOMETRY)?;
    let over = Arc::new(AtomicBool::new(false));
    let shard_over = Arc::clone(&over);
    let shard = std::thread::spawn(move || serve(slab, start, seed, &shard_over));
    let ended = collect(collector, &mut appender, &state, &disk);
    over.store(true, Ordering::Release);
    shard.thread().unpark();
    ended
}

/// One pico-dollar for each token that was noted.
fn charge(head: &mut Head, _: &Tail<'_>) {
    head.provenance = Provenance::Estimated;
    head.cost_picousd = head.tokens.iter().map(|count| u64::from(*count)).sum();
    head.flags |= flag::CHARGED_NOTED;
}

fn save(state: &State, appender: &mut Appender<&Folder>) -> Result<()> {
    if let Some(changes) = appender.changes() {
        state.save(&changes)?;
        appender.saved();
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the toy's only clock; the store itself has none")]
fn collect(
    mut collector: Collector,
    appender: &mut Appender<&Folder>,
    state: &State,
    disk: &Folder,
) -> Result<()> {
    let began = Instant::now();
    let mut checkpoint_ns = 0;
    loop {
        let now_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        collector.take(|record| appender.push(record, now_ns))?;
        if appender.due(now_ns) == Due::Now {
            appender.commit()?;
            collector.free()?;
            if now_ns > checkpoint_ns + 60_000_000 {
                checkpoint_ns = now_ns;
                save(state, appender)?;
                // Keeps what is written between two kills; the others are taken over.
                segment::retire(disk, appender.position().segment.saturating_sub(8))?;
            }
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

fn serve(mut slab: Slab, start: u32, seed: u64, over: &AtomicBool) {
    let mut out = std::io::stdout();
    let mut chance = seed | 1;
    let mut count = 0_u64;
    let mut under_way: Vec<(Slot, Head, u8)> = Vec::new();
    while !over.load(Ordering::Acquire) {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        if under_way.len() < 24 {
            count += 1;
            let head = opened(start, count);
            let tail = Tail { model_asked: "toy", ..Tail::default() };
            match slab.open(&head, &tail) {
                Some(slot) => under_way.push((slot, head, 0)),
                // Busy: the collector is behind.
                None => std::thread::park_timeout(Duration::from_micros(200)),
            }
            continue;
        }
        let at = usize::try_from(chance >> 40).unwrap_or(0) % under_way.len();
        let (slot, mut head, step) = under_way.swap_remove(at);
        match step {
            0 => {
                slab.sent(&slot, &head);
                under_way.push((slot, head, 1));
            }
            1 => {
                slab.note(&slot, &[3, 0, 0, 0, 4, 0, 0, 0], count);
                under_way.push((slot, head, 2));
            }
            2 => {
                head.tokens = [3, 0, 0, 0, 5, 0, 0, 0];
                head.cost_picousd = 1_000 + count % 7;
                head.flags |= flag::PRICED;
                slab.price(&slot, &head);
                let id: String = head.request_id.iter().map(|byte| format!("{byte:02x}")).collect();
                let line = format!("P {id} {}\n", head.cost_picousd);
                if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
                    return;
                }
                under_way.push((slot, head, 3));
            }
            _ => {
                head.ending = Ending::Succeeded;
                slab.done(slot, &head);
            }
        }
    }
}

fn opened(start: u32, count: u64) -> Head {
    let mut head = Head { key_id: count % 5, hold_picousd: 2_000, ..Head::default() };
    let [from_start, from_count] = [u64::from(start).to_be_bytes(), count.to_be_bytes()];
    for (to, from) in head.request_id.iter_mut().zip(from_start.into_iter().chain(from_count)) {
        *to = from;
    }
    head.windows[0] = Window { budget_id: 1, window_id: 1 };
    head
}
