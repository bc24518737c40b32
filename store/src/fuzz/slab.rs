//! A slab of fuzzed bytes, found dead or alive: it is recovered into a log that `verify` calls
//! sound, or it is an error; never a panic, never a walk without an end.

use super::{DISK_BYTES, NODE};
use crate::appender::{Appender, Options};
use crate::disk::simulated::Simulated;
use crate::ending::Release;
use crate::query;
use crate::record::Head;
use crate::recover::{recover, settle};
use crate::slab::{Collector, Dead, Files, Opened, SlabId, fuzzed};
use crate::tail::Tail;
use crate::verify;
use crate::wire::{Take, Wire};
use std::fs::File;
use std::path::Path;

/// The slab.
const ID: SlabId = SlabId { shard: 3, start: 12 };

/// Bits of the first byte.
pub(super) mod kind {
    /// The header is made right.
    pub(crate) const MENDED: u8 = 1;
    /// A process holds it.
    pub(crate) const LIVE: u8 = 2;
    /// The file is cut.
    pub(crate) const CUT: u8 = 4;
    /// The log has some of it.
    pub(crate) const KNOWN: u8 = 8;
}

const OPTIONS: Options = Options { node: NODE, segment_bytes: 64 << 10 };

/// A slab, in a folder on tmpfs that is this call's alone. Answers whether it was recovered, or
/// collected, with all that is in it.
pub fn slab(folder: &Path, data: &[u8]) -> bool {
    let mut take = Take::new(data);
    let (Some(flags), Some(mark)) = (u8::take(&mut take), u64::take(&mut take)) else {
        return false;
    };
    let has = |flag| flags & flag != 0;
    let mended = has(kind::MENDED).then_some((NODE, ID));
    let Some(mut bytes) = fuzzed::file(&mut take, mended) else { return false };
    if has(kind::CUT) {
        bytes.truncate(bytes.len() * 3 / 4);
    }
    let Ok(files) = Files::make(folder, NODE) else { return false };
    let path = files.path(ID);
    assert!(std::fs::write(&path, bytes).is_ok(), "tmpfs has room");
    let holder = File::open(&path).ok().filter(|_| has(kind::LIVE));
    assert!(holder.as_ref().is_none_or(|file| file.try_lock().is_ok()), "nobody else's");
    let _ = files.unrecovered();
    let whole = match files.open(ID) {
        Ok(Opened::Live(collector)) => collect(collector, mark),
        Ok(Opened::Dead(dead)) if has(kind::KNOWN) => settle(&dead, mark, 99, charge).is_ok(),
        Ok(Opened::Dead(dead)) => bury(&files, dead),
        Ok(Opened::Nothing) | Err(_) => false,
    };
    // A run that ends leaves nothing in memory; a crash leaves what it was about.
    assert!(std::fs::remove_dir_all(folder).is_ok(), "the folder is this call's");
    whole
}

/// Recovered, it is gone and the log is sound; refused, it is refused again.
fn bury(files: &Files, dead: Dead) -> bool {
    let disk = Simulated::new(DISK_BYTES, 1);
    let Ok((mut appender, _)) = Appender::open(&disk, OPTIONS, None) else { return false };
    if recover(dead, &mut appender, 99, charge).is_ok() {
        let report = verify::verify(&disk, NODE, Some(appender.position()));
        assert!(report.is_ok(), "a recovered slab makes a sound log: {report:?}");
        assert!(query::scan(&disk, NODE, 1, |_, _, _| true).is_ok());
        assert!(files.list().is_ok_and(|left| left.is_empty()), "it is gone");
        return true;
    }
    // Nothing may be pending when recovery begins: it counts as being in the log.
    let Ok(_) = appender.commit() else { return false };
    let Ok(Opened::Dead(again)) = files.open(ID) else { return false };
    assert!(recover(again, &mut appender, 100, charge).is_err(), "damage does not heal");
    false
}

/// Takes everything out of a slab that is being written, as the ledger thread does.
fn collect(mut collector: Collector, mark: u64) -> bool {
    let disk = Simulated::new(DISK_BYTES, 1);
    let Ok((mut appender, _)) = Appender::open(&disk, OPTIONS, None) else { return false };
    let slots = u64::from(collector.count().iter().sum::<u32>());
    assert!(collector.pending() <= slots, "what is settled has a slot");
    if mark > 0 && collector.skip_to(mark).is_err() {
        return false;
    }
    let Ok(taken) = collector.take(|bytes| appender.push(bytes, 0)) else { return false };
    assert!(taken <= slots, "no slot is taken twice");
    appender.commit().is_ok() && collector.free().is_ok()
}

fn charge(head: &mut Head, _: &Tail<'_>) {
    head.release = Release::None;
    head.cost_picousd = head.tokens.iter().map(|count| u64::from(*count)).sum();
}
