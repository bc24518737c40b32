//! What was seen of a run: by clients, by upstreams, of the process. Written while it runs, judged
//! after it.

use gateway_tests::answer::Answer;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use store::record::Settled;
use tollgate::io::Io;
use tollgate::io::script::ScriptIo;

/// Lines of a trace that are kept; a run has some thousands.
const LINES_MAX: usize = 200_000;

/// How a client's call went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Got {
    /// The connection it was made on; none if it was never begun.
    pub(crate) connection: Option<usize>,
    pub(crate) begun_ns: u64,
    /// Its last byte was handed over.
    pub(crate) sent_ns: Option<u64>,
    /// When nothing more could come.
    pub(crate) over_ns: u64,
    /// A whole answer; one that the end of the connection delimits is here too.
    pub(crate) answer: Option<Answer>,
    /// The head of one that broke off, and what came of its body.
    pub(crate) partial: Option<Answer>,
    /// Interim answers before it.
    pub(crate) interim: u32,
    /// The client went away before the end of it.
    pub(crate) left: bool,
    /// The connection had been quiet for so long that the gateway may have given it up.
    pub(crate) idled: bool,
    /// An answer before it had said that the connection ends.
    pub(crate) after_close: bool,
    /// The connection ended with a reset.
    pub(crate) reset: bool,
}

/// A request as an upstream saw it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) call: usize,
    pub(crate) id: String,
    /// What the gateway called it, from 1.
    pub(crate) attempt: u8,
    pub(crate) provider: usize,
    /// The connection it came on, by provider.
    pub(crate) connection: usize,
    /// When its first byte was seen.
    pub(crate) begun_ns: u64,
    /// All of it was read.
    pub(crate) whole: bool,
    /// The candidates that its body can have been meant for, once all of it is here.
    pub(crate) candidates: Vec<usize>,
    /// Which of the call's replies it got.
    pub(crate) reply: usize,
    /// The reply was handed over to its last byte.
    pub(crate) replied: bool,
}

/// A life of the gateway.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    pub(crate) start: u32,
    pub(crate) to_ns: u64,
    /// It was killed, at this operation.
    pub(crate) killed: Option<&'static str>,
    /// When a drain was asked for.
    pub(crate) drained_ns: Option<u64>,
    /// Exchanges that its counters say were settled.
    pub(crate) records: u64,
    /// Exchanges and refusals that whoever listens was told of.
    pub(crate) told: Vec<Settled>,
    /// Refusals that left no record because there was no room for one.
    pub(crate) refusals_unrecorded: u64,
    /// Operations of its transport.
    pub(crate) operations: u64,
}

/// What the word of a budget's window said was spent, and at the end of which start.
pub(crate) type Words = BTreeMap<(u32, u32), (u32, u64)>;

/// Everything.
pub(crate) struct Notes {
    io: ScriptIo,
    pub(crate) life: Cell<usize>,
    pub(crate) lives: RefCell<Vec<Life>>,
    pub(crate) got: RefCell<Vec<Got>>,
    pub(crate) asked: RefCell<Vec<Asked>>,
    /// Instants at which keys stopped and began to be good, by key: the first entry is a stop.
    pub(crate) standing: RefCell<Vec<Vec<u64>>>,
    pub(crate) words: RefCell<Words>,
    pub(crate) faults: RefCell<Vec<String>>,
    trace: RefCell<Vec<String>>,
}

// === impl Notes ===

impl Notes {
    pub(crate) fn new(io: ScriptIo, calls: usize, keys: usize) -> Notes {
        Notes {
            io,
            life: Cell::new(0),
            lives: RefCell::default(),
            got: RefCell::new(vec![Got::default(); calls]),
            asked: RefCell::default(),
            standing: RefCell::new(vec![Vec::new(); keys]),
            words: RefCell::default(),
            faults: RefCell::default(),
            trace: RefCell::default(),
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.io.now().mono.0
    }

    /// Something that must not happen.
    pub(crate) fn fault(&self, what: String) {
        self.trace(|| format!("FAULT {what}"));
        self.faults.borrow_mut().push(what);
    }

    /// A line of the trace.
    pub(crate) fn trace(&self, line: impl FnOnce() -> String) {
        let mut trace = self.trace.borrow_mut();
        if trace.len() < LINES_MAX {
            let ns = self.now_ns();
            trace.push(format!("{:>8}.{:03} ms  {}", ns / 1_000_000, ns / 1000 % 1000, line()));
        }
    }

    pub(crate) fn take_trace(&self) -> Vec<String> {
        self.trace.take()
    }
}
