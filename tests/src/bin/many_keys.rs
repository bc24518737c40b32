//! `many-keys STATE_DIR SLAB_DIR KEYS [USED]`: the state of a node that has had many keys for a
//! while, for measurements of its start. Each key has every limit and two budgets; `USED` of them
//! (all, if it is not said) have settled one call, and the checkpoint holds three totals for each.
//!
//! Nobody has the keys' texts: what calls is declared by the configuration. The folder must be new;
//! the ledger in it is that of the code that ships, opened, kept and ended as `serve` does.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use store::ending::{Ending, Provenance};
use store::record::{Attempt, Head, Window, flag};
use store::segment;
use store::slab::{Geometry, Slab};
use store::state::{Budget, KeyRow, Limits, Period as Stored};
use store::tail::Tail;
use tollgate::control::keys::KeyText;
use tollgate::control::ledger::{self, Options};
use tollgate::exchange::rules::OrphanRule;
use tollgate::exchange::time::UnixMs;
use tollgate::exchange::window::Period;
use tollgate::shard::clock;

/// Rows written as one unit: a transaction of a hundred thousand keeps them all in memory.
const ROWS_AT_ONCE: usize = 10_000;

/// Wait while every slot is taken: the ledger's thread frees them all 20 ms.
const FULL: Duration = Duration::from_millis(5);

fn main() -> ExitCode {
    match make() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _unwritable = writeln!(io::stderr(), "many-keys: {error}").is_err();
            ExitCode::from(2)
        }
    }
}

fn make() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (state_dir, slab_dir, keys, used) = match &arguments[..] {
        [state_dir, slab_dir, keys] => (state_dir, slab_dir, keys, keys),
        [state_dir, slab_dir, keys, used] => (state_dir, slab_dir, keys, used),
        _ => return Err("usage: many-keys STATE_DIR SLAB_DIR KEYS [USED]".into()),
    };
    let keys: u32 = keys.parse().map_err(|_| "KEYS is a whole number")?;
    let used: usize = used.parse().map_err(|_| "USED is a whole number")?;
    let state_dir = PathBuf::from(state_dir);
    if state_dir.exists() {
        return Err(format!("{} is there already", state_dir.display()).into());
    }
    let options = Options {
        state_dir,
        slab_dir: Some(PathBuf::from(slab_dir)),
        runtime_dir: None,
        shards: 1,
        geometry: Geometry::default(),
        segment_bytes: segment::SEGMENT_BYTES,
        orphans: OrphanRule::default(),
        clock: clock::now,
    };
    let mut opened = ledger::open(&options)?;
    let now = clock::now().wall;
    let mut rows = (1..=keys).map(|n| row(n, now)).collect::<Result<Vec<_>, _>>()?;
    for rows in rows.chunks_mut(ROWS_AT_ONCE) {
        opened.state.write_keys(rows)?;
    }
    let mut slab = opened.slabs.pop().ok_or("a ledger without a slab")?;
    drop(opened.state);
    let running = opened.ledger.start()?;
    for (row, n) in rows.iter().take(used).zip(1..) {
        while !settle(&mut slab, &head(row, n, now)) {
            std::thread::park_timeout(FULL);
        }
    }
    // A slab that is still used would be left to the next start.
    drop(slab);
    running.finish()?;
    writeln!(io::stdout(), "{keys} keys with two budgets each, {used} with a settled call")?;
    Ok(())
}

fn row(n: u32, now: UnixMs) -> Result<KeyRow, Box<dyn Error>> {
    let text = KeyText::mint()?;
    let budget = |period, dollars: u64| Budget {
        budget_id: 0,
        period,
        limit_picousd: dollars * 1_000_000_000_000,
    };
    Ok(KeyRow {
        digest: text.digest(),
        name: format!("agent {n} of a large team"),
        prefix: text.prefix().to_owned(),
        created_unix_ms: now.0,
        expires_unix_ms: Some(now.0 + 365 * 24 * 3_600_000),
        limits: Limits {
            requests_per_minute: Some(600),
            concurrent: Some(32),
            ..Limits::default()
        },
        budgets: vec![budget(Stored::Total, 1000), budget(Stored::Month, 50)],
        models: Some(vec!["gpt-5*".to_owned(), "claude-*".to_owned()]),
        ..KeyRow::default()
    })
}

/// What one call of a key settled.
fn head(row: &KeyRow, n: u64, now: UnixMs) -> Head {
    let mut head = Head {
        key_id: row.id,
        status: 200,
        ending: Ending::Succeeded,
        provenance: Provenance::Reported,
        flags: flag::PRICED,
        opened_unix_ms: now.0,
        closed_unix_ms: now.0,
        tokens: [380, 0, 0, 0, 210, 0, 0, 0],
        upstream_cost_picousd: 515_000_000,
        cost_picousd: 515_000_000,
        hold_picousd: 2_139_250_000,
        ..Head::default()
    };
    // Ids of the node itself begin with the time: these can be nobody else's.
    for (to, from) in head.request_id.iter_mut().rev().zip(n.to_le_bytes()) {
        *to = from;
    }
    head.attempt(Attempt { provider_id: 1, credential_id: 1, ..Attempt::default() });
    for (place, budget) in head.windows.iter_mut().zip(&row.budgets) {
        let period = match budget.period {
            Stored::Month => Period::Month,
            Stored::Total | Stored::Day | Stored::Week => Period::Total,
        };
        *place = Window { budget_id: budget.budget_id, window_id: period.window(now).id.0 };
    }
    head
}

/// Whether there was a slot for it.
fn settle(slab: &mut Slab, head: &Head) -> bool {
    let tail = Tail { model_asked: "gpt-5-mini", model_sent: "gpt-5-mini", ..Tail::default() };
    let Some(slot) = slab.open(head, &tail) else { return false };
    slab.done(slot, head);
    true
}
