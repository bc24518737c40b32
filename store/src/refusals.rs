//! The refusals of a log from before its frames stated them apart (version 1 of `frame.rs`): summed
//! from their records, so that a key's calls and refusals can be told from each other from its
//! first record on.
//!
//! Read-only. It reads no further than the first frame that states them: a log that has none from
//! before costs one frame. Where old segments have been retired, their refusals are not known.

use crate::balance::Balances;
use crate::disk::Disk;
use crate::error::{Damage, Error, Result};
use crate::frame;
use crate::reader::Reader;
use crate::record::Record;

/// Completes totals as a checkpoint and the frames behind it give them: `known` is the
/// checkpoint's. What a frame has stated counts from the beginning and stays.
pub(crate) fn complete<D: Disk>(
    disk: &D,
    node: u64,
    known: Option<&Balances>,
    balances: &mut Balances,
) -> Result<()> {
    let stated = |known: &Balances| known.iter().any(|(account, _)| account.is_refusals());
    if known.is_some_and(stated) {
        return Ok(());
    }
    let mut before = Balances::default();
    let mut reader = Reader::first(disk, node)?;
    loop {
        let at = reader.position();
        let Some(frame) = reader.next()?.filter(|frame| frame.head.version < frame::VERSION) else {
            break;
        };
        for (_, bytes) in frame.records() {
            let record = Record::decode(bytes)
                .map_err(|_| Error::damaged(at.segment, at.offset, Damage::Content))?;
            before.add(&record.head, |_| {});
        }
    }
    for (account, total) in before.iter().filter(|(account, _)| account.is_refusals()) {
        if !balances.knows(account) {
            balances.set(account, total);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::appender::{Appender, Checkpoint, Options};
    use crate::balance::Account;
    use crate::disk::Folder;
    use crate::ending::Ending;
    use crate::query;
    use crate::record::Head;
    use crate::slab::tests::Memory;
    use crate::tail::Tail;
    use crate::verify::{Known, Report, examine};
    use std::path::Path;

    /// Three calls and two refusals of key 1, as version 1 wrote them.
    const BEFORE: &str = "tests/golden/log-v1";

    const NODE: u64 = 0x8975_6f59_d879_cf1c;

    /// The log of before, in a folder of this test's own.
    fn copied(memory: &Memory) -> Folder {
        let name = "ledger/seg-00000000000000000001.log";
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(BEFORE).join(name);
        std::fs::create_dir_all(memory.0.join("ledger")).unwrap();
        std::fs::copy(from, memory.0.join(name)).unwrap();
        Folder::existing(&memory.0.join("ledger")).unwrap()
    }

    fn open(disk: &Folder, checkpoint: Option<&Checkpoint>) -> Appender<Folder> {
        let options = Options { node: NODE, segment_bytes: 1 << 20 };
        Appender::open(disk.clone(), options, checkpoint).unwrap().0
    }

    fn counts(balances: &Balances, key: u64) -> [u64; 2] {
        [Account::key(key), Account::refusals(key)].map(|of| balances.total(of).exchanges)
    }

    fn refuse(appender: &mut Appender<Folder>, key_id: u64, settle_sequence: u64) {
        let ending = Ending::Refused;
        let head = Head { key_id, ending, slab: 77, settle_sequence, count: 4, ..Head::default() };
        let mut record = Vec::new();
        Record { head, tail: Tail::default() }.encode(512, &mut record);
        assert!(appender.push(&record, 0).unwrap());
        appender.commit().unwrap();
    }

    fn examined(disk: &Folder, checkpoint: &Checkpoint) {
        let (position, balances) = (Some(checkpoint.position), Some(&checkpoint.balances));
        let known = Known { position, balances, first_seq: 1 };
        let mut report = Report::default();
        examine(disk, NODE, known, &mut report).unwrap();
        assert!(report.checkpoint_totals);
    }

    /// As a checkpoint of before has them.
    fn without_refusals(checkpoint: &Checkpoint) -> Checkpoint {
        let mut balances = Balances::default();
        let kept = checkpoint.balances.iter().filter(|(account, _)| !account.is_refusals());
        kept.for_each(|(account, total)| balances.set(account, total));
        Checkpoint { balances, ..checkpoint.clone() }
    }

    #[test]
    fn a_log_of_before_tells_refusals_from_its_first_record_on() {
        let memory = Memory::new();
        let disk = copied(&memory);
        let before = query::balances(&disk, NODE, None).unwrap();
        assert_eq!(counts(&before, 1), [5, 2]);
        let mut appender = open(&disk, None);
        let told = appender.checkpoint().unwrap();
        let untold = without_refusals(&told);
        [&told, &untold].into_iter().for_each(|checkpoint| examined(&disk, checkpoint));
        // What is to be remembered has them, though no frame behind the checkpoint states them.
        let appender_of_before = open(&disk, Some(&untold));
        let changes = appender_of_before.changes().unwrap();
        assert!(changes.totals.iter().any(|stated| stated.account == Account::refusals(1)));
        drop(appender_of_before);
        refuse(&mut appender, 2, 1);
        refuse(&mut appender, 1, 2);
        let last = appender.checkpoint().unwrap();
        drop(appender);
        for checkpoint in [None, Some(&untold), Some(&told), Some(&last)] {
            let appender = open(&disk, checkpoint);
            assert_eq!(counts(appender.balances(), 1), [9, 6]);
            assert_eq!(counts(appender.balances(), 2), [4, 4]);
            assert_eq!(query::balances(&disk, NODE, checkpoint).unwrap(), *appender.balances());
        }
        for checkpoint in [&untold, &told, &last] {
            examined(&disk, checkpoint);
        }
        let lost = without_refusals(&last);
        let known =
            Known { position: Some(lost.position), balances: Some(&lost.balances), first_seq: 1 };
        assert!(
            examine(&disk, NODE, known, &mut Report::default()).is_err(),
            "they are due by now"
        );
    }
}
