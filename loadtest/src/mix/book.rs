//! What became of the requests of each class. Bound: `EXAMPLES_MAX` unexpected outcomes are
//! remembered per class, the rest counted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::class::Class;
use crate::latency::{histogram, record};

/// Examples of unexpected outcomes kept per class.
const EXAMPLES_MAX: usize = 3;

/// What became of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    /// A whole answer.
    Status(u16),
    /// A whole stream, its terminator included.
    Stream,
    /// A stream that ends in order, its last event an error.
    StreamError,
    /// A stream that ends in order with neither.
    StreamOpen,
    /// An answer with other content than the stand-in sends.
    Differs,
    /// The connection ended within the answer.
    Cut,
    /// It ended before a byte of the answer.
    Closed,
    /// The answer cannot be framed.
    Invalid,
    /// No answer in time.
    TimedOut,
    /// We left, as the class does.
    Left,
    /// No connection could be made.
    Unreachable,
}

impl Outcome {
    /// Its name in classes and reports.
    pub(super) fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Outcome::Status(200) => "200",
            Outcome::Status(status) => return Cow::Owned(status.to_string()),
            Outcome::Stream => "stream",
            Outcome::StreamError => "stream-error",
            Outcome::StreamOpen => "stream-open",
            Outcome::Differs => "differs",
            Outcome::Cut => "cut",
            Outcome::Closed => "closed",
            Outcome::Invalid => "invalid",
            Outcome::TimedOut => "timed-out",
            Outcome::Left => "left",
            Outcome::Unreachable => "unreachable",
        })
    }

    /// Whether it is an answer that came to its end.
    pub(super) fn answered(self) -> bool {
        match self {
            Outcome::Status(_)
            | Outcome::Stream
            | Outcome::StreamError
            | Outcome::StreamOpen
            | Outcome::Differs => true,
            Outcome::Cut
            | Outcome::Closed
            | Outcome::Invalid
            | Outcome::TimedOut
            | Outcome::Left
            | Outcome::Unreachable => false,
        }
    }
}

/// The page of one class.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) outcomes: BTreeMap<Outcome, u64>,
    pub(super) latency_us: Option<Histogram<u64>>,
    pub(super) unexpected: u64,
    pub(super) examples: Vec<String>,
}

/// One page a class, and what concerns no class.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) pages: Vec<Page>,
    pub(super) connections: u64,
    /// Bytes that came when no answer was due.
    pub(super) surplus: u64,
}

impl Book {
    pub(super) fn new(classes: &[Class]) -> Book {
        let page = |_| Page {
            outcomes: BTreeMap::new(),
            latency_us: None,
            unexpected: 0,
            examples: Vec::new(),
        };
        Book { pages: classes.iter().map(page).collect(), connections: 0, surplus: 0 }
    }

    /// Notes an outcome; the latency of answers alone is kept.
    pub(super) fn note(
        &mut self,
        classes: &[Class],
        class: usize,
        outcome: Outcome,
        latency: Duration,
    ) {
        let page = &mut self.pages[class];
        let count = page.outcomes.entry(outcome).or_insert(0);
        *count += 1;
        if outcome.answered() {
            record(page.latency_us.get_or_insert_with(histogram), latency);
        }
        if !expects(&classes[class], outcome) {
            page.unexpected += 1;
            if page.examples.len() < EXAMPLES_MAX {
                page.examples.push(format!("{} after {latency:?}", outcome.name()));
            }
        }
    }
}

fn expects(class: &Class, outcome: Outcome) -> bool {
    let name = outcome.name();
    class.expect.iter().any(|expected| *expected == name)
}
