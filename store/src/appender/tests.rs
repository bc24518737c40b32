use super::*;
use crate::balance::Total;
use crate::disk::simulated::{Faults, Simulated};
use crate::ending::Ending;
use crate::error::Damage;
use crate::query;
use crate::record::{Head, Record, Window};
use crate::tail::Tail;
use crate::verify::{Known, Report, examine, verify};

const OPTIONS: Options = Options { node: 7, segment_bytes: 16 * 1024 };

fn record(seq: u64) -> Vec<u8> {
    let mut head = Head {
        key_id: seq % 3,
        cost_picousd: seq,
        upstream_cost_picousd: seq,
        slab: 1,
        settle_sequence: seq,
        ending: Ending::Succeeded,
        ..Head::default()
    };
    head.windows[0] = Window { budget_id: 1, window_id: 1 };
    let mut bytes = Vec::new();
    Record { head, tail: Tail::default() }.encode(512, &mut bytes);
    bytes
}

fn fill(appender: &mut Appender<&Simulated>, from: u64, commits: u64) {
    for n in 0..commits {
        for seq in [from + 2 * n, from + 2 * n + 1] {
            assert!(appender.push(&record(seq), 0).unwrap());
        }
        appender.commit().unwrap();
    }
}

fn open<'d>(
    disk: &'d Simulated,
    checkpoint: Option<&Checkpoint>,
) -> (Appender<&'d Simulated>, Opened) {
    Appender::open(disk, OPTIONS, checkpoint).unwrap()
}

#[test]
fn a_log_goes_on_where_it_ended_over_many_segments() {
    let disk = Simulated::new(1 << 20, 1);
    let (mut appender, opened) = open(&disk, None);
    assert_eq!(opened, Opened { replayed: 0, end: End::Clean });
    fill(&mut appender, 1, 40);
    let (position, balances) = (appender.position(), appender.balances().clone());
    assert!(position.segment > 2);
    let (mut appender, opened) = open(&disk, None);
    assert_eq!((opened.replayed, appender.position()), (80, position));
    assert_eq!(appender.balances(), &balances);
    assert_eq!(appender.settled(1), 80);
    let checkpoint = appender.checkpoint().unwrap();
    fill(&mut appender, 81, 3);
    let (appender, opened) = open(&disk, Some(&checkpoint));
    assert_eq!((opened.replayed, appender.settled(1)), (6, 86));
    let report = verify(&disk, 7, Some(appender.position())).unwrap();
    assert_eq!((report.first_seq, report.last_seq, report.torn), (1, 86, None));
    assert_eq!(report.sum.cost_picousd, (1..=86).sum());
}

#[test]
fn a_failed_write_or_sync_closes_the_segment_and_the_next_says_where_it_ended() {
    for (sync, write, short) in [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 2, 1)] {
        let disk = Simulated::new(1 << 20, 3);
        let (mut appender, _) = open(&disk, None);
        fill(&mut appender, 1, 2);
        let segment = appender.position().segment;
        disk.arm(Faults { sync_fails_at: sync, write_fails_at: write, short_write_at: short });
        assert!(appender.push(&record(5), 0).unwrap());
        let failed = appender.commit().is_err();
        assert_eq!(failed, short == 0 || write > 0, "a short write alone goes on");
        if failed {
            assert_eq!((appender.health(), appender.pending()), (Health::Failing, 1));
            assert!(appender.checkpoint().is_none());
            // The batch grows meanwhile: the first attempt's frame is not the second's.
            assert!(appender.push(&record(6), 0).unwrap());
            assert_eq!(appender.commit().unwrap().first_seq, 5);
            assert_eq!(appender.position().segment, segment + 1);
            assert_eq!(appender.health(), Health::Good);
        }
        let position = appender.position();
        disk.cut_power();
        let (appender, _) = open(&disk, None);
        assert_eq!(appender.position(), position);
        verify(&disk, 7, Some(position)).unwrap();
    }
}

#[test]
fn a_failure_at_any_step_of_a_rotation_is_survived() {
    for sync in 1..6 {
        for write in 0..4 {
            let disk = Simulated::new(1 << 20, 5);
            let (mut appender, _) = open(&disk, None);
            fill(&mut appender, 1, 14);
            let before = appender.position();
            disk.arm(Faults { sync_fails_at: sync, write_fails_at: write, short_write_at: 0 });
            let mut seq = 29;
            while appender.position().segment < before.segment + 2 {
                assert!(appender.push(&record(seq), 0).unwrap());
                seq += 1;
                // Each failure closes a segment or leaves none; the next commit goes on.
                let _ = appender.commit();
            }
            appender.commit().unwrap();
            let report = verify(&disk, 7, Some(appender.position())).unwrap();
            assert_eq!(report.last_seq, seq - 1, "sync {sync} write {write}");
            let (again, _) = open(&disk, None);
            assert_eq!(again.position(), appender.position());
        }
    }
}

