use super::*;
use crate::ending::Ending;
use crate::error::Error;
use crate::frame::tests::hex;
use crate::record::{Head, Record, flag};
use crate::tail::Tail;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder on tmpfs of this test's own, gone when it ends.
pub(crate) struct Memory(pub(crate) PathBuf);

impl Memory {
    pub(crate) fn new() -> Memory {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Memory(PathBuf::from(format!("/dev/shm/store-test-{}-{count}", std::process::id())))
    }

    pub(crate) fn files(&self) -> Files {
        Files::make(&self.0, 7).unwrap()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) const ID: SlabId = SlabId { shard: 3, start: 12 };

pub(crate) fn small() -> Geometry {
    let class = |slot_bytes, slots| Class { slot_bytes, slots };
    Geometry { classes: [class(512, 4), class(1024, 2), class(2048, 1), class(4096, 1)] }
}

fn head(key_id: u64) -> Head {
    Head { key_id, ..Head::default() }
}

/// Where in the file each line with something in it stands.
fn dump(bytes: &[u8]) -> String {
    let lines = bytes.chunks(16).enumerate().filter(|(_, line)| line.iter().any(|byte| *byte > 0));
    lines.map(|(index, line)| format!("{:05x} {}", index * 16, hex(line))).collect()
}

#[test]
fn version_1_is_what_it_was() {
    let memory = Memory::new();
    let (mut slab, mut collector) = memory.files().create(ID, small()).unwrap();
    let [freed, done, priced, sent, open] = [1, 2, 3, 4, 5].map(|key_id| {
        // The last is of the next size class.
        let metadata = vec![b'x'; if key_id == 5 { 300 } else { 0 }];
        let tail = Tail { model_asked: "m", metadata: &metadata, ..Tail::default() };
        slab.open(&head(key_id), &tail).unwrap()
    });
    slab.done(freed, &head(1));
    collector.take(|_| Ok(true)).unwrap();
    collector.free().unwrap();
    for slot in [&priced, &sent] {
        slab.sent(slot, &head(4));
        slab.note(slot, &[11, 12, 13, 14, 15, 16, 17, 18], 0x1919);
    }
    slab.price(&priced, &head(3));
    slab.done(done, &Head { ending: Ending::Succeeded, ..head(2) });
    let golden = include_str!("../../tests/golden/slab-v1.hex");
    let file = std::fs::read(memory.0.join("slab-00003-0000000012")).unwrap();
    assert_eq!(file.len(), 20_480);
    assert_eq!(dump(&file), golden, "a change of the layout is a new version");
    drop((open, sent, priced));
}

#[test]
fn records_come_out_in_the_order_they_were_settled() {
    let memory = Memory::new();
    let (mut slab, mut collector) = memory.files().create(ID, small()).unwrap();
    let tail = Tail { model_asked: "m", ..Tail::default() };
    let mut next = 0;
    for round in 0..50 {
        let one = slab.open(&head(1), &tail).unwrap();
        let two = slab.open(&head(2), &tail).unwrap();
        slab.sent(&one, &head(1));
        slab.note(&one, &[1, 2, 3, 4, 5, 6, 7, 8], 99);
        slab.price(&one, &Head { tokens: [9; 8], ..head(1) });
        slab.done(two, &Head { ending: Ending::Refused, ..head(2) });
        slab.done(one, &Head { ending: Ending::Succeeded, tokens: [9; 8], ..head(1) });
        assert!(slab.refuse(&Head { ending: Ending::Refused, ..head(3) }, &tail));
        let mut keys = Vec::new();
        let taken = collector.take(|bytes| {
            let record = Record::decode(bytes).unwrap();
            next += 1;
            assert_eq!(record.head.settle_sequence, next);
            assert_eq!(record.head.slab, ID.number());
            assert_eq!(record.tail, tail);
            keys.push(record.head.key_id);
            Ok(true)
        });
        assert_eq!((taken.unwrap(), keys), (3, vec![2, 1, 3]), "{round}");
        assert_eq!(collector.count(), [5, 0, 0, 0, 3]);
        collector.free().unwrap();
        assert_eq!(slab.free(), [4, 2, 1, 1]);
    }
}

#[test]
fn no_free_slot_is_an_answer_and_a_slot_comes_back_only_when_it_is_durable() {
    let memory = Memory::new();
    let (mut slab, mut collector) = memory.files().create(ID, small()).unwrap();
    let none = Tail::default();
    let slots: Vec<Slot> = (0..4).map(|n| slab.open(&head(n), &none).unwrap()).collect();
    assert!(slab.open(&head(9), &none).is_none(), "large slots are not for small records");
    assert!(!slab.refuse(&head(9), &none));
    for slot in slots {
        slab.done(slot, &head(1));
    }
    let mut limit = 2;
    let taken = collector.take(|_| {
        limit -= 1;
        Ok(limit >= 0)
    });
    assert_eq!((taken.unwrap(), collector.pending()), (2, 2));
    assert!(slab.open(&head(9), &none).is_none());
    collector.free().unwrap();
    assert_eq!(slab.free(), [2, 2, 1, 1]);
}

#[test]
fn a_tail_goes_where_it_fits_or_is_cut() {
    let memory = Memory::new();
    let (mut slab, mut collector) = memory.files().create(ID, small()).unwrap();
    let metadata = vec![b'x'; 1000];
    let tail = Tail { model_asked: "asked", metadata: &metadata, ..Tail::default() };
    let fits = slab.open(&head(1), &tail).unwrap();
    assert_eq!(slab.free(), [4, 2, 0, 1]);
    let mut cut = slab.open(&head(2), &tail).unwrap();
    assert_eq!(slab.free(), [4, 1, 0, 1], "the next smaller one");
    slab.done(fits, &head(1));
    slab.sent(&cut, &head(2));
    let short = Tail { model_asked: "asked", model_sent: "other", ..Tail::default() };
    let third = slab.open(&head(3), &tail).unwrap();
    slab.attribute(&mut cut, &short);
    slab.done(cut, &head(2));
    slab.done(third, &head(3));
    let mut seen = Vec::new();
    let each = |bytes: &[u8]| {
        let record = Record::decode(bytes).unwrap();
        let (cut, metadata) = (record.head.has(flag::TAIL_CUT), record.tail.metadata.len());
        seen.push((cut, metadata, record.tail.model_sent.to_owned()));
        Ok(true)
    };
    collector.take(each).unwrap();
    assert_eq!(
        seen,
        [(false, 1000, String::new()), (false, 0, "other".to_owned()), (true, 0, String::new()),]
    );
}

#[test]
fn notes_are_in_the_record_of_whoever_looks() {
    let memory = Memory::new();
    let files = memory.files();
    let (mut slab, collector) = files.create(ID, small()).unwrap();
    let slot = slab.open(&head(5), &Tail::default()).unwrap();
    slab.sent(&slot, &head(5));
    slab.note(&slot, &[10, 0, 0, 0, 20, 0, 0, 5], 777);
    assert!(files.unrecovered().unwrap().is_empty(), "its process is alive");
    drop((slab, collector));
    let seen = files.unrecovered().unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].slab, seen[0].state), (ID, State::Sent));
    assert_eq!(seen[0].head.tokens, [10, 0, 0, 0, 20, 0, 0, 5]);
    assert_eq!((seen[0].head.relayed_bytes, seen[0].head.key_id), (777, 5));
    drop(slot);
}

