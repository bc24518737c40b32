use super::*;
use crate::record::{Head, Record};
use crate::tail::Tail;

fn batch() -> Batch {
    let mut batch = Batch::default();
    for n in 1..=2_u64 {
        let head = Head { key_id: n, cost_picousd: 100 * n, ..Head::default() };
        let tail = Tail { model_asked: "m", ..Tail::default() };
        let mut record = Vec::new();
        Record { head, tail }.encode(512, &mut record);
        assert!(batch.push(&record));
    }
    batch
}

const SLABS: [SlabMark; 1] = [SlabMark { slab: 0x0102_0304, settle_sequence: 77 }];

fn stated() -> [Stated; 2] {
    let total = |n| Total { exchanges: n, cost_picousd: 100, ..Total::default() };
    [
        Stated { account: Account::key(1), total: total(1) },
        Stated { account: Account::window(5, 6), total: total(2) },
    ]
}

/// Sixteen bytes a line: a change of a format is a readable diff.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let line = |line: &[u8]| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(16).map(|chunk| line(chunk) + "\n").collect()
}

#[test]
fn version_2_is_what_it_was() {
    let mut batch = batch();
    let sealed = batch.seal(41, &[0xAB; 32], &SLABS, &stated());
    let golden = include_str!("../../tests/golden/frame-v2.hex");
    assert_eq!(hex(sealed.bytes()), golden, "a change of the layout is a new version");
}

#[test]
fn version_1_is_still_read() {
    let golden = include_str!("../../tests/golden/frame-v1.hex");
    let digits: Vec<char> = golden.chars().filter(char::is_ascii_hexdigit).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16).unwrap();
    let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
    let frame = Frame::read(&bytes).expect("a frame");
    assert_eq!((frame.head.version, frame.head.first_seq, frame.head.next_seq()), (1, 41, 43));
    assert!(frame.slabs().eq(SLABS) && frame.totals().eq(stated()));
}

#[test]
fn everything_comes_back() {
    let mut batch = batch();
    let sealed = batch.seal(41, &[0xAB; 32], &SLABS, &stated());
    let frame = Frame::read(sealed.bytes()).expect("a frame");
    assert_eq!((frame.head.first_seq, frame.head.next_seq()), (41, 43));
    assert_eq!(frame.head.previous, [0xAB; 32]);
    let keys: Vec<(u64, u64)> = frame
        .records()
        .map(|(seq, record)| (seq, Record::decode(record).expect("a record").head.key_id))
        .collect();
    assert_eq!(keys, [(41, 1), (42, 2)]);
    assert!(frame.slabs().eq(SLABS));
    assert!(frame.totals().eq(stated()));
}

#[test]
fn a_frame_sealed_again_is_the_same_frame() {
    let mut batch = batch();
    let first = batch.seal(41, &[0; 32], &SLABS, &stated()).bytes().to_vec();
    let again = batch.seal(41, &[0; 32], &SLABS, &stated()).bytes().to_vec();
    assert_eq!(first, again);
    batch.clear();
    assert_eq!((batch.records(), batch.record_bytes()), (0, 0));
}

#[test]
fn every_flipped_bit_and_every_missing_byte_shows() {
    let mut batch = batch();
    let whole = batch.seal(41, &[0; 32], &SLABS, &stated()).bytes().to_vec();
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            assert!(Frame::read(&bytes).is_err(), "byte {at} bit {bit}");
        }
        assert!(Frame::read(&whole[..at]).is_err(), "{at}");
    }
}

#[test]
fn a_head_beyond_the_bounds_of_a_frame_is_none() {
    let mut batch = batch();
    let sealed = batch.seal(41, &[0; 32], &SLABS, &stated());
    let head = FrameHead::read(sealed.bytes()).unwrap();
    let reads = |head: FrameHead| {
        let mut bytes = [0; HEAD_BYTES];
        head.put(&mut Put::new(&mut bytes));
        FrameHead::read(&bytes) == Some(head)
    };
    let many = |most: usize| u16::try_from(most).unwrap();
    for (records, slabs, totals) in [(RECORDS_MAX, 1, 1), (1, SLABS_MAX, 1), (1, 1, ACCOUNTS_MAX)] {
        let most = [records, slabs, totals].map(many);
        let [records, slabs, totals] = most;
        assert!(reads(FrameHead { records, slabs, totals, ..head }));
        let [records, slabs, totals] = most.map(|most| if most > 1 { most + 1 } else { most });
        assert!(!reads(FrameHead { records, slabs, totals, ..head }));
    }
    // The sequence of the record after the last has to be one, too.
    assert!(reads(FrameHead { first_seq: u64::MAX - 2, ..head }));
    assert!(!reads(FrameHead { first_seq: u64::MAX - 1, ..head }));
}

#[test]
fn the_last_sequences_there_are_can_be_read() {
    let mut batch = batch();
    let sealed = batch.seal(u64::MAX - 2, &[0; 32], &SLABS, &stated());
    let frame = Frame::read(sealed.bytes()).expect("a frame");
    let sequences: Vec<u64> = frame.records().map(|(seq, _)| seq).collect();
    assert_eq!(sequences, [u64::MAX - 2, u64::MAX - 1]);
}

#[test]
fn a_batch_has_its_bounds() {
    let mut batch = Batch::default();
    assert!(!batch.push(&vec![0; RECORD_BYTES_MAX + 1]));
    while batch.push(&vec![0; RECORD_BYTES_MAX]) {}
    assert!(batch.is_full() && batch.record_bytes() >= RECORD_BYTES_DUE);
    let sealed = batch.seal(1, &[0; 32], &[SlabMark::default(); SLABS_MAX], &[]);
    assert!(sealed.bytes().len() <= FRAME_BYTES_MAX);
    let mut small = Batch::default();
    while small.push(&[]) {}
    assert_eq!(usize::from(small.records()), RECORDS_MAX);
}