/// The store's share of the case `st-disk-full`.
/// Nobody gets there by writing; a damaged header does.
#[test]
fn numbers_that_are_used_up_are_an_error() {
    for (ordinal, first_seq) in [(1, u64::MAX), (u64::MAX, 1)] {
        let disk = Simulated::new(1 << 20, 1);
        let header = segment::Header::new(7, ordinal, first_seq, 0, [0; 32]);
        segment::begin(&disk, &header, 4096).unwrap();
        let (mut appender, _) = open(&disk, None);
        for _ in 0..2 {
            assert!(appender.push(&record(1), 0).unwrap());
            assert!(appender.commit().is_err(), "{ordinal} {first_seq}");
        }
        assert_eq!(disk.names().unwrap(), [segment::name(ordinal)]);
    }
}

#[test]
fn a_record_is_read_whole_before_it_is_taken() {
    let disk = Simulated::new(1 << 20, 1);
    let (mut appender, _) = open(&disk, None);
    let head = Head { slab: 1, settle_sequence: 1, ..Head::default() };
    let tail = Tail { model_asked: "model", ..Tail::default() };
    let mut bytes = Vec::new();
    Record { head, tail }.encode(512, &mut bytes);
    let last = bytes.len() - 1;
    bytes[last] = 0xFF;
    // In the log it would stand between every reader and what comes after it.
    assert!(matches!(appender.push(&bytes, 0), Err(Error::Slab(_))));
    assert_eq!((appender.pending(), appender.settled(1)), (0, 0));
}

#[test]
fn a_full_disk_is_a_state_that_ends_when_there_is_room() {
    let disk = Simulated::new(40_000, 1);
    let (mut appender, _) = open(&disk, None);
    let mut seq = 0;
    let error = loop {
        seq += 1;
        assert!(appender.push(&record(seq), 0).unwrap());
        if let Err(error) = appender.commit() {
            break error;
        }
    };
    assert!(error.is_full());
    assert_eq!(appender.health(), Health::Full);
    for more in 1..100 {
        assert!(appender.push(&record(seq + more), 0).unwrap());
    }
    assert!(appender.commit().is_err());
    disk.resize(1 << 20);
    assert_eq!(appender.commit().unwrap().records, 100);
    assert_eq!(appender.health(), Health::Good);
    let report = verify(&disk, 7, Some(appender.position())).unwrap();
    assert_eq!(report.sum.cost_picousd, u128::from((1..=seq + 99).sum::<u64>()));
}

#[test]
fn a_log_that_ends_below_its_checkpoint_is_an_alarm() {
    let disk = Simulated::new(1 << 20, 1);
    let (mut appender, _) = open(&disk, None);
    fill(&mut appender, 1, 20);
    let checkpoint = appender.checkpoint().unwrap();
    let name = segment::name(checkpoint.position.segment);
    let whole = disk.bytes(&name).unwrap();
    let end = usize::try_from(checkpoint.position.offset).unwrap();
    for cut in [end - 1, end - 100, 4096, 0] {
        disk.damage(&name, |bytes| bytes.truncate(cut));
        let opened = Appender::open(&disk, OPTIONS, Some(&checkpoint));
        match opened.err() {
            Some(Error::BelowCheckpoint { log, checkpoint: 40 }) => assert!(log < 40),
            Some(Error::Damaged { damage: Damage::Header, .. }) if cut == 0 => {}
            other => panic!("cut at {cut}: {other:?}"),
        }
        disk.damage(&name, |bytes| bytes.clone_from(&whole));
    }
    let known = Some(checkpoint.position);
    disk.damage(&name, |bytes| bytes.truncate(end - 1));
    assert!(matches!(verify(&disk, 7, known), Err(Error::BelowCheckpoint { .. })));
    disk.remove(&name).unwrap();
    let opened = Appender::open(&disk, OPTIONS, Some(&checkpoint));
    assert!(matches!(opened.err(), Some(Error::BelowCheckpoint { .. })));
    for name in disk.names().unwrap() {
        disk.remove(&name).unwrap();
    }
    let opened = Appender::open(&disk, OPTIONS, Some(&checkpoint));
    assert!(matches!(opened.err(), Some(Error::BelowCheckpoint { log: 0, .. })));
}

