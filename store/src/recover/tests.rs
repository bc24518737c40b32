use super::*;
use crate::appender::Options;
use crate::disk::simulated::{Faults, Simulated};
use crate::query;
use crate::record::flag;
use crate::slab::tests::{ID, Memory, damage, small};
use crate::slab::{Collector, Opened, Slab, Slot};
use crate::verify::verify;

const OPTIONS: Options = Options { node: 7, segment_bytes: 32 * 1024 };

fn head(key_id: u64) -> Head {
    Head { key_id, hold_picousd: 1000, ..Head::default() }
}

/// An exchange of each kind that a crash can find, with what is to come of it.
fn one_of_each(slab: &mut Slab) -> Vec<Slot> {
    let tail = Tail { model_asked: "m", ..Tail::default() };
    let open = slab.open(&head(1), &tail).unwrap();
    let sent = slab.open(&head(2), &tail).unwrap();
    slab.sent(&sent, &head(2));
    slab.note(&sent, &[10, 0, 0, 0, 7, 0, 0, 0], 500);
    let priced = slab.open(&head(3), &tail).unwrap();
    slab.sent(&priced, &head(3));
    slab.price(&priced, &Head { cost_picousd: 30, flags: flag::PRICED, ..head(3) });
    let done = slab.open(&head(4), &tail).unwrap();
    slab.sent(&done, &head(4));
    let settled = Head { cost_picousd: 40, ending: Ending::Succeeded, ..head(4) };
    slab.price(&done, &settled);
    slab.done(done, &settled);
    vec![open, sent, priced]
}

/// One pico-dollar a token that was noted.
fn charge(head: &mut Head, tail: &Tail<'_>) {
    assert_eq!(tail.model_asked, "m");
    head.cost_picousd = head.tokens.iter().map(|count| u64::from(*count)).sum();
    head.flags |= flag::CHARGED_NOTED;
}

fn dead(memory: &Memory) -> Option<Dead> {
    match memory.files().open(ID) {
        Ok(Opened::Dead(dead)) => Some(dead),
        other => {
            assert!(matches!(other, Err(Error::Io { .. })), "{other:?}");
            None
        }
    }
}

fn costs(disk: &Simulated) -> Vec<(u64, u64, Ending)> {
    let mut seen = Vec::new();
    query::scan(disk, 7, 1, |_, _, record| {
        seen.push((record.head.key_id, record.head.cost_picousd, record.head.ending));
        true
    })
    .unwrap();
    seen.sort_unstable();
    seen
}

const EXPECTED: [(u64, u64, Ending); 4] = [
    (1, 0, Ending::Orphaned),
    (2, 17, Ending::Orphaned),
    (3, 30, Ending::Unknown),
    (4, 40, Ending::Succeeded),
];

#[test]
fn each_state_ends_as_it_must_and_the_slab_goes() {
    let (memory, disk) = (Memory::new(), Simulated::new(1 << 20, 1));
    let made = memory.files().create(ID, small());
    let (mut slab, collector) = made.unwrap();
    let held = one_of_each(&mut slab);
    drop((slab, collector, held));
    let (mut appender, _) = Appender::open(&disk, OPTIONS, None).unwrap();
    let recovered = recover(dead(&memory).unwrap(), &mut appender, 99, charge).unwrap();
    let expected = Recovered { known: 0, settled: 1, confirmed: 1, charged: 1, released: 1 };
    assert_eq!(recovered, expected);
    assert_eq!(costs(&disk), EXPECTED);
    assert!(memory.files().list().unwrap().is_empty());
    verify(&disk, 7, Some(appender.position())).unwrap();
}

/// The collector had appended but not freed, or not even taken, when the process died.
#[test]
fn what_the_log_has_is_not_appended_again() {
    for commit in [false, true] {
        let (memory, disk) = (Memory::new(), Simulated::new(1 << 20, 1));
        let (mut slab, mut collector) = memory.files().create(ID, small()).unwrap();
        let held = one_of_each(&mut slab);
        {
            let (mut appender, _) = Appender::open(&disk, OPTIONS, None).unwrap();
            collector.take(|bytes| appender.push(bytes, 0)).unwrap();
            if commit {
                appender.commit().unwrap();
            }
        }
        drop((slab, collector, held));
        let (mut appender, _) = Appender::open(&disk, OPTIONS, None).unwrap();
        let recovered = recover(dead(&memory).unwrap(), &mut appender, 99, charge).unwrap();
        assert_eq!((recovered.known, recovered.settled), (commit.into(), (!commit).into()));
        assert_eq!(costs(&disk), EXPECTED);
        verify(&disk, 7, Some(appender.position())).unwrap();
    }
}