#[test]
fn a_slab_is_one_nodes_and_one_processes() {
    let memory = Memory::new();
    let files = memory.files();
    let made = files.create(ID, small()).unwrap();
    assert!(matches!(files.open(ID), Ok(Opened::Live(_))));
    assert!(matches!(files.create(ID, small()), Err(Error::Io { .. })));
    drop(made);
    let foreign = Files::make(&memory.0, 8).unwrap();
    assert!(matches!(foreign.open(ID), Err(Error::Slab("of another node"))));
    assert!(matches!(files.open(ID), Ok(Opened::Dead(_))));
    assert_eq!(files.list().unwrap(), [ID]);
    // Interrupted while it was made: no magic.
    let path = memory.0.join("slab-00003-0000000012");
    std::fs::write(&path, [0; 8192]).unwrap();
    assert!(matches!(files.open(ID), Ok(Opened::Nothing)));
    assert!(files.list().unwrap().is_empty());
    std::fs::write(&path, [7; 8192]).unwrap();
    assert!(matches!(files.open(ID), Err(Error::Slab(_))));
}

/// Writes into a slab behind everyone's back.
pub(crate) fn damage(memory: &Memory, at: u64, bytes: &[u8]) {
    let file = std::fs::File::options().write(true).open(memory.files().path(ID)).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, bytes, at).unwrap();
}

