//! The event in progress: its name, how its data begins, and the scan of its data.
//!
//! Bound: a name of [`NAME_MAX`] bytes and one scan, whatever the size of the event.

use super::Dialect;
use super::done::Done;
use super::splitter::{Field, Line};
use super::verdict::{Seen, Verdict, judge};
use crate::json::{EventType, ReplyFacts, ReplyScan};

/// Bytes of a name that are kept; the longest known one has 20, a longer one is unknown.
const NAME_MAX: usize = 24;

/// An event of which the blank line has not come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    name: [u8; NAME_MAX],
    /// More than [`NAME_MAX`]: no known name.
    name_length: usize,
    /// A line of data was begun: without one there is no event for a reader.
    has_data: bool,
    done: Done,
    scan: ReplyScan,
}

impl Event {
    pub(super) fn new() -> Self {
        Self {
            name: [0; NAME_MAX],
            name_length: 0,
            has_data: false,
            done: Done::new(),
            scan: ReplyScan::new(),
        }
    }

    /// The next event begins.
    pub(super) fn restart(&mut self) {
        self.name_length = 0;
        if self.has_data {
            self.has_data = false;
            self.done = Done::new();
            self.scan.restart();
        }
    }

    /// A line of it, or a part of one.
    #[inline(always)]
    pub(super) fn take(&mut self, line: &Line<'_>) {
        match line.field {
            Field::Data => {
                if line.opens && self.has_data {
                    // Lines of data are joined by LF.
                    self.data(b"\n");
                }
                self.has_data = true;
                self.data(line.value);
            }
            Field::Event => self.name(line),
            Field::Id | Field::Retry | Field::Comment | Field::Unknown => {}
        }
    }

    fn data(&mut self, piece: &[u8]) {
        self.done.push(piece);
        self.scan.feed(piece);
    }

    /// The last `event:` line counts.
    fn name(&mut self, line: &Line<'_>) {
        let start = if line.opens { 0 } else { self.name_length };
        let end = start.saturating_add(line.value.len());
        if let Some(place) = self.name.get_mut(start..end) {
            place.copy_from_slice(line.value);
        }
        self.name_length = end;
    }

    fn named(&self) -> Option<EventType> {
        match self.name.get(..self.name_length) {
            Some(b"") => None,
            Some(name) => Some(EventType::of(name)),
            None => Some(EventType::Other),
        }
    }

    /// What its data says.
    pub(super) fn facts(&self) -> &ReplyFacts {
        self.scan.finish()
    }

    /// Whether its data, as far as it is here, is all of a document.
    pub(super) fn is_complete(&self) -> bool {
        self.done.is_whole() || self.facts().complete
    }

    /// What it is so far.
    pub(super) fn verdict(&self, dialect: Dialect) -> Verdict {
        let named = self.named();
        if !self.has_data && named.is_none() {
            return Verdict::SILENT;
        }
        judge(dialect, &Seen { named, done: self.done.is_whole(), facts: self.facts() })
    }

    /// What it is, now that it is whole.
    pub(super) fn close(&self, dialect: Dialect) -> Verdict {
        if self.has_data { self.verdict(dialect) } else { Verdict::SILENT }
    }
}
