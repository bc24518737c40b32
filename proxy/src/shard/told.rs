//! Copies of settled records on their way from a shard to whoever tells of them: all of them, or
//! those alone in which something went wrong. A queue without room loses the copy, never the
//! record; a shard does not wait.

use crossbeam_queue::ArrayQueue;
use store::ending::Ending;
use store::record::Settled;

/// The queue of one shard.
pub struct Told {
    queue: ArrayQueue<Settled>,
    troubled_only: bool,
}

impl Told {
    /// For whoever wants all of them.
    pub fn all(room: usize) -> Told {
        Told { queue: ArrayQueue::new(room), troubled_only: false }
    }

    /// For whoever only looks for trouble.
    pub fn troubled(room: usize) -> Told {
        Told { queue: ArrayQueue::new(room), troubled_only: true }
    }

    /// Leaves a copy, if it is wanted. False if there is no room for it.
    pub fn tell(&self, record: &Settled) -> bool {
        if self.troubled_only && !is_troubled(record) {
            return true;
        }
        self.queue.push(*record).is_ok()
    }

    /// The oldest.
    pub fn pop(&self) -> Option<Settled> {
        self.queue.pop()
    }
}

/// Whether there may be anything in it for whoever looks for trouble: a record is looked at more
/// closely where there is time.
fn is_troubled(record: &Settled) -> bool {
    let well = matches!(record.ending, Ending::Succeeded | Ending::ClientLeft | Ending::Refused);
    !well || record.attempts > 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::record::Head;

    fn record(ending: Ending, attempts: u8) -> Settled {
        Settled { head: Head { ending, attempts, ..Head::default() }, ..Settled::default() }
    }

    #[test]
    fn who_looks_for_trouble_is_not_told_of_what_went_well() {
        let (all, troubled) = (Told::all(8), Told::troubled(8));
        for (ending, attempts, told) in [
            (Ending::Succeeded, 1, false),
            (Ending::Refused, 0, false),
            (Ending::ClientLeft, 1, false),
            (Ending::Succeeded, 2, true),
            (Ending::UpstreamCut, 1, true),
            (Ending::Internal, 0, true),
        ] {
            assert!(all.tell(&record(ending, attempts)) && all.pop().is_some());
            assert!(troubled.tell(&record(ending, attempts)));
            assert_eq!(troubled.pop().is_some(), told, "{ending:?} {attempts}");
        }
    }

    #[test]
    fn without_room_it_says_so() {
        let told = Told::all(1);
        assert!(told.tell(&Settled::default()));
        assert!(!told.tell(&Settled::default()));
        assert!(told.pop().is_some() && told.pop().is_none());
    }
}
