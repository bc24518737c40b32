//! The file of a slab out of a short script, for the fuzz target: a slab is mostly zeros, which
//! no fuzzer should have to carry.
//!
//! Script: header, published, freed, ring entries with their count, then slots, each with its
//! index and its length. Bound: [`FILE_BYTES_MAX`]; a larger geometry gets a short file.

use super::SlabId;
use super::map::{FREED, LAYOUT_VERSION, Layout, MAGIC, PAGE, PUBLISHED, RING, SlabHeader};
use crate::record;
use crate::wire::{Put, Take, Wire};

/// Small enough to be written some thousand times a second.
const FILE_BYTES_MAX: usize = 256 << 10;

/// The bytes of the file. `mend` says whose its header is made, and makes it one of this build.
pub(crate) fn file(take: &mut Take<'_>, mend: Option<(u64, SlabId)>) -> Option<Vec<u8>> {
    let mut header = SlabHeader::take(take)?;
    if let Some((node, id)) = mend {
        let (layout_version, record_version) = (LAYOUT_VERSION, record::VERSION.into());
        let slab = id.number();
        header = SlabHeader { magic: MAGIC, layout_version, record_version, node, slab, ..header };
    }
    let layout = Layout::of(header.geometry()).ok();
    let layout = layout.filter(|layout| layout.bytes <= FILE_BYTES_MAX);
    let mut bytes = vec![0; layout.map_or(2 * PAGE, |layout| layout.bytes)];
    put(&mut bytes, 0, &header);
    put(&mut bytes, PUBLISHED, &u64::take(take)?);
    put(&mut bytes, FREED, &u64::take(take)?);
    let entries = u8::take(take)?;
    for entry in 0..usize::from(entries) {
        put(&mut bytes, RING + 4 * entry, &u32::take(take)?);
    }
    while let (Some(index), Some(len)) = (u8::take(take), u16::take(take)) {
        let content = take.slice(take.left().min(len.into()))?;
        let slot = layout.and_then(|layout| layout.slot(index.into()));
        let Some((at, room)) = slot else { continue };
        if let Some(place) = bytes.get_mut(at..at + room.min(content.len())) {
            place.copy_from_slice(content.get(..place.len())?);
        }
    }
    Some(bytes)
}

fn put(bytes: &mut [u8], at: usize, field: &impl Wire) {
    field.put(&mut Put::new(bytes.get_mut(at..).unwrap_or_default()));
}

/// The script of a slab as it was found, for seeds.
#[cfg(test)]
pub(crate) fn script(file: &[u8], geometry: super::Geometry) -> Vec<u8> {
    let layout = Layout::of(geometry).unwrap();
    let mut script = file[..<SlabHeader as Wire>::BYTES].to_vec();
    script.extend(&file[PUBLISHED..][..8]);
    script.extend(&file[FREED..][..8]);
    let entries = u8::try_from(geometry.slots().next_power_of_two()).unwrap();
    script.push(entries);
    script.extend(&file[RING..][..4 * usize::from(entries)]);
    for index in 0..u8::try_from(geometry.slots()).unwrap() {
        let (at, room) = layout.slot(index.into()).unwrap();
        let content = &file[at..at + room];
        let len = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        if len > 0 {
            script.push(index);
            script.extend(u16::try_from(len).unwrap().to_le_bytes());
            script.extend(&content[..len]);
        }
    }
    script
}
