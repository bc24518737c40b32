use super::log::mend;
use super::slab::kind;
use super::{NODE, frame, header, key, log, record, slab};
use crate::appender::{Appender, Options};
use crate::disk::Disk;
use crate::disk::simulated::Simulated;
use crate::ending::{Ending, Provenance};
use crate::frame::HEAD_BYTES;
use crate::reader::Position;
use crate::record::{Head, Record, Window, flag};
use crate::segment::{self, FRAMES_FROM};
use crate::slab::fuzzed;
use crate::slab::tests::{ID, Memory, small};
use crate::state::{Budget, KeyRow, Limits, Period};
use crate::tail::{Labels, Tail};
use crate::wire::{Put, Wire};
use std::collections::BTreeMap;
use std::path::PathBuf;

type Seeds = BTreeMap<&'static str, Vec<u8>>;

fn folder(target: &str) -> PathBuf {
    PathBuf::from(format!("{}/fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR")))
}

/// What a test would have to wait for if it fell apart: seeds no target reads any more.
fn hold(target: &str, seeds: &Seeds, entry: impl Fn(&[u8]) -> bool) {
    for (name, seed) in seeds {
        let committed = std::fs::read(folder(target).join(name)).unwrap_or_default();
        assert!(*seed == committed, "{target}/{name}: a change of the format is a new version");
        assert_eq!(entry(seed), !name.ends_with("-damaged"), "{target}/{name}");
    }
    let files: Vec<_> = std::fs::read_dir(folder(target)).unwrap().collect();
    assert!(files.len() >= seeds.len() && seeds.len() > 1, "{target}");
    for file in files {
        entry(&std::fs::read(file.unwrap().path()).unwrap());
    }
}

fn exchange(key_id: u64) -> Head {
    let mut head = Head {
        key_id,
        status: 200,
        provenance: Provenance::Reported,
        flags: flag::PRICED,
        tokens: [10, 0, 0, 0, 20, 0, 0, 0],
        upstream_cost_picousd: 30,
        cost_picousd: 40,
        ending: Ending::Succeeded,
        ..Head::default()
    };
    head.windows[0] = Window { budget_id: 5, window_id: 6 };
    head
}

fn encoded(head: Head, tail: Tail<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Record { head, tail }.encode(2048, &mut bytes);
    bytes
}

fn tail() -> Tail<'static> {
    Tail {
        model_asked: "fable",
        model_sent: "fable-2026",
        trace_id: Some([0xCC; 16]),
        session: "s-1",
        end_user: "ü-1",
        labels: Labels::Given(&["a=1", "b=2"]),
        metadata: b"{}",
    }
}

#[test]
fn records_are_read_or_refused() {
    let mut seeds = Seeds::from([
        ("bare", encoded(Head::default(), Tail::default())),
        ("whole", encoded(exchange(1), tail())),
    ]);
    let mut damaged = encoded(exchange(1), tail());
    damaged.truncate(300);
    seeds.insert("short-damaged", damaged);
    hold("record", &seeds, record);
}

/// Two slabs, three commits, a segment that ends in between.
fn written() -> Simulated {
    let disk = Simulated::new(1 << 20, 1);
    let options = Options { node: NODE, segment_bytes: FRAMES_FROM + 1600 };
    let (mut appender, _) = Appender::open(&disk, options, None).unwrap();
    for (slab, settle_sequence) in [(1, 1), (2, 1), (1, 2)] {
        let head = Head { slab, settle_sequence, ..exchange(slab) };
        assert!(appender.push(&encoded(head, tail()), 0).unwrap());
        appender.commit().unwrap();
    }
    disk
}

/// Each segment's header, and its frames to the last whole one.
fn segments(disk: &Simulated) -> Vec<Vec<u8>> {
    let from = usize::try_from(FRAMES_FROM).unwrap();
    let segment = |ordinal| {
        let bytes = disk.bytes(&segment::name(ordinal)).unwrap();
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        let head = <segment::Header as Wire>::BYTES + 4;
        [&bytes[..head], &bytes[from..end.max(from).next_multiple_of(8)]].concat()
    };
    (1..=disk.names().unwrap().len() as u64).map(segment).collect()
}

#[test]
fn frames_are_read_or_refused() {
    let segments = segments(&written());
    let head = <segment::Header as Wire>::BYTES + 4;
    let whole = segments[1][head..].to_vec();
    let mut damaged = whole.clone();
    damaged[HEAD_BYTES] ^= 1;
    let seeds = Seeds::from([("whole", whole), ("length-damaged", damaged)]);
    hold("frame", &seeds, frame);
}