/// Recovery dies after any of its steps: settled in the slab, appended but not freed, freed but
/// not removed, with a disk that fails meanwhile.
#[test]
fn a_crash_during_recovery_changes_nothing() {
    for died_after in 0..4 {
        let (memory, disk) = (Memory::new(), Simulated::new(1 << 20, 1));
        let (mut slab, collector) = memory.files().create(ID, small()).unwrap();
        let held = one_of_each(&mut slab);
        drop((slab, collector, held));
        {
            let (mut appender, _) = Appender::open(&disk, OPTIONS, None).unwrap();
            let first = dead(&memory).unwrap();
            let mark = appender.settled(ID.number());
            let (_, waiting) = settle(&first, mark, 99, charge).unwrap();
            match died_after {
                0 => {}
                1 => {
                    disk.arm(Faults { sync_fails_at: 2, ..Faults::default() });
                    assert!(append(&first, &mut appender, &waiting).is_err());
                }
                2 => append(&first, &mut appender, &waiting[..2]).unwrap(),
                _ => append(&first, &mut appender, &waiting).unwrap(),
            }
        }
        disk.arm(Faults::default());
        let (mut appender, _) = Appender::open(&disk, OPTIONS, None).unwrap();
        recover(dead(&memory).unwrap(), &mut appender, 100, charge).unwrap();
        assert_eq!(costs(&disk), EXPECTED, "died after step {died_after}");
        assert!(dead(&memory).is_none());
        verify(&disk, 7, Some(appender.position())).unwrap();
    }
}

#[test]
fn a_slab_of_a_draining_process_is_collected_and_not_recovered() {
    let (memory, disk) = (Memory::new(), Simulated::new(1 << 20, 1));
    let (mut slab, mine) = memory.files().create(ID, small()).unwrap();
    let mut held = one_of_each(&mut slab);
    drop(mine);
    let Ok(Opened::Live(mut collector)) = memory.files().open(ID) else { panic!("alive") };
    let (mut appender, _) = Appender::open(&disk, OPTIONS, None).unwrap();
    let mut collect = |collector: &mut Collector| {
        collector.skip_to(appender.settled(ID.number())).unwrap();
        let taken = collector.take(|bytes| appender.push(bytes, 0)).unwrap();
        appender.commit().unwrap();
        collector.free().unwrap();
        taken
    };
    assert_eq!(collect(&mut collector), 1);
    let priced = held.pop().unwrap();
    slab.done(priced, &Head { cost_picousd: 30, ending: Ending::Succeeded, ..head(3) });
    assert_eq!(collect(&mut collector), 1);
    drop((slab, held, collector));
    let recovered = recover(dead(&memory).unwrap(), &mut appender, 99, charge).unwrap();
    assert_eq!((recovered.known, recovered.settled, recovered.charged), (0, 0, 1));
    assert_eq!(costs(&disk).len(), 4);
}

/// Appended, such a record would make of a sound log one that is not.
#[test]
fn what_the_log_could_not_say_again_is_not_appended() {
    let (slot, record) = (8192, 4);
    let (slab, ending) = (4 + 168, 4 + 47);
    for (at, byte) in [(slab, 1), (ending, 0)] {
        let (memory, disk) = (Memory::new(), Simulated::new(1 << 20, 1));
        let (mut slab, collector) = memory.files().create(ID, small()).unwrap();
        let tail = Tail { model_asked: "m", ..Tail::default() };
        assert!(slab.refuse(&Head { ending: Ending::Refused, ..head(1) }, &tail));
        drop((slab, collector));
        damage(&memory, slot + record + at, &[byte]);
        let (mut appender, _) = Appender::open(&disk, OPTIONS, None).unwrap();
        for _ in 0..2 {
            let recovered = recover(dead(&memory).unwrap(), &mut appender, 99, charge);
            assert!(matches!(recovered, Err(Error::Slab(_))), "{at}: {recovered:?}");
            assert_eq!((appender.pending(), costs(&disk).len()), (0, 0));
        }
    }
}

#[test]
fn settle_sequences_that_are_used_up_are_damage() {
    let memory = Memory::new();
    let (mut slab, collector) = memory.files().create(ID, small()).unwrap();
    let held = one_of_each(&mut slab);
    drop((slab, collector, held));
    let settled = settle(&dead(&memory).unwrap(), u64::MAX, 99, charge);
    assert!(matches!(settled, Err(Error::Slab(_))), "{settled:?}");
}

#[test]
fn a_gap_in_a_slab_is_damage() {
    let (memory, disk) = (Memory::new(), Simulated::new(1 << 20, 1));
    let (mut slab, mut collector) = memory.files().create(ID, small()).unwrap();
    assert!(slab.refuse(&head(1), &Tail::default()));
    // Freed although the log never got it.
    collector.take(|_| Ok(true)).unwrap();
    collector.free().unwrap();
    drop((slab, collector));
    let (mut appender, _) = Appender::open(&disk, OPTIONS, None).unwrap();
    let recovered = recover(dead(&memory).unwrap(), &mut appender, 99, charge);
    assert!(matches!(recovered, Err(Error::Slab("settled records are missing from it"))));
}
