use super::*;
use crate::tail::Labels;
use proptest::prelude::*;

/// Every field different, so that two swapped ones show.
fn sample() -> Head {
    let window = |n: u32| Window { budget_id: 0x60 + n, window_id: 0x70 + n };
    let attempt = |n: u8| Attempt {
        provider_id: 0x0800 + u16::from(n),
        credential_id: 0x0900 + u16::from(n),
        candidate: 0xA0 + n,
        class: StatusClass::from_number(n + 1).expect("there are eleven"),
        possibly_billed: n % 2,
        reserved: 0,
    };
    Head {
        request_id: *b"0123456789abcdef",
        key_id: 0x1111_0000_0000_0001,
        team_id: 0x1212_0002,
        project_id: 0x1313_0003,
        route_id: 0x1404,
        provider_id: 0x1505,
        credential_id: 0x1606,
        status: 200,
        error_code: 0x1808,
        candidate: 0x19,
        attempts: 0x1A,
        fallbacks: 0x1B,
        provenance: Provenance::Estimated,
        mode: Mode::PlatformFee,
        ending: Ending::ClientLeft,
        release: Release::Rule,
        dialect: 0x1C,
        reserved: 0,
        flags: flag::PRICED | flag::STREAM,
        snapshot_version: 0x2020_0000_0000_0009,
        price_version: 0x2121_000A,
        markup_ppm: 1_200_000,
        opened_unix_ms: 1_700_000_000_000,
        closed_unix_ms: 1_700_000_001_234,
        tokens: [101, 102, 103, 104, 105, 106, 107, 108],
        request_bytes: 0x3030_0000_0000_000B,
        relayed_bytes: 0x3131_0000_0000_000C,
        upstream_cost_picousd: 0x3232_0000_0000_000D,
        cost_picousd: 0x3333_0000_0000_000E,
        hold_picousd: 0x3434_0000_0000_000F,
        overrun_picousd: 0x3535_0000_0000_0010,
        slab: 0x3636_0000_0000_0011,
        settle_sequence: 0x3737_0000_0000_0012,
        idempotency_digest: *b"ABCDEFGHIJKLMNOP",
        overhead_us: 0x3838_0013,
        first_content_us: 0x3939_0014,
        count: 1,
        upstream_us: 0x3A3A_0015,
        windows: [0, 1, 2, 3, 4, 5].map(window),
        listed: [0, 1, 2, 3, 4, 5].map(attempt),
    }
}

fn sample_tail() -> Tail<'static> {
    Tail {
        model_asked: "fable",
        model_sent: "fable-2026",
        trace_id: Some([0xCC; 16]),
        session: "s-1",
        end_user: "u-1",
        labels: Labels::Given(&["a=1", "b=2"]),
        metadata: b"{}",
    }
}

/// Sixteen bytes a line: a change of the format is a readable diff.
fn hex(bytes: &[u8]) -> String {
    let line = |line: &[u8]| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(16).map(|chunk| line(chunk) + "\n").collect()
}

#[test]
fn version_1_is_what_it_was() {
    let mut bytes = Vec::new();
    Record { head: sample(), tail: sample_tail() }.encode(512, &mut bytes);
    let golden = include_str!("../../tests/golden/record-v1.hex");
    assert_eq!(hex(&bytes), golden, "a change of the layout is a new version");
    let read = Record::decode(&bytes).expect("a record");
    assert_eq!(read, Record { head: sample(), tail: sample_tail() });
}

#[test]
fn the_notes_stand_where_the_encoding_puts_them() {
    let mut bytes = Vec::new();
    Record { head: sample(), tail: Tail::default() }.encode(512, &mut bytes);
    let tokens: Vec<u8> = sample().tokens.iter().flat_map(|count| count.to_le_bytes()).collect();
    assert_eq!(bytes[at::TOKENS..][..32], tokens);
    assert_eq!(bytes[at::RELAYED_BYTES..][..8], sample().relayed_bytes.to_le_bytes());
    let sequence = sample().settle_sequence.to_le_bytes();
    assert_eq!(bytes[at::SETTLE_SEQUENCE..][..8], sequence);
    // A slot puts its record four bytes after its state word: notes are single stores.
    assert_eq!((4 + at::TOKENS) % 4, 0);
    assert_eq!((4 + at::RELAYED_BYTES) % 8, 0);
}

#[test]
fn a_tail_without_room_is_cut_and_flagged() {
    let mut bytes = Vec::new();
    Record { head: sample(), tail: sample_tail() }.encode(340, &mut bytes);
    assert!(bytes.len() <= 340);
    let read = Record::decode(&bytes).expect("a record");
    assert!(read.head.has(flag::TAIL_CUT));
    assert_eq!(read.tail.model_asked, "fable");
    assert_eq!(Head { flags: sample().flags, ..read.head }, sample());
}

#[test]
fn bytes_that_are_no_record_are_a_value() {
    let mut whole = Vec::new();
    Record { head: sample(), tail: sample_tail() }.encode(512, &mut whole);
    for len in 0..whole.len() {
        assert_eq!(Record::decode(&whole[..len]).err(), Some(NotARecord::Short), "{len}");
    }
    let changed = |at: usize, to: u8| {
        let mut bytes = whole.clone();
        bytes[at] = to;
        Record::decode(&bytes).err()
    };
    assert_eq!(changed(0, 2), Some(NotARecord::Version(2)));
    assert_eq!(changed(1, 1), Some(NotARecord::Field));
    assert_eq!(changed(PRELUDE_BYTES + 47, 200), Some(NotARecord::Field));
    assert_eq!(changed(PRELUDE_BYTES + HEAD_BYTES, 99), Some(NotARecord::Tail));
    let long = [&whole[..], &[0]].concat();
    assert_eq!(Record::decode(&long).err(), Some(NotARecord::Long));
}

#[test]
fn attempts_beyond_the_list_are_counted() {
    let mut head = Head::default();
    for n in 0..10 {
        head.attempt(Attempt { candidate: n / 3, provider_id: n.into(), ..Attempt::default() });
        head.attempt_ended(StatusClass::Server, n == 1);
    }
    assert_eq!((head.attempts, head.fallbacks), (10, 3));
    assert_eq!((head.candidate, head.provider_id), (3, 9));
    let billed: Vec<u8> = head.listed.iter().map(|attempt| attempt.possibly_billed).collect();
    assert_eq!(billed, [0, 1, 0, 0, 0, 0]);
    assert_eq!(head.listed[5].class, StatusClass::Server);
}

/// The store's share of the case `time-backwards`.
#[test]
fn a_clock_that_went_back_makes_no_negative_duration() {
    let head = Head { opened_unix_ms: 3_600_000, closed_unix_ms: 5, ..Head::default() };
    assert_eq!(head.duration_ms(), 0);
    assert_eq!(sample().duration_ms(), 1234);
}

proptest! {
    #[test]
    fn any_bytes_are_a_record_or_none(
        at in 0_usize..600, to in any::<u8>(), keep in 0_usize..600,
    ) {
        let mut bytes = Vec::new();
        Record { head: sample(), tail: sample_tail() }.encode(512, &mut bytes);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = to;
        }
        bytes.truncate(keep);
        if let Ok(record) = Record::decode(&bytes) {
            let mut again = Vec::new();
            record.encode(RECORD_BYTES_MAX, &mut again);
            prop_assert_eq!(again, bytes);
        }
    }
}