#[test]
fn a_damaged_slab_is_collected_no_further() {
    let (published, freed, ring) = (128, 192, 4096);
    let most = u64::MAX.to_le_bytes();
    // Whoever has been there all along goes by what it freed itself.
    let cases = [
        (&[published][..], [false, false]),
        (&[freed], [true, false]),
        (&[published, freed], [false, true]),
    ];
    for (places, sound) in cases {
        let memory = Memory::new();
        let (slab, early) = memory.files().create(ID, small()).unwrap();
        places.iter().for_each(|place| damage(&memory, *place, &most));
        let Ok(Opened::Live(late)) = memory.files().open(ID) else { panic!("alive") };
        for (mut collector, sound) in [early, late].into_iter().zip(sound) {
            assert_eq!(collector.pending(), 0);
            assert_eq!(collector.take(|_| Ok(true)).is_ok(), sound, "{places:?}");
            assert_eq!(collector.skip_to(u64::MAX).is_ok(), sound);
            collector.free().unwrap();
        }
        drop(slab);
    }
    let memory = Memory::new();
    let (mut slab, mut collector) = memory.files().create(ID, small()).unwrap();
    assert!(slab.refuse(&head(1), &Tail::default()) && slab.refuse(&head(2), &Tail::default()));
    // The second entry names the first slot: its record would be in the log twice.
    damage(&memory, ring + 8, &0_u32.to_le_bytes());
    let mut keys = Vec::new();
    let taken = collector.take(|bytes| {
        keys.push(Record::decode(bytes).unwrap().head.key_id);
        Ok(true)
    });
    assert!(taken.is_err());
    assert_eq!(keys, [1]);
}

#[test]
fn a_slab_has_the_name_it_was_given() {
    let memory = Memory::new();
    let files = memory.files();
    drop(files.create(ID, small()).unwrap());
    // A copy would be recovered, and billed, once more.
    let other = SlabId { start: 13, ..ID };
    std::fs::copy(files.path(ID), files.path(other)).unwrap();
    assert!(matches!(files.open(other), Err(Error::Slab(_))));
    assert!(files.unrecovered().is_err());
    assert!(matches!(files.open(ID), Ok(Opened::Dead(_))));
}

#[test]
fn only_memory_will_do_and_only_sound_geometries() {
    let disk = std::env::current_dir().unwrap().join("src");
    assert!(matches!(Files::make(&disk, 7), Err(Error::NotMemory)));
    assert!(Geometry::default().is_sound());
    assert_eq!(Geometry::default().slots(), 35_136);
    let mut odd = small();
    odd.classes[1].slot_bytes = 1000;
    assert!(!odd.is_sound());
    odd.classes[1].slot_bytes = 512;
    assert!(!odd.is_sound(), "sizes grow");
    odd.classes = [Class { slot_bytes: 512, slots: 0 }; 4];
    assert!(!odd.is_sound());
    let memory = Memory::new();
    assert!(memory.files().create(ID, odd).is_err());
    assert!(memory.files().list().unwrap().is_empty(), "nothing is left of it");
}

#[test]
fn ids_are_numbers_and_back() {
    assert_eq!(SlabId::from_number(ID.number()), Some(ID));
    assert_eq!(SlabId::from_number(u64::MAX), None);
}
