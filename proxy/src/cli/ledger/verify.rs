//! `ledger verify`: what of the log is proved, against what, and what is not in it yet.

use super::amounts::money;
use super::whole;
use crate::cli::counted::counted;
use crate::cli::output;
use crate::cli::place::{Home, Known, Place, unusable};
use crate::cli::{EXIT_FAILED, EXIT_OK};
use crate::control::desk;
use crate::control::ledger::slab_folders;
use crate::exchange::ids::RequestId;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::ending::Ending;
use store::error::Error;
use store::slab::{Files, Seen};
use store::verify::{Known as Reached, Report, examine};

/// Unrecovered slots that are listed one by one.
const LISTED_MAX: usize = 20;

/// What the log is held against.
enum Against {
    /// The checkpoint of a running server, or of the store.
    Checkpoint(u64),
    /// Nothing: whoever has it does not say.
    Nothing,
}

pub(super) fn run(place: &Place, json: bool) -> u8 {
    match prove(place, json) {
        Ok(code) => code,
        Err(why) => unusable(&why),
    }
}

fn prove(place: &Place, json: bool) -> Result<u8, String> {
    let home = place.home()?;
    let known = home.known(None)?;
    let (position, against) = match &known {
        Known::Server(answer) => {
            let at = desk::position_of(&answer["checkpointed"]);
            let seq = at.map_or(0, |at| at.next_seq.saturating_sub(1));
            (at, Against::Checkpoint(seq))
        }
        Known::Store(store) => {
            let at = store.checkpoint.as_ref().map(|known| known.position);
            let seq = at.map_or(0, |at| at.next_seq.saturating_sub(1));
            (at, Against::Checkpoint(seq))
        }
        Known::Nobody => (None, Against::Nothing),
    };
    let balances = match &known {
        Known::Store(store) => store.checkpoint.as_ref().map(|known| &known.balances),
        Known::Server(_) | Known::Nobody => None,
    };
    let mut report = Report::default();
    // No segment is ever given up yet: the log begins with its first record.
    let reached = Reached { position, balances, first_seq: 1 };
    let proved = examine(&home.log, home.node, reached, &mut report);
    let (unrecovered, unread) = match known {
        // A running server's slots are its own.
        Known::Server(_) => (Vec::new(), false),
        Known::Store(_) | Known::Nobody => unrecovered(&home),
    };
    if json {
        output::say(&as_json(&home, &report, &proved, &against, &unrecovered).to_string());
    } else {
        lines(&home, &report, &proved, &against, &unrecovered).iter().for_each(|l| output::say(l));
    }
    if let Err(error) = &proved {
        let first = unproved(&report);
        let what = format!("{error}; from record {first} on nothing is proved");
        output::tell(&format!("tollgate: the ledger is damaged: {what}"));
        return Ok(EXIT_FAILED);
    }
    Ok(if unread { EXIT_FAILED } else { EXIT_OK })
}

/// The first record that a damaged log does not vouch for.
fn unproved(report: &Report) -> u64 {
    report.last_seq + 1
}

/// Exchanges in slabs of dead processes, which the next start settles; and whether some slab could
/// not be read.
fn unrecovered(home: &Home) -> (Vec<Seen>, bool) {
    let (mut seen, mut unread) = (Vec::new(), false);
    for folder in slab_folders(&home.state_dir, home.node).iter().filter(|f| f.is_dir()) {
        match Files::make(folder, home.node).and_then(|files| files.unrecovered()) {
            Ok(found) => seen.extend(found),
            // None seen is not none there.
            Err(error) => {
                let what = "slabs cannot be read, so what is unrecovered is not all";
                output::tell(&format!("warning: {}: {what}: {error}", folder.display()));
                unread = true;
            }
        }
    }
    (seen, unread)
}

