//! How long a hundred thousand keys take from the state store to a table that shards can ask: what
//! a start costs before it is ready. Every key has all limits, two budgets and an allow-list, and
//! all three of its accounts have been settled on.
//!
//! Each figure as the time it took and as CPU of all threads: on a machine with other work only the
//! second says what it costs. `cargo bench -p bench --bench keys`; one line a figure.

use rustix::time::{ClockId, clock_gettime};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;
use store::appender::Changes;
use store::balance::{Account, Total};
use store::frame::Stated;
use store::reader::Position;
use store::state::{Budget, KeyRow, Limits, Period, State};
use tollgate::control::keys::Keys;
use tollgate::exchange::time::UnixMs;
use tollgate::exchange::window;

const KEYS: u64 = 100_000;
const ROUNDS: usize = 11;

/// 2026-11-15T12:00:00Z: no window is near its end.
const NOW: UnixMs = UnixMs(1_794_744_000_000);

/// The folder of the store, gone with it.
struct Home(PathBuf);

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Criterion's own arguments are not ours.
    let place = |text: String| text.strip_prefix("in=").map(PathBuf::from);
    let again = std::env::args().skip(1).find_map(place);
    match again {
        Some(path) => start(&path),
        None => rounds(),
    }
}

/// Each round in a process of its own, as a start is: with a heap that nobody has used before.
fn rounds() -> Result<(), Box<dyn std::error::Error>> {
    let name = format!("tollgate-bench-keys-{}", std::process::id());
    let home = Home(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name));
    std::fs::create_dir_all(&home.0)?;
    let path = home.0.join("state.redb");
    fill(&State::open(&path, || 1)?)?;
    let mut steps: Vec<(String, Vec<[f64; 2]>)> = Vec::new();
    for _ in 0..ROUNDS {
        let mut again = Command::new(std::env::current_exe()?);
        let said = again.arg(format!("in={}", path.display())).output()?;
        for (n, line) in String::from_utf8(said.stdout)?.lines().enumerate() {
            let mut words = line.rsplitn(3, ' ');
            let mut figure = || words.next().and_then(|word| word.parse().ok());
            let (cpu, wall) = (figure().ok_or("no figure")?, figure().ok_or("no figure")?);
            if steps.len() == n {
                steps.push((words.next().unwrap_or_default().to_owned(), Vec::new()));
            }
            steps[n].1.push([wall, cpu]);
        }
    }
    for (what, rounds) in &steps {
        let median = |which: usize| {
            let mut all: Vec<f64> = rounds.iter().map(|round| round[which]).collect();
            all.sort_by(f64::total_cmp);
            format!("{:.1} ({:.1} to {:.1})", all[all.len() / 2], all[0], all[all.len() - 1])
        };
        say(&format!("{what}: {} ms, CPU {} ms, of {}", median(0), median(1), rounds.len()));
    }
    Ok(())
}

/// One start.
fn start(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let state = Arc::new(time("store opened", || State::open(path, || 1))?);
    let checkpoint = time("checkpoint with 300,000 totals read", || state.checkpoint())?;
    let balances = checkpoint.ok_or("no checkpoint")?.balances;
    let keys = time("100,000 keys loaded", || Keys::load(state.clone(), &balances, &[], NOW));
    let (keys, _) = keys?;
    time("windows prepared", || keys.prepare(NOW));
    assert_eq!(keys.table().len() as u64, KEYS);
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn time<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (began, cpu) = (Instant::now(), cpu_ms());
    let made = work();
    say(&format!("{what} {} {}", began.elapsed().as_secs_f64() * 1_000.0, cpu_ms() - cpu));
    made
}

#[expect(clippy::print_stdout, reason = "a bench says what it measured")]
fn say(line: &str) {
    println!("{line}");
}

fn cpu_ms() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 * 1_000.0 + spent.tv_nsec as f64 / 1_000_000.0
}

fn fill(state: &State) -> store::error::Result<()> {
    let mut rows: Vec<KeyRow> = (1..=KEYS).map(row).collect();
    state.write_keys(&mut rows)?;
    let month = window::Period::Month.window(NOW).id.0;
    let accounts = rows.iter().flat_map(|row| {
        let windows = row.budgets.iter().map(|budget| {
            let window = if budget.period == Period::Month { month } else { 0 };
            Account::window(budget.budget_id, window)
        });
        windows.chain([Account::key(row.id)])
    });
    let total = Total { exchanges: 9, cost_picousd: 12_345_678, ..Total::default() };
    let totals = accounts.map(|account| Stated { account, total }).collect();
    let position = Position { segment: 1, next_seq: 2, ..Position::default() };
    state.save(&Changes { position, slabs: Vec::new(), totals })
}

fn row(n: u64) -> KeyRow {
    let mut digest = [0; 32];
    // Spread over the stripes as digests are.
    let spread = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    digest[..8].copy_from_slice(&spread.to_be_bytes());
    digest[24..].copy_from_slice(&n.to_be_bytes());
    let budget = |period, limit_picousd| Budget { budget_id: 0, period, limit_picousd };
    KeyRow {
        digest,
        name: format!("team {} agent {n}", n % 97),
        prefix: "tg-abcdef".to_owned(),
        project_id: 4,
        strict: n.is_multiple_of(2),
        created_unix_ms: NOW.0,
        expires_unix_ms: Some(NOW.0 + 86_400_000),
        limits: Limits { requests_per_minute: Some(60), concurrent: Some(8), ..Limits::default() },
        budgets: vec![
            budget(Period::Total, 100_000_000_000_000),
            budget(Period::Month, 10_000_000_000_000),
        ],
        models: Some(vec!["gpt-4o*".to_owned(), "openai/o4-mini".to_owned()]),
        ..KeyRow::default()
    }
}