#[test]
fn old_frames_of_a_recycled_segment_are_never_served() {
    let disk = Simulated::new(1 << 20, 1);
    let (mut appender, _) = open(&disk, None);
    let mut seq = 1;
    let mut recycled = 0;
    while recycled < 6 {
        fill(&mut appender, seq, 1);
        seq += 2;
        let at = appender.position();
        // Keeps two segments: the others are taken over with all their frames in them.
        recycled += segment::retire(&disk, at.segment.saturating_sub(2)).unwrap();
        let mut reader = Reader::first(&disk, 7).unwrap();
        while reader.next().unwrap().is_some() {}
        assert_eq!((reader.position(), reader.end()), (at, Some(End::Clean)));
    }
    let taken_over = disk.bytes(&segment::name(appender.position().segment)).unwrap();
    let magics = taken_over.windows(4).filter(|four| *four == *b"TLF1").count();
    assert!(magics > 2, "the test needs old frames behind the end");
    let (again, opened) = open(&disk, None);
    assert_eq!((again.position(), opened.end), (appender.position(), End::Clean));
    let report = verify(&disk, 7, Some(again.position())).unwrap();
    assert_eq!(report.last_seq, seq - 1);
    assert!(report.first_seq > 1);
    // Whoever knows that nothing was given up sees that the beginning is gone.
    let known = Known { first_seq: 1, ..Known::default() };
    let gone = examine(&disk, 7, known, &mut Report::default()).unwrap_err();
    let missing = matches!(gone, Error::Damaged { damage: Damage::MissingSegment, .. });
    assert!(missing, "{gone}");
}

#[test]
fn a_torn_tail_ends_the_log_and_is_written_over() {
    let disk = Simulated::new(1 << 20, 1);
    let (mut appender, _) = open(&disk, None);
    fill(&mut appender, 1, 2);
    let before = appender.position();
    fill(&mut appender, 5, 1);
    let name = segment::name(1);
    let whole = disk.bytes(&name).unwrap();
    let (from, to) = (before.offset as usize, appender.position().offset as usize);
    for cut in from..to {
        disk.damage(&name, |bytes| bytes[cut..to].fill(0));
        let (mut appender, opened) = open(&disk, None);
        assert_eq!((appender.position(), opened.replayed), (before, 4), "{cut}");
        if cut > from + 16 {
            assert_eq!(opened.end, End::Torn, "{cut}");
        }
        fill(&mut appender, 5, 1);
        verify(&disk, 7, Some(appender.position())).unwrap();
        disk.damage(&name, |bytes| bytes.clone_from(&whole));
    }
}

/// Every bit of every segment: named by `verify`, or it carried nothing.
#[test]
fn every_flipped_bit_is_named_or_carried_nothing() {
    let disk = Simulated::new(1 << 20, 1);
    let options = Options { segment_bytes: 6_000, ..OPTIONS };
    let (mut appender, _) = Appender::open(&disk, options, None).unwrap();
    fill(&mut appender, 1, 4);
    let (known, clean) = (appender.position(), verify(&disk, 7, None).unwrap());
    assert!(known.segment > 1);
    for ordinal in 1..=known.segment {
        let name = segment::name(ordinal);
        let len = disk.bytes(&name).unwrap().len();
        // Of the bytes that are zero on purpose one bit each.
        let blank = disk.bytes(&name).unwrap();
        for bit in (0..len * 8).filter(|bit| bit % 8 == 0 || blank[bit / 8] != 0) {
            let flip = |bytes: &mut Vec<u8>| bytes[bit / 8] ^= 1 << (bit % 8);
            disk.damage(&name, flip);
            match (verify(&disk, 7, Some(known)), verify(&disk, 7, None)) {
                // The byte carried nothing: the log says what it said.
                (Ok(with), Ok(without)) => assert_eq!((&with, &without), (&clean, &clean)),
                // The last frame: named as torn, and by the checkpoint as lost.
                (Err(Error::BelowCheckpoint { .. }), Ok(report)) => {
                    let torn = report.torn.expect("named");
                    assert_eq!(torn.segment, known.segment);
                }
                (Err(Error::Damaged { place, .. }), Err(_)) => {
                    // A header's bit may be found in the header itself or where it is needed.
                    assert!(place.segment >= ordinal.saturating_sub(1), "{place:?}");
                }
                other => panic!("segment {ordinal} bit {bit}: {other:?}"),
            }
            disk.damage(&name, flip);
        }
    }
}

