use super::*;
use crate::appender::{Appender, Options};
use crate::disk::simulated::Simulated;
use crate::ending::Ending;
use crate::record::{Head, Record};
use crate::tail::Tail;
use std::cell::Cell;
use std::io;
use std::rc::Rc;

/// A folder beside whose reader somebody writes: the first look at a place shows zeros, every
/// later one what is there.
#[derive(Clone)]
struct Late {
    disk: Simulated,
    /// Where the first look is too early, and whether it has been.
    place: Rc<Cell<Option<u64>>>,
}

struct LateFile {
    file: <Simulated as Disk>::File,
    place: Rc<Cell<Option<u64>>>,
}

impl Disk for Late {
    type File = LateFile;

    fn create(&self, _: &str) -> io::Result<LateFile> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn open(&self, _: &str) -> io::Result<LateFile> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn open_to_read(&self, name: &str) -> io::Result<LateFile> {
        Ok(LateFile { file: self.disk.open_to_read(name)?, place: self.place.clone() })
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.disk.names()
    }

    fn sync_names(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl DiskFile for LateFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(buffer, offset)?;
        if self.place.get() == Some(offset) {
            self.place.set(None);
            buffer[..read].fill(0);
        }
        Ok(read)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn allocate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

#[test]
fn a_frame_that_becomes_whole_while_it_is_judged_is_no_hole() {
    let disk = Simulated::new(1 << 20, 1);
    let options = Options { node: 7, segment_bytes: 64 * 1024 };
    let (mut appender, _) = Appender::open(disk.clone(), options, None).unwrap();
    let mut places = Vec::new();
    for settle_sequence in 1..=3 {
        let ending = Ending::Succeeded;
        let head = Head { slab: 1, settle_sequence, ending, ..Head::default() };
        let mut bytes = Vec::new();
        Record { head, tail: Tail::default() }.encode(512, &mut bytes);
        assert!(appender.push(&bytes, 0).unwrap());
        appender.commit().unwrap();
        places.push(appender.position().offset - appender.position().frame_bytes);
    }
    let late = Late { disk, place: Rc::new(Cell::new(Some(places[1]))) };
    let mut reader = Reader::first(&late, 7).unwrap();
    let mut frames = 0;
    while reader.next().unwrap().is_some() {
        frames += 1;
    }
    assert_eq!((frames, late.place.get()), (3, None));
}
