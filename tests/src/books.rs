//! The slab of one scenario, on tmpfs, and what its collector finds once the shard has ended:
//! every record once, in the order of settlement, and not one slot left in use.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use store::ending::Ending;
use store::record::{Record, Settled};
use store::slab::{Class, Collector, Files, Geometry, Slab, SlabId};

/// Few slots: a scenario has a handful of exchanges at once.
pub(crate) const FEW: Geometry = Geometry {
    classes: [
        Class { slot_bytes: 512, slots: 4096 },
        Class { slot_bytes: 2048, slots: 8 },
        Class { slot_bytes: 8192, slots: 2 },
        Class { slot_bytes: 24 * 1024, slots: 2 },
    ],
};

/// The collector's side of a scenario's slab.
#[derive(Debug)]
pub struct Books {
    collector: Collector,
    folder: PathBuf,
}

impl Books {
    /// A fresh slab and its collector.
    ///
    /// # Panics
    ///
    /// Where there is no tmpfs to have it on.
    #[must_use]
    pub fn open(geometry: Geometry) -> (Slab, Books) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tollgate-tests-{}-{number}", std::process::id());
        let folder = PathBuf::from("/dev/shm").join(name);
        let made = Files::make(&folder, 7)
            .and_then(|files| files.create(SlabId { shard: 0, start: 1 }, geometry));
        let (slab, collector) = made.unwrap_or_else(|error| panic!("no slab: {error}"));
        (slab, Books { collector, folder })
    }

    /// Exchanges and refusals, after the shard's end.
    pub(crate) fn settled(mut self) -> (Vec<Settled>, Vec<Settled>) {
        let mut records = Vec::new();
        let taken = self.collector.take(|bytes| {
            let record = Record::decode(bytes).unwrap_or_else(|why| panic!("{why:?}"));
            records.push(Settled::from(&record));
            Ok(true)
        });
        let taken = taken.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(taken, records.len() as u64);
        self.collector.free().unwrap_or_else(|error| panic!("{error}"));
        let [free, used @ ..] = self.collector.count();
        assert_eq!(used, [0; 4], "slots left in use, by state");
        assert_eq!(free, FEW.slots());
        records.into_iter().partition(|record| record.ending != Ending::Refused)
    }
}

impl Drop for Books {
    fn drop(&mut self) {
        // What cannot be removed is left to the end of the machine; a test has failed by then.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
