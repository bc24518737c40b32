//! An exchange's life in a slab, as a shard leads it, and where slabs and logs of a measurement
//! are.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use store::ending::{Ending, Provenance};
use store::record::{Attempt, Head, Window, flag};
use store::slab::Slab;
use store::tail::Tail;

/// Nearly every record of a batch states totals of its own: the dearest case.
pub(crate) const MANY_KEYS: u64 = 1000;

/// Of the homes of this process, each has its own number: tests run side by side.
static HOMES: AtomicU32 = AtomicU32::new(0);

/// Folders of one owner alone, gone with it.
pub(crate) struct Home {
    pub(crate) disk: PathBuf,
    pub(crate) memory: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Home {
        let number = HOMES.fetch_add(1, Ordering::Relaxed);
        let name = format!("tollgate-bench-{}-{number}", std::process::id());
        let disk = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&name);
        Home { disk, memory: PathBuf::from("/dev/shm").join(name) }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.disk);
        let _ = std::fs::remove_dir_all(&self.memory);
    }
}

/// A key with a total and a monthly budget: three accounts a record.
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

/// One whole call: open, sent, priced, done. `false`: no slot was free.
pub(crate) fn exchange(slab: &mut Slab, count: u64, keys: u64) -> bool {
    let mut head = head(count, keys);
    let Some(slot) = slab.open(&head, &TAIL) else { return false };
    head.attempt(Attempt { provider_id: 1, credential_id: 1, ..Attempt::default() });
    slab.sent(&slot, &head);
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
