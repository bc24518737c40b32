//! The ledger thread's side of a record: out of the slab, into the log, the slot free again. Slabs
//! are of the default size, on tmpfs.

use super::slot::{Home, exchange};
use store::appender::{Appender, Options};
use store::disk::Folder;
use store::segment;
use store::slab::{Collector, Files, Geometry, Slab, SlabId};

/// One more slab.
pub(crate) fn slab(home: &Home, start: u32) -> store::error::Result<(Slab, Collector)> {
    Files::make(&home.memory, 1)?.create(SlabId { shard: 0, start }, Geometry::default())
}

/// A slab and the log its records go to.
pub(crate) struct Log {
    slab: Slab,
    collector: Collector,
    appender: Appender<Folder>,
    keys: u64,
    count: u64,
}

impl Log {
    /// A log on a disk, its first segment made ahead as the program does. `keys` take turns.
    pub(crate) fn new(home: &Home, start: u32, keys: u64) -> store::error::Result<Log> {
        let (slab, collector) = slab(home, start)?;
        let made = Folder::make(&home.disk.join(format!("log-{start}")));
        let what = "making the bench's folder";
        let disk = made.map_err(|source| store::error::Error::Io { what, source })?;
        segment::prepare(&disk, segment::SEGMENT_BYTES)?;
        let options = Options { node: 1, segment_bytes: segment::SEGMENT_BYTES };
        let (appender, _) = Appender::open(disk, options, None)?;
        Ok(Log { slab, collector, appender, keys, count: 0 })
    }

    /// The shard's part: so many settled records.
    pub(crate) fn settle(&mut self, records: u64) {
        for _ in 0..records {
            assert!(exchange(&mut self.slab, self.count, self.keys), "a slot is free");
            self.count += 1;
        }
    }

    /// The thread's part: all of them taken, committed and freed.
    pub(crate) fn commit(&mut self) -> store::error::Result<u64> {
        let (mut taken, appender) = (0, &mut self.appender);
        while self.collector.pending() > 0 {
            // Until the batch is full.
            taken += self.collector.take(|record| appender.push(record, 0))?;
            appender.commit()?;
            self.collector.free()?;
        }
        Ok(taken)
    }
}
