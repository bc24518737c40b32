//! `kill -9` at random points: every exchange that was priced before the kill, that is, every
//! answer a client may have whole, has exactly one record with exactly that cost; nothing comes
//! twice; totals are the sums; the next start needs no help; no slot is left behind.
//!
//! Ten kills; `TOLLGATE_KILLS` for more.

#![cfg(test)]

use std::collections::HashMap;
use std::fmt::Write;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use store::balance::Account;
use store::disk::Folder;
use store::ending::Ending;
use store::query;
use store::record::Record;
use store::slab::Files;
use store::state::State;
use store::verify::verify;

const NODE: u64 = 0x70;

/// Both folders of the toy, gone with it.
struct Home {
    disk: PathBuf,
    memory: PathBuf,
}

impl Home {
    fn new() -> Home {
        let name = format!("toy-{}", std::process::id());
        let disk = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&name);
        std::fs::create_dir_all(&disk).unwrap();
        Home { disk, memory: PathBuf::from("/dev/shm").join(name) }
    }

    fn ledger(&self) -> Folder {
        Folder::make(&self.disk.join("ledger")).unwrap()
    }

    fn toy(&self, seed: u64) -> Command {
        let mut toy = Command::new(env!("CARGO_BIN_EXE_toy-ledger"));
        toy.arg(&self.disk).arg(&self.memory).arg(seed.to_string());
        toy
    }
}

/// What clients were told, and what the log says.
#[derive(Default)]
struct Told {
    priced: HashMap<String, u64>,
    records: HashMap<String, (u64, Ending)>,
    next_seq: u64,
}

impl Told {
    /// Reads on in the log, before its oldest segments are taken over.
    fn read(&mut self, home: &Home) {
        let records = &mut self.records;
        let each = |_: u64, _: &[u8], record: &Record<'_>| {
            let mut id = String::new();
            for byte in record.head.request_id {
                write!(id, "{byte:02x}").unwrap();
            }
            let booked = (record.head.cost_picousd, record.head.ending);
            assert!(records.insert(id, booked).is_none(), "settled twice");
            true
        };
        self.next_seq = query::scan(&home.ledger(), NODE, self.next_seq, each).unwrap();
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.disk);
        let _ = std::fs::remove_dir_all(&self.memory);
    }
}

#[expect(clippy::disallowed_methods, reason = "how often is the caller's choice")]
fn kills() -> u64 {
    std::env::var("TOLLGATE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10)
}

/// Runs until it has said `lines` lines, kills it, and returns all it said.
fn run_and_kill(home: &Home, seed: u64, lines: u64, told: &mut HashMap<String, u64>) {
    let mut child = home.toy(seed).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    for line in 0..lines {
        let read = out.read_line(&mut text).unwrap();
        assert!(read > 0, "it ended by itself after {line} lines: {:?}", child.wait());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it had said before it died.
    out.read_to_string(&mut text).unwrap();
    for line in text.lines() {
        let mut words = line.split(' ');
        let (Some("P"), Some(id), Some(cost)) = (words.next(), words.next(), words.next()) else {
            panic!("{line}");
        };
        assert!(told.insert(id.to_owned(), cost.parse().unwrap()).is_none(), "{id} twice");
    }
}

#[test]
fn every_priced_exchange_has_exactly_one_record() {
    let home = Home::new();
    let mut told = Told { next_seq: 1, ..Told::default() };
    let mut chance = 0x5EED_u64;
    for round in 0..kills() {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        // From the first settled ones to several commits and checkpoints.
        run_and_kill(&home, round, 1 + (chance >> 33) % 4000, &mut told.priced);
        told.read(&home);
    }
    assert!(home.toy(0).arg("recover").status().unwrap().success(), "starts without help");

    told.read(&home);
    let disk = home.ledger();
    let state = State::open(&home.disk.join("state.redb"), || 0).unwrap();
    let checkpoint = state.checkpoint().unwrap().expect("it was written");
    let report = verify(&disk, NODE, Some(checkpoint.position)).unwrap();
    assert_eq!(report.last_seq + 1, told.next_seq);
    let (mut orphans, mut unknown, mut cost) = (0, 0, 0);
    for (id, (booked, ending)) in &told.records {
        cost += u128::from(*booked);
        let priced = told.priced.remove(id);
        match ending {
            Ending::Orphaned => {
                orphans += 1;
                assert_eq!(priced, None, "{id} was priced");
            }
            // The process may have died between PRICED and saying so.
            Ending::Unknown => unknown += 1,
            _ => assert!(priced.is_some(), "{id} was settled without a client"),
        }
        assert!(priced.is_none_or(|priced| priced == *booked), "{id}");
    }
    assert!(told.priced.is_empty(), "{} answers have no record", told.priced.len());
    assert!(orphans > 0 && unknown > 0, "kills hit every state: {orphans}, {unknown}");
    let window = Account::window(1, 1);
    assert_eq!(checkpoint.balances.total(window).cost_picousd, cost);
    assert!(Files::make(&home.memory, NODE).unwrap().list().unwrap().is_empty());
}