#[test]
fn headers_are_read_or_refused() {
    let segments = segments(&written());
    let header_of = |segment: &Vec<u8>| segment[..<segment::Header as Wire>::BYTES + 4].to_vec();
    let short = header_of(&segments[0])[..40].to_vec();
    let seeds = Seeds::from([
        ("first", header_of(&segments[0])),
        ("second", header_of(&segments[1])),
        ("short-damaged", short),
    ]);
    hold("header", &seeds, header);
}

fn script(flags: u8, position: Position, segments: &[Vec<u8>]) -> Vec<u8> {
    let mut script = vec![flags];
    script.extend(1_u64.to_le_bytes());
    let mut place = [0; <Position as Wire>::BYTES];
    position.put(&mut Put::new(&mut place));
    script.extend(place);
    for segment in segments {
        script.extend(u16::try_from(segment.len()).unwrap().to_le_bytes());
        script.extend(segment);
    }
    script
}

#[test]
fn logs_are_read_or_refused() {
    let disk = written();
    let segments = segments(&disk);
    assert_eq!(segments.len(), 2);
    let mut reader = crate::reader::Reader::first(&disk, NODE).unwrap();
    reader.next().unwrap().unwrap();
    let position = reader.position();
    let mut torn = segments.clone();
    let short = torn[1].len() - 200;
    torn[1].truncate(short);
    let mut hole = segments.clone();
    hole[0][300] ^= 1;
    let later = &segments[1..];
    let everything = mend::HEADERS | mend::SUMS | mend::CHAIN;
    let seeds = Seeds::from([
        ("as-written", script(0, position, &segments)),
        ("mended", script(everything, position, &segments)),
        ("settled-twice-damaged", script(everything, position, &[&segments[..], later].concat())),
        ("torn", script(mend::HEADERS, position, &torn)),
        ("hole-damaged", script(mend::HEADERS, Position::default(), &hole)),
        ("retired", script(mend::HEADERS | mend::SUMS, position, later)),
    ]);
    hold("log", &seeds, log);
}

/// The script of a slab with a slot in every state.
fn in_every_state() -> Vec<u8> {
    let memory = Memory::new();
    let (mut slab, mut collector) = memory.files().create(ID, small()).unwrap();
    assert!(slab.refuse(&exchange(9), &tail()));
    collector.take(|_| Ok(true)).unwrap();
    let open = slab.open(&exchange(1), &tail()).unwrap();
    let sent = slab.open(&exchange(2), &Tail { metadata: &[b'x'; 300], ..tail() }).unwrap();
    slab.sent(&sent, &exchange(2));
    slab.note(&sent, &[10, 0, 0, 0, 7, 0, 0, 0], 500);
    let priced = slab.open(&exchange(3), &tail()).unwrap();
    slab.price(&priced, &exchange(3));
    let done = slab.open(&exchange(4), &tail()).unwrap();
    slab.done(done, &exchange(4));
    drop((open, sent, priced));
    fuzzed::script(&std::fs::read(memory.0.join("slab-00003-0000000012")).unwrap(), small())
}

#[test]
fn slabs_are_recovered_collected_or_refused() {
    let file = in_every_state();
    let with = |flags: u8, mark: u64| [&[flags][..], &mark.to_le_bytes(), &file].concat();
    let seeds = Seeds::from([
        ("dead", with(0, 0)),
        ("dead-mended", with(kind::MENDED, 0)),
        ("half-known", with(kind::MENDED | kind::KNOWN, 1)),
        ("live", with(kind::LIVE, 0)),
        ("live-half-known", with(kind::MENDED | kind::LIVE, 1)),
        ("cut-damaged", with(kind::CUT, 0)),
    ]);
    let memory = Memory::new();
    hold("slab", &seeds, |data| slab(&memory.0, data));
}

#[test]
fn rows_of_keys_are_read_or_refused() {
    let row = KeyRow {
        digest: [7; 32],
        name: "key ü".to_owned(),
        prefix: "tg-abcdef".to_owned(),
        declared: true,
        expires_unix_ms: Some(99),
        limits: Limits { requests_per_minute: Some(0), ..Limits::default() },
        budgets: vec![Budget { budget_id: 3, period: Period::Month, limit_picousd: 10 }],
        models: Some(vec!["fable-*".to_owned()]),
        ..KeyRow::default()
    };
    let whole = row.encode().unwrap();
    let short = whole[..60].to_vec();
    let bare = KeyRow::default().encode().unwrap();
    let seeds = Seeds::from([("bare", bare), ("whole", whole), ("short-damaged", short)]);
    hold("key", &seeds, key);
}