fn endings(report: &Report) -> BTreeMap<&'static str, u64> {
    let named = |(number, count): (&u8, &u64)| {
        (Ending::from_number(*number).map_or("?", Ending::name), *count)
    };
    report.endings.iter().map(named).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn as_json(
    home: &Home,
    report: &Report,
    proved: &Result<(), Error>,
    against: &Against,
    unrecovered: &[Seen],
) -> Value {
    let slots: Vec<Value> = unrecovered
        .iter()
        .map(|slot| {
            json!({
                "request_id": RequestId(slot.head.request_id).to_string(),
                "key_id": slot.head.key_id,
                "state": slot.state.name(),
                "hold_picousd": slot.head.hold_picousd,
            })
        })
        .collect();
    let fault = proved.as_ref().err();
    let place = fault.and_then(|error| match error {
        Error::Damaged { place, .. } => {
            Some(json!({"segment": place.segment, "offset": place.offset}))
        }
        _ => None,
    });
    json!({
        "sound": fault.is_none(),
        "fault": fault.map(ToString::to_string),
        "fault_at": place,
        "first_unproved_seq": fault.map(|_| unproved(report)),
        "state_dir": home.state_dir.display().to_string(),
        "node": format!("{:016x}", home.node),
        "segments": report.segments,
        "frames": report.frames,
        "first_seq": report.first_seq,
        "last_seq": report.last_seq,
        "chain": hex(&report.chain),
        "torn": report.torn.map(|at| json!({"segment": at.segment, "offset": at.offset})),
        "checkpoint_seq": match against {
            Against::Checkpoint(seq) => Value::from(*seq),
            Against::Nothing => Value::Null,
        },
        "checkpoint_totals": report.checkpoint_totals,
        "endings": endings(report),
        "exchanges": report.sum.exchanges,
        "cost_picousd": whole(report.sum.cost_picousd),
        "upstream_cost_picousd": whole(report.sum.upstream_cost_picousd),
        "overrun_picousd": whole(report.sum.overrun_picousd),
        "unrecovered": slots,
    })
}

fn lines(
    home: &Home,
    report: &Report,
    proved: &Result<(), Error>,
    against: &Against,
    unrecovered: &[Seen],
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |word: &str, value: String| lines.push(format!("{word:<12}{value}"));
    line("ledger", format!("{}, node {:016x}", home.state_dir.display(), home.node));
    let Report { segments, frames, first_seq, last_seq, .. } = report;
    let records = format!("records {first_seq} to {last_seq}");
    let (segments, frames) = (counted(*segments, "segment"), counted(*frames, "frame"));
    line("read", format!("{segments}, {frames}, {records}"));
    if proved.is_ok() {
        line("chain", format!("whole, to {}", hex(&report.chain)));
        line("records", "each readable, no settle sequence missing or twice".to_owned());
        line("totals", "every stated total is the sum of its records".to_owned());
        line("checkpoint", checkpoint(report, against));
    }
    if let Some(at) = report.torn {
        let place = format!("segment {} at byte {}", at.segment, at.offset);
        let what = "a write that never finished, or a last frame that is damaged";
        line("torn", format!("{place}: {what}"));
    }
    let named = endings(report).into_iter().map(|(name, count)| format!("{name} {count}"));
    line("endings", named.collect::<Vec<_>>().join(", "));
    let sum = &report.sum;
    let (cost, upstream) = (money(sum.cost_picousd), money(sum.upstream_cost_picousd));
    line("cost", format!("{cost}, upstream {upstream}, overrun {}", money(sum.overrun_picousd)));
    if endings(report).contains_key("orphaned") {
        line("orphans", "tollgate ledger tail --ending orphaned lists them".to_owned());
    }
    line(
        "unrecovered",
        match unrecovered.len() {
            0 => "none".to_owned(),
            n => {
                let exchanges = counted(n as u64, "exchange");
                format!("{exchanges} of a dead process; the next start settles what is there")
            }
        },
    );
    for slot in unrecovered.iter().take(LISTED_MAX) {
        let id = RequestId(slot.head.request_id);
        line("", format!("{id}, key_{}, {}", slot.head.key_id, slot.state.name()));
    }
    if unrecovered.len() > LISTED_MAX {
        line("", format!("and {} more: --json lists all", unrecovered.len() - LISTED_MAX));
    }
    lines
}

fn checkpoint(report: &Report, against: &Against) -> String {
    match against {
        Against::Checkpoint(0) => "none yet".to_owned(),
        Against::Checkpoint(seq) => {
            let totals = if report.checkpoint_totals { ", and its totals agree" } else { "" };
            format!("record {seq} is there{totals}")
        }
        Against::Nothing => "not asked: another process has the state store".to_owned(),
    }
}
