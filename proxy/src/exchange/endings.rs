//! What an ending costs whose usage nobody reported, and how long an answer is read on for nobody.

use std::time::Duration;

/// What becomes of an answer whose client has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Left {
    /// It is read on for a short while, for its usage.
    #[default]
    DrainShort,
    /// It is read to its end.
    Drain,
    /// It is cut at once.
    Abort,
}

/// What is charged where the final count was not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unreported {
    /// What was noted, else an estimate of what passed; flagged.
    #[default]
    Charge,
    /// Nothing.
    Release,
}

/// The rules of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endings {
    /// The client left.
    pub left: Left,
    /// How long an answer is read on for [`Left::DrainShort`].
    pub drain_time: Duration,
    /// How many bytes of it.
    pub drain_bytes: u64,
    /// A success without usage.
    pub succeeded: Unreported,
    /// An answer that broke, was cut or ran out of time.
    pub broken: Unreported,
    /// An answer whose client left.
    pub gone: Unreported,
}

impl Default for Endings {
    fn default() -> Endings {
        Endings {
            left: Left::default(),
            drain_time: Duration::from_secs(5),
            drain_bytes: 256 * 1024,
            succeeded: Unreported::default(),
            broken: Unreported::default(),
            gone: Unreported::default(),
        }
    }
}