#[test]
fn questions_are_answered_from_any_place() {
    let disk = Simulated::new(1 << 20, 1);
    let (mut appender, _) = open(&disk, None);
    fill(&mut appender, 1, 30);
    let last = query::tail(&disk, 7, 4, |head| head.key_id == 1).unwrap();
    assert_eq!(last.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [49, 52, 55, 58]);
    assert_eq!(last[3].record().unwrap().head.cost_picousd, 58);
    let sum = query::sum(&disk, 7, |head| head.key_id == 1).unwrap();
    assert_eq!(sum.cost_picousd, (1..=60).filter(|n| n % 3 == 1).sum());
    let mut seen = Vec::new();
    let next = query::scan(&disk, 7, 37, |seq, _, _| {
        seen.push(seq);
        seq < 39
    });
    assert_eq!((next.unwrap(), seen), (40, vec![37, 38, 39]));
    assert_eq!(query::scan(&disk, 7, 61, |_, _, _| true).unwrap(), 61);
    assert!(query::find(&disk, 7, [1; 16]).unwrap().is_none());
    assert_eq!(query::find(&disk, 7, [0; 16]).unwrap().unwrap().seq, 1);
    assert!(query::tail(&disk, 7, 0, |_| true).unwrap().is_empty());
}

#[test]
fn a_reader_beside_the_writer_sees_whole_commits() {
    let disk = Simulated::new(1 << 20, 1);
    let mut reader = Reader::first(&disk, 7).unwrap();
    assert!(reader.next().unwrap().is_none());
    let (mut appender, _) = open(&disk, None);
    let mut expected = 1;
    for n in 0..40 {
        fill(&mut appender, 1 + 2 * n, 1);
        reader.refresh().unwrap();
        while let Some(frame) = reader.next().unwrap() {
            assert_eq!(frame.head.first_seq, expected);
            expected = frame.head.next_seq();
        }
        assert_eq!(reader.position(), appender.position());
    }
}

#[test]
fn totals_of_a_checkpoint_are_compared_at_their_place() {
    let disk = Simulated::new(1 << 20, 1);
    let (mut appender, _) = open(&disk, None);
    fill(&mut appender, 1, 10);
    let checkpoint = appender.checkpoint().unwrap();
    fill(&mut appender, 21, 5);
    let examine = |balances: &Balances| {
        let known = Known {
            position: Some(checkpoint.position),
            balances: Some(balances),
            ..Known::default()
        };
        let mut report = Report::default();
        examine(&disk, 7, known, &mut report).map(|()| report)
    };
    let report = examine(&checkpoint.balances).unwrap();
    assert!(report.checkpoint_totals);
    assert_eq!(query::balances(&disk, 7, Some(&checkpoint)).unwrap(), *appender.balances());
    assert_eq!(query::balances(&disk, 7, None).unwrap(), *appender.balances());
    let (one, other) = (Account::key(1), Account::key(99));
    let mut wrong = checkpoint.balances.clone();
    wrong.set(one, Total { exchanges: 1, ..wrong.total(one) });
    let mut more = checkpoint.balances.clone();
    more.set(other, Total::default());
    let mut fewer = checkpoint.balances.clone();
    fewer.next_epoch();
    fewer.forget(one, fewer.epoch());
    for balances in [wrong, more, fewer] {
        let Err(Error::Damaged { place, damage }) = examine(&balances) else { panic!("it holds") };
        let at = checkpoint.position;
        assert_eq!((place.segment, place.offset), (at.segment, at.offset));
        assert_eq!(damage, Damage::Checkpoint);
    }
}

#[test]
fn a_report_says_how_far_it_holds_when_it_does_not() {
    let disk = Simulated::new(1 << 20, 1);
    let (mut appender, _) = open(&disk, None);
    fill(&mut appender, 1, 3);
    let (fourth, known) = (appender.position(), {
        fill(&mut appender, 7, 2);
        appender.position()
    });
    let offset = usize::try_from(fourth.offset).unwrap();
    disk.damage(&segment::name(fourth.segment), |bytes| bytes[offset + 200] ^= 1);
    let mut report = Report::default();
    let known = Known { position: Some(known), ..Known::default() };
    let Err(Error::Damaged { place, .. }) = examine(&disk, 7, known, &mut report) else {
        panic!("it holds")
    };
    assert_eq!((place.segment, place.offset), (fourth.segment, fourth.offset));
    assert_eq!((report.last_seq, report.frames), (6, 3));
    // Cut there, and not only flipped, it ends below what is known; the report says where.
    disk.damage(&segment::name(fourth.segment), |bytes| bytes[offset..].fill(0));
    let mut report = Report::default();
    let below = examine(&disk, 7, known, &mut report).unwrap_err();
    assert!(matches!(below, Error::BelowCheckpoint { log: 6, checkpoint: 10 }), "{below}");
    assert_eq!(report.last_seq, 6);
}
